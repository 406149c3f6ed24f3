"""The status bar: one line, pieces on the left, pieces on the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from rich.style import Style
from textual.strip import Strip

from widgets.cells import crop, cut_middle, width_of
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import Painted, strip_of
from widgets.tones import Segment


class StatusView(Protocol):
    """What the bar says. Pieces are drawn with a gap between; the right part is cut last."""

    @property
    def left(self) -> Sequence[Segment]: ...
    @property
    def right(self) -> Sequence[Segment]: ...


_GAP: Final = "  "
_BOTH_ENDS: Final = 24
"""Cells from which a text is cut in its middle."""


class _Said(NamedTuple):
    left: Sequence[Segment]
    right: Sequence[Segment]


class StatusBar(Painted):
    """One line that is always there. A change paints that line and lays nothing out."""

    PREFIX = "status-bar"

    DEFAULT_CSS = """
    StatusBar {
        height: 1;
        width: 1fr;
        background: $wf-bar;
        color: $wf-plain;
    }
    """

    ALLOW_SELECT = False

    def __init__(
        self,
        status: StatusView | None = None,
        *,
        marks: Marks = UNICODE_MARKS,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Create a bar.

        Args:
            status: What it says.
            marks: The characters it draws by itself.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._marks = marks
        self._left: tuple[Segment, ...] = ()
        self._right: tuple[Segment, ...] = ()
        self.status = status

    @property
    def status(self) -> StatusView:
        """What the bar says now, as a copy."""
        return _Said(self._left, self._right)

    @status.setter
    def status(self, status: StatusView | None) -> None:
        left = () if status is None else tuple(status.left)
        right = () if status is None else tuple(status.right)
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def left_room(self, others: Sequence[Segment]) -> int | None:
        """The cells that are free on the left beside other pieces; None before the bar has its size."""
        return max(0, self.size.width - 2 - self._wide(others) - len(_GAP)) if self.size.width else None

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        ground = self.paint("")
        inner = max(0, width - 2)
        right_width = min(inner, self._wide(self._right))
        left_width = max(0, inner - right_width - (len(_GAP) if right_width else 0))
        parts = [(" ", ground), *self._pieces(self._left, left_width)]
        if left_width and right_width:
            parts.append((_GAP, ground))
        parts.extend(self._pieces(self._right, right_width))
        return strip_of(parts, width, ground)

    def _wide(self, segments: Sequence[Segment]) -> int:
        return sum(width_of(text) for text, _ in segments) + len(_GAP) * max(0, len(segments) - 1)

    def _pieces(self, segments: Sequence[Segment], width: int) -> list[tuple[str, Style]]:
        """The segments in exactly `width` cells, with a mark where they do not fit. Of a long one the beginning and
        the end stand there: a reason says at its end what is the matter."""
        over = self._wide(segments) > width
        left = max(0, width - 1) if over else width
        parts: list[tuple[str, Style]] = []
        for at, (text, tone) in enumerate(segments):
            if at:
                gap = min(left, len(_GAP))
                parts.append((" " * gap, self.paint("")))
                left -= gap
            wide = width_of(text)
            if over and wide > left >= _BOTH_ENDS and at == len(segments) - 1:
                parts.append((cut_middle(text, left + 1, self._marks.cut), self.tone(tone)))
                return parts
            taken = min(left, wide)
            parts.append((crop(text, taken), self.tone(tone)))
            left -= taken
        parts.append((" " * left, self.paint("")))
        if over and width > 0:
            parts.append((self._marks.cut, self.tone("quiet")))
        return parts
