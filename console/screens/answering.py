"""The flows that answer a question: one field after another, or one of the answers that are offered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from console.fleet.facts import ChoiceFact, FieldFact, OptionFact
from console.fleet.state import Request, Session
from console.screens.asking import NOTHING, Answer, Ask, Choice, TextBox
from console.screens.deciding import choice_keys, decision, ended, take_option
from console.screens.desk import Desk
from console.screens.steering import name_of, written
from watchfloor.text import Clean
from watchfloor.words import OptionKind

_WRITE: Final = "write"
_SKIP: Final = "skip"
"""Ours among the choices of a field; the field's own go by their place, so that no source can send one of these."""


def answer(desk: Desk, session: Session, request: Request) -> None:
    """Ask for each field in turn, or for one of the answers that are offered, then send them together."""
    fact = request.fact
    if fact is None:
        desk.say(Clean("the question has not come yet"), "attention")
        return
    if fact.fields:
        _field(desk, session, request, 0, {})
        return
    offered = [option for option in fact.options if option.kind is OptionKind.ANSWER]
    if offered:
        _offered(desk, session, request, offered)
    else:
        _free(desk, session, request)


def _title(session: Session, text: str) -> Clean:
    return Clean(f"answer {name_of(session)}: {text}")


def _offered(desk: Desk, session: Session, request: Request, offered: Sequence[OptionFact]) -> None:
    by_id = {option.id: option for option in offered}
    choices = tuple(
        Choice(option.id, Clean(key), option.label, (option.note,) if option.note else ())
        for key, option in zip(choice_keys(len(offered)), offered, strict=True)
    )
    desk.ask(
        Ask(
            title=((_title(session, "choose"), "plain"),),
            choices=choices,
            cursor=True,
            enter=Clean("answers"),
            then=lambda chosen: take_option(desk, session, request, by_id[chosen.values[0]]),
            ended=ended(request),
        )
    )


def _free(desk: Desk, session: Session, request: Request) -> None:
    draft = (OptionKind.ANSWER, request.key, request.digest)
    desk.ask(
        Ask(
            title=((_title(session, "write"), "plain"),),
            text=TextBox(check=written),
            then=lambda given: desk.submit(decision(desk, session, request, text=given.text), drafts=[draft]),
            ended=ended(request),
            draft=draft,
        )
    )


def _field(desk: Desk, session: Session, request: Request, at: int, given: Mapping[str, Any]) -> None:
    """Ask for field `at`; behind the last one, send."""
    fields = request.fact.fields if request.fact else ()
    if at == len(fields):
        drafts = [(field.name, request.key, request.digest) for field in fields]
        desk.submit(decision(desk, session, request, fields=dict(given)), drafts=drafts)
        return
    field = fields[at]
    place = f" ({at + 1} of {len(fields)})" if len(fields) > 1 else ""
    title = ((_title(session, f"{field.label or field.name}{place}"), "plain"),)
    last = at + 1 == len(fields)

    def take(value: Any) -> None:
        rest = dict(given) if value is None else {**given, field.name: value}
        if value is not None:
            desk.entered(field.name, ", ".join(value) if isinstance(value, list) else str(value))
        _field(desk, session, request, at + 1, rest)

    make = _FIELDS.get(field.type, _text_field)
    enter = Clean("answers" if last else "goes on")
    draft = (field.name, request.key, request.digest)
    desk.ask(make(_Asked(title, field, take, ended(request), enter, draft), desk))


class _Asked:
    """One field as it is asked for."""

    def __init__(
        self,
        title: tuple[tuple[Clean, Any], ...],
        field: FieldFact,
        take: Callable[[Any], None],
        ended: Callable[[], Clean],
        enter: Clean,
        draft: Hashable,
    ) -> None:
        self.title, self.field, self.take, self.ended, self.enter = title, field, take, ended, enter
        self.draft = draft


def _text_field(asked: _Asked, desk: Desk) -> Ask:
    check = written if asked.field.required else (lambda text: NOTHING)
    box = TextBox(secret=asked.field.type == "secret", check=check)
    return Ask(
        title=asked.title,
        text=box,
        enter=asked.enter,
        then=lambda given: asked.take(given.text if given.text or asked.field.required else None),
        ended=asked.ended,
        draft=asked.draft,
    )


def _number_field(asked: _Asked, desk: Desk) -> Ask:
    required = asked.field.required

    def check(text: str) -> Clean:
        if not text.strip() and not required:
            return NOTHING
        return NOTHING if _number(text) is not None else Clean("a number is wanted")

    return Ask(
        title=asked.title,
        text=TextBox(check=check),
        enter=asked.enter,
        then=lambda given: asked.take(_number(given.text)),
        ended=asked.ended,
        draft=asked.draft,
    )


def _bool_field(asked: _Asked, desk: Desk) -> Ask:
    choices = [Choice("yes", Clean("y"), Clean("yes")), Choice("no", Clean("n"), Clean("no"))]
    return Ask(
        title=asked.title,
        choices=(*choices, *_skip(asked.field)),
        cursor=True,
        enter=asked.enter,
        then=lambda given: asked.take({"yes": True, "no": False}.get(given.values[0])),
        ended=asked.ended,
    )


def _choice_field(asked: _Asked, desk: Desk) -> Ask:
    field = asked.field
    choices = list(_listed(field.choices))
    if field.free_text:
        # The card counts it among the choices.
        key = choice_keys(len(choices) + 1)[-1]
        choices.append(Choice(_WRITE, Clean(key or "o"), Clean("something else, in words"), also="o"))

    def then(given: Answer) -> None:
        value = given.values[0]
        if value == _WRITE:
            desk.ask(_text_field(asked, desk))
        else:
            asked.take(None if value == _SKIP else field.choices[int(value)].value)

    return Ask(
        title=asked.title,
        choices=(*choices, *_skip(field)),
        cursor=True,
        enter=asked.enter,
        then=then,
        ended=asked.ended,
    )


def _many_field(asked: _Asked, desk: Desk) -> Ask:
    return Ask(
        title=asked.title,
        choices=_listed(asked.field.choices),
        many=True,
        needed=asked.field.required,
        enter=asked.enter,
        then=lambda given: asked.take([asked.field.choices[int(place)].value for place in given.values]),
        ended=asked.ended,
    )


_FIELDS: Final[Mapping[str, Callable[[_Asked, Desk], Ask]]] = {
    "choice": _choice_field,
    "many": _many_field,
    "text": _text_field,
    "secret": _text_field,
    "number": _number_field,
    "bool": _bool_field,
}


def _listed(choices: Sequence[ChoiceFact]) -> tuple[Choice, ...]:
    return tuple(
        Choice(str(at), Clean(key), choice.label, (choice.note,) if choice.note else ())
        for at, (key, choice) in enumerate(zip(choice_keys(len(choices)), choices, strict=True))
    )


def _skip(field: FieldFact) -> tuple[Choice, ...]:
    return () if field.required else (Choice(_SKIP, Clean("-"), Clean("leave it open")),)


def _number(text: str) -> int | float | None:
    for read in (int, float):
        try:
            value = read(text.strip())
        except ValueError:
            continue
        return value if value == value and abs(value) != float("inf") else None
    return None
