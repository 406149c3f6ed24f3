"""The status bar: one line, pieces on the left, pieces on the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from widgets.tones import Segment


class StatusView(Protocol):
    """What the bar says. Pieces are drawn with a gap between; the right part is cut last."""

    @property
    def left(self) -> Sequence[Segment]: ...
    @property
    def right(self) -> Sequence[Segment]: ...
