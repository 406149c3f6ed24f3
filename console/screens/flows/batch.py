"""One act on every marked session: first what it would do to each, by name, then the commands, each through the gate.

Only acts that can be taken back, or that nothing is lost by, are done so; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from console.fleet.facts import Intent, Refusal, SessionKey
from console.fleet.state import Session, Trail
from console.fleet.views.wording import name_of
from console.screens.fleet.handlers import TOGETHER
from console.screens.flows.asking import Answer, Ask, Choice, Drafts, TextBox
from console.screens.flows.desk import Desk
from console.screens.flows.steering import changed, intent, whom, written
from watchfloor.text import NOTHING, Clean, clean_line
from watchfloor.words import EffectState, Lifecycle, OutcomeKind, Primitive
from widgets.tones import Segment

_TURNS: Final = frozenset({Primitive.SEND, Primitive.INTERRUPT})


class Meant(NamedTuple):
    """A command for one of the sessions, and what the operator was told that it brings about."""

    command: Intent
    confirm: tuple[str, ...]


class ManyDesk(Desk, Protocol):
    """A screen that can send several commands at once."""

    def submit_all(self, meant: Sequence[Meant], drafts: Drafts = ()) -> None:
        """Send each that still means what it meant, and say how many were sent, and why the others were not."""
        ...


def begin(desk: ManyDesk, action: str, keys: Sequence[SessionKey]) -> None:
    """Begin an act of `TOGETHER` on these sessions."""
    primitive = TOGETHER[action]
    if primitive is Primitive.SEND:
        _send(desk, keys)
    else:
        _preflight(desk, primitive, keys)


def _send(desk: ManyDesk, keys: Sequence[SessionKey]) -> None:
    draft = ("marked", Primitive.SEND)
    desk.ask(
        Ask(
            title=((Clean(f"send to {len(keys):,} marked {_sessions(len(keys))}"), "plain"),),
            about=((Clean("to whom it goes is asked once it is written"), "quiet"),),
            text=TextBox(check=written),
            enter=Clean("goes on"),
            then=lambda answer: _preflight(desk, Primitive.SEND, keys, drafts=[draft], text=answer.text),
            draft=draft,
        )
    )


def _preflight(
    desk: ManyDesk, primitive: Primitive, keys: Sequence[SessionKey], *, drafts: Drafts = (), **given: Any
) -> None:
    """Ask whether it is meant for each of those that it can be done to, with all of them named."""
    meant: list[Meant] = []
    willing: list[Segment] = []
    refused: list[Segment] = []
    watched: list[tuple[Clean, Callable[[], Clean]]] = []
    for key in keys:
        session = desk.fleet.sessions.get(key)
        if session is None:
            refused.append((Clean(f"not {clean_line(key.session)}: it is gone"), "quiet"))
            continue
        turn = {"turn": session.turn} if primitive in _TURNS else {}
        command = intent(desk, session, primitive, **turn, **given)
        gated = desk.gate(command)
        if isinstance(gated, Refusal):
            refused.append((Clean(f"not {whom(desk, session)}: {gated.reason}"), "quiet"))
            continue
        if primitive is Primitive.PAUSE and session.lifecycle is Lifecycle.PAUSED:
            refused.append((Clean(f"not {whom(desk, session)}: paused already"), "quiet"))
            continue
        meant.append(Meant(command, gated.confirm))
        watched.append((name_of(session), changed(desk, session)))
        willing.append((_named(desk, session), "plain"))
        willing += [(Clean(f"  {line}"), "attention") for line in gated.confirm]
    word = primitive.value
    if not meant:
        said = refused[0][0] if refused else NOTHING
        desk.say(Clean(f"{word}: none of {len(keys):,} marked {_sessions(len(keys))}; {said}"), "attention")
        return

    def then(answer: Answer) -> None:
        desk.submit_all(meant, drafts)

    of = f" of {len(keys):,}" if len(meant) < len(keys) else ""
    desk.ask(
        Ask(
            title=((Clean(f"{word} {len(meant):,}{of} marked {_sessions(len(keys))}?"), "failed"),),
            about=(*willing, *refused),
            choices=(Choice("yes", Clean("y"), Clean(f"yes, {word} {_these(len(meant))}"), tone="failed"),),
            then=then,
            ended=lambda: _first(watched),
        )
    )


def _first(watched: Sequence[tuple[Clean, Callable[[], Clean]]]) -> Clean:
    """Why one of them is no longer what was named."""
    for name, ended in watched:
        if why := ended():
            return Clean(f"{name}: {why}")
    return NOTHING


def _named(desk: Desk, session: Session) -> Clean:
    attempt = "" if session.attempt is None else f", attempt {session.attempt}"
    return Clean(f"{whom(desk, session)}{attempt}, {session.lifecycle.value}")


def _sessions(number: int) -> str:
    return "session" if number == 1 else "sessions"


def _these(number: int) -> str:
    return "this one" if number == 1 else f"these {number:,}"


def became(sent: Sequence[Trail]) -> list[str]:
    """What is known of commands that were sent: how many were refused, taken, or had their effect."""
    seen = sum(trail.effect is EffectState.SEEN for trail in sent)
    taken = sum(trail.outcome is OutcomeKind.APPLIED and trail.effect is not EffectState.SEEN for trail in sent)
    refused = sum(trail.outcome not in (None, OutcomeKind.APPLIED, OutcomeKind.UNKNOWN) for trail in sent)
    words = ((taken, "taken"), (seen, "effect seen"), (refused, "refused"))
    return [f"{number:,} {word}" for number, word in words if number]
