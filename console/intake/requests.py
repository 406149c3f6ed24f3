"""Requests through the door: the digest first, then the text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue, ValidationError

from console.fleet.facts import ActionFact, ChoiceFact, DecisionFact, FieldFact, OptionFact, RequestFact, RequestKey
from watchfloor.canonical import subject_digest
from watchfloor.errors import CanonicalError
from watchfloor.protocol.lines import action_line
from watchfloor.protocol.model import Action, Decision, FormField, Option, RequestModel, Subject
from watchfloor.text import Clean, clean, clean_line, clean_prose, count_hidden
from watchfloor.words import RequestKind

ONE_LINE: Final = 1_000
"""Code points of an action that are kept for places of one line."""

_KINDS: Final = {kind.value: kind for kind in RequestKind}


def request_fact(key: RequestKey, request: RequestModel) -> RequestFact:
    """A request as an operator may read it. One that cannot be trusted carries its `fault` and is never decidable."""
    digest, fault = "", ""
    try:
        digest = subject_digest(request.subject)
    except CanonicalError as error:
        fault = f"it has no canonical form: {error}"
    subject: Subject | None = None
    try:
        subject = request.read()
        fault = fault or _doubt(key, subject)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        fault = fault or f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    kind = request.subject.get("kind")
    return RequestFact(
        key=key,
        attempt=subject.attempt if subject else None,
        kind=subject.kind if subject else _KINDS.get(kind if isinstance(kind, str) else "", RequestKind.APPROVAL),
        actions=tuple(_action(action) for action in subject.actions) if subject else (),
        fields=tuple(field_fact(field) for field in subject.fields) if subject else (),
        options=tuple(_option(option) for option in subject.options) if subject else (),
        per_action=request.per_action,
        asked_at=request.asked_at,
        deadline=request.deadline,
        at_deadline=_at_deadline(request.at_deadline, subject.options if subject else ()),
        blocks=request.blocks,
        about=clean_prose(request.about) if request.about is not None else None,
        state=request.state,
        decision=decision_fact(request.decision),
        digest=digest,
        sound=bool(digest) and digest == request.digest,
        fault=clean_line(fault) if fault else None,
    )


def _doubt(key: RequestKey, subject: Subject) -> str:
    """Why a subject that can be read must still not be decided."""
    if subject.session != key.session:
        return f"it names another session: {subject.session}"
    if len({option.id for option in subject.options}) != len(subject.options):
        return "two of its options have the same id"
    if len({field.name for field in subject.fields}) != len(subject.fields):
        return "two of its fields have the same name"
    return ""


def _action(action: Action) -> ActionFact:
    parts = []
    if action.text is not None:
        parts.append(action.text)
    if action.arguments is not None:
        # Where both are given, neither may hide behind the other.
        parts.append(shown_json(action.arguments))
    raw = "\n".join(parts)
    return ActionFact(
        tool=clean_line(action.tool),
        text=clean(raw),
        line=_line(action),
        cwd=clean_line(action.cwd) if action.cwd is not None else None,
        diff=clean(action.diff) if action.diff is not None else None,
        call=action.call,
        complete=action.complete,
        hidden=sum(count_hidden(text) for text in (action.tool, raw, action.cwd or "", action.diff or "")),
    )


def _line(action: Action) -> Clean:
    line = action_line(action.text, action.arguments)
    named = f"{action.tool}  {line}" if line and action.text is None else line or action.tool
    return clean_line(named[:ONE_LINE])


def shown_json(value: JsonValue) -> str:
    """A JSON value as indented text, keys in the order in which they came. Not cleaned."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def field_fact(field: FormField) -> FieldFact:
    """One field of a question or of an act."""
    return FieldFact(
        name=field.name,
        type=field.type.value,
        label=clean_line(field.label or field.name),
        choices=tuple(
            ChoiceFact(
                choice.value,
                clean_line(choice.label),
                clean_line(choice.note) if choice.note is not None else None,
            )
            for choice in field.choices
        ),
        free_text=field.free_text,
        required=field.required,
    )


def _option(option: Option) -> OptionFact:
    return OptionFact(
        id=option.id,
        label=clean_line(option.label),
        kind=option.kind,
        scope=option.scope,
        grants=tuple(clean_line(grant) for grant in option.grants),
        persists=option.persists,
        note=clean_line(option.note) if option.note is not None else None,
        then=option.then,
        confirm=option.confirm,
    )


def _at_deadline(word: str | None, options: Sequence[Option]) -> Clean | None:
    if word is None:
        return None
    return clean_line(next((option.label for option in options if option.id == word), word))


def decision_fact(decision: Decision | None) -> DecisionFact | None:
    """Who ended a request, and how."""
    if decision is None:
        return None
    return DecisionFact(
        option=decision.option,
        kind=decision.kind,
        by=clean_line(decision.by),
        at=decision.at,
        note=clean_prose(decision.note) if decision.note is not None else None,
        automatic=decision.automatic,
    )
