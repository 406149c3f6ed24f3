"""The rest of a notice that is longer than its line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.geometry import Size
from textual.strip import Strip

from widgets.painting import Painted, strip_of
from widgets.tones import Segment

_LINES_MOST: Final = 8


class Told(Painted):
    """Lines that go on where the line for notices ends, for as long as the notice stands."""

    PREFIX = "told"

    DEFAULT_CSS = "Told { display: none; height: auto; width: 1fr; background: $wf-ground; }"

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        """Create it without anything to say."""
        super().__init__(id=id)
        self._said: tuple[Segment, ...] = ()

    @property
    def room(self) -> int:
        """Cells of a line, without those at its ends."""
        return self.screen.size.width - 2

    def say(self, said: Sequence[Segment]) -> None:
        """Show these lines."""
        if tuple(said) != self._said:
            self._said = tuple(said)
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(len(self._said), _LINES_MOST)

    def render_line(self, y: int) -> Strip:
        width, ground = self.size.width, self.paint("")
        if y >= len(self._said):
            return Strip.blank(width, ground)
        text, tone = self._said[y]
        return strip_of([(" ", ground), (text, self.tone(tone))], width, ground)
