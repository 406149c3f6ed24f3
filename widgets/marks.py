"""The few characters that widgets draw by themselves."""

from __future__ import annotations

from typing import Final, NamedTuple


class Marks(NamedTuple):
    """Each mark takes one cell. A glyph set of the theme supplies them (see `themes.loader`)."""

    cursor: str = "▌"
    marked: str = "*"
    cut: str = "…"
    rule: str = "─"
    bar: str = "│"  # stands left of a line that came from outside
    bar_more: str = "┊"  # stands left of the rest of a line that was too long
    follow: str = "▾"
    newer: str = "▾"
    alert: str = "▴"


UNICODE_MARKS: Final = Marks()
