"""The event log of a host: what numbers events, and what history and resuming read from.

An event gets a `seq` in its session and a `pos` in the whole log, both from 1 and without holes, but for those that
sessions leave in the latter when they are erased. Deltas are never logged. A log may forget its oldest events; it then
says which.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from watchfloor.protocol.events import Delta, Event

T = TypeVar("T")

KEEP: Final = 200_000
"""Events that a `MemoryLog` keeps by default."""
COMPACT_AT: Final = 1024


class Logged(NamedTuple):
    """An event with the session that it belongs to."""

    session: str
    event: Event


class Batch(NamedTuple):
    """New events of one session."""

    session: str
    events: Sequence[Event]


class State(NamedTuple):
    """What is kept of a session besides its events. Of the conversation the first `keep` messages stay as they are."""

    session: str
    record: str
    keep: int
    messages: Sequence[str]
    letters: Sequence[tuple[int, str]] = ()
    """Messages to the session that have ended, by the numbers of their refs."""


class EventLog(Protocol):
    """Stores the events of all sessions of a host."""

    @property
    def pos(self) -> int:
        """`pos` of the newest event, 0 for none."""
        ...

    def lost(self, session: str) -> int:
        """`pos` of the session's newest event that was forgotten, 0 for none."""
        ...

    def epoch(self, session: str) -> str:
        """Changes when a session's log was lost, recreated or rolled back."""
        ...

    def head(self, session: str) -> int:
        """`seq` of the session's newest event, 0 for none."""
        ...

    def first(self, session: str) -> int:
        """`seq` of the session's oldest event that is kept; head + 1 where none is."""
        ...

    def sessions(self) -> Sequence[str]:
        """The sessions of which events were stored, those of which all are forgotten included."""
        ...

    def append(self, session: str, events: Sequence[Event]) -> list[Event]:
        """Store events of one session, in order; returns them with `seq` and `pos`.

        Raises as `write` does.
        """
        ...

    @property
    def keeps_states(self) -> bool:
        """Does it outlive its host, so that sessions can come back?"""
        ...

    def state(self, session: str) -> tuple[str, list[str]] | None:
        """The record and the conversation that were kept of a session."""
        ...

    def letters(self, session: str) -> list[str]:
        """The messages to a session that have ended, as they were kept, the newest ones; oldest first."""
        ...

    def forget_state(self, session: str) -> None:
        """The session is not to come back. Its events stay."""
        ...

    def erase(self, session: str) -> None:
        """Forget all of the session, its events too. One that is given its id later has another epoch."""
        ...

    def write(self, batch: Sequence[Batch], states: Sequence[State] = ()) -> list[list[Event]]:
        """Store events of several sessions, each session once, in order, and states: all of it or nothing.

        Returns them with `seq` and `pos`. Raises ValueError for a delta, StorageError where nothing can be written;
        nothing is stored then.
        """
        ...

    def close(self) -> None:
        """Nothing is written any more: the host has ended."""
        ...

    def after(self, pos: int, limit: int, session: str | None = None) -> list[Logged]:
        """The next events after `pos` (exclusive), of all sessions or of one, in order of `pos`."""
        ...

    def read(
        self, session: str, *, after: int | None = None, before: int | None = None, limit: int = 500
    ) -> list[Event]:
        """A page of a session's events in order of `seq`, bounds exclusive.

        With `after` the first ones from there upwards, else the last ones before `before` (or the head).
        """
        ...


