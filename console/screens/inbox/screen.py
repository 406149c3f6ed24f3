"""The inbox: every open request of every source and child, decided without opening its session.

Deciding is that of the fleet screen, with the same rules: on a card that was read, or for several from a table that
names each. Nothing is decided from a line alone, and nothing advances without a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from console.actions import Action, Where
from console.fleet.facts import RequestKey, SessionKey
from console.screens.availability import Standing
from console.screens.bindings import bindings
from console.screens.fleet.handlers import Decide
from console.screens.fleet.screen import FleetScreen
from console.screens.fleet.writing import Written
from console.screens.flows import together
from console.screens.inbox.board import InboxBoard, OutcomesPane
from console.screens.inbox.desk import InboxDesk
from console.screens.opened import OpenedScreen
from console.screens.rule import Rule
from watchfloor.text import NOTHING, Clean
from watchfloor.words import OptionKind
from widgets.listing import Listing
from widgets.painting import LineView
from widgets.tones import Segment

if TYPE_CHECKING:
    from console.screens.setting import Setting

_TOGETHER: Final = {"approve": OptionKind.ALLOW, "deny": OptionKind.DENY}
"""What marks count for; every other key is about one request alone."""


class InboxScreen(OpenedScreen, inherit_bindings=False):
    """The screen of all that waits."""

    CSS_PATH = Path(__file__).with_suffix(".tcss")
    AUTO_FOCUS = "#inbox"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.INBOX)

    def __init__(self, setting: Setting) -> None:
        """Create the screen; see `FleetScreen`."""
        self._desk = InboxBoard(setting.hub, setting.keys, setting.glyphs, debug_keys=setting.debug_keys, tz=setting.tz)
        super().__init__(setting, where=Where.INBOX, board=self._desk)
        # Before anything is painted: the first key is about the first line.
        self._desk.inbox.refresh()
        self._desk.inbox.move(0)
        self._together = InboxDesk(
            self._interventions,
            self._hub,
            undo=self._keys.shown("undo"),
            show=self._show_outcomes,
            begin=lambda work: self.app.run_worker(work, exit_on_error=True),
        )
        self._own = {**self._own, "mark_alike": self.mark_alike, "inbox": lambda: self.say("this is the inbox")}

    def main(self) -> ComposeResult:
        yield self._desk.listing
        yield Rule(id="log-rule", marks=self._marks)
        yield self._desk.card
        yield OutcomesPane(id="outcomes", marks=self._marks)

    def _tick(self) -> None:
        if self.is_active:
            self.paint()
            self._hub.look(self._sight.selected)

    def _follow(self) -> None:
        """What the facts are about: the session that asks under the cursor."""
        selected = self._desk.selected
        if selected != self._sight.selected:
            self._sight.selected = selected
            self._desk.turn_to(selected)

    # -------------------------------------------------------------- the parts

    @property
    def home(self) -> LineView:
        return self._desk.listing

    def parts(self) -> list[LineView]:
        desk = self._desk
        outcomes = [self.query_one(OutcomesPane)] if desk.outcomes else []
        return [desk.listing, desk.card, *outcomes, desk.facts]

    def line(self, by: int) -> None:
        """Move by requests in the list, else by lines."""
        if self.pane is self._desk.listing:
            self._desk.inbox.move(by)
            self._turned_to()
        else:
            super().line(by)

    def page(self, by: int) -> None:
        """Move by pages in the part that has the keys."""
        if self.pane is self._desk.listing:
            self.line(by * self._desk.listing.page_lines())
        else:
            super().page(by)

    def edge(self, last: bool) -> None:
        """Move to the start, or the end, of the part that has the keys."""
        if self.pane is self._desk.listing:
            self.line(len(self._desk.inbox) if last else -len(self._desk.inbox))
        else:
            super().edge(last)

    def _turned_to(self) -> None:
        """The operator has put the cursor on a request: an open card is that of this one from now on."""
        key = self._desk.inbox.selected
        self._desk.lay_out(self._clock())
        self._moved()
        shown = self._sight.shown
        if shown is not None and key is not None and shown.key != key:
            self.open_card(key, focus=False)

    @on(Listing.Turned)
    def _clicked(self, event: Listing.Turned) -> None:
        event.stop()
        if isinstance(event.key, RequestKey):
            self._desk.inbox.select(event.key)
            self._turned_to()

    @on(Listing.Opened)
    def _opened_by_click(self, event: Listing.Opened) -> None:
        event.stop()
        self.open_selected()

    # -------------------------------------------------------------- what is looked at

    def open_selected(self) -> None:
        """The card of the request under the cursor; where the card has the keys, all of its session."""
        if self.pane is self._desk.card:
            shown = self._sight.shown
            if shown is not None and self._sight.outdated:
                self.open_card(shown.key)
            else:
                self.open_session()
            return
        key = self._desk.inbox.selected
        if key is None:
            self.say("no request is selected" if len(self._desk.inbox) else "nothing waits for you")
        else:
            self.open_card(key)

    def open_card(self, key: RequestKey, *, focus: bool = True) -> None:
        """Put a request on the card, and the cursor on its line."""
        if key not in self._hub.fleet.requests:
            self.say("it is no longer remembered")
            return
        inbox = self._desk.inbox
        if inbox.selected != key:
            inbox.select(key)
            self._desk.lay_out(self._clock())
            self._moved()
        super().open_card(key, focus=focus)

    def show_next(self) -> None:
        """Show the request under the cursor, or the one below that which is shown."""
        key = self._sight.next_request()
        if key is None:
            self.say("nothing waits for you", holds=lambda: self._sight.next_request() is None)
        elif self._sight.shown is not None and key == self._sight.shown.key and not self._sight.outdated:
            self.say("this is the only one that waits here")
        else:
            self.open_card(key)

    def go_to(self, key: SessionKey) -> None:
        """Show all of a session that was named."""
        if key in self._hub.fleet.sessions:
            self._sight.selected = key
            self.open_session()

    def _come_back(self, screen: FleetScreen) -> None:
        """The screen of a session is closed. The cursor is on the request on which it was."""
        self._opened = None
        if screen.writing:
            self._quiet.broken()
        self._desk.card.credit(screen.read_card)
        self._moved()

    def read_on(self) -> None:
        """Mark the request under the cursor; with a card open, or keys elsewhere, the next page."""
        if self._sight.shown is not None or self.pane is not self._desk.listing:
            super().read_on()
            return
        shown = self._desk.painted(self._desk.inbox.selected)
        if shown is None:
            self.say("no request is selected")
        else:
            self._desk.inbox.mark(shown)
            self._desk.lay_out(self._clock())

    def mark_alike(self) -> None:
        """Mark all that ask for the very same as the one under the cursor; with marks there, take them away."""
        inbox = self._desk.inbox
        shown = self._desk.painted(inbox.selected)
        if inbox.marked():
            inbox.unmark()
            self.say("none is marked")
        elif shown is None:
            self.say("no request is selected")
        elif number := inbox.mark_alike(shown):
            self.say(f"{number:,} marked" if number > 1 else "no other asks for the very same: this one is marked")
        else:
            self.say("it is not what was shown: look again", "attention")
        self._desk.lay_out(self._clock())

    def open_line(self) -> None:
        """Write what to look for."""
        self.write(
            Written(Clean("filter"), self._looked_for, self._look_taken, lambda: self._filter("")), self._desk.query
        )

    def _looked_for(self, text: str) -> Segment:
        self._filter(text)
        inbox = self._desk.inbox
        return Clean(f"{len(inbox):,} of {inbox.total:,}"), "quiet" if len(inbox) else "attention"

    def _look_taken(self, text: str) -> Clean:
        self._filter(text)
        return NOTHING

    def _filter(self, text: str) -> None:
        self._desk.filter_by(text, self._clock())
        self._moved()

    def back(self) -> None:
        """Close what is open, the topmost first; then marks go, then the filter, then this screen."""
        inbox = self._desk.inbox
        if self.has_class("-facts"):
            self.put_facts_away()
        elif self._sight.shown is not None:
            self.close_card()
        elif self._desk.outcomes:
            self._show_outcomes(())
            self.set_focus(self.home, scroll_visible=False)
        elif self.pane is not self.home:
            self.set_focus(self.home, scroll_visible=False)
        elif inbox.marked():
            inbox.unmark()
            self._desk.lay_out(self._clock())
            self.say("no request is marked any more")
        elif inbox.filtered:
            self._filter("")
            self.say("every request is shown again")
        else:
            self.dismiss(None)

    # -------------------------------------------------------------- deciding

    def _marked_for(self, id: str) -> list[RequestKey]:
        """The requests that a key is about where marks count: never while a card is open."""
        return self._desk.inbox.marked() if id in _TOGETHER and self._sight.shown is None else []

    def decide(self, action: Action, flow: Decide) -> None:
        """Decide the request on the card, or all that are marked."""
        if marked := self._marked_for(action.id):
            together.decide(self._together, marked, _TOGETHER[action.id])
        else:
            super().decide(action, flow)

    def standings(self) -> list[tuple[Action, Standing]]:
        """How each action stands for what is looked at, or marked."""
        return [
            (action, Standing(True, Clean(f"{action.label} {len(marked):,} marked")))
            if (marked := self._marked_for(action.id)) and not self._board.tiny
            else (action, stands._replace(label=Clean("filter")) if action.id == "filter" else stands)
            for action, stands in super().standings()
        ]

    def _show_outcomes(self, outcomes: Sequence[together.Outcome]) -> None:
        """What was decided is not marked any more; what became of it stands below."""
        if outcomes:
            self._desk.inbox.unmark()
        self._desk.outcomes = tuple(outcomes)
        self._desk.lay_out(self._clock())
        self.paint(everything=True)
