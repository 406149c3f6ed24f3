"""The fleet: every session as a line, the events or the open request of the selected one, and the keys that work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from console.actions import BY_ID, Action, Where, actions
from console.fleet.changes import Changes
from console.fleet.facts import ContactFact
from console.screens.availability import Standing
from console.screens.badge import badge
from console.screens.bindings import bindings
from console.screens.board import Board, FactsPane
from console.screens.elsewhere import Elsewhere
from console.screens.fleet.handlers import DECIDES, LOOKS, MOVES, STEERS, Decide
from console.screens.fleet.sizes import size_classes
from console.screens.flows.interventions import Interventions
from console.screens.jumping import Jumping
from console.screens.quiet import WRITING
from console.screens.rule import Rule
from console.screens.too_small import TooSmall
from watchfloor.text import clean_line
from watchfloor.words import Contact
from widgets.action_footer import ActionFooter
from widgets.event_log import EventLog
from widgets.request_card import RequestCard
from widgets.roster import Roster
from widgets.status_bar import StatusBar

if TYPE_CHECKING:
    from console.screens.setting import Setting

STYLES: Final = Path(__file__).with_suffix(".tcss")
TICK_S: Final = 1 / 25


class FleetScreen(Jumping):
    """The first screen. What it knows is in the hub; here is only where the operator looks, and what was said."""

    AUTO_FOCUS = "#roster"

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.FLEET)

    def __init__(
        self, setting: Setting, *, where: Where = Where.FLEET, ground: str = "", board: Board | None = None
    ) -> None:
        """Create the screen.

        Args:
            setting: What it is made with, and what it opens.
            where: Which screen it is.
            ground: Why these are its sources, where that does not go without saying.
            board: Its widgets and views, where those are not the fleet's.
        """
        hub, keys, clock, tz = setting.hub, setting.keys, setting.clock, setting.tz
        if board is None:
            board = Board(hub, keys, setting.glyphs, ground=clean_line(ground), debug_keys=setting.debug_keys, tz=tz)
        super().__init__(hub, board, clock)
        self._setting = setting
        self._actions = {action.id: action for action in actions(read_only=hub.read_only, where=where)}
        self._keys = keys
        self._collector = setting.collector
        self._changes = Changes()
        self._opened: FleetScreen | None = None
        """The screen of one session, while it is open."""
        self._interventions = Interventions(
            hub,
            self._board,
            self._sight,
            keys,
            clock,
            show=self.open_card,
            ask=self.ask,
            uncover=self.put_facts_away,
            begin=lambda work: self.app.run_worker(work, exit_on_error=True),
        )
        self._marks = board.marks
        self._elsewhere = Elsewhere(self, hub, keys, clock, marks=self._marks, tz=tz)
        self._own: Mapping[str, Callable[[], None]] = {
            "help": self.show_help,
            "command": self._elsewhere.open_command_line,
            "sources": self._elsewhere.open_sources,
            "inbox": self.open_inbox,
            "figures": self._elsewhere.show_figures,
            "audit": self._elsewhere.open_audit,
            "undo": self._interventions.undo,
            "since": self._elsewhere.show_since,
            "reveal": self.reveal,
            "jump": self.jump,
            "quit": self.leave,
        }
        self.set_class(setting.glyphs.name == "ascii", "-ascii")

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
        from console.screens.flows.drawer import Drawer
        from widgets.line_box import LineBox

        await self.query_one("#main").mount(self._board.card, before="#log-rule")
        await self.mount(self._board.told, before="#footer")
        await self.mount(LineBox(id="line", marks=self._marks), after="#counts")
        drawer = Drawer(self._hub.steady, self._quiet, id="drawer", marks=self._marks, drafts=self._setting.drafts)
        await self.mount(drawer)
        self._board.drawer = drawer

    def on_screen_resume(self) -> None:
        """What changed while another screen was in front. Nobody has looked at the card for as long."""
        self._quiet.parted()
        if self._sight.shown is not None:
            self._sight.shown.covered(self._hub.steady())
        self.paint(everything=True)

    def on_resize(self) -> None:
        """Arrange the parts for the new size."""
        self.update_classes(size_classes(self.size))
        if self._board.drawer is not None:
            self._board.drawer.fit_height()
        self.paint(everything=True)

    # -------------------------------------------------------------- painting

    def take(self, changes: Changes) -> None:
        """Something has changed; the next tick paints it."""
        self._changes.merge(changes)
        if self._opened is not None:
            self._opened.take(changes)

    def complain(self, source: str, why: str) -> None:
        """A source could not even be begun."""
        now = self._clock()
        refused = ContactFact(source, Contact.REFUSED, now, clean_line(why))
        self.take(self._hub.fleet.apply([refused], now))

    def _tick(self) -> None:
        now = self._clock()
        if self.is_active:
            self.paint()
            self._hub.look(self._sight.selected)
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
        board.paint(changes, now, self._sight.selected, self._sight.shown, self.standings, everything=everything)

    def standings(self) -> list[tuple[Action, Standing]]:
        """How each action stands for what is looked at."""
        return [(action, self._interventions.standing(action)) for action in self._actions.values()]

    # -------------------------------------------------------------- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is asked, all keys belong to the drawer, or to the line that is written in; while letters
        are shown, to those."""
        drawer = self._board.drawer
        written = self.line_open or self.jumping or (drawer is not None and drawer.is_open)
        return not (action == "perform" and written)

    def action_perform(self, id: str) -> None:
        """Do what a key stands for, or say why not."""
        now = self._clock()
        self._collector.busy(now)
        self._board.key_pressed()
        writing = self._quiet.pressed()
        if taken := self._interventions.followed(id):
            self._quiet.broken()
            writing = True
            self.say(f"{taken} taken back: {WRITING}", "attention")
        action = self._actions.get(id)
        if id in MOVES:
            self._quiet.moved()
        elif action is None or not action.intervenes:
            self._quiet.looked(id)
        else:
            writing = self._quiet.intervenes(id, action.group) or writing
        if action is not None and action.intervenes and (writing or self._board.tiny):
            self._refuse(action, taken)
        elif action is None:
            self.say(f"{self._keys.shown(id)} {BY_ID[id].label}: {self._hub.only_watches}", "attention")
        elif (decide := DECIDES.get(id)) is not None:
            self.decide(action, decide)
        elif (steer := STEERS.get(id)) is not None:
            self._interventions.steer(action, steer)
        elif (own := self._own.get(id)) is not None:
            own()
        else:
            LOOKS[id](self)
        self.paint()

    def decide(self, action: Action, flow: Decide) -> None:
        """Decide the request on the card."""
        self._interventions.decide(action, flow)

    def _refuse(self, action: Action, taken: str) -> None:
        """Say why no key intervenes now, whatever it is aimed at, and what it has `taken` back."""
        named = f"{taken} taken back, {action.label}" if taken else f"{self._keys.shown(action.id)} {action.label}"
        if self._board.tiny:
            self.say(f"{named}: nothing can be read here", "attention", lambda: self._board.tiny)
        else:
            # Longer than the pause lasts: a line that is gone at once says nothing.
            self.say(f"{named}: {WRITING}", "attention")

    @property
    def writing(self) -> bool:
        """May what is pressed still belong to a text that was written? Then nothing intervenes."""
        return self._quiet.waits

    def on_key(self, event: events.Key) -> None:
        """A key that does nothing may belong to what was written as well, or to what is written by mistake."""
        if self.jumping:
            self.jump_by(event)
            self.paint()
            return
        self._quiet.pressed()
        drawer = self._board.drawer
        if event.is_printable and not (drawer is not None and drawer.is_open):
            self._quiet.strayed(event.key)
            if taken := self._interventions.followed(""):
                self._quiet.broken()
                self.say(f"{taken} taken back: {WRITING}", "attention")

    def on_paste(self) -> None:
        """Pasted where no text is asked for: what comes behind it is no key."""
        self.leave_jump()
        self._quiet.broken()

    def paste_dropped(self, characters: int, *, ended: bool) -> None:
        """Say that a paste was not taken: too long, or it had no end."""
        if self._opened is not None:
            self._opened.paste_dropped(characters, ended=ended)
            return
        why = "too long" if ended else "its end never came"
        self._quiet.broken()
        self.say(f"a paste of {characters:,} characters was dropped: {why}", "attention")

    # -------------------------------------------------------------- the application's own acts

    def open_session(self) -> None:
        """Show all of the selected session."""
        from console.screens.session.screen import SessionScreen  # not needed for the first frame

        key = self._sight.selected
        if key is None or key not in self._hub.fleet.sessions:
            self.say("no session is selected")
            return
        shown = self._sight.shown
        screen = SessionScreen(
            self._setting,
            key,
            carded=shown.key if shown is not None and shown.key.owner == key else None,
            read=self._board.card,
        )
        self._opened = screen
        self.app.push_screen(screen, lambda _: self._come_back(screen))

    def _come_back(self, screen: FleetScreen) -> None:
        """The screen of a session is closed: select what was looked at last, which is what was selected if no other
        was turned to."""
        self._opened = None
        if screen.selected is not None and screen.selected != self._sight.selected:
            self.go_to(screen.selected)
        self._board.card.credit(screen.read_card)
        # What was typed on there is no key here.
        if screen.writing:
            self._quiet.broken()

    @property
    def read_card(self) -> RequestCard:
        """The card of this screen, with what of it was read."""
        return self._board.card

    def open_inbox(self) -> None:
        """Show all that waits; where this screen was opened from there, go back to it."""
        from console.screens.inbox.screen import InboxScreen  # not needed for the first frame

        if any(isinstance(screen, InboxScreen) for screen in self.app.screen_stack):
            self.dismiss(None)
            return
        screen = InboxScreen(self._setting)
        self._opened = screen
        self.app.push_screen(screen, lambda _: self._leave_inbox(screen))

    def _leave_inbox(self, screen: FleetScreen) -> None:
        """The inbox is closed: what is selected here is what was."""
        self._opened = None
        self._board.card.credit(screen.read_card)
        if screen.writing:
            self._quiet.broken()

    def show_help(self) -> None:
        """List every key, and why one does nothing here."""
        from console.screens.pages.help import HelpScreen, help_items  # not needed for the first frame
        from console.screens.pages.legend import legend

        items = help_items(self.standings(), read_only=self._hub.read_only)
        keys = self._keys
        if self._hub.showing is not None:
            from console.screens.replaying import replay_items, replay_keys

            items, keys = [*replay_items(), *items], replay_keys(keys)
        about = self._board.whose(self._sight.selected)
        screen = HelpScreen(about, items, keys, legend(), badge(self._hub, self._clock, self._marks), marks=self._marks)
        self.app.push_screen(screen, lambda id: self.action_perform(id) if id is not None else None)

    def leave(self) -> None:
        """Close what is asked; asked to leave, leave; else ask."""
        from console.screens.pages import leaving

        drawer = self._board.drawer
        if self.jumping:
            self.leave_jump()
        elif self.line_open:
            self.leave_line()
        elif drawer is None or drawer.asks_for(leaving.LEAVE):
            self.app.exit(0)
        elif drawer.is_open:
            drawer.close()
        else:
            replay = self._hub.showing is not None
            self.ask(leaving.ask(self._hub.fleet, self._setting.ours, lambda: self.app.exit(0), replay=replay))
