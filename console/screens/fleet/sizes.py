"""How the parts of the fleet screen are arranged at which size of the terminal."""

from __future__ import annotations

from typing import Final

from textual.geometry import Size

WIDE: Final = 110
"""Columns from which there is room for the facts beside the roster."""
BROAD: Final = 150
TALL: Final = 36
"""Rows from which the log stays in sight below an open card."""
LEAST: Final = (40, 12)
"""Columns and rows below which nothing can be decided, since nothing can be read."""
TINY: Final = "-tiny"
"""The class of a screen below that."""


def size_classes(size: Size) -> dict[str, bool]:
    """The classes by which the styles arrange the parts of the screen."""
    columns, rows = size
    return {
        "-narrow": columns < WIDE,
        "-wide": WIDE <= columns < BROAD,
        "-broad": columns >= BROAD,
        "-low": rows < TALL,
        "-tall": rows >= TALL,
        TINY: columns < LEAST[0] or rows < LEAST[1],
    }
