"""A wall clock that was set, told from time that passed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from watchfloor.connector import Clock

JUMP_MS: Final = 60_000
"""By how much the wall clock must have moved on its own; less does no harm."""


def steady_ms() -> int:
    """Milliseconds of a clock that is never set; where the system has one, of such that goes on while it sleeps."""
    return time.clock_gettime_ns(_STEADY) // 1_000_000


_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Jumps:
    """Compares the wall clock with one that is never set, from one time to the next."""

    def __init__(self, clock: Clock, steady: Clock) -> None:
        self._clock = clock
        self._steady = steady
        self._apart = clock() - steady()

    def since(self) -> int:
        """By how many milliseconds the wall clock was set since the last time; 0 where it was not."""
        apart = self._clock() - self._steady()
        moved = apart - self._apart
        if abs(moved) < JUMP_MS:
            return 0
        self._apart = apart
        return moved
