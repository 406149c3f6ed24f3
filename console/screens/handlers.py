"""What each action of the table does on the fleet screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from console.fleet.state import Request, Session
from console.screens import answering, deciding, steering
from console.screens.desk import Desk
from widgets.event_log import EventLog
from widgets.painting import LineView
from widgets.roster import Roster

if TYPE_CHECKING:
    from console.screens.fleet import FleetScreen

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

STEERS: Final[Mapping[str, Steer]] = MappingProxyType(
    {
        "send": steering.send,
        "pause": steering.pause,
        "pause_now": steering.pause_now,
        "interrupt": steering.interrupt,
        "resume": steering.resume,
        "reseed": steering.reseed,
        "stop": steering.stop,
    }
)


def _line(screen: FleetScreen, by: int) -> None:
    pane: LineView = screen.pane
    if isinstance(pane, Roster):
        pane.action_move(by)
        screen.moved()
    elif isinstance(pane, EventLog):
        pane.select((pane.selected or 0) + by)
    else:
        pane.jump(pane.scroll_offset.y + by)


def _page(screen: FleetScreen, by: int) -> None:
    pane: LineView = screen.pane
    if isinstance(pane, Roster):
        pane.action_page(by)
        screen.moved()
    elif isinstance(pane, EventLog):
        pane.select((pane.selected or 0) + by * pane.page_lines())
    else:
        pane.jump(pane.scroll_offset.y + by * pane.page_lines())


def _edge(screen: FleetScreen, last: bool) -> None:
    pane: LineView = screen.pane
    if isinstance(pane, Roster):
        pane.action_edge(last)
        screen.moved()
    elif isinstance(pane, EventLog):
        pane.select(len(pane.lines) if last else 0)
    else:
        pane.jump(pane.max_scroll_y if last else 0)


ACTS: Final[Mapping[str, Callable[[FleetScreen], None]]] = MappingProxyType(
    {
        "next": lambda screen: screen.show_next(),
        "open": lambda screen: screen.open_selected(),
        "back": lambda screen: screen.back(),
        "down": lambda screen: _line(screen, 1),
        "up": lambda screen: _line(screen, -1),
        "page_down": lambda screen: _page(screen, 1),
        "page_up": lambda screen: _page(screen, -1),
        "read_on": lambda screen: screen.read_on(),
        "last": lambda screen: _edge(screen, True),
        "first": lambda screen: _edge(screen, False),
        "left": lambda screen: screen.shift(-1),
        "right": lambda screen: screen.shift(1),
        "focus_next": lambda screen: screen.turn(1),
        "focus_previous": lambda screen: screen.turn(-1),
        "facts": lambda screen: screen.toggle_facts(),
        "copy": lambda screen: screen.copy(),
        "help": lambda screen: screen.show_help(),
        "quit": lambda screen: screen.leave(),
    }
)
