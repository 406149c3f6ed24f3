"""What each action of the table does on the fleet screen, but for the few that are the screen's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from console.fleet.state import Request, Session
from console.screens.flows import answering, deciding, steering
from console.screens.flows.desk import Desk
from console.screens.reading import READS, Reading

Decide: TypeAlias = Callable[[Desk, Session, Request], None]
Steer: TypeAlias = Callable[[Desk, Session], None]

DECIDES: Final[Mapping[str, Decide]] = MappingProxyType(
    {
        "approve": deciding.approve,
        "options": deciding.options,
        "deny": deciding.deny,
        "deny_reason": deciding.deny_reason,
        "answer": answering.answer,
    }
)

# What takes more than one question is not needed for the first frame.


def _reseed(desk: Desk, session: Session) -> None:
    from console.screens.flows.reseeding import reseed

    reseed(desk, session)


def _budget(desk: Desk, session: Session) -> None:
    from console.screens.flows.limits import budget

    budget(desk, session)


def _fork(desk: Desk, session: Session) -> None:
    from console.screens.flows.limits import fork

    fork(desk, session)


def _acts(desk: Desk, session: Session) -> None:
    from console.screens.flows.acting import acts

    acts(desk, session)


def _notify(desk: Desk, session: Session) -> None:
    from console.screens.flows.acting import notify

    notify(desk, session)


def _delete(desk: Desk, session: Session) -> None:
    from console.screens.flows.acting import delete

    delete(desk, session)


STEERS: Final[Mapping[str, Steer]] = MappingProxyType(
    {
        "send": steering.send,
        "pause": steering.pause,
        "pause_now": steering.pause_now,
        "interrupt": steering.interrupt,
        "resume": steering.resume,
        "reseed": _reseed,
        "stop": steering.stop,
        "budget": _budget,
        "fork": _fork,
        "acts": _acts,
        "notify": _notify,
        "delete": _delete,
    }
)


LOOKS: Final[Mapping[str, Callable[[Reading], None]]] = MappingProxyType(
    {
        **READS,
        "next": lambda screen: screen.show_next(),
        "open": lambda screen: screen.open_selected(),
        "back": lambda screen: screen.back(),
        "down": lambda screen: screen.line(1),
        "up": lambda screen: screen.line(-1),
        "page_down": lambda screen: screen.page(1),
        "page_up": lambda screen: screen.page(-1),
        "read_on": lambda screen: screen.read_on(),
        "last": lambda screen: screen.edge(last=True),
        "first": lambda screen: screen.edge(last=False),
        "left": lambda screen: screen.shift(-1),
        "right": lambda screen: screen.shift(1),
        "focus_next": lambda screen: screen.turn(1),
        "focus_previous": lambda screen: screen.turn(-1),
        "facts": lambda screen: screen.toggle_facts(),
        "copy": lambda screen: screen.copy(),
    }
)

MOVES: Final = frozenset(
    {
        "open",
        "back",
        "down",
        "up",
        "page_down",
        "page_up",
        "read_on",
        "last",
        "first",
        "left",
        "right",
        "focus_next",
        "focus_previous",
    }
)
"""Keys that are pressed again and again, fast, in front of one that intervenes."""
