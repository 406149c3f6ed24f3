"""What is read by keys: looked through for a text, from a time on; a log at one of its levels."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from console.fleet.decisions.presence import ours
from console.fleet.facts import RequestKey
from console.fleet.roster.arrangement import GROUPINGS, Grouping
from console.fleet.roster.filter import FilterError
from console.fleet.roster.order import Sort
from console.fleet.roster.search import TIMES, Level
from console.kept_view import View
from console.screens.fleet.arranging import ARRANGES, Arranging
from console.screens.fleet.writing import Written
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
        if self.pane is self._board.reads.pane:
            self.look_through()
        else:
            super().open_line()

    def look_through(self) -> None:
        """Write what to look for."""
        self.write(
            Written(Clean("look for"), self._looked_for, self._search_taken, self.stop_search), self._board.reads.query
        )

    def _looked_for(self, text: str) -> Segment:
        reads = self._board.reads
        reads.look_for(text)
        return Clean(f"{reads.found:,} found" if text else ""), "quiet" if reads.found or not text else "attention"

    def _search_taken(self, text: str) -> Clean:
        """Go to the last place that holds it, at the cursor or above."""
        reads = self._board.reads
        reads.look_for(text)
        if text and (at := reads.place) is not None:
            place = reads.match_before(at + 1)
            if place is None:
                return Clean("not found")
            self._to_place(place)
        return NOTHING

    def stop_search(self) -> None:
        """Look for nothing any more."""
        self._board.reads.look_for("")

    def find(self, *, back: bool) -> None:
        """Go to the next place that holds what was looked for, or to the one before."""
        reads = self._board.reads
        if not reads.query:
            self.say(f"nothing was looked for: go to the {reads.noun}, then look for a text")
            return
        at = reads.place
        if at is None:
            return
        place = reads.match_before(at) if back else reads.next_match(at)
        if place is None:
            self.say(f"not found in this {reads.noun}")
        else:
            self._to_place(place)

    def _to_place(self, place: int) -> None:
        reads = self._board.reads
        if reads.pane.display and reads.pane.region.area:
            self.set_focus(reads.pane, scroll_visible=False)
        reads.show(place)

    def ask_time(self) -> None:
        """Write a time to go to."""
        self.write(Written(Clean("go to"), self._time_told, self._time_taken, lambda: None))

    def _time_told(self, text: str) -> Segment:
        try:
            self._board.reads.time_of(text, self._clock())
        except ValueError:
            return Clean(TIMES), "quiet"
        return NOTHING, "quiet"

    def _time_taken(self, text: str) -> Clean:
        reads = self._board.reads
        try:
            there = reads.time_of(text, self._clock())
        except ValueError as fault:
            return Clean(str(fault))
        place = reads.at_time(there)
        if place is None:
            return Clean(f"this {reads.noun} has no lines")
        self._to_place(place)
        return NOTHING

    def next_level(self) -> None:
        """Show less of the log, or all of it again."""
        self.say(_LEVELS[self._board.book.next_level()])

    # -------------------------------------------------------------- for other operators

    @property
    def attended(self) -> RequestKey | None:
        """The request that the operator reads on its card; None where none is open, or nothing waits on it any more."""
        shown = self._sight.shown
        request = self._hub.fleet.requests.get(shown.key) if shown is not None else None
        return request.key if request is not None and request.open and not self._board.covered else None

    def claim(self) -> None:
        """Tell other operators that this one takes the request, or lets go of it."""
        request = self.in_sight
        if request is None:
            self.say("nothing waits here that could be claimed")
        elif why := self._hub.unclaimable(request.key):
            self.say(f"not claimed: {why}", "attention")
        else:
            release = ours(self._hub.fleet, request)
            self._hub.claim(request.key, release=release)
            self.say(
                "let go of: others may take it" if release else "claimed: others are told, and may still decide it"
            )

    # -------------------------------------------------------------- from one time to the next

    def view(self) -> View:
        """How sessions and logs are shown, to be kept."""
        rows, filter = self._board.rows, self._board.filter
        return View(
            sort=rows.sort,
            reverse=rows.reverse,
            group=rows.grouping.kind,
            label=rows.grouping.label,
            filter=filter.text if filter is not None else "",
            level=self._board.book.level,
        )

    def begin_with(self, view: View) -> None:
        """Show sessions and logs as it was kept, before anything is painted. What is not known is left out."""
        rows = self._board.rows
        if view.sort in list(Sort):
            rows.sort_by(Sort(view.sort), reverse=view.reverse)
        if view.group in GROUPINGS:
            rows.group_by(Grouping(view.group, view.label))
        if view.level in list(Level):
            self._board.book.begin_at(Level(view.level))
        with contextlib.suppress(FilterError):
            self.filter_by(view.filter)

    def left_search(self) -> bool:
        """Look for nothing any more, where the keys are in what was looked through; False where nothing was."""
        if self._sight.shown is not None or not self._board.reads.query or self.pane is not self._board.reads.pane:
            return False
        self.stop_search()
        self.say("nothing is looked for any more")
        return True

    def back(self) -> None:
        """A search goes first where it was made."""
        if not self.left_search():
            super().back()


READS: Final[Mapping[str, Callable[[Reading], None]]] = MappingProxyType(
    {
        **ARRANGES,
        "filter": lambda screen: screen.open_line(),
        "look_for": lambda screen: screen.look_through(),
        "claim": lambda screen: screen.claim(),
        "find_next": lambda screen: screen.find(back=False),
        "find_before": lambda screen: screen.find(back=True),
        "to_time": lambda screen: screen.ask_time(),
        "level": lambda screen: screen.next_level(),
    }
)
