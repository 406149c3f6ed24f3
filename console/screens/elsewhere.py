"""Ways from a screen of sessions to the screens around it: sources, help, and the command line over everything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, cast

from console.actions import Action, Needs
from console.fleet.facts import SessionKey
from console.fleet.state import Request
from console.fleet.store import Store
from console.fleet.views.wording import name_of
from console.screens.availability import Standing
from console.screens.badge import badge
from console.screens.fleet.handlers import MOVES
from console.spelling import spelled
from watchfloor.text import Clean, clean_line
from watchfloor.words import Primitive
from widgets.marks import Marks
from widgets.tones import Segment, Tone

if TYPE_CHECKING:
    from textual.screen import Screen

    from console.hub import Hub
    from console.keymap import Keymap
    from console.screens.flows.asking import Ask
    from console.screens.pages.commandline import Command
    from watchfloor.connector import Clock

_MOVING: Final = MOVES | {"command", "leave"}
"""What only means something as a key."""
_NAMED: Final = {
    "deny_reason": Clean("deny with reason"),
    "send": Clean("send a message"),
    "acts": Clean("what only its source can do"),
    "notify": Clean("notify another session"),
}
"""What has another name where it does not stand in the footer among its like."""
_CARDED: Final = Clean("it is decided on its card: this brings you there")


class Around(Protocol):
    """What the application gives to every screen."""

    def theme_choices(self) -> Sequence[str]:
        """The names of all themes."""
        ...

    def wear(self, name: str) -> Clean:
        """Change to this theme; returns what there is to be said."""
        ...

    def address(self, source: str) -> str:
        """How another program names the source; "" where none can reach it."""
        ...


class Floor(Protocol):
    """A screen on which sessions are looked at and steered."""

    @property
    def selected(self) -> SessionKey | None:
        """The session that keys go to."""
        ...

    @property
    def in_sight(self) -> Request | None:
        """What a decision would be about."""
        ...

    def standings(self) -> Sequence[tuple[Action, Standing]]:
        """How each action of the screen stands."""
        ...

    def action_perform(self, id: str) -> None:
        """Do what the key of this action does."""
        ...

    def go_to(self, key: SessionKey) -> None:
        """Select a session."""
        ...

    def chosen(self) -> None:
        """What is performed next was chosen by its name: it is no stray key."""
        ...

    def text_closed(self) -> None:
        """A line that was written in has closed: what is typed on behind it is no key."""
        ...

    def say(self, text: str, tone: Tone = "plain") -> None:
        """One line to the operator."""
        ...

    def ask(self, ask: Ask) -> None:
        """Ask, or show, this in the drawer."""
        ...


class Elsewhere:
    """Opens the screens around a floor."""

    def __init__(
        self, floor: Floor, hub: Hub, keys: Keymap, clock: Clock, *, marks: Marks, tz: tzinfo | None = None
    ) -> None:
        """Create it.

        Args:
            floor: The screen that they are opened from, and come back to.
            hub: Where sources and sessions are known.
            keys: Which key does what.
            clock: Milliseconds since 1970 UTC.
            marks: The characters that the widgets draw by themselves.
            tz: The zone that times are shown in; that of the machine if None.
        """
        self._floor = floor
        self._hub = hub
        self._keys = keys
        self._clock = clock
        self._marks = marks
        self._tz = tz
        self._opened_for: SessionKey | None = None

    @property
    def _screen(self) -> Screen[None]:
        return cast("Screen[None]", self._floor)

    @property
    def _around(self) -> Around:
        return cast("Around", self._screen.app)

    def open_sources(self, name: str | None = None) -> None:
        """Show the sources, with the cursor on this one, else on that of the selected session."""
        from console.screens.pages.sources import SourcesScreen

        screen = SourcesScreen(self._hub, self._keys, self._clock, marks=self._marks, tz=self._tz)
        selected = self._floor.selected
        wanted = name or (selected.source if selected is not None else "")
        screen.call_after_refresh(screen.select, wanted)
        self._screen.app.push_screen(screen, self._back_from_sources)

    def _back_from_sources(self, id: str | None) -> None:
        if id is not None:
            self._floor.action_perform(id)

    def show_figures(self) -> None:
        """Show how requests were decided, by the audit files of this machine."""
        self._screen.run_worker(self._figures(), exit_on_error=True)

    async def _figures(self) -> None:
        from console.auditing import entries, figures
        from console.screens.pages.figures import figures_ask

        folder = self._hub.audit_folder
        try:
            found = await asyncio.to_thread(lambda: figures(entries(folder)))
        except OSError as fault:
            self._floor.say(clean_line(f"{folder}: it cannot be read: {fault.strerror or fault}"), "attention")
            return
        if self._screen.is_active:
            self._floor.ask(figures_ask(found, folder, self._hub.audit_fault))

    def open_audit(self) -> None:
        """Show what was done through the consoles of this machine, line by line."""
        from console.screens.pages.audit import AuditScreen

        screen = AuditScreen(self._hub, self._keys, self._clock, marks=self._marks, tz=self._tz)

        def back(id: str | None) -> None:
            if screen.writing:
                self._floor.text_closed()
            if id is not None:
                self._floor.action_perform(id)

        self._screen.app.push_screen(screen, back)

    def show_since(self) -> None:
        """Show what has happened while nobody could look."""
        from console.screens.pages.since import since_ask

        told = self._hub.absence
        if not told:
            self._floor.say("nothing has happened that was not seen here")
            return
        self._floor.ask(since_ask(self._hub.fleet, told, self._clock(), self._tz))
        self._hub.absence_read()

    def open_command_line(self) -> None:
        """Show everything that can be done and looked at."""
        from console.screens.pages.commandline import CommandScreen

        self._opened_for = self._floor.selected
        screen = CommandScreen(
            self.commands(),
            self._hub.steady,
            about=self._about(),
            badge=badge(self._hub, self._clock, self._marks),
            marks=self._marks,
        )
        self._screen.app.push_screen(screen, lambda command: self._chosen(command, typed=screen.typed))

    def _about(self) -> list[Segment]:
        session = self._hub.fleet.sessions.get(self._floor.selected) if self._floor.selected is not None else None
        return [] if session is None else [(Clean(f"for {name_of(session)}"), "quiet")]

    def _chosen(self, command: Command | None, *, typed: bool) -> None:
        from console.screens.pages.commandline import Kind

        if command is not None:
            value = command.value
            does: dict[Kind, Callable[[], None]] = {
                Kind.ACT: lambda: self._perform(command),
                Kind.CONSOLE: lambda: self._floor.action_perform(value),
                Kind.SESSION: lambda: self._floor.go_to(value),
                Kind.SOURCE: lambda: self.open_sources(value),
                Kind.THEME: lambda: self._floor.say(self._around.wear(value)),
            }
            does[command.kind]()
        if command is not None or typed:
            self._floor.text_closed()

    def _perform(self, command: Command) -> None:
        """Do what the key of an act does, if it is still what was read."""
        if self._floor.selected != self._opened_for:
            self._floor.say(f"{command.text}: another session is selected by now: look first", "attention")
            return
        stands = next((stands for action, stands in self._floor.standings() if action.id == command.value), None)
        if stands is not None and stands.works and _name(command.value, stands) != command.text:
            self._floor.say(f"{command.text} has become {stands.label}: look first, then again", "attention")
            return
        self._floor.chosen()
        self._floor.action_perform(command.value)

    # -------------------------------------------------------------- what can be chosen

    def commands(self) -> list[Command]:
        """The acts of the selected session, screens, sessions, sources and themes."""
        from console.screens.pages.commandline import Command, Kind

        store = self._hub.fleet
        commands = [self._act(action, stands) for action, stands in self._floor.standings() if action.id not in _MOVING]
        commands.sort(key=lambda one: (one.kind is not Kind.ACT, bool(one.blocked)))
        commands += [
            Command(Kind.SESSION, name_of(session), key, _where(store, key), also=clean_line(key.session))
            for key, session in store.sessions.items()
            if not session.placeholder
        ]
        commands += [
            Command(Kind.SOURCE, source.shown, source.name, Clean(f"{source.contact.value}; show it"))
            for source in store.sources.values()
        ]
        commands += [
            Command(Kind.THEME, clean_line(name), name, Clean("wear it from now on, also next time"))
            for name in self._around.theme_choices()
        ]
        return commands

    def _act(self, action: Action, stands: Standing) -> Command:
        from console.screens.pages.commandline import Command, Kind

        label = _name(action.id, stands)
        # Its own word is found as well where the source calls it otherwise.
        also = Clean(action.label if label != action.label else "")
        if action.primitive is Primitive.ACT:
            also = Clean(" ".join([also, *self._own_acts()]))
        note = _CARDED if action.needs is Needs.REQUEST else Clean(action.help)
        return Command(
            Kind.ACT if action.intervenes else Kind.CONSOLE,
            label,
            action.id,
            note,
            key=self._keys.shown(action.id),
            blocked=stands.reason,
            armed=action.intervenes,
            spells=partial(self._spell, action) if action.intervenes else None,
            also=also,
        )

    def _own_acts(self) -> list[Clean]:
        """What the acts of the selected session's source are called."""
        session = self._hub.fleet.sessions.get(self._floor.selected) if self._floor.selected is not None else None
        profile = self._hub.fleet.profile(session) if session is not None else None
        options = profile.options.get(Primitive.ACT, {}) if profile is not None else {}
        return [act["label"] for act in options.get("acts", ())]

    def _spell(self, action: Action) -> tuple[Clean, Clean]:
        selected = self._floor.selected
        session = self._hub.fleet.sessions.get(selected) if selected is not None else None
        where = self._around.address(selected.source) if selected is not None else ""
        return spelled(action, where, session, self._floor.in_sight)


def _name(id: str, stands: Standing) -> Clean:
    return _NAMED.get(id, stands.label)


def _where(store: Store, key: SessionKey) -> Clean:
    session, source = store.sessions[key], store.sources.get(key.source)
    shown = source.shown if source is not None else clean_line(key.source)
    waits = len(session.open_requests())
    needs = f", {waits} waiting for you" if waits else ""
    return Clean(f"{session.lifecycle.value} on {shown}{needs}")
