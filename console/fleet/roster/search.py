"""A log as it is read: which lines are shown, which of them hold what is looked for, and where a time is."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any, Final

from console.fleet.facts import NO_TIME, SessionKey
from console.fleet.log import UNREAD, LogEntry
from console.fleet.matches import Matches
from console.fleet.views.log import Line, SessionLog
from watchfloor.text import Clean, clean_line

DAY_MS: Final = 86_400_000


class Level(StrEnum):
    """How much of a log is shown: all of it; what is said and done; what is asked, decided, or goes wrong."""

    ALL = "all"
    WORK = "work"
    ALERTS = "alerts"


_RANK: Final = {level: rank for rank, level in enumerate(Level)}
_ALERTS: Final = frozenset({"request_opened", "request_resolved", "intervention", "reseeded", "result", UNREAD})
_NOISE: Final = frozenset({"reasoning", "tool_output", "lifecycle", "progress", "raw", "unknown", "child", "plan"})
_WRONG: Final[Mapping[str, tuple[str, frozenset[Any]]]] = {
    "notice": ("level", frozenset({"warning", "error"})),
    "lifecycle": ("lifecycle", frozenset({"failed"})),
    "tool_result": ("status", frozenset({"error"})),
    "mail": ("mail_state", frozenset({"error"})),
}
"""By kind the value that tells of something that went wrong, and what it then is."""


def level_of(entry: LogEntry) -> Level:
    """The last level at which the entry is still shown."""
    fact = entry.fact
    kind = fact.data.get("of", "message") if fact.kind == "delta" else fact.kind
    if kind in _ALERTS:
        return Level.ALERTS
    name, values = _WRONG.get(kind, ("", frozenset()))
    if name and fact.data.get(name) in values:
        return Level.ALERTS
    return Level.ALL if kind in _NOISE else Level.WORK


class LogReader(Matches):
    """The lines of a log that its reader wants. `take_up` after every change of the log, or of what is wanted."""

    def __init__(self, log: SessionLog, level: Level = Level.ALL, query: str = "") -> None:
        """Read this log; `query` "" looks for nothing."""
        self._log = log
        self.level = level
        self.query = query
        self._places: list[int] | None = None
        """Absolute numbers of the lines that are shown; None: all of them."""
        self._dropped = 0
        self._matches: list[int] | None = None
        self.take_up()

    @property
    def key(self) -> SessionKey:
        """Whose log it is."""
        return self._log.key

    @property
    def now(self) -> int:
        """Local time in milliseconds, for the waits that are shown."""
        return self._log.now

    @now.setter
    def now(self, now: int) -> None:
        self._log.now = now

    @property
    def plain(self) -> bool:
        """Are all lines shown, so that what is added to the log is added here?"""
        return self._places is None

    def take_up(self) -> None:
        """The log, or what is wanted of it, has changed."""
        self._matches = None
        if self.level is Level.ALL:
            self._places = None
            return
        log, wanted = self._log, _RANK[self.level]
        first = log.first
        if self._places is not None:
            self._dropped += bisect_left(self._places, first)
        self._places = [first + at for at in range(len(log)) if _RANK[level_of(log.entry(at))] >= wanted]

    # --- lines -----------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """The absolute number of line 0 among those that are shown."""
        return self._log.first if self._places is None else self._dropped

    def __len__(self) -> int:
        return len(self._log) if self._places is None else len(self._places)

    @property
    def earlier(self) -> int:
        """Events before the first line of all, which are not in memory."""
        return self._log.earlier

    @property
    def hidden(self) -> int:
        """Lines that are left out."""
        return len(self._log) - len(self)

    def _at(self, i: int) -> int:
        return i if self._places is None else self._places[i] - self._log.first

    def line(self, i: int, /) -> Line:
        """Line `i` of those shown, oldest first."""
        return self._log.line(self._at(i), matched=self._matched(i))

    def whole(self, i: int, /) -> Clean:
        """All that line `i` stands for."""
        return self._log.whole(self._at(i))

    # --- what is looked for ----------------------------------------------------------------

    def _matched(self, i: int) -> bool:
        matches = self.matches
        at = bisect_left(matches, i)
        return at < len(matches) and matches[at] == i

    @property
    def matches(self) -> list[int]:
        """The lines that hold what is looked for, oldest first."""
        if self._matches is None:
            query = self.query.casefold()
            self._matches = [i for i in range(len(self)) if self._holds(self._at(i), query)] if query else []
        return self._matches

    def _holds(self, at: int, query: str) -> bool:
        entry = self._log.entry(at)
        if query not in entry.text.casefold() and query not in entry.fact.head.casefold():
            return query in self._log.line(at).kind.casefold()
        # What is masked cannot be found: whoever looks for it would be told that it is there.
        return query in self._log.whole(at).casefold()

    # --- times -----------------------------------------------------------------------------

    def at_time(self, there: int) -> int | None:
        """The first line at this time by the source's clock, or later; the last one where none is; None: no lines."""
        for i in range(len(self)):
            at = self._log.entry(self._at(i)).fact.at
            if at != NO_TIME and at >= there:
                return i
        return len(self) - 1 if len(self) else None


_AGO: Final = re.compile(r"-?\s*(\d{1,6})\s*([smhd])", re.ASCII)
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS}
TIMES: Final = "a time such as 14:03 or 14:03:07, or how long ago: 90s, 10m, 2h, 1d"


def time_of(text: str, now: int, tz: tzinfo | None) -> int:
    """The moment that was written, `now` being the present one, in milliseconds; a time of day is the last that was.

    Raises ValueError, with words for the operator.
    """
    text = text.strip()
    if (ago := _AGO.fullmatch(text)) is not None:
        return now - int(ago[1]) * _UNIT_MS[ago[2]]
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        raise ValueError(TIMES)
    today = datetime.fromtimestamp(now / 1000, tz)
    try:
        then = today.replace(hour=int(clock[1]), minute=int(clock[2]), second=int(clock[3] or 0), microsecond=0)
    except ValueError:
        raise ValueError(f"{clean_line(text)} is no time of day") from None
    if then > today:
        then -= timedelta(days=1)
    return int(then.timestamp() * 1000)
