"""How a block becomes lines. Pure: a block and a width in, lines out.

The first line is ours: time, what it is, its title, how it ended. Every line of the body stands right of a bar, and
every piece of one that had to be wrapped right of another, so that nothing an agent writes passes for a block.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from watchfloor.text import Clean
from widgets.cells import chop, fit, flat, width_of, wrap
from widgets.marks import Marks
from widgets.tones import Tone
from widgets.transcript_view import BlockLine, TranscriptBlock

TIME: Final = 8
KIND: Final = 8
LEAD: Final = 1 + TIME + 2 + KIND + 1
"""Cells before a title."""
BODY_AT: Final = 4
"""Cells before the text of a body: it needs the width more than it needs to stand below the title."""
_EXACT: Final = frozenset({"code", "exact", "output", "added", "removed", "hunk"})
"""Forms whose lines are broken anywhere: blanks in them mean something."""
_TAIL_MOST: Final = 30
_SOURCE_PIECES: Final = 5_000

Piece: TypeAlias = tuple[str, str]
"""A text and the part that it is painted as: a form, a tone ("tone-quiet") or "bar", "time", "cut"."""


class Laid(NamedTuple):
    """The lines of a block. `hidden`: lines of its body that are left out while it is closed."""

    lines: tuple[tuple[Piece, ...], ...]
    hidden: int


def lay(block: TranscriptBlock, width: int, marks: Marks, *, opened: bool, source: bool) -> Laid:
    """The lines of a block in so many cells. `source`: its text as it was written, instead of its body."""
    lines: list[tuple[Piece, ...]] = [_first(block, width, marks)]
    room = max(2, width - BODY_AT - 1)
    if source:
        for text in block.source.split("\n")[:_SOURCE_PIECES]:
            lines += _body(text, "code", 0, room, marks)
        return Laid(tuple(lines), 0)
    body = block.body
    most = None if opened else block.most
    hidden = 0
    for at, line in enumerate(body):
        more = _laid(line, room, marks)
        # A single line is not worth a line that says so.
        if most is not None and len(lines) + len(more) > most + 1 and (len(body) - at > 1 or len(more) > 1):
            lines += more[: most + 1 - len(lines)]
            hidden = len(body) - at
            break
        lines += more
    if hidden:
        noun = "line" if hidden == 1 else "lines"
        lines.append((("  ", ""), (f"{marks.bar_more} ", "bar"), (f"{hidden:,} more {noun}: open it", "note")))
    return Laid(tuple(lines), hidden)


def _first(block: TranscriptBlock, width: int, marks: Marks) -> tuple[Piece, ...]:
    tone = f"tone-{block.tone}"
    room = max(0, width - LEAD)
    tail = min(width_of(block.tail), _TAIL_MOST, room // 2)
    spare = room - (tail + 2 if tail else 0)
    pieces: list[Piece] = [
        (f"{fit(block.time, TIME, marks.cut)}  ", "time"),
        (f"{fit(block.kind, KIND, marks.cut)} ", _word(block.tone)),
        (fit(flat(block.title), spare, marks.cut), tone if block.tone in ("failed", "attention", "quiet") else "title"),
    ]
    if tail:
        pieces.append((f" {fit(block.tail, tail, marks.cut)} ", tone if block.tone != "plain" else "tone-quiet"))
    return tuple(pieces)


def _word(tone: Tone) -> str:
    return "kind" if tone == "plain" else f"tone-{tone}"


def _laid(line: BlockLine, room: int, marks: Marks) -> list[tuple[Piece, ...]]:
    return _body(line.text, line.form, line.hang, room, marks)


def _body(text: str, form: str, hang: int, room: int, marks: Marks) -> list[tuple[Piece, ...]]:
    hang = min(hang, room // 2)
    pieces = chop(text, room) if form in _EXACT else _hung(text, room, hang)
    return [
        (("  ", ""), (f"{marks.bar if not at else marks.bar_more} ", "bar"), (piece, form))
        for at, piece in enumerate(pieces)
    ]


def _hung(text: str, room: int, hang: int) -> list[str]:
    """Prose whose lines after the first stand `hang` cells further right."""
    pieces = wrap(text, room)
    if not hang or len(pieces) < 2:
        return pieces
    first = pieces[0]
    # What is left of the text after its first piece, wrapped once more in less room.
    rest = text[len(first) :].lstrip(" ") if text.startswith(first) else Clean(" ".join(pieces[1:]))
    return [first, *(" " * hang + piece for piece in wrap(rest, room - hang))]
