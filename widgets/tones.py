"""The tones in which every widget speaks, and their component classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchfloor.text import Clean

Tone: TypeAlias = Literal["plain", "quiet", "attention", "running", "failed", "paused", "lost"]
"""What a text means, not how it looks.

`attention` needs the operator; `failed` also marks what destroys; `quiet` is context that may be
skipped; `lost` is last known, no longer heard.
"""

TONES: Final[tuple[Tone, ...]] = get_args(Tone)

Segment: TypeAlias = tuple[Clean, Tone]
"""A piece of a line: its text and its tone."""


class Says(NamedTuple):
    """What stands on a line: at its left, and at its right."""

    left: Sequence[Segment]
    right: Sequence[Segment] = ()
