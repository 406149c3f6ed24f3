"""The widgets of the fleet screen and the views that they read: what is painted, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.widget import Widget

from console.actions import Action
from console.fleet.changes import Changes
from console.fleet.decisions.former import former
from console.fleet.facts import RequestKey, SessionKey
from console.fleet.roster.census import Census
from console.fleet.roster.filter import Filter
from console.fleet.roster.order import GroupKey, RowKey, Sort
from console.fleet.views.facts import fact_rows
from console.fleet.views.roster import RosterView
from console.fleet.views.status import behind_segments, contact_segments, count_segments, need_segments
from console.fleet.views.trail import trail_segment
from console.fleet.views.wording import Segment, clock_time, name_of
from console.recording.keys import KEYS as REPLAY_KEYS
from console.screens.availability import Standing
from console.screens.fleet.footing import (
    arrangement,
    asked_since,
    footer_keys,
    hint,
    last_trail,
    line_keys,
    quiet_roster,
    unheard,
)
from console.screens.fleet.logbook import Logbook
from console.screens.fleet.sizes import TINY
from console.screens.pages.told import Told
from console.screens.readable import Readable
from console.screens.rule import Rule
from console.screens.shown import Shown, taken_here
from console.screens.sight import Sight
from console.screens.too_small import TooSmall
from watchfloor.text import Clean, clean_line
from watchfloor.words import Contact
from widgets.action_footer import ActionFooter
from widgets.cells import wrap
from widgets.columns import ColumnName
from widgets.event_log import EventLog
from widgets.facts import FactRow, Facts
from widgets.marks import Marks
from widgets.request_card import RequestCard
from widgets.roster import Roster
from widgets.status_bar import StatusBar
from widgets.tones import Tone

if TYPE_CHECKING:
    from console.fleet.decisions.risk.judged import Judged
    from console.hub import Hub
    from console.keymap import Keymap
    from console.screens.flows.drawer import Drawer
    from themes.data import GlyphSet

NOTICE_MS: Final = 10_000
"""How long a notice stands, unless a key takes its place."""
SECOND_MS: Final = 1_000
ROSTER_RESTS: Final = 9
"""Sorting ten thousand sessions takes as long as a frame: the roster takes a tenth of the time at most."""

_CARD_KEYS: Final = ("approve", "options", "deny", "deny_reason", "answer", "reveal")
Standings = Callable[[], list[tuple[Action, Standing]]]
Holds = Callable[[], bool]
"""Is what was said still so?"""


class FactsPane(Facts, can_focus=True):
    """Facts that can have the keys, to be scrolled."""


_COLUMN: Final[Mapping[Sort, ColumnName]] = {
    Sort.NAME: "name",
    Sort.STATE: "state",
    Sort.WAITING: "needs",
    Sort.RATE: "rate",
    Sort.USAGE: "usage",
}
"""The column that shows what the roster is sorted by; none shows attention."""
_UNUSED: Final[frozenset[ColumnName]] = frozenset({"usage"})
_NOTHING: Final[Segment] = (Clean(""), "plain")


class _Says(NamedTuple):
    left: Sequence[Segment]
    right: Sequence[Segment] = ()


class Board:
    """Paints what has changed, and once a second what the time alone changes."""

    def __init__(
        self, hub: Hub, keys: Keymap, glyphs: GlyphSet, *, ground: Clean, debug_keys: bool, tz: tzinfo | None
    ) -> None:
        self.marks: Final = Marks(**glyphs.marks)
        self._glyphs: Final[Mapping[str, str]] = {
            **glyphs.states,
            **glyphs.overlays,
            **glyphs.tree,
            **glyphs.marks,
            "levels": glyphs.levels,
        }
        self._hub = hub
        self._keys = keys
        self._tz = tz
        self._ground = ground
        self._debug_keys = debug_keys
        self.rows: Final = RosterView(hub.fleet, self._glyphs)
        self.filter: Filter | None = None
        self.entered: Final[dict[str, str]] = {}
        self.card: Final = RequestCard(id="card", marks=self.marks)
        self.told: Final = Told(id="told")
        self.bound = False
        self.drawer: Drawer | None = None
        self.book: Final = Logbook(hub.fleet, self._glyphs, tz)
        self.reads: Readable = self.book
        """What is looked through by keys."""
        self._census: Final = Census(hub.fleet)
        self._second = -1
        self._roster_changes = Changes()
        self._roster_rests_until = 0.0
        self._contacts: list[tuple[Contact, int]] = []
        self._selected: SessionKey | None = None
        self._notice: Segment = _NOTHING
        self._trailed: Segment = _NOTHING
        self._notice_until = 0
        self._holds: Holds | None = None
        self._told_live: Callable[[], Segment] | None = None
        self._pressed = 0
        self._dirty = True
        self._judged: Judged | None = None

    def bind(self, screen: Widget) -> None:
        """Take up the widgets, once they are there."""
        self._take_up(screen)
        self.roster = screen.query_one(Roster)
        self.roster.begins_on = lambda key: isinstance(key, SessionKey)
        self.log = screen.query_one(EventLog)
        self.book.bind(self.log)
        self.bound = True

    def _take_up(self, screen: Widget) -> None:
        """What stands on every screen on which sessions are looked at."""
        self._screen = screen
        self.facts = screen.query_one(FactsPane)
        self._top = screen.query_one("#top", StatusBar)
        self._counts = screen.query_one("#counts", StatusBar)
        self._trail = screen.query_one("#trail", StatusBar)
        self._notice_bar = screen.query_one("#notice", StatusBar)
        self._rule = screen.query_one("#log-rule", Rule)
        self._footer = screen.query_one(ActionFooter)
        self._too_small = screen.query_one(TooSmall)

    def sight(self) -> Sight:
        """Where the operator looks, to begin with."""
        return Sight(self._hub.fleet)

    # -------------------------------------------------------------- what the screen says

    @property
    def judged(self) -> Judged:
        """The risks of requests, each judged once."""
        if self._judged is None:
            from console.fleet.decisions.risk.judged import Judged  # reading commands is for later than the first frame

            self._judged = Judged(self._hub.fleet)
        return self._judged

    @property
    def tiny(self) -> bool:
        """Is the terminal too small to read in, and so to decide in?"""
        return self._screen.has_class(TINY)

    @property
    def covered(self) -> bool:
        """Does something else stand where the card would be?"""
        return self.tiny or {"-narrow", "-facts"} <= self._screen.classes

    @property
    def selected(self) -> SessionKey | None:
        """The session under the roster's cursor."""
        key = self.roster.selected
        return key if isinstance(key, SessionKey) else None

    @property
    def line(self) -> RowKey | None:
        """What the line under the roster's cursor stands for."""
        key = self.roster.selected
        return key if isinstance(key, (SessionKey, GroupKey)) else None

    def rearrange(self, now: int) -> None:
        """Take up at once that the roster is arranged otherwise."""
        self.rows.refresh(Changes(), now)
        self._show_sort()
        self.roster.empty = quiet_roster(self._hub.fleet, self.filter)
        self.roster.refresh_rows()
        self._dirty = True

    def soil(self) -> None:
        """Other keys work than before: paint all of it again."""
        self._dirty = True

    def _show_sort(self) -> None:
        column = _COLUMN.get(self.rows.sort)
        self.roster.sorted_by = (column, self.rows.reverse) if column is not None else None

    def bring(self, key: SessionKey, now: int) -> None:
        """Have this session shown, whatever hides it."""
        self.rows.pin(key)
        self.rows.reveal(key)
        self.rearrange(now)

    def marked(self) -> list[SessionKey]:
        """The marked sessions in the order of the roster, those that it does not show last."""
        last = len(self.rows)
        places = {key: self.rows.index(key) for key in self.rows.marked}
        return sorted(places, key=lambda key: (last if (at := places[key]) is None else at, key))

    def repaint_marks(self) -> None:
        """Other sessions are marked than before."""
        self.roster.refresh_rows()
        self._dirty = True

    def found(self) -> Clean:
        """How many sessions the filter leaves."""
        return Clean(f"{self.rows.kept:,} of {len(self._hub.fleet.sessions):,}")

    def key_pressed(self) -> None:
        """A key was handled: whatever was said before it is over."""
        self._pressed += 1
        self._notice_until, self._told_live = 0, None
        self._dirty = True

    def say(self, text: Clean, tone: Tone, now: int, holds: Holds | None = None) -> None:
        """Say this at once, in the line for notices, until a key is pressed, or sooner: while it `holds`."""
        self._notice, self._notice_until, self._holds = (text, tone), now + NOTICE_MS, holds
        self._told_live = None
        self._paint_lines(now)

    def follow(self, told: Callable[[], Segment], now: int) -> None:
        """Say what this tells, read again all the time, in the line for notices until a key is pressed."""
        self.say(*told(), now)
        self._told_live = told

    def turn_to(self, key: SessionKey | None) -> None:
        """Show the log of this session."""
        self.book.turn_to(key)
        self._dirty = True

    def show_card(self, shown: Shown | None, now: int) -> None:
        """Put this request on the card, or take up how it stands now; None takes it away."""
        self._dirty = True
        if shown is None:
            self.card.card = None
        else:
            self._draw_card(shown, now)

    def _draw_card(self, shown: Shown, now: int) -> None:
        steady = self._hub.steady()
        if (request := self._hub.fleet.requests.get(shown.key)) is not None:
            shown.bind(request)
        drawn = self.card.card
        on_card = (drawn.key, drawn.digest) if drawn is not None else None
        shown.whole = self.card.end_seen and on_card == (shown.key, shown.digest)
        from console.fleet.views.card import card  # what a card says is not needed before there is a request

        made = card(
            self._hub.fleet,
            shown.key,
            now,
            keys={id: self._keys.shown(id) for id in _CARD_KEYS},
            seen=shown.seen(steady),
            steady=steady,
            entered=self.entered,
            read_only=self._hub.read_only,
            tz=self._tz,
            revealed=shown.revealed,
            ruling=self._hub.ruled(shown.key),
            place=self._place(shown.key),
        )
        if made is None:
            return
        if made.open and shown.whole and (unseen := self.beginning_unseen):
            made = made._replace(armed=unseen, left_ms=0)
        if shown.outdated(request):
            ours = former(self._hub.fleet, shown.key)
            on_this = ours is not None and ours.intent.seen is not None and ours.intent.seen.digest == shown.digest
            leads = f"{self._keys.shown('open')} shows it"
            self.card.card = shown.kept(made, leads, taken_here(ours) if ours is not None and on_this else "")
            return
        if not made.open and self._asks_more(shown.key.owner):
            made = made._replace(ending=Clean(f"{made.ending}; another request waits: {self._keys.shown('open')}"))
        shown.look(made, steady)
        self.card.card = made

    def _place(self, key: RequestKey) -> tuple[int, int] | None:
        """Its n of m, where that is not told by how long they wait."""
        return None

    @property
    def beginning_unseen(self) -> Clean:
        """That the card was read at its end only, where it was; how to see the rest of it."""
        if not self.card.end_seen or self.card.begin_seen:
            return Clean("")
        return Clean(f"its beginning was not seen: {self._keys.shown('first')} shows it")

    def _asks_more(self, owner: SessionKey) -> bool:
        session = self._hub.fleet.sessions.get(owner)
        return session is not None and bool(session.open_requests())

    # -------------------------------------------------------------- painting

    def paint_roster(self, changes: Changes, now: int, *, everything: bool) -> None:
        """Paint the rows that changed; the cursor may find itself on another session."""
        self.roster.without = _UNUSED if not self._census.used and self.rows.sort is not Sort.USAGE else frozenset()
        self._show_sort()
        second = now // SECOND_MS != self._second
        waiting = self._roster_changes
        waiting.merge(changes)
        if not (waiting or everything or second) or (time.monotonic() < self._roster_rests_until and not everything):
            return
        self._roster_changes = Changes()
        begun = time.monotonic()
        moved = self.rows.refresh(None if everything else waiting, now) or self._contact_changed()
        self.roster.empty = quiet_roster(self._hub.fleet, self.filter)
        if moved or everything or second or waiting.requests:
            self.roster.refresh_rows()
        elif waiting.sessions:
            self.roster.refresh_rows(waiting.sessions)
        ended = time.monotonic()
        self._roster_rests_until = ended + ROSTER_RESTS * (ended - begun)

    def _contact_changed(self) -> bool:
        """Is a source heard otherwise than before? That its events come in alone changes no row."""
        contacts = [(source.contact, source.version) for source in self._hub.fleet.sources.values()]
        if contacts == self._contacts:
            return False
        # What the keys can do hangs on it as well.
        self._contacts, self._dirty = contacts, True
        return True

    def paint(
        self,
        changes: Changes,
        now: int,
        selected: SessionKey | None,
        shown: Shown | None,
        standings: Standings,
        *,
        everything: bool,
    ) -> None:
        """Paint everything else that changed."""
        self._census.take_up(None if everything else changes)
        second = now // SECOND_MS != self._second
        self._second = now // SECOND_MS
        everything = everything or second or self._dirty
        self._dirty = False
        self.book.paint(changes, now, everything=everything)
        if shown is not None and self.covered:
            shown.covered(self._hub.steady())
        if shown is not None and (everything or shown.arming(self._hub.steady()) or shown.touched(changes)):
            self._draw_card(shown, now)
        if everything or changes.sessions or changes.requests or changes.sources:
            self._paint_bars(now)
        if everything or selected in changes.sessions or changes.trails or changes.requests:
            self._paint_selected(now, selected, shown, standings)
        self._paint_lines(now)
        if self.drawer is not None and self.drawer.is_open:
            self.drawer.refresh_drawer()

    def _paint_bars(self, now: int) -> None:
        fleet = self._hub.fleet
        narrow = self._screen.has_class("-narrow")
        clock: Segment = (clock_time(now, self._tz), "quiet")
        needs = (*need_segments(fleet, now, self._glyphs, hidden=self.rows.hidden), clock)
        if self._hub.showing is not None:
            contacts: Sequence[Segment] = ((clean_line(self._hub.showing()), "attention"),)
        else:
            contacts = contact_segments(
                fleet,
                now,
                reasons=bool(len(self.rows)),  # a roster without sessions has room for the whole of them
                room=self._top.left_room(needs),
                title=Clean("watchfloor"),
                more=self._keys.shown("sources"),
            )
        self._top.status = _Says(contacts, needs)
        right: list[Segment] = list(self._arranged())
        if fault := self._hub.audit_fault:
            right.append((clean_line(f"interventions are not written down: {fault}"), "failed"))
        if absence := self._hub.absence_line:
            key = self._keys.shown("since")
            told = f"{key} since you were away" if narrow else f"{absence} ({key} tells more)"
            right.append((Clean(told), "attention"))
        if not_kept := self._hub.not_kept:
            right.append((clean_line(not_kept), "failed"))
        if not_told := self._hub.not_told:
            right.append((clean_line(not_told), "failed"))
        if self._hub.showing is not None:
            right.append((REPLAY_KEYS, "quiet"))
        elif self._hub.read_only:
            right.append((Clean("this console only watches"), "quiet"))
        if self._debug_keys:
            right.append((Clean(f"keys={self._pressed}"), "quiet"))
        self._counts.status = _Says((*self._count_segments(), *behind_segments(fleet)), right)

    def _count_segments(self) -> Sequence[Segment]:
        """How much there is of what the screen is about."""
        return count_segments(self._census)

    def _arranged(self) -> Sequence[Segment]:
        """How it is arranged, as far as that is not the usual way."""
        return arrangement(self.rows, self.filter)

    def _paint_selected(self, now: int, selected: SessionKey | None, shown: Shown | None, standings: Standings) -> None:
        fleet = self._hub.fleet
        self._selected = selected
        self.facts.facts = self._fact_rows(selected, now) if selected else []
        writing = self._screen.has_class("-writing")
        unread = shown is not None and not shown.whole and self.card.has_focus
        self._footer.items = (
            line_keys("take it") if writing else footer_keys(standings(), self._keys, fleet, unread=unread)
        )
        self._rule.say(self._log_title(selected, now), active=self._log_active)
        trail = last_trail(fleet, selected, shown)
        self._trailed = trail_segment(trail, self._tz) if trail is not None else _NOTHING
        if trail is not None and asked_since(fleet, trail):
            self._trailed = Clean(f"before it asked this: {self._trailed[0]}"), self._trailed[1]

    def _fact_rows(self, selected: SessionKey, now: int) -> list[FactRow]:
        return fact_rows(self._hub.fleet, selected, now, read_only=self._hub.read_only)

    @property
    def _log_active(self) -> bool:
        """Do keys go to the part below the rule?"""
        return self.log.has_focus

    def _paint_lines(self, now: int) -> None:
        """How far the last command has come, and what there is to be said; on a low screen both share a line."""
        said: Sequence[Segment] = ()
        if self._holds is not None and not self._holds():
            self._notice_until, self._holds = 0, None
        if now < self._notice_until:
            said = (self._told_live() if self._told_live is not None else self._notice,)
        elif not self._pressed:
            said = hint(self._hub.fleet, self._keys, self._ground)
        said = said or unheard(self._hub.fleet, self._selected, self._keys, max(1, self._screen.size.width - 2))
        self._too_small.say(said)
        said = self._told_below(said, notice=now < self._notice_until)
        trailed: Sequence[Segment] = (self._trailed,) if self._trailed[0] else ()
        if self._screen.has_class("-low"):
            trailed, said = said or trailed, ()
        self._trail.status, self._notice_bar.status = _Says(trailed), _Says(said)

    def _told_below(self, said: Sequence[Segment], *, notice: bool) -> Sequence[Segment]:
        """What of it has its line; of a notice that does not fit there the rest stands below, in place of the keys."""
        rest: list[Segment] = []
        asking = self.drawer is not None and self.drawer.is_open
        if notice and not asking and self.told.is_attached:
            pieces = [(Clean(piece), tone) for text, tone in said for piece in wrap(text, max(1, self.told.room))]
            rest = pieces[1:]
            said = pieces[:1]
        self.told.say(rest)
        self._screen.set_class(bool(rest), "-telling")
        return said

    def _log_title(self, selected: SessionKey | None, now: int) -> list[Segment]:
        session = self._hub.fleet.sessions.get(selected) if selected is not None else None
        if session is None:
            return []
        title: list[Segment] = [(name_of(session), "plain")]
        title.append((Clean(str(session.track.state(now))), "quiet"))
        if session.head:
            noun = "event" if session.head == 1 else "events"
            title.append((Clean(f"{session.head:,} {noun}"), "quiet"))
        return title

    def whose(self, selected: SessionKey | None) -> list[Segment]:
        """The selected session, for the head of the help."""
        session = self._hub.fleet.sessions.get(selected) if selected is not None else None
        return [] if session is None else [(Clean(f"for {name_of(session)}"), "quiet")]

    # -------------------------------------------------------------- copying

    def last_line(self) -> Clean:
        """The selected line of the log, whole."""
        selected = self.book.selected_line()
        return Clean("  ".join(selected)) if selected is not None else Clean("")
