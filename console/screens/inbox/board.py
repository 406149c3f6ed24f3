"""The parts of the inbox: those of the fleet screen, with the requests that wait in place of roster and log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Final

from textual.widget import Widget

from console.fleet.changes import Changes
from console.fleet.decisions.inbox import Inbox, Shown
from console.fleet.facts import RequestKey, SessionKey
from console.fleet.roster.order import RowKey
from console.fleet.views.inbox import InboxRows, counts, told
from console.fleet.views.wording import Segment, name_by_key
from console.screens.board import Board
from console.screens.flows.drawer import Drawer
from console.screens.flows.together import Outcome, outcome_rows
from console.screens.inbox.sight import InboxSight
from console.screens.sight import Sight
from watchfloor.text import NOTHING, Clean, clean_line
from widgets.event_log import EventLog
from widgets.facts import Facts
from widgets.listing import ListColumn, Listing
from widgets.roster import Roster

if TYPE_CHECKING:
    from console.hub import Hub
    from console.keymap import Keymap
    from themes.data import GlyphSet

_COLUMNS: Final = (
    ListColumn(NOTHING, 1),
    ListColumn(Clean("RISK"), 9),
    ListColumn(Clean("WAITS"), 7, right=True),
    ListColumn(Clean("WHO"), 16, share=1),
    ListColumn(Clean("ASKS"), 20, share=3),
    ListColumn(Clean("ENDS"), 26, share=1, drop=1),
    ListColumn(Clean("SOURCE"), 12, drop=2),
)


class OutcomesPane(Facts, can_focus=True):
    """What became of each request of a batch."""


class InboxBoard(Board):
    """Paints the inbox. It has no roster and no log: what stands for them is never on the screen."""

    def __init__(self, hub: Hub, keys: Keymap, glyphs: GlyphSet, *, debug_keys: bool, tz: tzinfo | None) -> None:
        super().__init__(hub, keys, glyphs, ground=NOTHING, debug_keys=debug_keys, tz=tz)
        self.inbox: Final = Inbox(hub.fleet, self.judged)
        self.listing: Final = Listing(_COLUMNS, id="inbox", marks=self.marks)
        self.outcomes: Sequence[Outcome] = ()
        self.query = ""
        self._rows = InboxRows(self.inbox, 0, self.marks.marked)
        self.roster = Roster(self.rows, marks=self.marks)
        self.log = EventLog(marks=self.marks)
        self.book.bind(self.log)
        # Whoever is here has found the keys.
        self._pressed = 1

    def sight(self) -> Sight:
        return InboxSight(self._hub.fleet, self.inbox)

    def bind(self, screen: Widget) -> None:
        """Take up the widgets, once they are there."""
        self._take_up(screen)
        self._outcomes = screen.query_one(OutcomesPane)
        self.drawer = screen.query_one(Drawer)
        self.bound = True

    # -------------------------------------------------------------- the list

    @property
    def selected(self) -> SessionKey | None:
        """The session that asks under the cursor."""
        key = self.inbox.selected
        return key.owner if key is not None else None

    @property
    def line(self) -> RowKey | None:
        return self.selected

    def painted(self, key: RequestKey | None) -> Shown | None:
        """What the line of this request showed when it was drawn; None where it has not been drawn."""
        return self._rows.painted.get(key) if key is not None else None

    def lay_out(self, now: int) -> None:
        """Take up the requests as they are now; the cursor stays on its own."""
        inbox = self.inbox
        inbox.refresh()
        self._rows = InboxRows(inbox, now, self.marks.marked)
        key = inbox.selected
        self.listing.show_at(self._rows, inbox.index(key) if key is not None else None)
        self.listing.empty = self._why_empty()
        self._dirty = True

    def _why_empty(self) -> Clean:
        if self.inbox.total:
            return clean_line(f"none of {self.inbox.total:,} that wait holds {self.query}")
        return Clean("nothing waits for you")

    def rearrange(self, now: int) -> None:
        self.lay_out(now)

    def bring(self, key: SessionKey, now: int) -> None:
        """There is no roster in which it could be hidden."""

    def marked(self) -> list[SessionKey]:
        return []

    def turn_to(self, key: SessionKey | None) -> None:
        self._dirty = True

    def filter_by(self, text: str, now: int) -> None:
        """Show only what holds all of these words."""
        self.query = text
        self.inbox.filter(text)
        self.lay_out(now)

    def _place(self, key: RequestKey) -> tuple[int, int] | None:
        at = self.inbox.index(key)
        return (at + 1, len(self.inbox)) if at is not None else None

    # -------------------------------------------------------------- painting

    def paint_roster(self, changes: Changes, now: int, *, everything: bool) -> None:
        """The list, where something in it may have changed, and once a second."""
        contacts = self._contact_changed()
        second = now // 1_000 != self._second
        if contacts or everything or second or changes.requests or changes.sessions or changes.trails:
            self.lay_out(now)

    def _count_segments(self) -> Sequence[Segment]:
        return counts(self.inbox)

    def _arranged(self) -> Sequence[Segment]:
        return ((clean_line(f"filter {self.query}"), "attention"),) if self.query else ()

    def _log_title(self, selected: SessionKey | None, now: int) -> list[Segment]:
        self._paint_outcomes()
        return list(told(self.inbox, now))

    @property
    def _log_active(self) -> bool:
        return self.listing.has_focus

    def _paint_outcomes(self) -> None:
        self._screen.set_class(bool(self.outcomes), "-outcomes")
        self._outcomes.facts = outcome_rows(self._hub.fleet, self.outcomes, self._tz)

    def last_line(self) -> Clean:
        """What the request under the cursor asks, and who does."""
        at = self.inbox.index(self.inbox.selected) if self.inbox.selected is not None else None
        if at is None:
            return NOTHING
        row = self.inbox.row(at, 0)
        return Clean(f"{name_by_key(self._hub.fleet.sessions, row.key.owner)}  {row.line}")
