"""Keys that are sent on schedule, and when each was seen to have been handled."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from benchmarks.terminal import Chunk, Run

DEBUG: Final = {"WATCHFLOOR_DEBUG_KEYS": "1"}
"""The environment in which the console shows how many keys it has handled, as the minimal application does."""
_NUMBER: Final = re.compile(rb"keys=(\d+)(?!\d)")


class Times(NamedTuple):
    """Milliseconds of the keys that were seen, in order of size, and how many never were."""

    taken: list[float]
    lost: int

    def at(self, share: float) -> float:
        """The time within which this share of the keys was seen; infinite where keys were lost beyond it."""
        place = int(share * (len(self.taken) + self.lost))
        return self.taken[place] if place < len(self.taken) else float("inf")

    @property
    def worst(self) -> float:
        """The longest; infinite where a key was lost."""
        return self.taken[-1] if self.taken and not self.lost else float("inf")

    def __str__(self) -> str:
        return (
            f"p50 {self.at(0.5):.1f} ms, p90 {self.at(0.9):.1f}, p99 {self.at(0.99):.1f}, "
            f"max {self.worst:.1f}, {self.lost} lost of {len(self.taken) + self.lost}"
        )


class Typist:
    """Presses one key over and over, at gaps that are the same each time. `sent`: when, in nanoseconds."""

    def __init__(self, run: Run, gap_ms: tuple[int, int], key: bytes = b"j") -> None:
        self._run = run
        self._gap_ms = gap_ms
        self._key = key
        self._rng = random.Random(1)  # noqa: S311 - the gaps are the same each time
        self._due = time.monotonic_ns()
        self.sent: list[int] = []

    def press(self, keys: int) -> None:
        """Send so many keys. One is sent when it is due, whether or not the one before was answered."""
        for _ in range(keys):
            self.sent.append(self._run.press(self._key))
            self._due += int(self._rng.uniform(*self._gap_ms) * 1e6)
            self._run.take_in(self._due)

    def press_until(self, text: bytes, timeout_s: float) -> int | None:
        """Send keys until this text is put out; returns when that was, or None where it lasts longer."""
        begun, read, seen = time.monotonic(), len(self._run.chunks), b""
        while time.monotonic() - begun < timeout_s:
            self.press(1)
            for chunk in self._run.chunks[read:]:
                seen = seen[-len(text) :] + chunk.data
                if text in seen:
                    return chunk.at
            read = len(self._run.chunks)
        return None

    def times(self) -> Times:
        """How long each key took to be seen."""
        return times(self.sent, self._run.chunks)


def times(sent: Sequence[int], chunks: Sequence[Chunk], begin: int = 0, end: int | None = None) -> Times:
    """A key is seen when its number, or a higher one, is put out behind it. Of the keys `begin` to `end`."""
    shown: list[tuple[int, int]] = []
    carry = b""
    for at, data in chunks:
        text = carry + data
        # A number at the very end may go on in the next piece.
        found = [match for match in _NUMBER.finditer(text) if match.end() < len(text)]
        shown.extend((at, int(match[1])) for match in found)
        carry = text[max(found[-1].end() if found else 0, len(text) - 16) :]
    taken: list[float] = []
    place = 0
    for number, key in enumerate(sent[begin:end], begin + 1):
        # Numbers only grow, so that what was too early for one key is too early for the next.
        while place < len(shown) and (shown[place][1] < number or shown[place][0] < key):
            place += 1
        if place == len(shown):
            break
        taken.append((shown[place][0] - key) / 1e6)
    return Times(sorted(taken), len(sent[begin:end]) - len(taken))
