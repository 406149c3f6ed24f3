"""Whether an operator who has just written is still at it: what is typed on behind a text box must not act."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

QUIET_MS: Final = 700
"""How long no key may have been pressed before one acts again. Words follow each other faster than that."""


class Quiet:
    """Counts from the moment in which a text box closed. `clock` gives milliseconds and is never set."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._since: int | None = None

    def broken(self) -> None:
        """Text came in: a box for it has closed, or it was pasted where none is."""
        self._since = self._clock()

    def over(self) -> None:
        """What comes next was chosen, and is no key that somebody writes on with."""
        self._since = None

    @property
    def waits(self) -> bool:
        """Is the pause still to come?"""
        return self._since is not None and self._clock() - self._since < QUIET_MS

    def pressed(self) -> bool:
        """A key was pressed. True: it may belong to what was written, and the pause begins once more."""
        if not self.waits:
            self._since = None
            return False
        self._since = self._clock()
        return True
