"""Facts: a column of labelled values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from watchfloor.text import Clean
from widgets.tones import Tone

FactRow: TypeAlias = tuple[Clean, Clean, Tone]
"""Label, value (wrapped, may hold line breaks) and the tone of the value."""

FactRows: TypeAlias = Sequence[FactRow]
