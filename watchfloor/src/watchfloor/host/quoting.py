"""What clients sent, repeated in a message for people: harmless in a terminal, and short."""

from __future__ import annotations

from typing import Final

from watchfloor.text import Clean, clean_line

LONGEST: Final = 80
"""Code points of a text from outside that a message repeats."""


def shown(text: str) -> Clean:
    """The text in one line, cleaned, and cut with an ellipsis where it is long."""
    return Clean(clean_line(text[:LONGEST]) + ("…" if len(text) > LONGEST else ""))
