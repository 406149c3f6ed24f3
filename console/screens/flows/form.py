"""A form, asked one field after another in the drawer: choice, many, text, secret, number, yes or no."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from console.fleet.facts import ChoiceFact, FieldFact
from console.screens.flows.asking import Answer, Ask, Choice, Drafts, TextBox
from console.screens.flows.deciding import choice_keys
from console.screens.flows.desk import Desk
from console.screens.flows.steering import written
from watchfloor.text import NOTHING, Clean, clean_line
from widgets.tones import Segment

_WRITE: Final = "write"
_SKIP: Final = "skip"
_SEND: Final = "send"
"""Ours among the choices of a field; the field's own go by their place, so that no source can send one of these."""

_NO_MORE: Final = Clean("answers")


class Form(NamedTuple):
    """Fields to be filled in, and what becomes of them.

    `title` is put before each field's label; `done` gets the values by the fields' names, without those that were left
    open, and the drafts that they were written in; `ended` says why nothing can be given any more; `whose` tells the
    drafts of this form from those of another; `taken` is told of each value in words as it is given, of a secret one
    too; `last` says what enter does at the last field; `sums`: of several fields all is shown once more before it is
    done.
    """

    fields: Sequence[FieldFact]
    title: Callable[[str], Clean]
    done: Callable[[Mapping[str, Any], Drafts], None]
    ended: Callable[[], Clean]
    whose: tuple[Hashable, ...]
    taken: Callable[[str, str], None] = lambda name, value: None
    about: tuple[Segment, ...] = ()
    last: Clean = _NO_MORE
    sums: bool = False

    def draft(self, field: FieldFact) -> Hashable:
        """What a text that was written for the field and not sent belongs to."""
        return (field.name, *self.whose)


def fill_in(desk: Desk, form: Form, at: int = 0, given: Mapping[str, Any] | None = None) -> None:
    """Ask for field `at` and those behind it; behind the last one the form is done."""
    given, fields = given or {}, form.fields
    if at == len(fields):
        _end(desk, form, given)
        return
    field = fields[at]
    place = f" ({at + 1} of {len(fields)})" if len(fields) > 1 else ""

    def take(value: Any) -> None:
        rest = {name: one for name, one in given.items() if name != field.name}
        if value is not None:
            rest[field.name] = value
            form.taken(field.name, _in_words(field, value))
        fill_in(desk, form, at + 1, rest)

    asked = _Asked(
        title=((form.title(f"{field.label or field.name}{place}"), "plain"),),
        field=field,
        take=take,
        ended=form.ended,
        enter=form.last if at + 1 == len(fields) and not _shows_sum(form) else Clean("goes on"),
        draft=form.draft(field),
        about=form.about,
        back=(lambda: fill_in(desk, form, at - 1, given)) if at else None,
        several=len(fields) > 1,
    )
    desk.ask(_FIELDS.get(field.type, _text_field)(asked, desk))


def _shows_sum(form: Form) -> bool:
    return form.sums and len(form.fields) > 1


def _end(desk: Desk, form: Form, given: Mapping[str, Any]) -> None:
    drafts = [form.draft(field) for field in form.fields]
    if not _shows_sum(form):
        form.done(dict(given), drafts)
        return
    told = "; ".join(_told(field, given) for field in form.fields)
    desk.ask(
        Ask(
            title=((form.title("all of it"), "plain"),),
            about=((Clean(f"enter sends: {told}"), "attention"),),
            choices=(Choice(_SEND, Clean("y"), Clean("send it")),),
            picks=True,
            cursor=True,
            at=_SEND,
            enter=form.last,
            then=lambda _: form.done(dict(given), drafts),
            ended=form.ended,
            back=lambda: fill_in(desk, form, len(form.fields) - 1, given),
        )
    )


