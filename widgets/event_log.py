"""The event log: a ring of lines that is followed until somebody scrolls up."""

from __future__ import annotations

from typing import Protocol

from watchfloor.text import Clean
from widgets.tones import Tone


class LogLine(Protocol):
    """One event as a line."""

    @property
    def time(self) -> Clean: ...  # clock time, such as "14:03:07"
    @property
    def kind(self) -> Clean: ...  # one short word, such as "tool"
    @property
    def text(self) -> Clean: ...  # one line; a longer one is cut with a visible mark
    @property
    def tone(self) -> Tone: ...
    @property
    def tail(self) -> Clean: ...  # right-aligned, such as "✓ 3.2 s"


class LogLines(Protocol):
    """The lines that are kept, oldest first.

    `first` is the absolute number of line 0: it grows by one for each line that the ring drops.
    """

    @property
    def first(self) -> int: ...
    def __len__(self) -> int: ...
    def line(self, i: int, /) -> LogLine: ...
