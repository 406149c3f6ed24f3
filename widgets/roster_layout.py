"""How a session becomes a line. Pure functions: a row and columns in, pieces of text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from widgets.cells import fit, flat, width_of
from widgets.columns import LEAD, NEEDS_COUNT, Column
from widgets.marks import Marks
from widgets.roster_view import RosterRow

Piece: TypeAlias = tuple[str, str]
"""A text and the component class (without prefix) that it is painted in."""

_DEMO: Final = " DEMO"
_QUIET: Final = "tone-quiet"


def header_text(columns: Sequence[Column]) -> str:
    """The line of headings."""
    return " " * LEAD + " ".join(fit(column.heading, column.width, right=column.right) for column in columns)


def row_pieces(row: RosterRow, columns: Sequence[Column], marks: Marks, cursor: bool) -> list[Piece]:
    """The line of one session; as wide as `LEAD` and the columns with a blank between them."""
    pieces: list[Piece] = [
        (marks.cursor if cursor else " ", "bar"),
        (marks.marked if row.marked else " ", "tone-attention"),
        (fit(row.glyph, 1, marks.cut), f"tone-{row.tone}"),
        (" ", ""),
    ]
    for at, column in enumerate(columns):
        if at:
            pieces.append((" ", ""))
        pieces.extend(_cell(row, column, marks.cut))
    return pieces


def _cell(row: RosterRow, column: Column, cut: str) -> list[Piece]:
    width = column.width
    # A row that is only context is so as a whole; of any other name and last stay plain.
    main = f"tone-{row.tone if row.tone in ('quiet', 'lost') else 'plain'}"
    match column.name:
        case "state":
            return [(fit(row.state, width, cut), f"tone-{row.tone}")]
        case "name":
            return _name(row, width, cut, main)
        case "source":
            return [(fit(row.source, width, cut), _QUIET)]
        case "attempt":
            return [(fit(row.attempt, width, cut, right=True), _QUIET)]
        case "needs":
            count = fit(row.needs, NEEDS_COUNT, cut, right=True)
            wait = fit(row.wait, width - NEEDS_COUNT - 1, cut, right=True)
            return [(f"{count} {wait}", "tone-attention")]
        case "last":
            return [(fit(row.last, width, cut), main)]
        case "rate":
            return [(fit(row.rate, width, cut), _QUIET)]
        case "usage":
            return [(fit(row.usage, width, cut, right=True), _QUIET)]
        case "can":
            return [(fit(row.can, width, cut), _QUIET)]


def _name(row: RosterRow, width: int, cut: str, main: str) -> list[Piece]:
    demo = _DEMO if row.demo and width > len(_DEMO) else ""
    tree = flat(row.tree)
    room = width - len(demo)
    indent = min(width_of(tree), room)
    return [
        (fit(tree, indent, cut), _QUIET),
        (fit(row.name, room - indent, cut), main),
        (demo, _QUIET),
    ]
