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
from textual.geometry import Size
from textual.screen import Screen

from console.actions import ACTIONS, BY_ID, Action
from console.fleet.apply import Fleet
from console.fleet.changes import Changes
from console.fleet.facts import ContactFact, Intent, Refusal, RequestKey, Seen, SessionKey
from console.fleet.gate import Gated
from console.fleet.needs import next_request
from console.fleet.state import Request, Session
from console.screens import leaving, steering
from console.screens.asking import Ask
from console.screens.availability import Standing, standing
from console.screens.board import Board, FactsPane
from console.screens.copying import copied
from console.screens.deciding import decision
from console.screens.handlers import ACTS, DECIDES, STEERS, Decide, Steer
from console.screens.help import HelpItem, HelpScreen, help_rows
from console.screens.rule import Rule
from console.screens.shown import Shown
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
WIDE: Final = 110
"""Columns from which there is room for the facts beside the roster."""
BROAD: Final = 150
TALL: Final = 36
"""Rows from which the log stays in sight below an open card."""
LEAST: Final = (40, 12)
"""Columns and rows below which nothing can be decided, since nothing can be read."""


def size_classes(size: Size) -> dict[str, bool]:
    """The classes by which the styles arrange the parts of the screen."""
    columns, rows = size
    return {
        "-narrow": columns < WIDE,
        "-wide": WIDE <= columns < BROAD,
        "-broad": columns >= BROAD,
        "-low": rows < TALL,
        "-tall": rows >= TALL,
        "-tiny": columns < LEAST[0] or rows < LEAST[1],
    }


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
        self._selected: SessionKey | None = None
        self._aimed = True
        self._shown: Shown | None = None
        self._board: Final = Board(hub, keys, glyphs, debug_keys=debug_keys, tz=tz)
        self._marks = self._board.marks
        self.set_class(not self._marks.rule.strip("-"), "-ascii")

    def compose(self) -> ComposeResult:
        # Before there is anything in it: later a change of class styles everything once more.
        self.update_classes(size_classes(self.app.size))
        marks = self._marks
        yield StatusBar(id="top", marks=marks)
        yield StatusBar(id="counts", marks=marks)
        with Horizontal(id="body"):
            with Vertical(id="main"):
                yield Roster(self._board.rows, id="roster", marks=marks)
                yield RequestCard(id="card", marks=marks)
                yield Rule(id="log-rule", marks=marks)
                yield EventLog(id="log", marks=marks)
            yield FactsPane(id="facts", marks=marks)
        yield StatusBar(id="too-small", marks=marks)
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

        drawer = Drawer(self._clock, id="drawer", marks=self._marks)
        await self.mount(drawer)
        self._board.drawer = drawer

    def on_screen_resume(self) -> None:
        """What changed while another screen was in front."""
        self.paint(everything=True)

    def on_resize(self) -> None:
        """Arrange the parts for the new size."""
        self.update_classes(size_classes(self.size))
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
        self.take(self.fleet.apply([refused], now))

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
        board.paint(changes, now, self._selected, self._shown, self._standings, everything=everything)

    def _follow(self) -> None:
        """Turn to the session that the roster's cursor is on."""
        selected = self._board.selected
        if selected == self._selected:
            return
        # What was selected has gone from the roster, and the cursor stands on a neighbour by nobody's wish.
        vanished = self._selected is not None and self._board.rows.index(self._selected) is None
        self._aimed = not vanished
        self._selected = selected
        self._board.turn_to(selected)
        if not vanished and self._shown is not None and self._shown.key.owner != selected:
            self._turn_card()

    def _turn_card(self) -> None:
        """The card belongs to the selected session: show what waits there, or nothing."""
        request = self._waiting_here()
        if request is None:
            self.close_card()
        else:
            self._open_card(request.key, focus=False)

    def _standings(self) -> list[tuple[Action, Standing]]:
        request = self._request_in_sight()
        now = self._clock()
        return [
            (a, standing(self.fleet, a, self._selected, request, now, read_only=self._hub.read_only))
            for a in self._actions.values()
        ]

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
        action = self._actions.get(id)
        if action is None:
            self.say(Clean(f"{self._keys.shown(id)} {BY_ID[id].label}: this console only watches"), "attention")
        elif (decide := DECIDES.get(id)) is not None:
            self._decide(action, decide)
        elif (steer := STEERS.get(id)) is not None:
            self._steer(action, steer)
        else:
            ACTS[id](self)
        self.paint()

    def _decide(self, action: Action, flow: Decide) -> None:
        shown = self._shown
        if shown is None:
            waiting = self._waiting_here()
            if waiting is None:
                self._refuse(action, None)
            else:
                self._open_card(waiting.key)
                self.say(Clean(f"read it first, then {self._keys.shown(action.id)} again"))
            return
        request = self.fleet.requests.get(shown.key)
        session = self.fleet.sessions.get(shown.key.owner)
        if request is None or session is None or not request.open:
            self.say(Clean(f"{self._keys.shown(action.id)} {action.label}: the request has ended"), "attention")
        elif early := shown.too_new(self._clock()):
            self.say(early, "attention")
        elif not self._refuse(action, request) and not self._sent_already(request):
            flow(self, session, request)

    def _steer(self, action: Action, flow: Steer) -> None:
        session = self.fleet.sessions.get(self._selected) if self._selected is not None else None
        if not self._aimed:
            self.say(Clean("the session that was selected is gone: select one first"), "attention")
        elif not self._refuse(action, self._request_in_sight()) and session is not None:
            flow(self, session)

    def _refuse(self, action: Action, request: Request | None) -> bool:
        """Say why the action does not work, if it does not."""
        stands = standing(self.fleet, action, self._selected, request, self._clock(), read_only=self._hub.read_only)
        if not stands.works:
            self.say(Clean(f"{self._keys.shown(action.id)} {action.label}: {stands.reason}"), "attention")
        return not stands.works

    def _sent_already(self, request: Request) -> bool:
        """A decision is on its way: a second one could only contradict it."""
        if not self._board.decided(request.key):
            return False
        self.say(Clean("your decision is on its way already"), "attention")
        return True

    # -------------------------------------------------------------- where the operator looks

    @property
    def selected(self) -> SessionKey | None:
        """The session that steering keys go to."""
        return self._selected

    @property
    def pane(self) -> LineView:
        """The part of the screen that has the keys."""
        focused = self.focused
        return focused if isinstance(focused, LineView) and focused in self._panes() else self._board.roster

    def _panes(self) -> list[LineView]:
        board = self._board
        panes: list[LineView] = [board.roster, board.card, board.log, board.facts]
        return [pane for pane in panes if pane.display and pane.region.area > 0]

    def turn(self, by: int) -> None:
        """Give the keys to the next part of the screen."""
        panes = self._panes()
        if panes:
            at = panes.index(self.pane) if self.pane in panes else 0
            self.set_focus(panes[(at + by) % len(panes)], scroll_visible=False)

    def moved(self) -> None:
        """The cursor of the roster was moved by a key."""
        self._aimed = True
        self._follow()

    def shift(self, steps: int) -> None:
        """Move the log's texts sideways."""
        self._board.log.action_shift(steps)

    def show_next(self) -> None:
        """Show the request that waits longest, or the one behind that which is shown."""
        key = next_request(self.fleet, self._shown.key if self._shown is not None else None)
        if key is None:
            self.say(Clean("nothing waits for you"))
        elif self._shown is not None and key == self._shown.key:
            self.say(Clean("this is the only one that waits"))
        else:
            self._board.roster.select(key.owner)
            self._aimed = True
            self._shown = None
            self._follow()
            self._open_card(key)

    def open_selected(self) -> None:
        """Show the request of the selected session, the oldest if there are several."""
        self._aimed = True
        request = self._waiting_here()
        if request is None:
            self.say(Clean("no request is open here"))
        elif self._shown is None or self._shown.key != request.key:
            self._open_card(request.key)
        else:
            self.set_focus(self._board.card, scroll_visible=False)

    def _open_card(self, key: RequestKey, *, focus: bool = True) -> None:
        request = self.fleet.requests[key]
        self._shown = Shown(key, request.digest, self._clock())
        self.add_class("-carded")
        self.remove_class("-facts")
        if focus:
            self.set_focus(self._board.card, scroll_visible=False)
        self._board.show_card(self._shown, self._clock())

    def close_card(self) -> None:
        """Put the card away."""
        if self._shown is None:
            return
        self._shown = None
        self._board.show_card(None, self._clock())
        self.remove_class("-carded")
        self.set_focus(self._board.roster, scroll_visible=False)

    def back(self) -> None:
        """Close what is open, the topmost first."""
        if self.has_class("-facts"):
            self.remove_class("-facts")
            self.set_focus(self._board.roster, scroll_visible=False)
        elif self._shown is not None:
            self.close_card()
        else:
            self.set_focus(self._board.roster, scroll_visible=False)

    def toggle_facts(self) -> None:
        """Show the facts where there is no room for them beside."""
        if not self.has_class("-narrow"):
            self.say(Clean("the facts stand at the right"))
            return
        self.toggle_class("-facts")
        shown = self.has_class("-facts")
        self.call_after_refresh(self.set_focus, self._board.facts if shown else self._board.roster)

    def _waiting_here(self) -> Request | None:
        session = self.fleet.sessions.get(self._selected) if self._selected is not None else None
        waiting = session.open_requests() if session is not None else []
        return waiting[0] if waiting else None

    def _request_in_sight(self) -> Request | None:
        """What a decision would be about: the request on the card, else the oldest of the selected session."""
        if self._shown is None:
            return self._waiting_here()
        request = self.fleet.requests.get(self._shown.key)
        return request if request is not None and request.open else None

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
        if self._shown is not None and event.request_key == self._shown.key:
            self._shown.painted(self._clock())

    @on(RequestCard.EndSeen)
    def _card_read(self, event: RequestCard.EndSeen) -> None:
        if self._shown is not None and event.request_key == self._shown.key:
            self._board.show_card(self._shown, self._clock())

    # -------------------------------------------------------------- the application's own acts

    def copy(self) -> None:
        """Copy the exact action that is shown, or the line that is selected."""
        text = copied(self.fleet, self._selected, self._shown.key if self._shown else None, self._board.last_line())
        if not text:
            self.say(Clean("there is nothing to copy here"))
            return
        self.app.copy_to_clipboard(text)
        self.say(Clean(f"copied {len(text):,} characters"))

    def show_help(self) -> None:
        """List every key, and why one does nothing here."""
        items = [HelpItem(action, stands.reason) for action, stands in self._standings()]
        rows = help_rows(items, self._keys, self._board.legend())
        self.app.push_screen(HelpScreen(self._board.whose(self._selected), rows, marks=self._marks))

    def leave(self) -> None:
        """Close what is asked; asked to leave, leave; else ask."""
        drawer = self._board.drawer
        if drawer is None or drawer.asks_for(leaving.LEAVE):
            self.app.exit(0)
        elif drawer.is_open:
            drawer.close()
        else:
            self.ask(leaving.ask(self.fleet, self._ours, lambda: self.app.exit(0)))

    # -------------------------------------------------------------- what the flows need

    @property
    def fleet(self) -> Fleet:
        return self._hub.fleet

    @property
    def by(self) -> str:
        return self._hub.by

    def ask(self, ask: Ask) -> None:
        drawer = self._board.drawer
        if drawer is None:
            self.say(Clean("the console is still starting"), "attention")
            return
        self.add_class("-asking")
        drawer.ask(ask)

    def on_drawer_closed(self) -> None:
        """The keys are the screen's again."""
        drawer = self._board.drawer
        if drawer is not None and not drawer.is_open:
            self.remove_class("-asking")
        if self._shown is not None:
            self._shown.disturbed(self._clock())
        self._board.entered.clear()

    def say(self, text: Clean, tone: Tone = "plain") -> None:
        self._board.say(text, tone, self._clock())

    def entered(self, name: str, value: str) -> None:
        self._board.entered[name] = value

    def seen(self, request: Request) -> Seen:
        if self._shown is not None and self._shown.key == request.key:
            return self._shown.seen()
        return Seen(request.digest, self._clock(), whole=False)

    def gate(self, intent: Intent) -> Gated | Refusal:
        return self._hub.gate(intent)

    def submit(self, intent: Intent, *, sure: bool = False) -> None:
        gated = self._hub.gate(intent)
        if isinstance(gated, Refusal):
            self.say(Clean(gated.reason), "attention")
            return
        session = self.fleet.sessions[gated.target]
        if gated.confirm and not sure:
            steering.confirm(self, session, gated, lambda: self._renewed(intent, session))
            return
        if gated.notes:
            self.say(Clean("; ".join(gated.notes)))
        self.run_worker(self._send(intent), exit_on_error=True)

    def _renewed(self, intent: Intent, session: Session) -> Intent:
        """The command as of now, after the operator has agreed to what it means."""
        request = self.fleet.requests.get(RequestKey(*intent.target, intent.request)) if intent.request else None
        if request is None:
            return intent
        return decision(
            self, session, request, option=intent.option, note=intent.note, text=intent.text, fields=intent.fields
        )

    async def _send(self, intent: Intent) -> None:
        trail = await self._hub.submit(intent)
        if trail.id not in self.fleet.trails:
            self.say(trail.reason, "attention")
