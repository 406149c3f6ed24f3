"""The garbage collector, kept out of the way of keys.

A full collection walks everything that the fleet holds and stops the screen for a tenth of a second. What was loaded
at the start is frozen, and what comes later is collected while nothing happens, or when it has waited too long.
"""

from __future__ import annotations

import gc
from typing import Final

IDLE_MS: Final = 1_500
"""Quiet time after which a collection disturbs nobody."""
PAUSE_MS: Final = 20_000
"""The least time between two collections."""
LONGEST_MS: Final = 120_000
"""Without a quiet moment for so long, it is done anyway."""


class Collector:
    """Decides when to collect. Times are milliseconds of any one clock."""

    def __init__(self) -> None:
        self._busy_at = 0
        self._collected_at = 0
        self._taken = False

    def take_over(self, now: int) -> None:
        """Freeze what is there and stop the collector from running by itself."""
        gc.freeze()
        gc.disable()
        self._taken = True
        self._busy_at = self._collected_at = now

    def give_back(self) -> None:
        """Leave the collector as it was found."""
        if self._taken:
            self._taken = False
            gc.enable()
            gc.unfreeze()

    def busy(self, now: int) -> None:
        """Something that the operator waits for happens."""
        self._busy_at = now

    def tick(self, now: int) -> bool:
        """Collect if this is a good moment; returns whether it was."""
        since = now - self._collected_at
        if not self._taken or since < PAUSE_MS:
            return False
        if now - self._busy_at < IDLE_MS and since < LONGEST_MS:
            return False
        gc.collect()
        self._collected_at = now
        return True
