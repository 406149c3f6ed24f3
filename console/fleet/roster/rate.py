"""How busy a session is: events counted in a few slots of time, for a small bar chart."""

from __future__ import annotations

from typing import Final

SLOTS: Final = 12
SLOT_MS: Final = 5_000


class Rate:
    """Counts of the last `SLOTS` slots of `SLOT_MS` each. Times are local."""

    __slots__ = ("_counts", "_slot")

    def __init__(self) -> None:
        self._slot = 0
        self._counts = [0] * SLOTS

    def add(self, events: int, now: int) -> None:
        slot = now // SLOT_MS
        if slot != self._slot:
            self._counts = self._at(slot)
            self._slot = max(slot, self._slot)
        self._counts[-1] += events

    def counts(self, now: int) -> list[int]:
        """Events in each slot, oldest first, the last one still filling."""
        return self._at(now // SLOT_MS)

    def complete(self, now: int) -> int:
        """Events in all slots but the one that still fills."""
        return sum(self.counts(now)[:-1])

    def _at(self, slot: int) -> list[int]:
        passed = slot - self._slot
        if passed <= 0:
            return self._counts
        return [*self._counts[passed:], *([0] * min(passed, SLOTS))]
