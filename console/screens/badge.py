"""What every screen says whatever it shows: who waits for a human, and that interventions are not written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from console.fleet.views.status import need_segments
from watchfloor.text import clean_line
from widgets.marks import Marks
from widgets.tones import Segment

if TYPE_CHECKING:
    from console.hub import Hub
    from watchfloor.connector import Clock

Badge: TypeAlias = Callable[[], Sequence[Segment]]
"""Read again and again while a screen is shown."""
EVERY_S: Final = 0.25
"""How often it is."""


def badge(hub: Hub, clock: Clock, marks: Marks) -> Badge:
    """The badge of a console."""

    def now() -> Sequence[Segment]:
        said = need_segments(hub.fleet, clock(), {"alert": marks.alert})
        if fault := hub.audit_fault:
            return ((clean_line(f"interventions are not written down: {fault}"), "failed"), *said)
        return said

    return now
