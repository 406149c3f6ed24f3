"""The line above a part of a screen: whose part it is, and whether the keys are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.style import Style
from textual.strip import Strip

from widgets.cells import crop, width_of
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import Painted, strip_of
from widgets.tones import Segment

_LEAD = 2


class Rule(Painted):
    """A line with texts in it. Setting it paints one line and lays nothing out."""

    PREFIX = "rule"

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rule--line"}
    """
    | Class | Description |
    | :- | :- |
    | `rule--line` | The line itself. |
    """

    DEFAULT_CSS = """
    Rule {
        height: 1;
        width: 1fr;
        background: $wf-ground;
        & > .rule--line { color: $wf-rule; }
    }
    """

    ALLOW_SELECT = False

    def __init__(self, *, marks: Marks = UNICODE_MARKS, id: str | None = None, classes: str | None = None) -> None:
        """Create a line without a text."""
        super().__init__(id=id, classes=classes)
        self._marks = marks
        self._said: tuple[Segment, ...] = ()
        self._active = False

    def say(self, said: Sequence[Segment], *, active: bool) -> None:
        """Show these texts, the first one as the name. `active`: the keys go to the part below."""
        if (tuple(said), active) != (self._said, self._active):
            self._said, self._active = tuple(said), active
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        line = self.paint("line")
        lead = self._marks.cursor if self._active else self._marks.rule
        parts: list[tuple[str, Style]] = [
            (lead, self.tone("attention") if self._active else line),
            (self._marks.rule, line),
        ]
        room = width - _LEAD
        for text, tone in self._said:
            taken = min(width_of(text), room - 2)
            if taken <= 0:
                break
            parts += [(" ", line), (crop(text, taken), self.tone(tone)), (" ", line)]
            room -= taken + 2
            if room > 0:
                parts.append((self._marks.rule, line))
                room -= 1
        parts.append((self._marks.rule * max(0, room), line))
        return strip_of(parts, width, line)
