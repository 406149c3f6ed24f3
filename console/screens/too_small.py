"""What stands on a terminal that is too small to read in: that it is, and why a key did nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.strip import Strip

from console.screens.fleet.sizes import LEAST
from watchfloor.text import Clean
from widgets.cells import width_of, wrap
from widgets.painting import Painted, strip_of
from widgets.tones import Segment

TOO_SMALL: Final = Clean(f"too small: {LEAST[0]}x{LEAST[1]} at least")


class TooSmall(Painted):
    """Says it in the middle of the place that it has, and below it the newest notice."""

    PREFIX = "too-small"

    DEFAULT_CSS = "TooSmall { height: 1fr; width: 1fr; background: $wf-ground; }"

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        """Create it without a notice."""
        super().__init__(id=id)
        self._said: tuple[Segment, ...] = ()

    def say(self, said: Sequence[Segment]) -> None:
        """Show these notices below."""
        if tuple(said) != self._said:
            self._said = tuple(said)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width, ground = self.size.width, self.paint("")
        said: tuple[Segment, ...] = ((TOO_SMALL, "attention"), *self._said)
        lines = [(piece, tone) for text, tone in said for piece in wrap(text, max(1, width))][: self.size.height]
        at = y - (self.size.height - len(lines)) // 2
        if not 0 <= at < len(lines):
            return Strip.blank(width, ground)
        text, tone = lines[at]
        before = max(0, (width - width_of(text)) // 2)
        return strip_of([(" " * before, ground), (text, self.tone(tone))], width, ground)
