"""The log of the selected session: how much of it is shown, what is looked for in it, and when it is painted."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING, Final

from console.fleet.changes import Changes
from console.fleet.facts import SessionKey
from console.fleet.roster.search import Level, LogReader, time_of
from console.fleet.views.log import SessionLog
from console.fleet.views.wording import Glyphs
from watchfloor.text import NOTHING, Clean, clean_line

if TYPE_CHECKING:
    from console.fleet.store import Store
    from widgets.event_log import EventLog


class Logbook:
    """One log after the other in one widget. Level and search go along from session to session."""

    noun: Final = "log"

    def __init__(self, store: Store, glyphs: Glyphs, tz: tzinfo | None) -> None:
        """Create it without a session; `bind` it to a widget before anything else."""
        self._store = store
        self._glyphs = glyphs
        self._tz = tz
        self._level = Level.ALL
        self._query = ""
        self.reader: LogReader | None = None
        """The log of the selected session, as it is read."""

    def bind(self, log: EventLog) -> None:
        """Show it in this widget."""
        self._log = log

    def turn_to(self, key: SessionKey | None) -> None:
        """Show the log of this session."""
        if key is None:
            self.reader = None
        else:
            self.reader = LogReader(SessionLog(self._store, key, self._glyphs, self._tz), self._level, self._query)
        self._log.lines = self.reader

    @property
    def query(self) -> str:
        """What is looked for; "": nothing."""
        return self._query

    def look_for(self, query: str) -> None:
        """Mark this from now on."""
        self._query = self._log.needle = query
        if self.reader is not None:
            self.reader.query = query
            self.reader.take_up()
            self._log.refresh_log()
        self._tell()

    @property
    def pane(self) -> EventLog:
        """The widget that shows it."""
        return self._log

    @property
    def found(self) -> int:
        """How many lines hold what is looked for."""
        return len(self.reader.matches) if self.reader is not None else 0

    @property
    def place(self) -> int | None:
        """The selected line."""
        return self._log.selected

    def next_match(self, after: int) -> int | None:
        """The first line behind that holds what is looked for, or the first of all."""
        return self.reader.next_match(after) if self.reader is not None else None

    def match_before(self, before: int) -> int | None:
        """The last line above that holds what is looked for, or the last of all."""
        return self.reader.match_before(before) if self.reader is not None else None

    def at_time(self, there: int) -> int | None:
        """The first line of this time or later."""
        return self.reader.at_time(there) if self.reader is not None else None

    def show(self, place: int) -> None:
        """Select a line, and stay there."""
        self._log.select(place, stay=True)

    @property
    def level(self) -> Level:
        """How much of a log is shown."""
        return self._level

    def begin_at(self, level: Level) -> None:
        """Show so much of every log, from the beginning."""
        self._level = level

    def next_level(self) -> Level:
        """Show less, or all of it again; returns how much."""
        levels = list(Level)
        self._level = levels[(levels.index(self._level) + 1) % len(levels)]
        if self.reader is not None:
            self.reader.level = self._level
            self.reader.take_up()
            # Other lines have other places: what is shown begins anew at the end.
            self._log.lines = self.reader
        self._tell()
        return self._level

    def time_of(self, text: str, now: int) -> int:
        """The moment that is written here, by the clock of the session's source. Raises ValueError."""
        ahead = self._store.sources[self.reader.key.source].ahead_ms if self.reader is not None else 0
        return time_of(text, now + ahead, self._tz)

    def selected_line(self) -> tuple[Clean, Clean] | None:
        """What the selected line is, and the whole of what it stands for; None where there is none."""
        place = self._log.selected
        if self.reader is None or place is None:
            return None
        line = self.reader.line(place)
        return Clean(f"{line.time} {line.kind}"), self.reader.whole(place)

    def paint(self, changes: Changes, now: int, *, everything: bool) -> None:
        """Paint what has changed, or all of it."""
        log, reader = self._log, self.reader
        if reader is None:
            log.empty = NOTHING
            return
        key = reader.key
        reader.now = now
        rewritten, appended = everything or key in changes.rewritten, changes.appended.get(key)
        if rewritten or appended is not None:
            reader.take_up()
        log.empty = Clean("nothing but what is left out" if reader.hidden else "no events yet")
        if rewritten or (appended is not None and not reader.plain):
            log.refresh_log()
        elif appended is not None:
            log.refresh_log(*appended)
        self._tell()

    def _tell(self) -> None:
        """Say below the lines what is looked for, and what is left out."""
        reader = self.reader
        said: list[str] = []
        if reader is not None and (earlier := reader.earlier):
            said.append(f"{earlier:,} earlier: the session's own screen has them")
        if reader is not None and self._query:
            at = reader.place_of_match(self._log.selected or 0)
            of = f"{at:,} of {len(reader.matches):,}" if at else f"{len(reader.matches):,} found"
            said.append(f"{clean_line(self._query)}: {of}")
        if reader is not None and self._level is not Level.ALL:
            said.append(f"only {self._level}, {reader.hidden:,} left out")
        self._log.status = Clean("   ".join(said))
