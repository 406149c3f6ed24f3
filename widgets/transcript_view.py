"""What a transcript reads: blocks with a first line and a body. Plain data, no widget."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal, Protocol, TypeAlias

from watchfloor.text import Clean
from widgets.tones import Tone

Form: TypeAlias = Literal[
    "prose", "heading", "item", "quote", "code", "fence", "exact", "output", "added", "removed", "hunk", "note"
]
"""What a line of a body is; each has a component class of its own."""


class BlockLine(Protocol):
    """One line of a body, as it was written."""

    @property
    def form(self) -> Form: ...
    @property
    def text(self) -> Clean: ...
    @property
    def hang(self) -> int: ...  # cells by which its wrapped pieces stand further right


class TranscriptBlock(Protocol):
    """What is read as one. Two blocks are equal only where they are the same object."""

    @property
    def key(self) -> Hashable: ...  # stays the same while the block grows
    @property
    def time(self) -> Clean: ...  # clock time, such as "14:03:07"
    @property
    def kind(self) -> Clean: ...  # one short word, such as "agent"
    @property
    def title(self) -> Clean: ...
    @property
    def tail(self) -> Clean: ...  # right-aligned, such as "✓ ok 3.2 s"
    @property
    def tone(self) -> Tone: ...
    @property
    def body(self) -> Sequence[BlockLine]: ...
    @property
    def most(self) -> int | None: ...  # lines of the body while it is closed; None: all
    @property
    def source(self) -> Clean: ...  # the text as it was written


class TranscriptBlocks(Protocol):
    """The blocks, the oldest first."""

    def __len__(self) -> int: ...
    def block(self, place: int, /) -> TranscriptBlock: ...
