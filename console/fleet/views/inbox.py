"""The inbox as rows of a listing, and what is said of the one under the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from console.fleet.decisions.inbox import Inbox, InboxRow, Shown
from console.fleet.decisions.risk.model import RiskLevel
from console.fleet.facts import RequestKey
from console.fleet.views.wording import Segment, Tone
from watchfloor.text import NOTHING, Clean

_TONES: Final[Mapping[RiskLevel, Tone]] = {
    RiskLevel.NONE: "plain",
    RiskLevel.MEDIUM: "attention",
    RiskLevel.HIGH: "failed",
}
_MARKS: Final[Mapping[RiskLevel, str]] = {RiskLevel.NONE: "", RiskLevel.MEDIUM: "! ", RiskLevel.HIGH: "!! "}
"""Beside word and colour, so that any of them can be missing."""


class InboxRows:
    """What a listing reads: mark, risk, waiting time, who, what, deadline, source.

    `painted` holds what each line showed when it was last drawn: that is what a key on it is about.
    """

    def __init__(self, inbox: Inbox, now: int, marked: str) -> None:
        self._inbox = inbox
        self._now = now
        self._marked = marked
        self.painted: dict[RequestKey, Shown] = {}

    def __len__(self) -> int:
        return len(self._inbox)

    def key(self, place: int) -> RequestKey:
        return self._inbox.key(place)

    def row(self, place: int) -> Sequence[Segment]:
        row = self._inbox.row(place, self._now)
        self.painted[row.key] = row.shown
        if not row.open:
            ended = Clean(f"{row.ending}: {row.line}")
            return (
                _mark(row, self._marked),
                (NOTHING, "quiet"),
                (NOTHING, "quiet"),
                (_who(row), "quiet"),
                (ended, "quiet"),
                (NOTHING, "quiet"),
                (row.source, "quiet"),
            )
        return (
            _mark(row, self._marked),
            _risk(row),
            (row.waiting, "plain"),
            (_who(row), "plain"),
            (_asks(row), "quiet" if row.sent else "plain"),
            (row.deadline, "attention" if _soon(row) else "quiet"),
            (row.source, "quiet"),
        )


_SOON_MS: Final = 60_000


def _soon(row: InboxRow) -> bool:
    return row.left_ms is not None and row.left_ms < _SOON_MS


def _mark(row: InboxRow, marked: str) -> Segment:
    return Clean(marked if row.marked else ""), "attention"


def _risk(row: InboxRow) -> Segment:
    if row.level is RiskLevel.MEDIUM and not row.kinds:
        return Clean("? unknown"), "attention"
    word = row.level.name.lower() if row.level else ""
    return Clean(f"{_MARKS[row.level]}{word}"), _TONES[row.level]


def _who(row: InboxRow) -> Clean:
    # The agent itself first: where there is no room it is what lies above that is cut off.
    above = " < ".join(reversed(row.path))
    return Clean(f"{row.name} < {above}") if above else row.name


def _asks(row: InboxRow) -> Clean:
    said = [f"({row.sent}) " if row.sent else "", f"({row.alike} alike) " if row.alike > 1 else "", row.line]
    return Clean("".join(said))


def told(inbox: Inbox, now: int) -> tuple[Segment, ...]:
    """Of the request under the cursor: which of how many it is, its risks, what is not known, and how it ends."""
    place = inbox.place()
    if place is None:
        count = len(inbox)
        waits = "nothing waits" if not count else f"{count:,} waiting, none of them selected"
        return ((Clean(waits), "quiet"),)
    n, m = place
    row = inbox.row(n - 1, now)
    said: list[Segment] = [(Clean(f"{n:,} of {m:,}"), "plain"), (row.name, "plain")]
    if not row.open:
        return (*said, (row.ending, "attention"))
    if row.kinds:
        said.append((row.risk, _TONES[row.level]))
    if row.unknown:
        said.append((row.unknown, "attention"))
    if row.presence:
        said.append((row.presence, "attention" if row.taken else "quiet"))
    if row.deadline:
        said.append((row.deadline, "attention" if _soon(row) else "quiet"))
    return tuple(said)


def counts(inbox: Inbox) -> tuple[Segment, ...]:
    """How many wait, how many of them are shown, and how many are marked."""
    total, shown = inbox.total, len(inbox)
    said: list[Segment] = [(Clean(f"{total:,} waiting" if total else "nothing waits"), "plain")]
    if inbox.filtered:
        said.append((Clean(f"{shown:,} shown"), "attention"))
    if marked := len(inbox.marked()):
        said.append((Clean(f"{marked:,} marked"), "attention"))
    return tuple(said)
