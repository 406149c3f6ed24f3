"""How a session becomes a line. Pure functions: a row and columns in, pieces of text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from widgets.cells import fit, flat, width_of
from widgets.columns import LEAD, NEEDS_COUNT, Column, ColumnName
from widgets.marks import Marks
from widgets.roster_view import RosterRow

Piece: TypeAlias = tuple[str, str]
"""A text and the component class (without prefix) that it is painted in."""

_DEMO: Final = " DEMO"
_QUIET: Final = "tone-quiet"


def header_text(columns: Sequence[Column], sorted_by: ColumnName | None = None, mark: str = "") -> str:
    """The line of headings; `mark` stands behind that of the column which the roster is sorted by."""
    return " " * LEAD + " ".join(_heading(column, mark if column.name == sorted_by else "") for column in columns)


def _heading(column: Column, mark: str) -> str:
    text = column.heading[: max(0, column.width - len(mark))] + mark
    return fit(text, column.width, right=column.right)


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
            # Nobody can decide what was asked before contact was lost.
            return [(f"{count} {wait}", "tone-lost" if row.tone == "lost" else "tone-attention")]
        case "last":
            return [(fit(row.last, width, cut), main)]
        case "rate":
            return [(fit(row.rate[-width:], width, cut), _QUIET)]
        case "usage":
            return [(fit(row.usage, width, cut, right=True), _QUIET)]
        case "can":
            return [(fit(row.can, width, cut), _QUIET)]


def _name(row: RosterRow, width: int, cut: str, main: str) -> list[Piece]:
    demo = _DEMO if row.demo and width > len(_DEMO) else ""
    tree, more = flat(row.tree), f" {flat(row.more)}" if row.more else ""
    room = width - len(demo)
    indent = min(width_of(tree), room)
    # How much is put away matters more than the end of a name.
    more = more if width_of(more) < room - indent else ""
    name = room - indent - width_of(more)
    name = min(name, width_of(row.name)) if more else name
    return [
        (fit(tree, indent, cut), _QUIET),
        (fit(row.name, name, cut), main),
        (fit(more, room - indent - name, cut), _QUIET),
        (demo, _QUIET),
    ]
