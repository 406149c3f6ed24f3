"""The fleet: every session as a line, the events or the open request of the selected one, and the keys that work."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen

from console.actions import ACTIONS, BY_ID, Action
from console.fleet.changes import Changes
from console.fleet.facts import ContactFact, RequestKey, SessionKey
from console.screens import leaving
from console.screens.asking import Ask
from console.screens.availability import Standing
from console.screens.board import Board, FactsPane, Holds
from console.screens.copying import copied
from console.screens.handlers import ACTS, DECIDES, STEERS
from console.screens.help import HelpItem, HelpScreen, help_rows
from console.screens.interventions import Interventions
from console.screens.quiet import Quiet
from console.screens.rule import Rule
from console.screens.shown import Shown
from console.screens.sight import Sight
from console.screens.sizes import size_classes
from console.screens.too_small import TooSmall
from watchfloor.text import Clean, clean_line
from watchfloor.words import Contact
from widgets.action_footer import ActionFooter
from widgets.event_log import EventLog
from widgets.painting import LineView
from widgets.request_card import RequestCard
from widgets.roster import Roster
from widgets.status_bar import StatusBar
from widgets.tones import Tone

if TYPE_CHECKING:
    from console.hub import Hub
    from console.keymap import Keymap
    from console.screens.collector import Collector
    from themes.loader import GlyphSet
    from watchfloor.connector import Clock

STYLES: Final = Path(__file__).with_suffix(".tcss")
TICK_S: Final = 1 / 25


class FleetScreen(Screen[None]):
    """The first screen. What it knows is in the hub; here is only where the operator looks, and what was said."""

    AUTO_FOCUS = "#roster"

    # All of them have priority: a binding without it acts after its key went through the queue of the focused widget,
    # and keys that are typed fast would act out of order.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(action.keys), f"perform('{action.id}')", action.label, show=False, priority=True, id=action.id)
        for action in ACTIONS
        if not action.everywhere
    ]

    def __init__(
        self,
        hub: Hub,
        *,
        actions: Sequence[Action],
        keys: Keymap,
        glyphs: GlyphSet,
        clock: Clock,
        collector: Collector,
        ours: Collection[str] = (),
        ground: str = "",
        debug_keys: bool = False,
        tz: tzinfo | None = None,
    ) -> None:
        """Create the screen.

        Args:
            hub: What it shows and sends through.
            actions: What this console can do.
            keys: Which key does what.
            glyphs: The characters it is drawn with.
            clock: Milliseconds since 1970 UTC.
            collector: Told of keys, and asked to collect in between.
            ours: Names of the sources that end with this console.
            ground: Why these are its sources, where that does not go without saying.
            debug_keys: Show how many keys were handled.
            tz: The zone that times are shown in; that of the machine if None.
        """
        super().__init__()
        self._hub = hub
        self._actions = {action.id: action for action in actions}
        self._keys = keys
        self._clock = clock
        self._collector = collector
        self._ours = frozenset(ours)
        self._changes = Changes()
        self._sight = Sight(hub.fleet)
        self._quiet = Quiet(hub.steady)
        self._board: Final = Board(hub, keys, glyphs, ground=clean_line(ground), debug_keys=debug_keys, tz=tz)
        self._interventions = Interventions(
            hub,
            self._board,
            self._sight,
            keys,
            clock,
            show=self._open_card,
            asking=self._drawer_opened,
            uncover=self._put_facts_away,
            begin=lambda work: self.run_worker(work, exit_on_error=True),
        )
        self._marks = self._board.marks
        self.set_class(glyphs.name == "ascii", "-ascii")

    def compose(self) -> ComposeResult:
        # Before there is anything in it: later a change of class styles everything once more.
        self.update_classes(size_classes(self.app.size))
        marks = self._marks
        yield StatusBar(id="top", marks=marks)
        yield StatusBar(id="counts", marks=marks)
        with Horizontal(id="body"):
            with Vertical(id="main"):
                yield Roster(self._board.rows, id="roster", marks=marks)
                yield Rule(id="log-rule", marks=marks)
                yield EventLog(id="log", marks=marks)
            yield FactsPane(id="facts", marks=marks)
        yield TooSmall(id="too-small")
        yield StatusBar(id="trail", marks=marks)
        yield StatusBar(id="notice", marks=marks)
        yield ActionFooter(id="footer", marks=marks)

    def on_mount(self) -> None:
        """Paint what is known already, then whatever changes."""
        self._board.bind(self)
        self.paint(everything=True)
        self.set_interval(TICK_S, self._tick)
        self.call_after_refresh(self._furnish)

    async def _furnish(self) -> None:
        """Bring in what the first frame does without: its code and its styles take a tenth of the time to it."""
        from console.screens.drawer import Drawer

        await self.query_one("#main").mount(self._board.card, before="#log-rule")
        drawer = Drawer(self._hub.steady, self._quiet, id="drawer", marks=self._marks)
        await self.mount(drawer)
        self._board.drawer = drawer

    def on_screen_resume(self) -> None:
        """What changed while another screen was in front. Nobody has looked at the card for as long."""
        if self._sight.shown is not None:
            self._sight.shown.covered(self._hub.steady())
        self.paint(everything=True)

    def on_resize(self) -> None:
        """Arrange the parts for the new size."""
        self.update_classes(size_classes(self.size))
        if self._board.drawer is not None:
            self._board.drawer.fit_height()
        self.paint(everything=True)

    @property
    def furnished(self) -> bool:
        """Is everything there, what the first frame does without included?"""
        return self._board.drawer is not None

    # -------------------------------------------------------------- painting

    def take(self, changes: Changes) -> None:
        """Something has changed; the next tick paints it."""
        self._changes.merge(changes)

    def complain(self, source: str, why: str) -> None:
        """A source could not even be begun."""
        now = self._clock()
        refused = ContactFact(source, Contact.REFUSED, now, clean_line(why))
        self.take(self._hub.fleet.apply([refused], now))

    def _tick(self) -> None:
        now = self._clock()
        if self.is_active:
            self.paint()
        self._collector.tick(now)

    def paint(self, *, everything: bool = False) -> None:
        """Paint what has changed since the last time, or all of it."""
        if not self._board.bound:
            return
        now = self._clock()
        changes, self._changes = self._changes, Changes()
        board = self._board
        board.paint_roster(changes, now, everything=everything)
        self._follow()
        board.paint(changes, now, self._sight.selected, self._sight.shown, self._standings, everything=everything)

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
            self._open_card(request.key, focus=False)

    def _standings(self) -> list[tuple[Action, Standing]]:
        return [(action, self._interventions.standing(action)) for action in self._actions.values()]

    # -------------------------------------------------------------- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is asked, all keys belong to the drawer."""
        drawer = self._board.drawer
        return not (action == "perform" and drawer is not None and drawer.is_open)

    def action_perform(self, id: str) -> None:
        """Do what a key stands for, or say why not."""
        now = self._clock()
        self._collector.busy(now)
        self._board.key_pressed()
        writing = self._quiet.pressed()
        action = self._actions.get(id)
        if action is not None and action.intervenes and (writing or self._board.tiny):
            self._refuse(action, writing)
        elif action is None:
            self.say(f"{self._keys.shown(id)} {BY_ID[id].label}: this console only watches", "attention")
        elif (decide := DECIDES.get(id)) is not None:
            self._interventions.decide(action, decide)
        elif (steer := STEERS.get(id)) is not None:
            self._interventions.steer(action, steer)
        else:
            ACTS[id](self)
        self.paint()

    def _refuse(self, action: Action, writing: bool) -> None:
        """Say why no key intervenes now, whatever it is aimed at."""
        named = f"{self._keys.shown(action.id)} {action.label}"
        if writing:
            text = f"{named}: you were writing just now: pause for a moment, then again"
            self.say(text, "attention", lambda: self._quiet.waits)
        else:
            self.say(f"{named}: nothing can be read here", "attention", lambda: self._board.tiny)

    @property
    def writing(self) -> bool:
        """May what is pressed still belong to a text that was written? Then nothing intervenes."""
        return self._quiet.waits

    def on_key(self) -> None:
        """A key that does nothing may belong to what was written as well."""
        self._quiet.pressed()

    def on_paste(self) -> None:
        """Pasted where no text is asked for: what comes behind it is no key."""
        self._quiet.broken()

    def say(self, text: str, tone: Tone = "plain", holds: Holds | None = None) -> None:
        """One line of our own words to the operator, for as long as it holds."""
        self._board.say(Clean(text), tone, self._clock(), holds)

    def paste_dropped(self, characters: int, *, ended: bool) -> None:
        """Say that a paste was not taken: too long, or it had no end."""
        why = "too long" if ended else "its end never came"
        self._quiet.broken()
        self.say(f"a paste of {characters:,} characters was dropped: {why}", "attention")

    # -------------------------------------------------------------- where the operator looks

    @property
    def selected(self) -> SessionKey | None:
        """The session that steering keys go to."""
        return self._sight.selected

    @property
    def pane(self) -> LineView:
        """The part of the screen that has the keys."""
        focused = self.focused
        return focused if isinstance(focused, LineView) and focused in self._panes() else self._board.roster

    def _panes(self) -> list[LineView]:
        board = self._board
        panes: list[LineView] = [board.roster, board.card, board.log, board.facts]
        return [pane for pane in panes if pane.is_attached and pane.display and pane.region.area > 0]

    def turn(self, by: int) -> None:
        """Give the keys to the next part of the screen."""
        panes = self._panes()
        if panes:
            at = panes.index(self.pane) if self.pane in panes else 0
            self.set_focus(panes[(at + by) % len(panes)], scroll_visible=False)

    def moved(self) -> None:
        """The cursor of the roster was moved by a key."""
        self._sight.aimed = True
        self._follow()

    def shift(self, steps: int) -> None:
        """Move the log's texts sideways."""
        self._board.log.action_shift(steps)

    def show_next(self) -> None:
        """Show the request that waits longest, or the one behind that which is shown."""
        key = self._sight.next_request()
        if key is None:
            self.say("nothing waits for you", holds=lambda: self._sight.next_request() is None)
        elif self._sight.shown is not None and key == self._sight.shown.key:
            self.say("this is the only one that waits")
        else:
            self._board.roster.select(key.owner)
            self._sight.aimed = True
            self._sight.shown = None
            self._follow()
            self._open_card(key)

    def open_selected(self) -> None:
        """Show the request of the selected session, the oldest if there are several; in the log, the whole event."""
        if self.pane is self._board.log:
            self._read_event()
            return
        self._sight.aimed = True
        request = self._sight.waiting_here()
        if request is None:
            self.say("no request is open here", holds=lambda: self._sight.waiting_here() is None)
        elif self._sight.shown is None or self._sight.shown.key != request.key:
            self._open_card(request.key)
        else:
            self.set_focus(self._board.card, scroll_visible=False)

    def _read_event(self) -> None:
        selected = self._board.selected_line()
        if selected is None:
            self.say("no event is here")
            return
        what, text = selected
        self._interventions.ask(Ask(title=((what, "attention"),), about=((text, "plain"),), then=lambda _: None))

    def _open_card(self, key: RequestKey, *, focus: bool = True) -> None:
        if not self.furnished:
            self.say("the console is still starting", holds=lambda: not self.furnished)
            return
        request = self._hub.fleet.requests[key]
        self._sight.shown = Shown(key, request.digest, self._hub.steady(), self._clock())
        self.add_class("-carded")
        self.remove_class("-facts")
        if focus:
            self.set_focus(self._board.card, scroll_visible=False)
        self._board.show_card(self._sight.shown, self._clock())

    def close_card(self) -> None:
        """Put the card away."""
        if self._sight.shown is None:
            return
        self._sight.shown = None
        self._board.show_card(None, self._clock())
        self.remove_class("-carded")
        self.set_focus(self._board.roster, scroll_visible=False)

    def back(self) -> None:
        """Close what is open, the topmost first."""
        if self.has_class("-facts"):
            self._put_facts_away()
        elif self._sight.shown is not None:
            self.close_card()
        else:
            self.set_focus(self._board.roster, scroll_visible=False)

    def _put_facts_away(self) -> None:
        self.remove_class("-facts")
        self.set_focus(self._board.roster, scroll_visible=False)

    def toggle_facts(self) -> None:
        """Show the facts where there is no room for them beside."""
        if not self.has_class("-narrow"):
            self.say("the facts stand at the right")
            return
        self.toggle_class("-facts")
        shown = self.has_class("-facts")
        self.call_after_refresh(self.set_focus, self._board.facts if shown else self._board.roster)

    def read_on(self) -> None:
        """A page of the card while it is open, unless the log has the keys; else of the part that has them."""
        card = self._board.card
        if self._sight.shown is not None and not self._board.covered and self.pane is not self._board.log:
            card.jump(card.scroll_offset.y + card.page_lines())
        else:
            ACTS["page_down"](self)

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

    # -------------------------------------------------------------- the application's own acts

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

    def show_help(self) -> None:
        """List every key, and why one does nothing here."""
        items = [HelpItem(action, stands.reason) for action, stands in self._standings()]
        rows = help_rows(items, self._keys, self._board.legend())
        self.app.push_screen(HelpScreen(self._board.whose(self._sight.selected), rows, marks=self._marks))

    def leave(self) -> None:
        """Close what is asked; asked to leave, leave; else ask."""
        drawer = self._board.drawer
        if drawer is None or drawer.asks_for(leaving.LEAVE):
            self.app.exit(0)
        elif drawer.is_open:
            drawer.close()
        else:
            self._interventions.ask(leaving.ask(self._hub.fleet, self._ours, lambda: self.app.exit(0)))

    def _drawer_opened(self) -> None:
        self.add_class("-asking")

    def on_drawer_closed(self) -> None:
        """The keys are the screen's again."""
        drawer = self._board.drawer
        if drawer is not None and not drawer.is_open:
            self.remove_class("-asking")
        if self._sight.shown is not None:
            self._sight.shown.disturbed(self._hub.steady())
        self._board.entered.clear()
