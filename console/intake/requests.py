"""Requests through the door: the digest first, then the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pydantic import ValidationError

from console.fleet.facts import ActionFact, ChoiceFact, DecisionFact, FieldFact, OptionFact, RequestFact, RequestKey
from console.intake.bounds import (
    KEEP_CHOICES,
    KEEP_ID,
    KEEP_LINE,
    KEEP_LIST,
    Reading,
    Room,
    a_line,
    a_prose,
    line,
    shown_json,
)
from console.intake.unknown import unknown_members
from watchfloor.canonical import subject_digest
from watchfloor.errors import CanonicalError
from watchfloor.protocol.lines import action_line
from watchfloor.protocol.model import Action, Decision, FormField, Option, RequestModel, Subject
from watchfloor.text import Clean, clean, clean_line, count_hidden
from watchfloor.words import RequestKind

ONE_LINE: Final = 1_000
"""Code points of an action that are kept for places of one line."""

_KINDS: Final = {kind.value: kind for kind in RequestKind}


def request_fact(key: RequestKey, request: RequestModel, reading: Reading, fault: str = "") -> RequestFact:
    """A request as an operator may read it. One that cannot be trusted carries its `fault` and is never decidable.

    `fault`: why it could not be read before it came here.
    """
    digest = ""
    try:
        digest = subject_digest(request.subject)
    except CanonicalError as error:
        fault = fault or f"it has no canonical form: {error}"
    subject: Subject | None = None
    try:
        subject = request.read()
        fault = fault or _doubt(key, subject) or _too_much(subject)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        fault = fault or f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    kind = request.subject.get("kind")
    room = Room()
    unknown, unknown_count = unknown_members(request.subject) if subject else ((), 0)
    return RequestFact(
        key=key,
        attempt=reading.a_count("attempt", subject.attempt) if subject else None,
        kind=subject.kind if subject else _KINDS.get(kind if isinstance(kind, str) else "", RequestKind.APPROVAL),
        actions=tuple(_action(action, room, reading) for action in subject.actions[:KEEP_LIST]) if subject else (),
        fields=tuple(field_fact(field) for field in subject.fields[:KEEP_LIST]) if subject else (),
        options=tuple(_option(option) for option in subject.options[:KEEP_LIST]) if subject else (),
        per_action=request.per_action,
        asked_at=reading.time("asked_at", request.asked_at),
        deadline=reading.a_time("deadline", request.deadline),
        at_deadline=_at_deadline(request.at_deadline, subject.options if subject else ()),
        blocks=request.blocks,
        about=a_prose(request.about),
        state=request.state,
        decision=decision_fact(request.decision, reading),
        digest=digest,
        sound=bool(digest) and digest == request.digest,
        fault=line(fault) if fault else None,
        unknown=unknown,
        unknown_count=unknown_count,
    )


def _doubt(key: RequestKey, subject: Subject) -> str:
    """Why a subject that can be read must still not be decided."""
    if subject.session != key.session:
        return f"it names another session: {subject.session[:KEEP_ID]}"
    if len({option.id for option in subject.options}) != len(subject.options):
        return "two of its options have the same id"
    if len({field.name for field in subject.fields}) != len(subject.fields):
        return "two of its fields have the same name"
    return ""


def _too_much(subject: Subject) -> str:
    """Why a subject cannot be shown whole, and so not be decided: a list of it is too long to read, or an id."""
    for name, members in (("actions", subject.actions), ("fields", subject.fields), ("options", subject.options)):
        if len(members) > KEEP_LIST:
            return f"it has {len(members):,} {name}, and no more than {KEEP_LIST} can be shown"
    for field in subject.fields:
        if len(field.choices) > KEEP_CHOICES:
            return f"a field has {len(field.choices):,} choices, and no more than {KEEP_CHOICES:,} can be shown"
    for option in subject.options:
        if len(option.grants) > KEEP_LIST:
            return f"an option grants {len(option.grants):,} things, and no more than {KEEP_LIST} can be shown"
    ids = (
        *(option.id for option in subject.options),
        *(field.name for field in subject.fields),
        *(choice.value for field in subject.fields for choice in field.choices),
    )
    return f"an id in it is longer than {KEEP_ID:,} characters" if any(len(id) > KEEP_ID for id in ids) else ""


def _action(action: Action, room: Room, reading: Reading) -> ActionFact:
    parts, more = [], 0
    if action.text is not None:
        parts.append(action.text)
    if action.arguments is not None:
        # Where both are given, neither may hide behind the other.
        shown, more = shown_json(action.arguments, room.left)
        parts.append(shown)
    text, all_of_text = room.take("\n".join(parts), more)
    diff, all_of_diff = room.take(action.diff) if action.diff is not None else (None, True)
    named = (action.tool, action.cwd or "")
    whole = all_of_text and all_of_diff and all(len(name) <= KEEP_LINE for name in named)
    return ActionFact(
        tool=line(action.tool),
        text=clean(text),
        line=short_line(lambda: _line(action)),
        cwd=a_line(action.cwd),
        diff=clean(diff) if diff is not None else None,
        call=reading.an_id("call", action.call),
        complete=action.complete and whole,
        hidden=sum(count_hidden(text) for text in (*(name[:KEEP_LINE] for name in named), text, diff or "")),
        whole=whole,
    )


def _line(action: Action) -> str:
    said = action_line(action.text, action.arguments)
    return f"{action.tool}  {said}" if said and action.text is None else said or action.tool


def short_line(write: Callable[[], str]) -> Clean:
    """What `write` makes of an action, for places of one line; empty where a number in it has too many digits."""
    try:
        return clean_line(write()[:ONE_LINE])
    except (ValueError, RecursionError):
        return Clean("")


def field_fact(field: FormField) -> FieldFact:
    """One field of a question or of an act."""
    return FieldFact(
        name=field.name,
        type=field.type.value,
        label=line(field.label or field.name),
        choices=tuple(
            ChoiceFact(choice.value, line(choice.label), a_line(choice.note)) for choice in field.choices[:KEEP_CHOICES]
        ),
        free_text=field.free_text,
        required=field.required,
    )


def _option(option: Option) -> OptionFact:
    return OptionFact(
        id=option.id,
        label=line(option.label),
        kind=option.kind,
        scope=option.scope,
        grants=tuple(line(grant) for grant in option.grants[:KEEP_LIST]),
        persists=option.persists,
        note=a_line(option.note),
        then=option.then,
        confirm=option.confirm,
    )


def _at_deadline(word: str | None, options: Sequence[Option]) -> Clean | None:
    if word is None:
        return None
    return line(next((option.label for option in options if option.id == word), word))


def decision_fact(decision: Decision | None, reading: Reading) -> DecisionFact | None:
    """Who ended a request, and how."""
    if decision is None:
        return None
    return DecisionFact(
        option=reading.an_id("option", decision.option),
        kind=decision.kind,
        by=line(decision.by),
        at=reading.time("at", decision.at),
        note=a_prose(decision.note),
        automatic=decision.automatic,
    )
