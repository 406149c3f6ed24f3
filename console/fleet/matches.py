"""Going from one match of a search to the next, in whatever was looked through."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right


class Matches:
    """What is looked through by places, of which some hold what is looked for."""

    @property
    @abstractmethod
    def matches(self) -> list[int]:
        """The places that hold what is looked for, the oldest first."""

    def next_match(self, after: int) -> int | None:
        """The first match behind a place, or else the first of all; None: there is none."""
        matches = self.matches
        return matches[bisect_right(matches, after) % len(matches)] if matches else None

    def match_before(self, before: int) -> int | None:
        """The last match above a place, or else the last of all; None: there is none."""
        matches = self.matches
        return matches[bisect_left(matches, before) - 1] if matches else None

    def place_of_match(self, place: int) -> int | None:
        """Which of the matches this place is, from 1; None: it is none."""
        at = bisect_left(self.matches, place)
        return at + 1 if at < len(self.matches) and self.matches[at] == place else None
