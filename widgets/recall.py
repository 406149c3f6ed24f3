"""What was written before, brought back into a box line by line of its past, as a shell does it."""

from __future__ import annotations

from collections.abc import Sequence


class Recall:
    """A walk through texts, oldest first, with what is being written behind the newest of them.

    Each place keeps what was made of it, so that going there and back loses nothing.
    """

    def __init__(self, past: Sequence[str] = (), begun: str = "") -> None:
        self._past = tuple(past)
        self._texts = [*past, begun]
        self._at = len(self._past)

    @property
    def place(self) -> tuple[int, int] | None:
        """Which of how many is shown, from 1; None where it is what is being written."""
        return (self._at + 1, len(self._past)) if self._at < len(self._past) else None

    def step(self, text: str, by: int) -> str | None:
        """Leave `text` where it stands, and go `by` places; what stands there, or None where nothing does."""
        at = self._at + by
        if not 0 <= at < len(self._texts):
            return None
        self._texts[self._at] = text
        self._at = at
        return self._texts[at]

    def unsent(self, text: str) -> str:
        """What is to be kept where `text` is left: what was being written, unless one of the past was changed."""
        return self._texts[-1] if self.place is not None and text == self._past[self._at] else text
