"""The log, read by keys: looked through for a text, from a time on, at one of its levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from console.fleet.search import TIMES, Level
from console.screens.arranging import ARRANGES, Arranging
from console.screens.writing import Written
from watchfloor.text import NOTHING, Clean
from widgets.tones import Segment

_LEVELS: Final[Mapping[Level, str]] = MappingProxyType(
    {
        Level.ALL: "the log shows everything",
        Level.WORK: "the log shows what is said and done",
        Level.ALERTS: "the log shows what is asked, decided, or goes wrong",
    }
)


class Reading(Arranging):
    """The keys of the log."""

    def open_line(self) -> None:
        """Write what to look for where the keys are in the log, else a filter."""
        if self.pane is not self._board.log:
            super().open_line()
            return
        self.write(
            Written(Clean("look for"), self._looked_for, self._search_taken, self.stop_search), self._board.book.query
        )

    def _looked_for(self, text: str) -> Segment:
        self._board.book.look_for(text)
        reader = self._board.book.reader
        found = len(reader.matches) if reader is not None else 0
        return Clean(f"{found:,} found" if text else ""), "quiet" if found or not text else "attention"

    def _search_taken(self, text: str) -> Clean:
        """Go to the last line that holds it, at the cursor or above."""
        self._board.book.look_for(text)
        reader, at = self._board.book.reader, self._board.log.selected
        if text and reader is not None and at is not None:
            place = reader.match_before(at + 1)
            if place is None:
                return Clean("not found")
            self._to_line(place)
        return NOTHING

    def stop_search(self) -> None:
        """Look for nothing any more."""
        self._board.book.look_for("")

    def find(self, *, back: bool) -> None:
        """Go to the next line that holds what was looked for, or to the one before."""
        reader = self._board.book.reader
        if not self._board.book.query:
            self.say("nothing was looked for: go to the log, then look for a text")
            return
        at = self._board.log.selected
        if reader is None or at is None:
            return
        place = reader.match_before(at) if back else reader.next_match(at)
        if place is None:
            self.say("not found in this log")
        else:
            self._to_line(place)

    def _to_line(self, place: int) -> None:
        log = self._board.log
        if log.display and log.region.area:
            self.set_focus(log, scroll_visible=False)
        log.select(place, stay=True)

    def ask_time(self) -> None:
        """Write a time to go to."""
        self.write(Written(Clean("go to"), self._time_told, self._time_taken, lambda: None))

    def _time_told(self, text: str) -> Segment:
        try:
            self._board.book.time_of(text, self._clock())
        except ValueError:
            return Clean(TIMES), "quiet"
        return NOTHING, "quiet"

    def _time_taken(self, text: str) -> Clean:
        try:
            there = self._board.book.time_of(text, self._clock())
        except ValueError as fault:
            return Clean(str(fault))
        reader = self._board.book.reader
        place = reader.at_time(there) if reader is not None else None
        if place is None:
            return Clean("this log has no lines")
        self._to_line(place)
        return NOTHING

    def next_level(self) -> None:
        """Show less of the log, or all of it again."""
        self.say(_LEVELS[self._board.book.next_level()])

    def back(self) -> None:
        """In the log a search goes first."""
        if self._sight.shown is None and self._board.book.query and self.pane is self._board.log:
            self.stop_search()
            self.say("nothing is looked for any more")
        else:
            super().back()


READS: Final[Mapping[str, Callable[[Reading], None]]] = MappingProxyType(
    {
        **ARRANGES,
        "filter": lambda screen: screen.open_line(),
        "find_next": lambda screen: screen.find(back=False),
        "find_before": lambda screen: screen.find(back=True),
        "to_time": lambda screen: screen.ask_time(),
        "level": lambda screen: screen.next_level(),
    }
)
