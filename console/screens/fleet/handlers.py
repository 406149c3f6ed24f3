"""What each action of the table does on the fleet screen, but for the few that are the screen's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from console.screens.reading import READS
from watchfloor.words import Primitive

if TYPE_CHECKING:
    from console.fleet.state import Request, Session
    from console.screens.flows.desk import Desk
    from console.screens.reading import Reading

Decide: TypeAlias = "Callable[[Desk, Session, Request], None]"
Steer: TypeAlias = "Callable[[Desk, Session], None]"

_DECIDING: Final[Mapping[str, str]] = {
    "approve": "deciding.approve",
    "options": "deciding.options",
    "deny": "deciding.deny",
    "deny_reason": "deciding.deny_reason",
    "answer": "answering.answer",
}
_STEERING: Final[Mapping[str, str]] = {
    "send": "steering.send",
    "pause": "steering.pause",
    "pause_now": "steering.pause_now",
    "interrupt": "steering.interrupt",
    "resume": "steering.resume",
    "reseed": "reseeding.reseed",
    "stop": "steering.stop",
    "budget": "limits.budget",
    "fork": "limits.fork",
    "acts": "acting.acts",
    "notify": "acting.notify",
    "delete": "acting.delete",
}


def flow(name: str) -> Callable[..., None]:
    """What is asked before an intervention: `module.function` of the flows. Its module is loaded when it is first
    asked: no first frame needs it."""
    module, _, function = name.partition(".")

    def ask(*given: object) -> None:
        begin: Callable[..., None] = getattr(import_module(f"console.screens.flows.{module}"), function)
        begin(*given)

    return ask


DECIDES: Final[Mapping[str, Decide]] = MappingProxyType({id: flow(name) for id, name in _DECIDING.items()})
STEERS: Final[Mapping[str, Steer]] = MappingProxyType({id: flow(name) for id, name in _STEERING.items()})

TOGETHER: Final[Mapping[str, Primitive]] = MappingProxyType(
    {
        "send": Primitive.SEND,
        "pause": Primitive.PAUSE,
        "interrupt": Primitive.INTERRUPT,
        "resume": Primitive.RESUME,
    }
)
"""The actions that marks count for; every other one is about the selected session alone."""


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
