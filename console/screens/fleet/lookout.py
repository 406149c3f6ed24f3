"""Where the operator looks on the fleet screen, and the keys that move that: nothing here intervenes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual import on
from textual.screen import Screen

from console.fleet.facts import RequestKey, SessionKey
from console.fleet.state import Request
from console.screens.board import Board, Holds
from console.screens.copying import copied
from console.screens.quiet import Quiet
from console.screens.shown import Shown
from watchfloor.text import Clean
from widgets.event_log import EventLog
from widgets.painting import LineView
from widgets.request_card import RequestCard
from widgets.roster import Roster
from widgets.tones import Tone

if TYPE_CHECKING:
    from console.hub import Hub
    from console.screens.flows.asking import Ask
    from watchfloor.connector import Clock


class Lookout(Screen[None]):
    """The parts of the screen, which of them has the keys, and what stands on the card."""

    def __init__(self, hub: Hub, board: Board, clock: Clock) -> None:
        """Create it.

        Args:
            hub: Where what is looked at is known.
            board: The parts of the screen.
            clock: Milliseconds since 1970 UTC.
        """
        super().__init__()
        self._hub: Final = hub
        self._board: Final = board
        self._clock: Final = clock
        self._sight: Final = board.sight()
        self._quiet: Final = Quiet(hub.steady)

    @property
    def furnished(self) -> bool:
        """Is everything there, what the first frame does without included?"""
        return self._board.drawer is not None

    def say(self, text: str, tone: Tone = "plain", holds: Holds | None = None) -> None:
        """One line of our own words to the operator, for as long as it holds."""
        self._board.say(Clean(text), tone, self._clock(), holds)

    def ask(self, ask: Ask) -> None:
        """Ask this in the drawer, which has all keys until it is closed."""
        drawer = self._board.drawer
        if drawer is None:
            self.say("the console is still starting", "attention")
            return
        self.add_class("-asking")
        self.deafen(True)
        drawer.ask(ask)

    def deafen(self, deaf: bool) -> None:
        """While a text is written a click elsewhere must neither act nor take the keys away from it."""
        for pane in self.parts():
            pane.deaf = deaf

    def on_drawer_closed(self) -> None:
        """The keys are the screen's again."""
        drawer = self._board.drawer
        if drawer is not None and not drawer.is_open:
            self.remove_class("-asking")
            self.deafen(False)
        if self._sight.shown is not None:
            self._sight.shown.disturbed(self._hub.steady())
        self._board.entered.clear()
        if self._sight.shown is not None and drawer is not None:
            # What was left half done is there again when it is gone on with.
            self._board.entered.update(drawer.begun((self._sight.shown.key, self._sight.shown.digest)))

    # -------------------------------------------------------------- the parts

    def _follow(self) -> None:
        """Turn to the session that the roster's cursor is on."""
        selected = self._board.selected
        if selected == self._sight.selected:
            return
        # What was selected has gone from the roster, and the cursor stands on a neighbour by nobody's wish.
        vanished = self._sight.selected is not None and self._board.rows.index(self._sight.selected) is None
        self._sight.aimed = not vanished
        self._sight.selected = selected
        self._board.turn_to(selected)
        if not vanished and self._sight.shown is not None and self._sight.shown.key.owner != selected:
            self._turn_card()

    def _turn_card(self) -> None:
        """The card belongs to the selected session: show what waits there, or nothing."""
        request = self._sight.waiting_here()
        if request is None:
            self.close_card()
        else:
            self.open_card(request.key, focus=False)

    @property
    def selected(self) -> SessionKey | None:
        """The session that steering keys go to."""
        return self._sight.selected

    @property
    def in_sight(self) -> Request | None:
        """What a decision would be about."""
        return self._sight.request()

    def go_to(self, key: SessionKey) -> None:
        """Select a session by name, wherever it stands."""
        self._board.bring(key, self._clock())
        self._board.roster.select(key)
        self._moved()
        if self._sight.selected != key:
            self.say("the roster does not show it now")

    def chosen(self) -> None:
        """What is performed next was chosen by its name: it is no stray key."""
        self._quiet.over()

    def text_closed(self) -> None:
        """A line that was written in has closed: what is typed on behind it is no key."""
        self._quiet.broken()

    @property
    def pane(self) -> LineView:
        """The part of the screen that has the keys."""
        focused = self.focused
        return focused if isinstance(focused, LineView) and focused in self._panes() else self.home

    @property
    def home(self) -> LineView:
        """The part that has the keys while no other one has."""
        return self._board.roster

    def parts(self) -> list[LineView]:
        """Every part that can have the keys, in their order."""
        board = self._board
        return [board.roster, board.card, board.log, board.facts]

    def _panes(self) -> list[LineView]:
        return [pane for pane in self.parts() if pane.is_attached and pane.display and pane.region.area > 0]

    def turn(self, by: int) -> None:
        """Give the keys to the next part of the screen."""
        panes = self._panes()
        if panes:
            at = panes.index(self.pane) if self.pane in panes else 0
            self.set_focus(panes[(at + by) % len(panes)], scroll_visible=False)

    @property
    def turned(self) -> bool:
        """Has the operator turned to a session, or does the cursor still stand where it was put at the start?"""
        return self._board.roster.aimed

    def _moved(self) -> None:
        self._sight.aimed = True
        self._follow()

    def line(self, by: int) -> None:
        """Move by lines in the part that has the keys."""
        pane = self.pane
        if isinstance(pane, Roster):
            pane.action_move(by)
            self._moved()
        elif isinstance(pane, EventLog):
            pane.select((pane.selected or 0) + by)
        else:
            pane.jump(pane.scroll_offset.y + by)

    def page(self, by: int) -> None:
        """Move by pages in the part that has the keys."""
        pane = self.pane
        if isinstance(pane, Roster):
            pane.action_page(by)
            self._moved()
        elif isinstance(pane, EventLog):
            pane.select((pane.selected or 0) + by * pane.page_lines())
        else:
            pane.jump(pane.scroll_offset.y + by * pane.page_lines())

    def edge(self, last: bool) -> None:
        """Move to the start, or the end, of the part that has the keys."""
        pane = self.pane
        if isinstance(pane, Roster):
            pane.action_edge(last)
            self._moved()
        elif isinstance(pane, EventLog):
            pane.select(len(pane.lines) if last else 0)
        elif isinstance(pane, RequestCard) and last:
            pane.jump(pane.next_end)
        else:
            pane.jump(pane.max_scroll_y if last else 0)

    def shift(self, steps: int) -> None:
        """Move the log's texts sideways."""
        self._board.log.action_shift(steps)

    def show_next(self) -> None:
        """Show the request that waits longest, or the one behind that which is shown."""
        key = self._sight.next_request(turned=self.turned)
        if key is None:
            self.say("nothing waits for you", holds=lambda: self._sight.next_request() is None)
        elif self._sight.shown is not None and key == self._sight.shown.key and not self._sight.outdated:
            self.say("this is the only one that waits")
        else:
            self._board.bring(key.owner, self._clock())
            self._board.roster.select(key.owner)
            self._sight.aimed = True
            self._sight.shown = None
            self._follow()
            self.open_card(key)

    def open_selected(self) -> None:
        """Show the request of the selected session, the oldest if there are several; where none waits, or its card has
        the keys, all of the session; in the log, the whole event."""
        if self.pane is self._board.log:
            self._read_event()
            return
        self._sight.aimed = True
        if self._sight.shown is not None and self._sight.outdated:
            self.open_card(self._sight.shown.key)
            return
        request = self._sight.waiting_here()
        if request is None:
            self.open_session()
        elif self._sight.shown is None or self._sight.shown.key != request.key:
            self.open_card(request.key)
        elif self.pane is self._board.card:
            self.open_session()
        else:
            self.set_focus(self._board.card, scroll_visible=False)

    def open_session(self) -> None:
        """Show all of the selected session."""
        raise NotImplementedError

    def _read_event(self) -> None:
        selected = self._board.book.selected_line()
        if selected is None:
            self.say("no event is here")
            return
        what, text = selected
        from console.screens.flows.asking import Ask  # with the first question

        self.ask(Ask(title=((what, "attention"),), about=((text, "plain"),), then=lambda _: None))

    def open_card(self, key: RequestKey, *, focus: bool = True) -> None:
        """Put a request on the card, from its beginning."""
        if not self.furnished:
            self.say("the console is still starting", holds=lambda: not self.furnished)
            return
        request = self._hub.fleet.requests[key]
        self._board.rows.pin(key.owner)
        self._sight.shown = Shown(key, request.digest, self._hub.steady(), self._clock())
        self.add_class("-carded")
        self.remove_class("-facts")
        if focus:
            self.set_focus(self._board.card, scroll_visible=False)
        self._board.show_card(self._sight.shown, self._clock())

    def reveal(self) -> None:
        """Show the secrets of the request on the card; that this was done is written down."""
        shown = self._sight.shown
        request = self._hub.fleet.requests.get(shown.key) if shown is not None else None
        if shown is None or request is None or self._board.covered or not shown.masked or self._sight.outdated:
            self.say("nothing is masked here")
            return
        if shown.digest != request.digest:
            self.say("the request is not what was shown: look again", "attention")
            return
        shown.revealed = True
        self._hub.revealed(shown.key)
        self._board.show_card(shown, self._clock())

    def close_card(self) -> None:
        """Put the card away."""
        if self._sight.shown is None:
            return
        self._sight.shown = None
        self._board.rows.pin(None)
        self._board.show_card(None, self._clock())
        self.remove_class("-carded")
        self.set_focus(self.home, scroll_visible=False)

    def back(self) -> None:
        """Close what is open, the topmost first."""
        if self.has_class("-facts"):
            self.put_facts_away()
        elif self._sight.shown is not None:
            self.close_card()
        else:
            self.set_focus(self.home, scroll_visible=False)

    def put_facts_away(self) -> None:
        """Show again what the facts stand before."""
        self.remove_class("-facts")
        self.set_focus(self.home, scroll_visible=False)

    def toggle_facts(self) -> None:
        """Show the facts where there is no room for them beside."""
        if not self.has_class("-narrow"):
            self.say("the facts stand at the right")
            return
        self.toggle_class("-facts")
        shown = self.has_class("-facts")
        self.call_after_refresh(self.set_focus, self._board.facts if shown else self.home)

    def read_on(self) -> None:
        """A page of the card while it is open, unless the log has the keys; else of the part that has them."""
        card = self._board.card
        if self._sight.shown is not None and not self._board.covered and self.pane is not self._board.log:
            card.jump(card.scroll_offset.y + card.page_lines())
        else:
            self.page(1)

    @on(Roster.Selected)
    def _turned(self, event: Roster.Selected) -> None:
        event.stop()
        self._follow()

    @on(Roster.Opened)
    def _opened_by_mouse(self, event: Roster.Opened) -> None:
        event.stop()
        self.open_selected()

    @on(RequestCard.Shown)
    def _card_painted(self, event: RequestCard.Shown) -> None:
        if self._sight.shown is not None and event.request_key == self._sight.shown.key:
            self._sight.shown.painted(self._hub.steady())

    @on(RequestCard.EndSeen)
    def _card_read(self, event: RequestCard.EndSeen) -> None:
        if self._sight.shown is not None and event.request_key == self._sight.shown.key:
            self._board.show_card(self._sight.shown, self._clock())

    def copy(self) -> None:
        """Copy the exact action that is shown, or the line that is selected."""
        shown = self._sight.shown
        line = self._board.last_line()
        text = line
        if self.pane is not self._board.log:
            text = copied(self._hub.fleet, self._sight.selected, shown.key if shown is not None else None, line)
        if not text:
            self.say("there is nothing to copy here")
            return
        self.app.copy_to_clipboard(text)
        self.say(f"copied {len(text):,} characters")
