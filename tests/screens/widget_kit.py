"""What the tests of widgets share: an application with the theme, views over plain lists, and a way to read what is
painted."""

# ruff: noqa: RUF009 - `Clean` returns its argument, a string, which nobody can change.

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st
from textual import events
from textual.app import App, ComposeResult
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from themes.loader import load_theme
from themes.toolkit import toolkit_theme
from watchfloor.text import Clean, clean, clean_line, clean_prose
from widgets.card_view import CardFlag
from widgets.tones import Segment, Tone

HOSTILE = (
    "[red]x[/red]",
    "[@click=app.quit]press[/]",
    "[/nope]",
    "\x1b]52;c;aGk=\x07",
    "\x1b]0;title\x1b\\",
    "\x1b[2J\x1b[H",
    "\x9b2J",
    "a\r\bb\tc\nd",
    "\u202eevil\u2066x\u2069",
    "e\u0301\u0302 \u4f60\u597d \U0001f469\u200d\U0001f680 \u2764\ufe0f 1\ufe0f\u20e3",
    "\u200d\ufe0f\u0301",
    "\uff21\uff22\u3000\uac00",
)


def texts(most: int = 60) -> st.SearchStrategy[Clean]:
    """Any text at all, once it has passed one of the doors."""
    raw = st.one_of(
        st.text(max_size=most),
        st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=6)), max_size=4).map("".join),
    )
    return st.one_of(raw.map(clean), raw.map(clean_line), raw.map(clean_prose))


def tones() -> st.SearchStrategy[Tone]:
    return st.sampled_from(("plain", "quiet", "attention", "running", "failed", "paused", "lost"))


class Bench(App[None]):
    """An application with a few widgets and our theme."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, *widgets: Widget) -> None:
        self._theme_data = load_theme()
        super().__init__()
        self._benched = widgets
        self.seen: list[Message] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return self._theme_data.css_variables()

    def compose(self) -> ComposeResult:
        yield from self._benched

    def on_mount(self) -> None:
        self.register_theme(toolkit_theme(self._theme_data))
        self.theme = self._theme_data.name

    def note(self, message: Message) -> None:
        """A message hook for `run_test`, which calls it once for each pump that a message passes."""
        if not any(known is message for known in self.seen):
            self.seen.append(message)


def strips(widget: Widget) -> list[Strip]:
    """Every line of the widget's content as it would be painted now."""
    return [widget.render_line(y) for y in range(widget.size.height)]


def lines(widget: Widget) -> list[str]:
    """The painted lines as text, without the blanks at their end."""
    return [strip.text.rstrip() for strip in strips(widget)]


def check_harmless(painted: Iterable[Strip], width: int) -> None:
    """No control character, no live link, and exactly the width of the widget in each line."""
    for strip in painted:
        for segment in strip:
            assert segment.control is None
            assert segment.text
            assert all(ch >= " " and not "\x7f" <= ch <= "\x9f" for ch in segment.text), repr(segment.text)
            assert "@click" not in (segment.style.meta if segment.style else {})
            assert segment.style is None or segment.style.link is None
        assert strip.cell_length == width
        assert sum(segment.cell_length for segment in strip) == width


# ---------------------------------------------------------------- views


@dataclass
class Row:
    name: Clean = Clean("deploy-eu")
    state: Clean = Clean("waiting")
    tone: Tone = "attention"
    glyph: Clean = Clean("!")
    tree: Clean = Clean("")
    source: Clean = Clean("codex-1")
    attempt: Clean = Clean("1")
    needs: Clean = Clean("1")
    wait: Clean = Clean("2:14")
    last: Clean = Clean("make migrate")
    rate: Clean = Clean("")
    usage: Clean = Clean("12.3k")
    can: Clean = Clean("s.xr.a..")
    demo: bool = False
    marked: bool = False
    more: Clean = Clean("")


