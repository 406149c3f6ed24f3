"""Leaving the console: what goes on without it, and what ends with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from console.fleet.state import Session
from console.fleet.store import Store
from console.fleet.views.wording import name_of
from console.screens.flows.asking import Ask, Choice
from watchfloor.text import Clean
from watchfloor.words import TERMINAL
from widgets.tones import Segment

LEAVE: Final = "leave"
_NAMED: Final = 4
_REPLAY: Final = Clean("a recording is shown: nothing that runs is touched")


def ask(store: Store, ours: frozenset[str], leave: Callable[[], None], *, replay: bool = False) -> Ask:
    """The question, and what hangs on it. `ours`: the sources that this console has started. `replay`: a recording is
    shown, and nothing hangs on that."""
    return Ask(
        name=LEAVE,
        title=((Clean("quit?"), "plain"),),
        about=((_REPLAY, "plain"),) if replay else consequences(store, ours),
        choices=(Choice("quit", Clean("y"), Clean("quit"), also="q"),),
        then=lambda _: leave(),
        anywhere=True,
    )


def consequences(store: Store, ours: frozenset[str]) -> tuple[Segment, ...]:
    """What leaving means for the sessions, one line each."""
    alive = [s for s in store.sessions.values() if not s.placeholder and s.lifecycle not in TERMINAL]
    ending = [session for session in alive if _ends_with_us(store, ours, session)]
    staying = [session for session in alive if not _ends_with_us(store, ours, session)]
    heard = sum(store.sources[session.key.source].live for session in staying)
    unheard = len(staying) - heard
    gone = {session.key for session in ending}
    lines: list[Segment] = []
    if ending:
        demo = all(session.demo for session in ending)
        from_here = {session.key.source for session in ending}
        # Those that have ended already stand in the counts of the screen as well.
        all_of_it = [s for s in store.sessions.values() if s.demo and not s.placeholder and s.key.source in from_here]
        what = f"the demo and its {_count(len(all_of_it), 'agent')}" if demo else _listed(ending)
        verb = "ends" if len(ending) == 1 and not demo else "end"
        lines.append((Clean(f"with this console {verb} {what}"), "attention"))
    if heard:
        lines.append((Clean(f"{_count(heard, 'session')} go{'es' if heard == 1 else ''} on without it"), "plain"))
    if mine := [session for session in staying if session.owned]:
        lines.append((Clean(f"this console started {_listed(mine)}: not stopped by leaving"), "plain"))
    if unheard:
        their = "its state is" if unheard == 1 else "their state is"
        lines.append((Clean(f"contact with {_count(unheard, 'session')} is lost: {their} not known"), "lost"))
    waiting = sum(1 for request in store.requests.values() if request.open and request.key.owner not in gone)
    if waiting:
        lines.append((Clean(f"open until somebody decides: {_count(waiting, 'request')}"), "plain"))
    return tuple(lines)


def _ends_with_us(store: Store, ours: frozenset[str], session: Session) -> bool:
    profile = store.profile(session)
    return (
        # Of one that is no longer heard nobody knows whether it has not ended already.
        session.key.source in ours and store.sources[session.key.source].lost_since is None
    ) or (profile is not None and bool(profile.traits.get("ends_with_client")))


def _listed(sessions: list[Session]) -> str:
    names = ", ".join(name_of(session) for session in sessions[:_NAMED])
    more = len(sessions) - _NAMED
    return f"{names} and {more} more" if more > 0 else names


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
