"""How far a recording has been played, and when its next line is due.

The time is given, in seconds of a clock that never goes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from typing import Final

from console.recording.tape import Mark, Tape

SLOWEST: Final = 1 / 64
FASTEST: Final = 4096.0
AT_ONCE: Final = 500
"""Lines that are played in one piece."""


class Player:
    """Plays one tape, from `begin` on. Every control wakes whoever waits by `moved`.

    `again` counts how often it went back: whoever plays begins anew then, and plays through to `place` at once.
    """

    def __init__(self, tape: Tape, now: Callable[[], float], *, speed: float = 1.0) -> None:
        self.tape: Final = tape
        self._now = now
        self.place = 0
        """The next line, from 0."""
        self.again = 0
        self.paused = False
        self.speed = speed
        self._at = tape.begins
        self._since: float | None = None
        self.moved = asyncio.Event()

    @property
    def at(self) -> int:
        """The moment of the recording that is shown: milliseconds since 1970 UTC."""
        if self.paused or self._since is None:
            return self._at
        return min(self.tape.ends, self._at + round((self._now() - self._since) * 1000 * self.speed))

    @property
    def ended(self) -> bool:
        """Has its last line been played?"""
        return self.place >= len(self.tape.marks)

    def due(self) -> Sequence[Mark]:
        """The lines to be played now, in order; they count as played."""
        marks, first, at = self.tape.marks, self.place, self.at
        while self.place < len(marks) and self.place - first < AT_ONCE and marks[self.place].at <= at:
            self.place += 1
        return marks[first : self.place]

    def wait_s(self) -> float | None:
        """Seconds until the next line is due; None: not before a control."""
        if self.paused or self.ended:
            return None
        return max(0.0, (self.tape.marks[self.place].at - self.at) / 1000 / self.speed)

    def begin(self) -> None:
        """Time passes from now on, if it does not already."""
        if self._since is None:
            self._since = self._now()

    # --- controls --------------------------------------------------------------------------

    def toggle(self) -> None:
        """Pause, or go on."""
        self._stand(self.at)
        self.paused = not self.paused
        self.moved.set()

    def step(self) -> None:
        """Play the next line, and stand there."""
        if not self.ended:
            self._stand(max(self.at, self.tape.marks[self.place].at))
        self.paused = True
        self.moved.set()

    def faster(self, factor: float) -> None:
        """Play so many times as fast."""
        self._stand(self.at)
        self.speed = min(FASTEST, max(SLOWEST, self.speed * factor))
        self.moved.set()

    def go_to(self, at: int) -> None:
        """Show this moment of the recording; what lies between is played at once."""
        at = min(max(at, self.tape.begins), self.tape.ends)
        if at < self.at:
            self.again += 1
            self.place = 0
        self._stand(at)
        self.moved.set()

    def next_request(self) -> bool:
        """Go to where the next request came, and stand there; False where none is left."""
        for number in range(self.place, len(self.tape.marks)):
            if self.tape.marks[number].asks:
                self._stand(max(self.at, self.tape.marks[number].at))
                self.paused = True
                self.moved.set()
                return True
        return False

    def _stand(self, at: int) -> None:
        self._at = at
        if self._since is not None:
            self._since = self._now()

    # --- words -----------------------------------------------------------------------------

    def words(self, tz: tzinfo | None = None) -> str:
        """What it does, in a few words: "14:03:07 of 14:20:00, x2, paused"."""
        said = [f"{_clock(self.at, tz)} of {_clock(self.tape.ends, tz)}"]
        if self.speed != 1.0:
            said.append(f"x{self.speed:g}")
        if self.ended and self.at >= self.tape.ends:
            said.append("at its end")
        elif self.paused:
            said.append("paused")
        return ", ".join(said)


def _clock(at: int, tz: tzinfo | None) -> str:
    try:
        return datetime.fromtimestamp(at / 1000, tz).strftime("%H:%M:%S")
    except (ArithmeticError, ValueError, OSError):
        return "--:--:--"
