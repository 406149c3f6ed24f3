"""Does the console hold every event of a session? An interval set of sequence numbers, and the word for it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from watchfloor.text import numeral
from watchfloor.words import Continuity

SETTLE_MS: Final = 5_000
"""How long the newest events may be missing before that counts as a gap: a summary may overtake its events."""


KEEP_GAPS: Final = 200
"""Gaps that are told one by one: a source may leave out every other event, and this is asked for at every key."""

KEEP_PAST: Final = 8
"""Epochs that are remembered as over."""


class Spans:
    """A set of positive integers, kept as sorted, disjoint, inclusive intervals."""

    __slots__ = ("_hi", "_lo")

    def __init__(self) -> None:
        self._lo: list[int] = []
        self._hi: list[int] = []

    def __contains__(self, n: int) -> bool:
        at = bisect_right(self._lo, n) - 1
        return at >= 0 and n <= self._hi[at]

    def __bool__(self) -> bool:
        return bool(self._lo)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spans) and self._lo == other._lo and self._hi == other._hi

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Spans({self.intervals()})"

    @property
    def low(self) -> int:
        """The smallest member, 0 where there is none."""
        return self._lo[0] if self._lo else 0

    @property
    def high(self) -> int:
        """The largest member, 0 where there is none."""
        return self._hi[-1] if self._hi else 0

    def intervals(self) -> tuple[tuple[int, int], ...]:
        return tuple(zip(self._lo, self._hi, strict=True))

    def add(self, n: int) -> bool:
        """Add one number; False where it was there already."""
        hi = self._hi
        if hi:
            last = hi[-1]
            if n == last + 1:  # what happens nearly always
                hi[-1] = n
                return True
            if n <= last and n in self:
                return False
        self.add_range(n, n)
        return True

    def add_range(self, first: int, last: int) -> None:
        """Add the numbers `first` through `last` (nothing where `last` is the smaller)."""
        if last < first:
            return
        # Neighbours that touch the new interval are swallowed by it.
        start = bisect_right(self._hi, first - 2)
        end = bisect_right(self._lo, last + 1)
        if start < end:
            first = min(first, self._lo[start])
            last = max(last, self._hi[end - 1])
        self._lo[start:end] = [first]
        self._hi[start:end] = [last]

    def missing(self, first: int, last: int) -> tuple[tuple[int, int], ...]:
        """The intervals of `first` through `last` that are not in the set."""
        return self.first_missing(first, last, len(self._lo) + 1)[0]

    def first_missing(self, first: int, last: int, most: int) -> tuple[tuple[tuple[int, int], ...], int]:
        """As `missing`, but `most` of them, and how many more there are."""
        gaps: list[tuple[int, int]] = []
        at = first
        i, end = bisect_left(self._hi, first), bisect_right(self._lo, last)
        while i < end and len(gaps) < most:
            if self._lo[i] > at:
                gaps.append((at, self._lo[i] - 1))
            at = self._hi[i] + 1
            i += 1
        # Intervals never touch, so that each one that is left has a gap before it.
        more = max(0, end - i)
        if i < end:
            at = self._hi[end - 1] + 1
        if at <= last:
            if len(gaps) < most:
                gaps.append((at, last))
            else:
                more += 1
        return tuple(gaps), more


@dataclass(slots=True)
class Track:
    """What the console holds of one session's numbering, within one epoch."""

    epoch: str = ""
    past: list[str] = field(default_factory=list)
    """Epochs that ended: what still arrives of them is dropped."""
    held: Spans = field(default_factory=Spans)
    kept: Spans = field(default_factory=Spans)
    """Received in an earlier life of the console, and on its disk."""
    gone: Spans = field(default_factory=Spans)
    """Said to be lost for good by the source."""
    head: int = 0
    """The newest number that the source has named."""
    floor: int = 0
    """Numbers up to here were not asked for (followed from the head on)."""
    floor_open: bool = False
    """The floor is wherever the first event will be."""
    followed: bool = False
    ordered: bool = True
    """The source numbers its events; False: the connector does, in the order of arrival."""
    broken: bool = False
    """Contact was lost while nothing tells what was missed."""
    named: int = 0
    """The newest number that a summary has named."""
    behind_since: int | None = None
    """Local time at which the head was first seen to be ahead of what is held."""

    @property
    def received(self) -> Spans:
        """All that the console has, in memory or on its disk."""
        if not self.kept:
            return self.held
        both = Spans()
        for first, last in (*self.kept.intervals(), *self.held.intervals()):
            both.add_range(first, last)
        return both

    def begin(self, epoch: str) -> None:
        """Start anew with another epoch of the same session."""
        if self.epoch:
            self.past.append(self.epoch)
        self.past = [past for past in self.past if past != epoch][-KEEP_PAST:]
        self.epoch = epoch
        self.held, self.kept, self.gone = Spans(), Spans(), Spans()
        self.head = self.floor = self.named = 0
        self.floor_open = self.broken = False
        self.behind_since = None

    def note_head(self, head: int, now: int) -> None:
        """The source has named its newest number."""
        self.head = max(self.head, head)
        self.watch_behind(now)

    def watch_behind(self, now: int) -> None:
        """Remember since when the newest events are missing."""
        if self.head <= max(self.held.high, self.kept.high, self.gone.high, self.floor):
            self.behind_since = None
        elif self.behind_since is None:
            self.behind_since = now

    def late(self, now: int) -> bool:
        """Are the newest events missing for longer than a summary may be ahead of them?"""
        return self.behind_since is not None and now - self.behind_since >= SETTLE_MS

    def state(self, now: int) -> ContinuityState:
        """The word and the numbers for it at the local time `now`."""
        received = self.received
        if not self.followed and not received:
            return ContinuityState(Continuity.NOT_FOLLOWED)
        low = received.low
        floor = max(self.floor, low - 1) if self.floor_open and low else self.floor
        top = max(received.high, self.gone.high)
        last = max(top, self.head) if self.late(now) else top
        behind = max(0, self.head - max(last, floor))
        # A hole before everything that is kept is retention; one between two things is a hole for good.
        prefix = self.gone.intervals()[0][1] if self.gone.low == 1 else 0
        if prefix >= (low or prefix + 1):
            prefix = 0
        gaps, more = received.first_missing(max(floor, prefix) + 1, last, KEEP_GAPS)
        lost = tuple(g for g in gaps if g[0] in self.gone and g[1] in self.gone)
        if gaps:
            return ContinuityState(Continuity.GAP, gaps, lost, behind, more)
        if self.broken:
            return ContinuityState(Continuity.GAP_UNKNOWN, behind=behind)
        if prefix:
            return ContinuityState(Continuity.BEYOND_RETENTION, ((1, prefix),), ((1, prefix),), behind)
        if floor:
            return ContinuityState(Continuity.TAIL_ONLY, ((1, floor),), behind=behind)
        return ContinuityState(Continuity.WHOLE if self.ordered else Continuity.ARRIVAL_ORDER, behind=behind)