def _told(field: FieldFact, given: Mapping[str, Any]) -> str:
    label = field.label or clean_line(field.name)
    if field.name not in given:
        return f"{label} left open"
    if field.type == "secret":
        return f"{label} given, not shown"
    return f"{label} {_in_words(field, given[field.name])}"


def _in_words(field: FieldFact, value: Any) -> str:
    """A value as the form shows it: a choice by its label."""
    labels = {choice.value: choice.label for choice in field.choices}
    values = [labels.get(one, clean_line(shown_value(one))) for one in (value if isinstance(value, list) else [value])]
    return ", ".join(values) or "none"


def shown_value(value: Any) -> str:
    """A value that was given for a field, in words."""
    if isinstance(value, list):
        return ", ".join(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


class _Asked(NamedTuple):
    """One field as it is asked for."""

    title: tuple[Segment, ...]
    field: FieldFact
    take: Callable[[Any], None]
    ended: Callable[[], Clean]
    enter: Clean
    draft: Hashable
    about: tuple[Segment, ...]
    back: Callable[[], None] | None
    several: bool
    """Are there other fields? Then a text may be typed that was meant for one of them."""


def _text_field(asked: _Asked, desk: Desk) -> Ask:
    check = written if asked.field.required else (lambda text: NOTHING)
    return Ask(
        title=asked.title,
        about=asked.about,
        text=TextBox(secret=asked.field.type == "secret", anew=True, check=check),
        enter=asked.enter,
        then=lambda given: asked.take(given.text if given.text or asked.field.required else None),
        ended=asked.ended,
        draft=asked.draft,
        back=asked.back,
    )


def _number_field(asked: _Asked, desk: Desk) -> Ask:
    required = asked.field.required

    def check(text: str) -> Clean:
        if not text.strip() and not required:
            return NOTHING
        return NOTHING if _number(text) is not None else Clean("a number is wanted")

    return Ask(
        title=asked.title,
        about=asked.about,
        text=TextBox(anew=True, check=check),
        enter=asked.enter,
        then=lambda given: asked.take(_number(given.text)),
        ended=asked.ended,
        draft=asked.draft,
        back=asked.back,
    )


def _bool_field(asked: _Asked, desk: Desk) -> Ask:
    choices = [Choice("yes", Clean("y"), Clean("yes")), Choice("no", Clean("n"), Clean("no"))]
    return Ask(
        title=asked.title,
        about=asked.about,
        choices=(*choices, *_skip(asked.field)),
        cursor=True,
        picks=True,
        enter=asked.enter,
        then=lambda given: asked.take({"yes": True, "no": False}.get(given.values[0])),
        ended=asked.ended,
        draft=asked.draft,
        back=asked.back,
    )


def _choice_field(asked: _Asked, desk: Desk) -> Ask:
    field = asked.field
    choices = list(_listed(field.choices))
    if field.free_text:
        # The card counts it among the choices.
        key = choice_keys(len(choices) + 1)[-1]
        choices.append(Choice(_WRITE, Clean(key or "o"), Clean("something else, in words"), also="o", kept=False))

    def then(given: Answer) -> None:
        value = given.values[0]
        if value == _WRITE:
            desk.ask(_text_field(asked, desk))
        else:
            asked.take(None if value == _SKIP else field.choices[int(value)].value)

    return Ask(
        title=asked.title,
        about=asked.about,
        choices=(*choices, *_skip(field)),
        cursor=True,
        picks=asked.several,
        enter=asked.enter,
        then=then,
        ended=asked.ended,
        draft=asked.draft,
        back=asked.back,
    )


def _many_field(asked: _Asked, desk: Desk) -> Ask:
    return Ask(
        title=asked.title,
        about=asked.about,
        choices=_listed(asked.field.choices),
        many=True,
        needed=asked.field.required,
        enter=asked.enter,
        then=lambda given: asked.take([asked.field.choices[int(place)].value for place in given.values]),
        ended=asked.ended,
        draft=asked.draft,
        back=asked.back,
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
