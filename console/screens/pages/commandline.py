"""The command line: everything that can be done or looked at, found by a few letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Input, Static

from console.fleet.gate import ARM_MS
from console.fleet.roster.finding import NAME_ENDS, Finder
from console.screens.badge import EVERY_S, Badge
from console.screens.fleet.footing import FooterKey
from watchfloor.text import Clean, clean_line
from widgets.action_footer import ActionFooter
from widgets.editing import edit
from widgets.listing import ListColumn, Listing
from widgets.marks import UNICODE_MARKS, Marks
from widgets.status_bar import StatusBar
from widgets.tones import Says, Segment, Tone

_COLUMNS: Final = (
    ListColumn(Clean("WHAT"), 10),
    ListColumn(Clean("WHICH"), 20, share=2),
    ListColumn(Clean("KEY"), 5, drop=1),
    ListColumn(Clean("WHAT IT DOES"), 20, share=3),
)
_MOST: Final = 200
"""Characters of what is asked for."""


class Kind(StrEnum):
    """What can be found. Of two that fit as well, the one that stands first here comes first."""

    ACT = "act"
    CONSOLE = "console"
    SESSION = "session"
    SOURCE = "source"
    THEME = "theme"


_WEIGHT: Final = {kind: 20 * at for at, kind in enumerate(Kind)}


class Command(NamedTuple):
    """One thing to be chosen. `value` goes back as it is; `blocked` says why it cannot be chosen; with `armed` it
    counts only once it has stood still for a moment. `spells` writes it as a command line, or says why it has none.
    `also`: other words for it.
    """

    kind: Kind
    text: Clean
    value: Any
    note: Clean
    key: Clean = Clean("")
    blocked: Clean = Clean("")
    armed: bool = False
    spells: Callable[[], tuple[Clean, Clean]] | None = None
    also: Clean = Clean("")

    @property
    def words(self) -> str:
        """What it is found by: its name first, then what it says of itself."""
        kind = "" if self.kind in (Kind.ACT, Kind.CONSOLE) else self.kind.value
        return f"{self.text}{NAME_ENDS}{kind} {self.also} {self.note}"


class _Found:
    """The findings as rows."""

    def __init__(self, commands: Sequence[Command], places: Sequence[int]) -> None:
        self.commands = commands
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def key(self, place: int) -> int:
        return self.places[place]

    def row(self, place: int) -> Sequence[Segment]:
        command = self.commands[self.places[place]]
        tone: Tone = "quiet" if command.blocked else "plain"
        note: Segment = (Clean(f"not now: {command.blocked}"), "lost") if command.blocked else (command.note, "quiet")
        return (Clean(command.kind.value), "quiet"), (command.text, tone), (command.key, tone), note


class _Line(Input):
    """The line to write in. Its keys are handled in the order in which they came, the ones that end it as well."""

    async def on_key(self, event: events.Key) -> None:
        screen = self.screen
        if isinstance(screen, CommandScreen):
            if screen.key(event.key):
                event.stop()
                event.prevent_default()
            else:
                screen.typed = True
                await edit(self, event)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        if isinstance(self.screen, CommandScreen):
            self.screen.typed = True
        self.insert_text_at_cursor(clean_line(event.text.split("\n", 1)[0].rstrip("\r"))[:_MOST])


class CommandScreen(Screen[Command | None]):
    """Dismissed with what was chosen, or None."""

    CSS_PATH = Path(__file__).with_suffix(".tcss")
    AUTO_FOCUS = "#asked"

    def __init__(
        self,
        commands: Sequence[Command],
        steady: Callable[[], int],
        *,
        about: Sequence[Segment] = (),
        badge: Badge = tuple,
        marks: Marks = UNICODE_MARKS,
    ) -> None:
        """Create it.

        Args:
            commands: What can be chosen.
            steady: Milliseconds of a clock that is never set.
            about: Whose acts these are.
            badge: What every screen says.
            marks: The characters that the widgets draw by themselves.
        """
        super().__init__()
        self._commands = tuple(commands)
        self._finder = Finder([one.words for one in commands], [_WEIGHT[one.kind] for one in commands])
        self._steady = steady
        self._about = tuple(about)
        self._badge = badge
        self._marks = marks
        self._asked: str | None = None
        self._stands: int | None = None
        self._since = 0
        self._said: Segment = (Clean(""), "plain")
        self._over = False
        self.typed = False
        """Was anything written, be it gone again?"""

    def compose(self) -> ComposeResult:
        yield StatusBar(id="command-top", marks=self._marks)
        with Horizontal(id="command-line"):
            yield Static(":", markup=False)
            line = _Line(id="asked", max_length=_MOST, select_on_focus=False)
            line.cursor_blink = False
            yield line
        found = Listing(_COLUMNS, id="found", headed=False, marks=self._marks)
        found.can_focus = False
        yield found
        yield StatusBar(id="command-said", marks=self._marks)
        yield ActionFooter(id="command-keys", marks=self._marks)

    def on_mount(self) -> None:
        """List everything."""
        self.query_one("#found", Listing).empty = Clean("nothing is called so")
        self._find()
        self.set_interval(EVERY_S, self._head)

    def _head(self) -> None:
        top = Says(((Clean("command line"), "attention"), *self._about), tuple(self._badge()))
        self.query_one("#command-top", StatusBar).status = top

    @on(Input.Changed)
    def _written(self, event: Input.Changed) -> None:
        event.stop()
        self._find()

    def _find(self) -> None:
        """Take up what is written by now."""
        asked = self.query_one("#asked", Input).value
        if asked != self._asked:
            self._asked = asked
            self._said = (Clean(""), "plain")
            found = _Found(self._commands, self._finder.find(asked))
            self.query_one("#found", Listing).show(found, first=True)
        self._paint()

    @property
    def chosen(self) -> Command | None:
        """What the cursor is on."""
        key = self.query_one("#found", Listing).selected
        return self._commands[key] if isinstance(key, int) else None

    def _paint(self) -> None:
        key = self.query_one("#found", Listing).selected
        if key != self._stands:
            self._stands, self._since = key if isinstance(key, int) else None, self._steady()
        said = Says((self._said,)) if self._said[0] else Says(())
        self._head()
        self.query_one("#command-said", StatusBar).status = said
        chosen = self.chosen
        keys = [("enter", "do it"), ("tab", "complete"), ("esc", "back")]
        if chosen is not None and chosen.spells is not None:
            keys.append(("^Y", "copy as a command line"))
        items = [FooterKey(Clean(key), Clean(label), True, Clean("")) for key, label in keys]
        self.query_one("#command-keys", ActionFooter).items = items

    @on(Listing.Turned)
    def _turned(self, event: Listing.Turned) -> None:
        event.stop()
        self._paint()

    @on(Listing.Opened)
    def _opened(self, event: Listing.Opened) -> None:
        event.stop()
        self._run()

    # -------------------------------------------------------------- keys

    def key(self, key: str) -> bool:
        """Handle a key that is not one of the text's; True where it was one."""
        found = self.query_one("#found", Listing)
        does: dict[str, Callable[[], object]] = {
            "enter": self._run,
            "escape": self.leave,
            "tab": self._complete,
            "shift+tab": lambda: None,
            "up": lambda: found.move(-1),
            "down": lambda: found.move(1),
            "ctrl+p": lambda: found.move(-1),
            "ctrl+n": lambda: found.move(1),
            "pageup": lambda: found.move(-found.page_lines()),
            "pagedown": lambda: found.move(found.page_lines()),
            "ctrl+y": self._copy,
        }
        act = does.get(key)
        if self._over or act is None:
            return self._over
        # What was written just before may not have been taken up.
        self._find()
        act()
        self._paint()
        return True

    def leave(self) -> None:
        """Close it without a choice."""
        self._end(None)

    def _end(self, chosen: Command | None) -> None:
        if not self._over:
            self._over = True
            self.dismiss(chosen)

    def _run(self) -> None:
        chosen = self.chosen
        if chosen is None:
            self._said = (Clean("nothing is called so"), "attention")
        elif chosen.blocked:
            self._said = (Clean(f"{chosen.text}: {chosen.blocked}"), "attention")
        elif chosen.armed and self._steady() - self._since < ARM_MS:
            # Written in one go it may be another one than was meant.
            self._said = (Clean(f"{chosen.text}: read it first, then enter again"), "attention")
        else:
            self._end(chosen)

    def _complete(self) -> None:
        chosen = self.chosen
        if chosen is not None:
            line = self.query_one("#asked", Input)
            line.value = chosen.text
            line.cursor_position = len(line.value)

    def _copy(self) -> None:
        chosen = self.chosen
        text, reason = chosen.spells() if chosen is not None and chosen.spells is not None else ("", "")
        if text:
            self.app.copy_to_clipboard(text)
            self._said = (Clean(f"copied: {text}"), "plain")
        else:
            self._said = (Clean(reason or "only an act has a command line"), "attention")
