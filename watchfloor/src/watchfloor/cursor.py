"""How far a numbered stream has been received, when parts of it come twice, out of order or not at all.

What a cursor passes is never asked for again. So it stands before a hole, until the hole is filled or until it
is certain that nothing comes to fill it (the numbers belong to what the sender no longer has).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Final

from watchfloor.protocol.events import Event
from watchfloor.protocol.frames import ALL, Watch
from watchfloor.protocol.frames import Cursor as Place
from watchfloor.protocol.model import Summary

MAX_AHEAD: Final = 50_000
"""Events of a session beyond a hole that are remembered. Forgetting them is harmless: they come again."""
MAX_ISLANDS: Final = 4096
"""Ranges beyond a hole that are remembered. Forgetting one is harmless: its numbers are received again."""


class Cursor:
    """A run of whole numbers; `through` is the last one up to which nothing that comes is missing."""

    __slots__ = ("_ends", "_starts", "through")

    def __init__(self, through: int = 0) -> None:
        self.through = through
        # Beyond the first hole: disjoint ranges, ascending, never touching one another.
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, number: int) -> None:
        """Count `number` as received."""
        if number <= self.through:
            return
        if number == self.through + 1:
            self.through = number
            if self._starts:
                self._absorb()
        else:
            self._add_beyond(number)

    @property
    def holed(self) -> bool:
        """Is something missing below what was received?"""
        return bool(self._ends)

    def settle(self) -> None:
        """Whatever holes there are below what was received: nothing comes to fill them."""
        if self._ends:
            self.skip_to(self._ends[-1])

    def forget_beyond(self) -> None:
        """Forget what was received beyond the first hole."""
        self._starts.clear()
        self._ends.clear()

    def skip_to(self, number: int) -> None:
        """What is not beyond `number` does not come, or is not wanted."""
        if number > self.through:
            self.through = number
            self._absorb()

    def _absorb(self) -> None:
        while self._starts and self._starts[0] <= self.through + 1:
            self.through = max(self.through, self._ends.pop(0))
            self._starts.pop(0)

    def _add_beyond(self, number: int) -> None:
        starts, ends = self._starts, self._ends
        at = bisect_right(starts, number)
        if at and number <= ends[at - 1]:
            return
        joins_left = at > 0 and ends[at - 1] == number - 1
        joins_right = at < len(starts) and starts[at] == number + 1
        if joins_left and joins_right:
            ends[at - 1] = ends.pop(at)
            starts.pop(at)
        elif joins_left:
            ends[at - 1] = number
        elif joins_right:
            starts[at] = number
        else:
            starts.insert(at, number)
            ends.insert(at, number)
            if len(starts) > MAX_ISLANDS:
                starts.pop()
                ends.pop()


def first_cursor(watch: Watch) -> Cursor | None:
    """Where a watch of everything begins; None where only the host knows."""
    if isinstance(watch.after, int):
        return Cursor(watch.after)
    return Cursor(0) if watch.after is None and watch.start == "start" else None


class SessionCursor:
    """A session that is followed by itself, and how far it was received.

    What is missing shows in its seq; what resumes it is the pos that belongs to the last seq before a hole.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._epoch: str | None = None
        self._seq = 0 if watch.start == "start" and watch.after is None else None
        self._pos: int | None = None
        self._ahead: dict[int, int | None] = {}
        if isinstance(watch.after, dict) and (cursor := watch.after.get(watch.session)) is not None:
            self._epoch, self._seq = cursor.epoch, cursor.seq

    def start_over(self, epoch: str | None = None) -> None:
        """The log is another one: whatever it holds was written after the watch began."""
        self._watch = Watch(session=self._watch.session, start="start")
        self._epoch, self._seq, self._pos, self._ahead = epoch, 0, None, {}

    def through(self, epoch: str) -> int:
        """Up to which number of this epoch nothing that would come is missing; 0 for none."""
        return self._seq or 0 if epoch == self._epoch else 0

    def by_seq(self) -> None:
        """The positions are those of another log: go on by epoch and `seq`, or with all that there is."""
        if self._epoch is None or self._seq is None:
            self.start_over()
            return
        place = Place(epoch=self._epoch, seq=self._seq)
        self._watch = Watch(session=self._watch.session, after={self._watch.session: place})
        self._pos = None
        self._ahead.clear()

    def count(self, epoch: str, events: Iterable[Event]) -> None:
        if self._epoch is not None and self._epoch != epoch:
            self.start_over(epoch)
        self._epoch = epoch
        for event in events:
            if event.seq is None:
                continue
            if self._seq is None:
                self._seq = event.seq - 1
            if event.seq > self._seq:
                self._ahead[event.seq] = event.pos
        while self._seq is not None and self._seq + 1 in self._ahead:
            self._seq += 1
            self._pos = self._ahead.pop(self._seq)
        if len(self._ahead) > MAX_AHEAD:
            self._ahead.clear()

    def settle(self) -> None:
        """Whatever holes there are below what was received: nothing comes to fill them."""
        if self._ahead:
            self._seq = max(self._ahead)
            self._pos = self._ahead[self._seq]
            self._ahead.clear()

    def forget_beyond(self) -> None:
        """Forget what was received beyond a hole: it comes again."""
        self._ahead.clear()

    def renewed(self) -> Watch:
        """The watch that goes on where this one stands."""
        return self._watch if self._pos is None else Watch(session=self._watch.session, after=self._pos)


class Places:
    """How far each of many sessions was received: what resumes them at a host whose positions are others now."""

    def __init__(self, before: Mapping[str, tuple[str, int]] | None = None) -> None:
        """Begin with how far they were received before: epoch and number."""
        self._of = {id: (epoch, Cursor(seq)) for id, (epoch, seq) in (before or {}).items()}
        self._holed: set[str] = set()

    def count(self, session: str, epoch: str, numbers: Iterable[int]) -> None:
        known = self._of.get(session)
        if known is None or known[0] != epoch:
            known = self._of[session] = (epoch, Cursor())
        cursor = known[1]
        for number in numbers:
            cursor.add(number)
        if cursor._ends:
            self._holed.add(session)

    def stand_at(self, summaries: Iterable[Summary]) -> None:
        """What these sessions hold by now is not wanted, unless something of them was received."""
        for summary in summaries:
            if summary.epoch and summary.id not in self._of:
                self._of[summary.id] = (summary.epoch, Cursor(summary.head))

    def settle(self) -> None:
        """Whatever holes there are below what was received: nothing comes to fill them."""
        for session in self._holed:
            if session in self._of:
                self._of[session][1].settle()
        self._holed.clear()

    def forget_beyond(self) -> None:
        """Forget what was received beyond a hole: it comes again."""
        for session in self._holed:
            if session in self._of:
                self._of[session][1].forget_beyond()
        self._holed.clear()

    def forget(self, session: str) -> None:
        """The session is gone."""
        self._of.pop(session, None)

    def through(self, session: str, epoch: str) -> int:
        """Up to which number of this epoch nothing that would come is missing; 0 for none."""
        known = self._of.get(session)
        return known[1].through if known is not None and known[0] == epoch else 0

    def start_over(self, session: str, epoch: str) -> None:
        """The session's log is another one, of which nothing was received."""
        self._of[session] = (epoch, Cursor())

    def watch(self) -> Watch:
        """The watch of all sessions that goes on where each of them stands."""
        places = {id: Place(epoch=epoch, seq=cursor.through) for id, (epoch, cursor) in self._of.items()}
        return Watch(session=ALL, after=places) if places else Watch(session=ALL, start="start")
