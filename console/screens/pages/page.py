"""What pages with a list and details have in common: their keys, and where these go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from textual.screen import Screen

from watchfloor.text import NOTHING, Clean
from widgets.facts import Facts
from widgets.listing import Listing
from widgets.painting import LineView
from widgets.tones import Segment


class DetailsPane(Facts, can_focus=True):
    """All that is known of the line under the cursor, to be scrolled."""


class Page(Screen[str | None]):
    """A list above, what is known of the selected line below; there may be more lists.

    Dismissed with the id of an action that the screen below is to perform, or None.
    """

    HOME: ClassVar[str]
    """The list that has the keys while nothing else has, as a selector."""

    def __init__(self) -> None:
        super().__init__()
        self._said: Segment = (NOTHING, "plain")
        self._does: Mapping[str, Callable[[], object]] = {
            "down": lambda: self.line(1),
            "up": lambda: self.line(-1),
            "page_down": lambda: self.line(self.pane.page_lines()),
            "page_up": lambda: self.line(-self.pane.page_lines()),
            "last": lambda: self.edge(last=True),
            "first": lambda: self.edge(last=False),
            "focus_next": lambda: self.turn(1),
            "focus_previous": lambda: self.turn(-1),
        }

    @property
    def home(self) -> Listing:
        """The list that has the keys while nothing else has."""
        return self.query_one(self.HOME, Listing)

    @property
    def pane(self) -> LineView:
        """The part that has the keys."""
        focused = self.focused
        return focused if isinstance(focused, LineView) else self.home

    def turn(self, by: int) -> None:
        """Give the keys to the next part."""
        parts = [part for part in self.query(LineView) if part.display]
        at = parts.index(self.pane) if self.pane in parts else 0
        self.set_focus(parts[(at + by) % len(parts)], scroll_visible=False)

    def line(self, by: int) -> None:
        """Move by lines in the part that has the keys."""
        pane = self.pane
        if isinstance(pane, Listing):
            pane.move(by)
        else:
            pane.jump(pane.scroll_offset.y + by)

    def edge(self, *, last: bool) -> None:
        """Move to the start, or the end, of the part that has the keys."""
        pane = self.pane
        if isinstance(pane, Listing):
            pane.select_place(pane.count - 1 if last else 0)
        else:
            pane.jump(pane.max_scroll_y if last else 0)

    def copy_text(self, text: str) -> None:
        """Give a text to the clipboard of the terminal, and say so."""
        self.app.copy_to_clipboard(text)
        self._said = (Clean(f"copied {len(text):,} characters"), "plain")
