"""The help: every key, what it does, and why it does nothing for the selected session."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar, Final, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from console.actions import Action
from console.keymap import Keymap
from watchfloor.text import Clean
from widgets.facts import FactRow, Facts
from widgets.marks import UNICODE_MARKS, Marks
from widgets.status_bar import StatusBar
from widgets.tones import Segment

_LABEL: Final = 15


class HelpItem(NamedTuple):
    """An action and why it does nothing now; "" where it does."""

    action: Action
    reason: Clean


def help_rows(items: Sequence[HelpItem], keymap: Keymap, legend: Sequence[FactRow] = ()) -> list[FactRow]:
    """The help as labelled lines, grouped; a key that does nothing says why below."""
    rows: list[FactRow] = []
    for group, members in groupby(items, key=lambda item: item.action.group):
        if rows:
            rows.append((Clean(""), Clean(""), "plain"))
        rows.append((Clean(""), Clean(group.value), "attention"))
        for action, reason in members:
            text = f"{action.label:<{_LABEL}}{action.help}"
            rows.append((keymap.all_shown(action.id), Clean(text), "quiet" if reason else "plain"))
            if reason:
                rows.append((Clean(""), Clean(f"{'':<{_LABEL}}not now: {reason}"), "lost"))
    if legend:
        rows.append((Clean(""), Clean(""), "plain"))
        rows.extend(legend)
    return rows


class _Says(NamedTuple):
    left: tuple[Segment, ...]
    right: tuple[Segment, ...] = ()


class HelpScreen(Screen[None]):
    """A page over the whole terminal; any of the keys that opened or leave it closes it."""

    DEFAULT_CSS = """
    HelpScreen { background: $wf-ground; & > Facts { height: 1fr; } }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss_help", "Close", show=False, priority=True),
        Binding("down,j", "scroll(1)", "Down", show=False, priority=True),
        Binding("up,k", "scroll(-1)", "Up", show=False, priority=True),
        Binding("pagedown,space", "page(1)", "Page down", show=False, priority=True),
        Binding("pageup", "page(-1)", "Page up", show=False, priority=True),
    ]

    def __init__(self, about: Sequence[Segment], rows: Sequence[FactRow], *, marks: Marks = UNICODE_MARKS) -> None:
        """Create the page.

        Args:
            about: Whose keys these are, for the line above.
            rows: The keys.
            marks: The characters that the widgets draw by themselves.
        """
        super().__init__()
        self._about = tuple(about)
        self._rows = tuple(rows)
        self._marks = marks

    def compose(self) -> ComposeResult:
        head = _Says(((Clean("keys"), "attention"), *self._about), ((Clean("esc  back"), "quiet"),))
        yield StatusBar(head, marks=self._marks)
        yield Facts(self._rows, marks=self._marks)

    def action_dismiss_help(self) -> None:
        """Go back."""
        self.dismiss()

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        facts = self.query_one(Facts)
        facts.jump(facts.scroll_offset.y + lines)

    def action_page(self, pages: int) -> None:
        """Scroll by pages."""
        facts = self.query_one(Facts)
        facts.jump(facts.scroll_offset.y + pages * facts.page_lines())