class MemoryLog:
    """An `EventLog` in memory that forgets the oldest events beyond `keep` (None: never).

    `new_epoch` makes the epoch of a session.
    """

    def __init__(self, new_epoch: Callable[[], str], keep: int | None = KEEP) -> None:
        if keep is not None and keep < 1:
            raise ValueError("a log keeps at least one event")
        self._new_epoch = new_epoch
        self._keep = keep
        self._all: Kept[Logged | None] = Kept()
        self._of: dict[str, Kept[Event]] = {}
        self._epochs: dict[str, str] = {}
        self._lost: dict[str, int] = {}

    @property
    def pos(self) -> int:
        return self._all.end

    def lost(self, session: str) -> int:
        return self._lost.get(session, 0)

    def epoch(self, session: str) -> str:
        epoch = self._epochs.get(session)
        if epoch is None:
            epoch = self._epochs[session] = self._new_epoch()
        return epoch

    def head(self, session: str) -> int:
        return self._own(session).end

    def first(self, session: str) -> int:
        return self._own(session).start + 1

    def sessions(self) -> Sequence[str]:
        return tuple(self._of)

    def append(self, session: str, events: Sequence[Event]) -> list[Event]:
        return self.write([Batch(session, events)])[0]

    @property
    def keeps_states(self) -> bool:
        return False

    def state(self, session: str) -> tuple[str, list[str]] | None:
        return None

    def letters(self, session: str) -> list[str]:
        return []

    def forget_state(self, session: str) -> None:
        return

    def erase(self, session: str) -> None:
        own = self._of.pop(session, None)
        self._epochs.pop(session, None)
        self._lost.pop(session, None)
        for event in own.slice(own.start, own.end) if own is not None else ():
            self._all.replace(_pos(event) - 1, None)

    def write(self, batch: Sequence[Batch], states: Sequence[State] = ()) -> list[list[Event]]:
        no_deltas(batch)
        return [self._append(session, events) for session, events in batch]

    def close(self) -> None:
        return

    def _append(self, session: str, events: Sequence[Event]) -> list[Event]:
        if not events:
            return []
        own = self._of.setdefault(session, Kept())
        stored = [
            event.model_copy(update={"seq": own.end + number, "pos": self.pos + number})
            for number, event in enumerate(events, 1)
        ]
        own.extend(stored)
        self._all.extend([Logged(session, event) for event in stored])
        while self._keep is not None and len(self._all) > self._keep:
            oldest = self._all.forget()
            if oldest is not None:
                self._lost[oldest.session] = _pos(self._of[oldest.session].forget())
        return stored

    def after(self, pos: int, limit: int, session: str | None = None) -> list[Logged]:
        if session is None:
            found: list[Logged] = []
            start = max(pos, self._all.start)
            while len(found) < limit and (some := self._all.slice(start, start + limit)):
                found += [logged for logged in some if logged is not None]
                start += len(some)
            return found[:limit]
        own = self._own(session)
        start = own.find(pos, _pos)
        return [Logged(session, event) for event in own.slice(start, start + limit)]

    def read(
        self, session: str, *, after: int | None = None, before: int | None = None, limit: int = 500
    ) -> list[Event]:
        own = self._own(session)
        end = own.end if before is None else min(own.end, before - 1)
        if after is None:
            return own.slice(end - limit, end)
        start = max(after, own.start)
        return own.slice(start, min(start + limit, end))

    def _own(self, session: str) -> Kept[Event]:
        return self._of.get(session, _NOTHING)


class Kept(Generic[T]):
    """A list that forgets from its front, and whose indices stay what they were."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self._dead = 0
        self.start = 0
        """Index of the first item that is kept."""

    def __len__(self) -> int:
        return len(self._items) - self._dead

    @property
    def end(self) -> int:
        """Index after the last item."""
        return self.start + len(self)

    def extend(self, items: Sequence[T]) -> None:
        self._items.extend(items)

    def forget(self) -> T:
        """Drop the first item and return it. The list shrinks now and then, not every time."""
        item = self._items[self._dead]
        self._dead += 1
        self.start += 1
        if self._dead > COMPACT_AT and self._dead * 2 > len(self._items):
            del self._items[: self._dead]
            self._dead = 0
        return item

    def replace(self, index: int, item: T) -> None:
        """Put another item in the place of one that is kept."""
        self._items[index + self._dead - self.start] = item

    def slice(self, start: int, end: int) -> list[T]:
        """The kept items with these indices."""
        base = self._dead - self.start
        return self._items[max(start, self.start) + base : max(end, self.start) + base]

    def find(self, value: int, key: Callable[[T], int]) -> int:
        """Index of the first item whose key is above `value`."""
        return bisect_right(self._items, value, lo=self._dead, key=key) - self._dead + self.start


_NOTHING: Final[Kept[Event]] = Kept()


def no_deltas(batch: Sequence[Batch]) -> None:
    """Raises ValueError where something is to be stored that never is."""
    if any(isinstance(event, Delta) for part in batch for event in part.events):
        raise ValueError("deltas are never logged")


def _pos(event: Event) -> int:
    return event.pos or 0
