"""The flows of what only some sources can do, of deleting, and of having a session told of another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from console.fleet.facts import FieldFact, Intent
from console.fleet.state import Session
from console.fleet.views.wording import name_of
from console.screens.flows.asking import Answer, Ask, Choice, Drafts, TextBox
from console.screens.flows.deciding import choice_keys
from console.screens.flows.desk import Desk
from console.screens.flows.form import Form, fill_in, shown_value
from console.screens.flows.steering import allowed, changed, confirm, intent, named, written
from watchfloor.text import NOTHING, Clean, clean_line, numeral
from watchfloor.words import Primitive
from widgets.tones import Segment

REACHED: Final = ("idle", "completed", "failed", "stopped")
"""What a session can be told of another one."""
LISTED: Final = 20
_SHOWN: Final = 400
"""Characters of a value that is shown before it is agreed to."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that only this source can do, as it offers it."""

    id: str
    label: Clean
    effect: Clean
    danger: bool
    fields: tuple[FieldFact, ...] = field(default=())

    @property
    def fault(self) -> Clean:
        """Why it cannot be asked for; "" where it can."""
        if len({one.name for one in self.fields}) != len(self.fields):
            return Clean("two of its fields have the same name")
        return NOTHING


def offered(desk: Desk, session: Session) -> tuple[Act, ...]:
    """The acts that the session's source offers now."""
    profile = desk.fleet.profile(session)
    options = profile.options.get(Primitive.ACT, {}) if profile is not None else {}
    return tuple(_read(act) for act in options.get("acts", ()))


def _read(act: Mapping[str, Any]) -> Act:
    label = act["label"] or clean_line(act["id"])
    return Act(act["id"], label, act["effect"], act["danger"], act["fields"])


def acts(desk: Desk, session: Session) -> None:
    """List what this source can do besides."""
    listed = offered(desk, session)
    ids = [act.id for act in listed]
    choices = [
        Choice(
            str(at),
            Clean(key),
            act.label,
            (act.effect,) if act.effect else (),
            tone="failed" if act.danger else "plain",
            blocked=act.fault or (Clean("another of its acts has the same id") if ids.count(act.id) > 1 else NOTHING),
        )
        for at, (key, act) in enumerate(zip(choice_keys(len(listed)), listed, strict=True))
    ]
    desk.ask(
        Ask(
            title=((Clean(f"what else {named(desk, session)} offers"), "plain"),),
            choices=tuple(choices),
            cursor=True,
            enter=Clean("goes on; nothing happens yet"),
            then=lambda answer: act_on(desk, session, listed[int(answer.values[0])]),
            ended=changed(desk, session),
        )
    )


def act_on(desk: Desk, session: Session, act: Act) -> None:
    """Ask for what the act needs, then whether it is meant."""
    ended = _still(desk, session, act)
    fill_in(
        desk,
        Form(
            act.fields,
            title=Clean,
            about=(
                (Clean(f"{act.label}: {named(desk, session)}"), "plain"),
                *(((act.effect, "quiet"),) if act.effect else ()),
            ),
            done=lambda given, drafts: _sure(desk, session, act, given, drafts),
            ended=ended,
            whose=(Primitive.ACT, act.id, session.key, session.attempt),
            last=Clean("goes on"),
        ),
    )


def _sure(desk: Desk, session: Session, act: Act, given: Mapping[str, Any], drafts: Drafts) -> None:
    command = intent(desk, session, Primitive.ACT, extra={"act": act.id, "fields": dict(given)})
    gated = allowed(desk, command)
    if gated is None:
        return
    told = tuple(_given(one, given) for one in act.fields)
    confirm(
        desk,
        session,
        gated,
        lambda: command,
        drafts=drafts,
        asks="act on",
        yes="do it",
        told=lambda: told,
        ended=_still(desk, session, act),
    )


def _given(asked: FieldFact, given: Mapping[str, Any]) -> Segment:
    label = asked.label or clean_line(asked.name)
    if asked.name not in given:
        return Clean(f"{label}: left open"), "quiet"
    if asked.type == "secret":
        return Clean(f"{label}: given, not shown"), "plain"
    labels = {choice.value: choice.label for choice in asked.choices}
    value = given[asked.name]
    if isinstance(value, list):
        return Clean(f"{label}: {', '.join(labels.get(one, clean_line(one)) for one in value) or 'none'}"), "plain"
    shown = labels.get(value) if isinstance(value, str) else None
    return Clean(f"{label}: {shown or _short(shown_value(value))}"), "plain"


