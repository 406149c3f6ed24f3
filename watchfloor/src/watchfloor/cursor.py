"""How far a numbered stream has been received, when parts of it come twice, late or not at all.

A cursor may only pass what was really received: what it passes is never asked for again.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

MAX_ISLANDS: Final = 4096
"""Ranges beyond a hole that are remembered. Forgetting one is harmless: its numbers are received again."""


class Cursor:
    """A run of whole numbers; `through` is the last one up to which nothing is missing."""

    __slots__ = ("_ends", "_starts", "through")

    def __init__(self, through: int = 0) -> None:
        self.through = through
        # Beyond the first hole: disjoint ranges, ascending, never touching one another.
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, number: int) -> None:
        """Count `number` as received."""
        if number <= self.through:
            return
        if number == self.through + 1:
            self.through = number
            self._absorb()
        else:
            self._add_beyond(number)

    def skip_to(self, number: int) -> None:
        """What is not beyond `number` does not come, or is not wanted."""
        if number > self.through:
            self.through = number
            self._absorb()

    def _absorb(self) -> None:
        while self._starts and self._starts[0] <= self.through + 1:
            self.through = max(self.through, self._ends.pop(0))
            self._starts.pop(0)

    def _add_beyond(self, number: int) -> None:
        starts, ends = self._starts, self._ends
        at = bisect_right(starts, number)
        if at and number <= ends[at - 1]:
            return
        joins_left = at > 0 and ends[at - 1] == number - 1
        joins_right = at < len(starts) and starts[at] == number + 1
        if joins_left and joins_right:
            ends[at - 1] = ends.pop(at)
            starts.pop(at)
        elif joins_left:
            ends[at - 1] = number
        elif joins_right:
            starts[at] = number
        else:
            starts.insert(at, number)
            ends.insert(at, number)
            if len(starts) > MAX_ISLANDS:
                starts.pop()
                ends.pop()
