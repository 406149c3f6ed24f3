"""The columns of the roster: which ones fit, and how wide each is. A pure function of the width."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

ColumnName: TypeAlias = Literal["state", "name", "source", "attempt", "needs", "last", "rate", "usage", "can"]

LEAD: Final = 4
"""Cells before the first column: cursor, mark, glyph, a blank."""

NEEDS_COUNT: Final = 3
"""Cells of the count inside the needs column; the wait takes the rest."""


class Column(NamedTuple):
    """A column: its heading and its width in cells, without the blank that follows."""

    name: ColumnName
    heading: str
    width: int
    right: bool = False


_ORDER: Final[tuple[ColumnName, ...]] = (
    "state",
    "name",
    "source",
    "attempt",
    "needs",
    "last",
    "rate",
    "usage",
    "can",
)
_HEADING: Final[dict[ColumnName, str]] = {
    "state": "STATE",
    "name": "SESSION",
    "source": "SOURCE",
    "attempt": "TRY",
    "needs": "NEEDS",
    "last": "LAST",
    "rate": "RATE",
    "usage": "USAGE",
    "can": "CAN",
}
_LEAST: Final[dict[ColumnName, int]] = {
    "state": 12,
    "name": 19,
    "source": 9,
    "attempt": 3,
    "needs": 12,
    "last": 19,
    "rate": 4,
    "usage": 7,
    "can": 8,
}
_RIGHT: Final = frozenset({"attempt", "usage"})

# What a narrow screen does without, first to go first. Who needs the operator never goes.
_DROP: Final[tuple[ColumnName, ...]] = ("rate", "usage", "attempt", "can", "source")

# Where a very narrow one saves cells, and what must be left. Below 4 cells there is no last column at all.
_LAST_LEAST: Final = 4
_SHRINK: Final[tuple[tuple[ColumnName, int], ...]] = (("last", _LAST_LEAST), ("name", 6), ("state", 1))

# Where further cells go: share, and the most that helps.
_GROW: Final[tuple[tuple[ColumnName, int, int], ...]] = (
    ("name", 3, 40),
    ("source", 1, 18),
    ("rate", 1, 12),
    ("last", 6, 400),
)


@lru_cache(maxsize=64)
def columns_for(
    width: int, sorted_by: ColumnName | None = None, without: frozenset[ColumnName] = frozenset()
) -> tuple[Column, ...]:
    """The columns for a roster of `width` cells, left to right, but for those that it is to do `without`. The one that
    it is sorted by is left out last."""
    widths = {name: least for name, least in _LEAST.items() if name not in without}
    for name in (*(name for name in _DROP if name != sorted_by), *(name for name in _DROP if name == sorted_by)):
        if _total(widths) <= width:
            break
        widths.pop(name, None)
    if _total(widths) - _LEAST["last"] + _LAST_LEAST > width:
        del widths["last"]
    spare = width - _total(widths)
    if spare < 0:
        _shrink(widths, -spare)
    else:
        _grow(widths, spare)
    return tuple(Column(name, _HEADING[name], widths[name], name in _RIGHT) for name in _ORDER if name in widths)


def _total(widths: dict[ColumnName, int]) -> int:
    return LEAD + sum(widths.values()) + len(widths) - 1


def _shrink(widths: dict[ColumnName, int], missing: int) -> None:
    for name, least in _SHRINK:
        if name in widths:
            taken = min(missing, widths[name] - least)
            widths[name] -= taken
            missing -= taken


def _grow(widths: dict[ColumnName, int], spare: int) -> None:
    parts = [(name, share, most) for name, share, most in _GROW if name in widths]
    shares = sum(share for _, share, _ in parts)
    left = spare
    for name, share, most in parts[:-1]:
        extra = min(spare * share // shares, most - widths[name])
        widths[name] += extra
        left -= extra
    widths[parts[-1][0]] += left
