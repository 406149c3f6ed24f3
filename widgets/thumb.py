"""What is drawn of a scrollbar, so that it is painted again only where that has changed."""

from __future__ import annotations

from math import ceil
from typing import Final

from textual.scrollbar import ScrollBar, ScrollBarRender

_STEPS: Final = len(ScrollBarRender.VERTICAL_BARS)
"""Into how many steps the toolkit parts a cell of the bar."""


def thumb(bar: ScrollBar, extent: float, position: float, height: int) -> tuple[int, int]:
    """First and last step of the thumb of a bar of so many cells, for lines in number of `extent` that are seen from
    `position` on; (0, 0): none is drawn. Two that are equal look alike."""
    lines, window = ceil(extent), ceil(bar.window_size)
    if not height or not window or window >= lines or lines == height:
        return 0, 0
    size = max(1, window / (lines / height))
    begin = int((height - size) * (position / (lines - window)) * _STEPS)
    return begin, begin + ceil(size * _STEPS)
