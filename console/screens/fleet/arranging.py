"""How the roster is arranged, by keys: sorted, grouped, filtered, put away, marked. Nothing here intervenes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from console.fleet.facts import SessionKey
from console.fleet.roster.arrangement import group_words
from console.fleet.roster.filter import FilterError, parse
from console.fleet.roster.order import GroupKey, Sort
from console.screens.fleet.writing import Writing, Written
from watchfloor.text import NOTHING, Clean, clean_line
from widgets.tones import Segment

_FIRST: Final[Mapping[Sort, str]] = MappingProxyType(
    {
        Sort.ATTENTION: "who needs you first, then what failed, waits or is paused",
        Sort.NAME: "from a to z",
        Sort.STATE: "from starting to stopped",
        Sort.WAITING: "who waits longest first",
        Sort.RATE: "the busiest first",
        Sort.USAGE: "who used most tokens first",
    }
)
"""What stands first."""


class Arranging(Writing):
    """The keys of the roster that change how it stands."""

    # -------------------------------------------------------------- order and groups

    def next_sort(self) -> None:
        """Sort by the next thing."""
        rows, sorts = self._board.rows, list(Sort)
        rows.sort_by(sorts[(sorts.index(rows.sort) + 1) % len(sorts)])
        self._rearranged()
        self.say(f"sorted by {rows.sort}: {_FIRST[rows.sort]}")

    def turn_sort(self) -> None:
        """Sort the other way round."""
        rows = self._board.rows
        rows.sort_by(rows.sort, reverse=not rows.reverse)
        self._rearranged()
        self.say(f"sorted by {rows.sort}{', the other way round' if rows.reverse else f': {_FIRST[rows.sort]}'}")

    def next_group(self) -> None:
        """Group by the next thing: parents, sources, each label that there is, nothing."""
        rows = self._board.rows
        all_of_them = rows.groupings()
        at = all_of_them.index(rows.grouping) if rows.grouping in all_of_them else -1
        rows.group_by(all_of_them[(at + 1) % len(all_of_them)])
        self._rearranged()
        words = group_words(rows.grouping)
        self.say(f"grouped by {words}" if words else "children stand below their parents")

    def fold(self) -> None:
        """Put away what is below the line under the cursor, or what the line itself is among; or show it again."""
        rows, key = self._board.rows, self._board.line
        if key is None:
            return
        if not rows.below(key):
            above = rows.above(key)
            if not above:
                self.say("nothing is below this line")
                return
            key = above[0]
        rows.close(key, closed=not rows.closed(key))
        self._rearranged()
        self._board.roster.select(key)
        self._moved()

    def fold_all(self) -> None:
        """Put away whatever is below something, or show all of it again."""
        rows = self._board.rows
        if not any(rows.below(key) for key in rows.keys()):  # noqa: SIM118 - no mapping
            self.say("nothing is below anything here")
            return
        open_now = any(rows.below(key) and not rows.closed(key) for key in rows.keys())  # noqa: SIM118
        top = self._board.line
        above = rows.above(top) if top is not None else []
        rows.close_all(closed=open_now)
        self._rearranged()
        if open_now and above:
            self._board.roster.select(above[-1])
            self._moved()

    def open_selected(self) -> None:
        """On a heading, fold it; else what is open elsewhere."""
        if self.pane is self._board.roster and isinstance(self._board.line, GroupKey):
            self.fold()
        else:
            super().open_selected()

    def _rearranged(self) -> None:
        self._board.rearrange(self._clock())
        self._follow()

    # -------------------------------------------------------------- the filter

    def open_line(self) -> None:
        """Write a filter."""
        self.write(
            Written(Clean("filter"), self._filtered, self._filter_taken, self.clear_filter),
            self._board.filter.text if self._board.filter is not None else "",
        )

    def _filtered(self, text: str) -> Segment:
        """Take up what is written so far; the last filter that was one stays until it is one again."""
        try:
            self.filter_by(text)
        except FilterError as fault:
            return Clean(str(fault)), "attention"
        self._rearranged()
        return self._board.found(), "quiet"

    def filter_by(self, text: str) -> None:
        """Show only what this filter accepts, from the next arrangement on. Raises FilterError."""
        filter, store = parse(text), self._hub.fleet
        self._board.filter = filter if filter.terms else None
        self._board.rows.keep = (lambda session: filter.accepts(store, session)) if filter.terms else None

    def _filter_taken(self, text: str) -> Clean:
        said, tone = self._filtered(text)
        if tone == "attention":
            return said
        # The operator has seen what is left, and where the cursor is.
        self._sight.aimed = self._sight.aimed or self._board.selected is not None
        return NOTHING

    def clear_filter(self) -> None:
        """Show every session again."""
        self._filtered("")

    # -------------------------------------------------------------- marks

    def read_on(self) -> None:
        """Mark the session under the cursor; with a card open, or keys elsewhere, the next page."""
        if self._sight.shown is not None or self.pane is not self._board.roster:
            super().read_on()
            return
        line = self._board.line
        if line is None:
            return
        marked = self._board.rows.marked
        if isinstance(line, SessionKey):
            marked ^= {line}
        else:
            below = {key for key in self._shown_sessions() if line in self._board.rows.above(key)}
            self._board.rows.marked = marked - below if below <= marked else marked | below
        self._board.repaint_marks()

    def mark_all(self) -> None:
        """Mark every session that is shown; with all of them marked, none."""
        rows = self._board.rows
        shown = set(self._shown_sessions())
        rows.marked = set() if shown <= rows.marked else rows.marked | shown
        self._board.repaint_marks()
        self.say(f"{len(rows.marked):,} marked" if rows.marked else "none is marked")

    def _shown_sessions(self) -> list[SessionKey]:
        return [key for key in self._board.rows.keys() if isinstance(key, SessionKey)]  # noqa: SIM118 - no mapping

    # -------------------------------------------------------------- back

    def back(self) -> None:
        """Close what is open, the topmost first; then marks go, then the filter."""
        if self.has_class("-facts") or self._sight.shown is not None or self.pane is not self._board.roster:
            super().back()
        elif self._board.rows.marked:
            self._board.rows.marked.clear()
            self._board.repaint_marks()
            self.say("no session is marked any more")
        elif self._board.filter is not None:
            self.clear_filter()
            self.say(clean_line("every session is shown again"))
        else:
            super().back()


ARRANGES: Final[Mapping[str, Callable[[Arranging], None]]] = MappingProxyType(
    {
        "sort": lambda screen: screen.next_sort(),
        "sort_back": lambda screen: screen.turn_sort(),
        "group": lambda screen: screen.next_group(),
        "fold": lambda screen: screen.fold(),
        "fold_all": lambda screen: screen.fold_all(),
        "mark_all": lambda screen: screen.mark_all(),
    }
)