def _short(text: str) -> Clean:
    return clean_line(text) if len(text) <= _SHOWN else Clean(f"{clean_line(text[:_SHOWN])} ({len(text):,} characters)")


def _still(desk: Desk, session: Session, act: Act) -> Callable[[], Clean]:
    """Says that the act is not the one any more that was read."""
    other = changed(desk, session)

    def ended() -> Clean:
        if why := other():
            return why
        return NOTHING if act in offered(desk, session) else Clean("its source offers this no more as it was read")

    return ended


# --- delete --------------------------------------------------------------------------------


def delete(desk: Desk, session: Session) -> None:
    """Delete the session; that it is gone then has to be agreed to."""
    command = intent(desk, session, Primitive.DELETE)
    gated = allowed(desk, command)
    if gated is None:
        return
    confirm(desk, session, gated, lambda: command, yes="delete it", told=lambda: _with_it(desk, session))


def _with_it(desk: Desk, session: Session) -> tuple[Segment, ...]:
    told: list[Segment] = []
    if own := session.controls.get(Primitive.DELETE):
        told.append((Clean(f"its source says: {own}"), "attention"))
    if below := len(desk.fleet.children.get(session.key, ())):
        stand = "session stands" if below == 1 else "sessions stand"
        told.append((Clean(f"{numeral(below)} {stand} below it"), "plain"))
    if queued := session.mail_queued:
        word = "message ends" if queued == 1 else "messages end"
        told.append((Clean(f"{numeral(queued)} queued {word} unread"), "plain"))
    return tuple(told)


# --- notify --------------------------------------------------------------------------------


def notify(desk: Desk, session: Session) -> None:
    """Ask which session is to be told of this one."""
    others = [
        other
        for key, other in desk.fleet.sessions.items()
        if key.source == session.key.source and key != session.key and not other.placeholder
    ]
    others.sort(key=lambda other: (name_of(other).casefold(), other.key.session))
    listed = others[:LISTED]
    if not listed:
        _subscriber(desk, session)
        return
    choices = [
        Choice(str(at), Clean(key), name_of(other), _id_of(other))
        for at, (key, other) in enumerate(zip(choice_keys(len(listed)), listed, strict=True))
    ]
    choices.append(Choice(str(len(listed)), Clean("o"), Clean("another one, by its id")))

    def then(answer: Answer) -> None:
        place = int(answer.values[0])
        if place == len(listed):
            _subscriber(desk, session)
        else:
            _news(desk, session, listed[place].key.session, name_of(listed[place]))

    desk.ask(
        Ask(
            title=((Clean(f"which session is told of {named(desk, session)}?"), "plain"),),
            choices=tuple(choices),
            cursor=True,
            enter=Clean("goes on"),
            then=then,
            ended=changed(desk, session),
        )
    )


def _id_of(session: Session) -> tuple[Clean, ...]:
    """The id of a session that is called otherwise: names need not be unique."""
    id = clean_line(session.key.session)
    return (id,) if id != name_of(session) else ()


def _subscriber(desk: Desk, session: Session) -> None:
    desk.ask(
        Ask(
            title=((Clean("id of a session"), "plain"),),
            about=((Clean(f"which session is told of {named(desk, session)}?"), "plain"),),
            text=TextBox(check=written),
            enter=Clean("goes on"),
            then=lambda answer: _news(desk, session, answer.text.strip(), clean_line(answer.text.strip())),
            ended=changed(desk, session),
            draft=(Primitive.NOTIFY, session.key, session.attempt),
        )
    )


def _news(desk: Desk, session: Session, subscriber: str, name: Clean) -> None:
    """Ask of what it is told; of nothing any more is an answer as well."""

    def made(states: Sequence[str]) -> Intent:
        return intent(desk, session, Primitive.NOTIFY, extra={"subscriber": subscriber, "on": list(states)})

    desk.ask(
        Ask(
            title=((Clean(f"{name} is told when {named(desk, session)} becomes"), "plain"),),
            about=((Clean("by a message in its mailbox, for as long as both are there; none: no more"), "quiet"),),
            choices=tuple(
                Choice(state, Clean(key), Clean(state))
                for key, state in zip(choice_keys(len(REACHED)), REACHED, strict=True)
            ),
            many=True,
            enter=Clean("sends it"),
            then=lambda answer: desk.submit(
                made(answer.values), drafts=[(Primitive.NOTIFY, session.key, session.attempt)]
            ),
            ended=changed(desk, session),
        )
    )
