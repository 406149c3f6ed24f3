"""The application: a hub, a screen that shows it, and the order in which things start.

The first screen is painted before the network stack and the models are loaded; they come in a thread behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.filter import LineFilter, Monochrome, NoColor
from textual.widget import MountError

from console import kept_view, looks
from console.actions import ACTIONS
from console.attention import Attention
from console.demo.process import NAME as DEMO
from console.hub import Hub, steady_ms
from console.kept_view import View
from console.keymap import key_names, keymap
from console.screens.collector import Collector
from console.screens.fleet.screen import STYLES, FleetScreen
from console.screens.setting import Setting
from console.terminal.driver import PasteDropped, TerminalDriver, is_behind, tell_terminal
from console.terminal.lifeline import believed
from themes.loader import load_glyphs
from themes.toolkit import toolkit_theme
from watchfloor.errors import ConfigError
from watchfloor.text import Clean, clean_line

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType
    from textual.driver import Driver
    from textual.screen import Screen
    from textual.worker import Worker

    from console.audit import Audit
    from console.config import Config
    from console.demo.process import DemoProcess
    from console.discovery import Discovery
    from console.fleet.changes import Changes
    from console.journal.journal import Journal
    from console.policies.rules import Policy
    from console.recording.player import Player
    from console.screens.replaying import Replaying
    from console.terminal.lifeline import Lifeline
    from watchfloor.connector import Clock, Target

_TO_CONNECT: Final = ("console.connectors.registry", "console.connectors.native", "console.notifying.keeper")
"""What is loaded behind the first paint, before the sources are reached."""
_TO_INTERVENE: Final = (
    "console.commands",
    "console.fleet.decisions.grants",
    "console.hub.deciding",
    "console.fleet.views.card",
    "console.fleet.decisions.risk.judged",
    "console.screens.flows.answering",
    "console.screens.flows.batch",
)
"""What is loaded while they are: the first key that needs it must not wait for it."""

DRAWS_AGAIN_S: Final = 0.1
"""Seconds between two looks at whether a terminal that was behind takes more."""
ATTENDS_S: Final = 0.2
"""Seconds between two looks at which card is open."""

_TURNS_IN_S: Final = 1.0
"""Seconds within which an event loop that still turns has let go of the sources."""


def _replaying(app: Watchfloor, player: Player, tz: tzinfo | None) -> Replaying:
    from console.screens.replaying import Replaying

    replaying = Replaying(app, player, tz)
    app.hub.showing = lambda: replaying.words
    return replaying


class Watchfloor(App[int]):
    """The console. It owns the terminal; what it knows is in the hub, what it shows in its screens."""

    TITLE = "watchfloor"
    # Styles that a screen names itself are not read for the screen that an application begins with.
    CSS_PATH = STYLES
    ENABLE_COMMAND_PALETTE = False
    ESCAPE_TO_MINIMIZE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(action.keys), action.id, action.label, show=False, priority=True, id=action.id)
        for action in ACTIONS
        if action.everywhere
    ]

    def __init__(
        self,
        *,
        targets: Sequence[Target],
        config: Config,
        clock: Clock,
        by: str,
        audit: Audit,
        steady: Clock = steady_ms,
        demo: DemoProcess | None = None,
        read_only: bool = False,
        discovery: Discovery | None = None,
        ground: str = "",
        journal: Journal | None = None,
        player: Player | None = None,
        lifeline: Lifeline | None = None,
        driver: type[Driver] = TerminalDriver,
        keys: Mapping[str, str] | None = None,
        tz: tzinfo | None = None,
        policies: tuple[Policy, ...] = (),
        kept: Path | None = None,
    ) -> None:
        """Create the application.

        Args:
            targets: The sources to connect to, behind the first paint.
            config: The operator's configuration.
            clock: Milliseconds since 1970 UTC.
            by: The operator's name.
            audit: Where interventions are written down.
            steady: Milliseconds of a clock that is never set.
            demo: A demo to start, and to end with the console.
            read_only: No intervention leaves this console.
            discovery: Looks for hosts of this machine that come and go while the console is open.
            ground: Why these are its sources, for the operator to read.
            journal: Keeps what sources send, except for the demo; None: nothing is kept.
            player: Plays the recording that is shown; its keys are there then.
            lifeline: Watches over the terminal; None where there is none to be lost.
            driver: Draws, and reads keys.
            keys: Other keys than the configured ones, by the ids of actions; several parted by commas.
            tz: The zone that times are shown in; that of the machine if None.
            policies: By which it decides requests by itself.
            kept: The file from which it takes how it looked, and into which it writes how it looks when it is left;
                None: it begins as usual.
        """
        self._config = config
        self._kept = kept
        view = View() if kept is None else kept_view.load(kept)
        self._themes = looks.themes_folder(config.path)
        self._colourless = looks.colourless()
        self._look = looks.without_colour() if self._colourless else looks.theme(config.theme, self._themes)
        # What was chosen by hand, unless the configuration has been changed since.
        self._chosen = view.theme if view.configured == (config.theme or "") else ""
        if self._chosen and not self._colourless:
            with contextlib.suppress(ConfigError):
                self._look = looks.theme(self._chosen, self._themes)
        super().__init__(driver_class=driver)
        if config.reduced_motion:
            self.animation_level = "none"
        self.failure: BaseException | None = None
        self.status = 0
        self._targets = tuple(targets)
        self._demo = demo
        self._discovery = discovery
        self._lifeline = lifeline
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving = False
        self._undrawn = False
        self._looking: Worker[None] | None = None
        self._clock = clock
        self._tz = tz
        self._collector = Collector()
        self.hub: Final = Hub(
            clock=clock,
            audit=audit,
            by=by,
            steady=steady,
            read_only=read_only,
            on_changes=self.take,
            journal=journal,
            passing=frozenset({DEMO}),
            policies=policies,
        )
        changed = {**config.keys, **{id: key_names(names) for id, names in (keys or {}).items()}}
        self._keys: Final = keymap(ACTIONS, changed)
        self.attention: Final = Attention(
            self.hub,
            config.notify,
            clock=clock,
            tz=tz,
            ring=self.bell,
            focused=lambda: self.app_focus,
            bell=config.bell and player is None,  # what a recording shows waits for nobody
        )
        self.fleet_screen: Final = FleetScreen(
            Setting(
                hub=self.hub,
                keys=self._keys,
                glyphs=load_glyphs("ascii" if config.ascii else "unicode"),
                clock=clock,
                collector=self._collector,
                ours=frozenset() if demo is None else frozenset({DEMO}),
                debug_keys=os.environ.get("WATCHFLOOR_DEBUG_KEYS") == "1",
                tz=tz,
            ),
            ground=ground,
        )
        self.fleet_screen.begin_with(view)
        # Set before there is anything to style; a theme that changes later styles everything once more.
        self.register_theme(toolkit_theme(self._look))
        self.set_reactive(App.theme, self._look.name)
        self.stylesheet.set_variables(self.get_css_variables())
        self.set_keymap(self._keys.bindings())
        self.hub.expect(self._expected())
        self._replaying = None if player is None else _replaying(self, player, tz)

    def get_default_screen(self) -> FleetScreen:
        # A screen that is pushed over an empty one is laid out and styled twice.
        return self.fleet_screen

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return self._look.css_variables()

    def get_line_filters(self) -> Sequence[LineFilter]:
        # The toolkit would make greys of colours; NO_COLOR asks for none.
        filters = [one for one in super().get_line_filters() if not isinstance(one, Monochrome)]
        return [*filters, NoColor()] if self._colourless else filters

    # --- what the screens take from the application ------------------------------------------

    def theme_choices(self) -> list[str]:
        """The names of all themes."""
        return looks.names(self._themes)

    def wear(self, name: str) -> Clean:
        """Change to this theme; returns what there is to be said."""
        if self._colourless:
            return Clean("NO_COLOR is set in the environment, and wins over every theme")
        try:
            look = looks.theme(name, self._themes)
        except ConfigError as fault:
            return clean_line(str(fault).partition("\n")[0])
        self._look = look
        self.register_theme(toolkit_theme(look))
        if self.theme == look.name:
            # Its file may have changed since; the toolkit sees that it is worn already, and does nothing.
            self.refresh_css(animate=False)
        self.theme = self._chosen = look.name
        told = f'this is {look.name}; theme = "{look.name}" in the configuration makes it the usual one'
        return clean_line(told)

    def address(self, source: str) -> str:
        """How another program names the source: as the configuration does, else by its URL; "" where none can."""
        if any(one.name == source for one in self._config.sources):
            return source
        return "" if source == DEMO and self._demo is not None else self.hub.address(source)

    def take(self, changes: Changes) -> None:
        """The hub says that something has changed."""
        self.attention.take(changes, rings=not self._leaving)
        self.fleet_screen.take(changes)

    def on_mount(self) -> None:
        """Be ready to be ended from outside, and begin once the first frame is out."""
        self._loop = asyncio.get_running_loop()
        if self._lifeline is not None:
            self._lifeline.hold(self)
        self.call_after_refresh(self._begin)

    async def on_unmount(self) -> None:
        """Let go of the sources and of the demo."""
        if self._kept is not None:
            view = self.fleet_screen.view()
            kept_view.save(self._kept, view._replace(theme=self._chosen, configured=self._config.theme or ""))
        self._collector.give_back()
        if self._looking is not None:
            self._looking.cancel()
        await self.attention.close()
        await self.hub.close()
        if self._demo is not None:
            await asyncio.to_thread(self._demo.stop)

    # --- the terminal ----------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Take in what the toolkit has to tell; of the terminal's size no more than is believed."""
        if isinstance(event, events.InputEvent):
            self.attention.touched()
        if isinstance(event, events.InputEvent | events.AppFocus):
            self.hub.touched()
        elif isinstance(event, events.AppBlur):
            self.hub.left()
        if isinstance(event, events.Resize):
            event = events.Resize.from_dimensions(believed(*event.size), event.pixel_size)
        await super().on_event(event)

    def exit(self, result: int | None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        """Leave. From now on no key is taken for anything else, and no signal for a wish to sleep."""
        self.status = return_code
        self._leave()
        super().exit(result, return_code, message)

    def _leave(self) -> None:
        self._leaving = True
        if self._lifeline is not None:
            self._lifeline.leaving()

    def end(self, status: int) -> None:
        """Leave with this status; from any thread or signal handler."""
        self._soon(lambda: self.exit(return_code=status))

    def part(self) -> None:
        """Let go of the sources and of the demo, from another thread.

        Where the event loop stands still there is nothing to be done here: the end of the process lets go of all, and
        a demo that waits for us to take leave of it would only be kept from ending.
        """
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                closing = asyncio.run_coroutine_threadsafe(self.hub.close(), self._loop)
                try:
                    closing.result(_TURNS_IN_S)
                except TimeoutError:
                    return
        if self._demo is not None:
            self._demo.stop()

    def sleep(self) -> None:
        """Stop as the terminal's suspend key asks; from any thread or signal handler."""
        self._soon(self.action_suspend)

    def wake(self) -> None:
        """Take the terminal once more, which somebody else may have had; from any thread or signal handler."""
        self._soon(self._take_terminal)

    def _soon(self, act: Callable[[], None]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(act)

    def _take_terminal(self) -> None:
        if not self._leaving:
            with self.suspend():
                pass

    def action_suspend(self) -> None:
        """Give the terminal back to the shell that started us, until it lets us go on."""
        if self._leaving:
            return
        if self._lifeline is None or not self._lifeline.can_sleep:
            self.fleet_screen.say("no shell is there that could wake this console: it stays")
            return
        with self.suspend():
            self._lifeline.sleep()

    def action_replay(self, id: str) -> None:
        """Steer the recording that is shown."""
        if self._replaying is not None and not self._leaving:
            self._replaying.perform(id)

    def action_redraw(self) -> None:
        """Draw everything once more: something else may have written to the terminal."""
        self.refresh()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        # A frame that the terminal has no room for is left out; what is there by then is drawn when it has.
        if not is_behind(self):
            super()._display(screen, renderable)
        elif not self._undrawn:
            self._undrawn = True
            self.set_timer(DRAWS_AGAIN_S, self._draw_again)

    def _draw_again(self) -> None:
        if is_behind(self):
            self.set_timer(DRAWS_AGAIN_S, self._draw_again)
            return
        self._undrawn = False
        self.refresh()

    def on_paste_dropped(self, message: PasteDropped) -> None:
        """Say that nothing of a paste was taken."""
        self.fleet_screen.paste_dropped(message.characters, ended=message.ended)

    # --- beginning and ending --------------------------------------------------------------

    def action_leave(self) -> None:
        """Close what is asked; where nothing is, ask whether to leave."""
        screen = self.screen
        if isinstance(screen, FleetScreen):
            screen.leave()
        else:
            screen.dismiss()

    def _expected(self) -> list[Target]:
        if self._demo is None:
            return list(self._targets)
        from watchfloor.connector import Target

        return [*self._targets, Target(name=DEMO, url="")]

    def _begin(self) -> None:
        _: Worker[None] = self.run_worker(self._connect, exit_on_error=True)

    async def _connect(self) -> None:
        loading = asyncio.create_task(asyncio.to_thread(_load, _TO_CONNECT))
        # Its writer starts beside that: no source is dialled before it has said how far each was received.
        self.hub.open_journal()
        targets = list(self._targets)
        if self._demo is not None:
            from watchfloor.errors import Unreachable

            try:
                targets.append(await self._demo.start())
            except Unreachable as fault:
                self.fleet_screen.complain(DEMO, str(fault))
        await loading
        if self.hub.showing is None:
            self.attention.keep_watch(self._config, write=partial(tell_terminal, self), beyond=self._demo is None)
        self.hub.start(targets)
        if self._discovery is not None:
            self._looking = self.run_worker(partial(self._discovery.run, self.hub), exit_on_error=True)
        await asyncio.to_thread(_load, _TO_INTERVENE)
        self._collector.take_over(self._clock())
        if self.hub.showing is None:
            self.set_interval(ATTENDS_S, self._attend)

    @property
    def _floor(self) -> FleetScreen | None:
        """The topmost screen on which requests are decided."""
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, FleetScreen)), None)

    def _attend(self) -> None:
        floor = self._floor
        attended = floor.attended if floor is not None else None
        self.attention.attend(attended)

    def bell(self) -> None:
        """Ring, unless it has just rung or is to be quiet now."""
        if self.attention.may_ring() and not is_behind(self):
            super().bell()

    def panic(self, *renderables: RenderableType) -> None:
        """End with a failure. What the toolkit would print of it is not printed; `run` raises it instead."""
        self._fatal_error()

    def _fatal_error(self) -> None:
        # The toolkit would print a traceback with the values of all local variables, tokens among them. The failure
        # is raised from `run` instead, once the terminal is itself again.
        fault = sys.exception()
        if self._leaving and isinstance(fault, (MountError, NoMatches)):
            # The parts of the screen go one by one, and what still looked for one of them did not fail.
            return
        self.failure = self.failure or fault or RuntimeError("the terminal can no longer be read")
        self.exit(return_code=1)


def _load(modules: Sequence[str]) -> None:
    for module in modules:
        import_module(module)