@dataclass
class Rows:
    """A roster's view over a list that tests change in place."""

    items: list[tuple[Hashable, Row]]
    versions: dict[Hashable, int] = field(default_factory=dict)
    read: list[Hashable] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.items)

    def key(self, i: int, /) -> Hashable:
        return self.items[i][0]

    def index(self, key: Hashable, /) -> int | None:
        return next((i for i, (known, _) in enumerate(self.items) if known == key), None)

    def row(self, i: int, /) -> Row:
        self.read.append(self.items[i][0])
        return self.items[i][1]

    def version(self, key: Hashable, /) -> int:
        return self.versions.get(key, 0)

    def change(self, key: Hashable, **values: Clean) -> None:
        at = self.index(key)
        assert at is not None
        for name, value in values.items():
            setattr(self.items[at][1], name, value)
        self.versions[key] = self.version(key) + 1


def named(*names: str) -> list[tuple[Hashable, Row]]:
    return [(name, Row(name=Clean(name))) for name in names]


@dataclass
class Line:
    text: Clean
    time: Clean = Clean("14:03:07")
    kind: Clean = Clean("tool")
    tone: Tone = "plain"
    tail: Clean = Clean("")
    matched: bool = False


@dataclass
class Ring:
    """A log's view over a list that tests change in place."""

    items: list[Line]
    first: int = 0

    def __len__(self) -> int:
        return len(self.items)

    def line(self, i: int, /) -> Line:
        return self.items[i]

    def append(self, *new: str) -> int:
        self.items.extend(Line(Clean(text)) for text in new)
        return len(new)

    def drop(self, count: int) -> int:
        del self.items[:count]
        self.first += count
        return count


@dataclass
class Action:
    lines: Sequence[Clean] = (Clean("rm -rf build && make migrate"),)
    tool: Clean = Clean("shell")
    cwd: Clean = Clean("/srv/app")
    size: Clean = Clean("1 line, 28 chars")
    complete: bool = True
    does: Clean = Clean("runs")
    flagged: tuple[CardFlag, ...] = ()


@dataclass
class Field:
    label: Clean = Clean("Which branch?")
    kind: Clean = Clean("choice")
    choices: Sequence[Clean] = ()
    value: Clean = Clean("")


@dataclass
class Option:
    key: Clean
    label: Clean
    note: Clean = Clean("")
    tone: Tone = "plain"
    enabled: bool = True


@dataclass
class Card:
    key: Hashable = "r1"
    digest: str = "sha256:7f3a"
    digest_short: Clean = Clean("7f3a")
    title: Sequence[Clean] = (Clean("deploy-eu  codex-1"), Clean("asked 14:03:07, waiting 2:14"))
    actions: Sequence[Action] = (Action(),)
    fields: Sequence[Field] = ()
    unknown: Sequence[Clean] = ()
    strange: Clean = Clean("")
    description: Sequence[Clean] = ()
    flags: Sequence[Segment] = ()
    options: Sequence[Option] = (
        Option(Clean("a"), Clean("Approve once"), Clean("this command, now")),
        Option(Clean("d"), Clean("Deny"), Clean("the turn goes on without it")),
    )
    open: bool = True
    ending: Clean = Clean("")
    deadline: Clean = Clean("")
    armed: Clean = Clean("armed in 0.3 s")
    presence: Clean = Clean("")


@dataclass
class Status:
    left: Sequence[Segment] = ()
    right: Sequence[Segment] = ()


@dataclass
class Item:
    key: Clean
    label: Clean
    enabled: bool = True
    reason: Clean = Clean("")


IN_ONE_READ: Final = ("a", "b", "backspace", "c", "home", "X", "end", "d")
"""Keys that write `WRITTEN`, each in its turn."""
WRITTEN: Final = "Xacd"


def type_at_once(app: App[Any], *keys: str) -> None:
    """Give the application these keys as a terminal does that sends them in one read: nothing is awaited between."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))