class ContinuityState(NamedTuple):
    """The word, what exactly is missing (the first of it, and how many gaps `more`), which of it for good, and how many
    of the newest are still on their way."""

    word: Continuity
    missing: tuple[tuple[int, int], ...] = ()
    lost: tuple[tuple[int, int], ...] = ()
    behind: int = 0
    more: int = 0

    def __str__(self) -> str:
        match self.word:
            case Continuity.GAP:
                text = f"gap {spell(self.missing, more=self.more)}"
                if self.lost == self.missing:
                    text += ", lost for good"
            case Continuity.BEYOND_RETENTION:
                text = f"beyond retention: {spell(self.missing)} no longer kept"
            case Continuity.TAIL_ONLY:
                text = f"tail only, from {_digits(self.missing[0][1] + 1)}"
            case word:
                text = word.value
        behind = self.behind if self.word is not Continuity.NOT_FOLLOWED else 0
        return f"{text}, {_digits(behind)} behind" if behind else text


def _digits(n: int) -> str:
    return numeral(n).replace(",", "")


def spell(gaps: Iterable[tuple[int, int]], most: int = 3, more: int = 0) -> str:
    """Intervals as an operator reads them: "101-180, 200 and 4 more"; `more` are left out already."""
    all_gaps = list(gaps)
    words = [f"{_digits(first)}-{_digits(last)}" if last > first else _digits(first) for first, last in all_gaps[:most]]
    rest = max(0, len(all_gaps) - most) + more
    return ", ".join(words) + (f" and {rest} more" if rest > 0 else "")
