"""The events of one session that are kept for reading: a bounded ring in the order of their numbers.

Deltas have no number. They gather in one open entry for each item, below everything else; the whole item
takes its numbered place and the open entry goes.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

from console.fleet.facts import EventFact
from watchfloor.text import Clean

KEEP: Final = 1_000
"""Numbered entries that a session shows."""
SLACK: Final = 200
"""Entries beyond `KEEP` before the list is cut: cutting one by one would move the whole list each time."""
KEEP_OPEN: Final = 64
"""Streamed items that may be open at once."""
KEEP_LATE: Final = 256
"""Pieces of an item that are kept while an earlier one is missing."""
KEEP_TEXT: Final = 65_536
"""Characters of a streamed item that are kept until its whole comes."""
KEEP_IDS: Final = 2_048
"""Ids of items and keys of events that are remembered, to tell what comes twice."""


@dataclass(slots=True)
class LogEntry:
    """One event as it is kept. `open`: streamed and not whole yet; `holed`: a part of its text has not come."""

    fact: EventFact
    text: Clean
    open: bool = False
    holed: bool = False


class _Stream:
    """The pieces of a streamed item. Offsets count code points as received, not as cleaned."""

    __slots__ = ("_late", "_parts", "_reached", "_size", "entry")

    def __init__(self, fact: EventFact) -> None:
        self.entry = LogEntry(fact, Clean(""), open=True)
        self._parts: list[str] = []
        self._late: dict[int, EventFact] = {}
        self._reached = 0
        self._size = 0

    def add(self, delta: EventFact) -> bool:
        """Merge one piece; False where it brings nothing new."""
        offset, length = delta.offset or 0, delta.data.get("length", len(delta.text))
        if offset + length <= self._reached:
            return False
        if offset > self._reached:
            if len(self._late) < KEEP_LATE:
                self._late[offset] = delta
        else:
            self._join(delta, offset, length)
            while self._late and (following := self._late.pop(self._reached, None)) is not None:
                self._join(following, self._reached, following.data.get("length", len(following.text)))
            self._late = {at: late for at, late in self._late.items() if at > self._reached}
        self.entry.holed = bool(self._late)
        return True

    def _join(self, delta: EventFact, offset: int, length: int) -> None:
        overlap = self._reached - offset
        if offset == 0:  # everything so far, for a late joiner
            self._parts.clear()
            self._size = 0
            self._take(delta.text)
        elif not overlap:
            self._take(delta.text)
        elif len(delta.text) == length:
            self._take(delta.text[overlap:])
        else:
            # Cleaning has moved the places within this piece; its end is worth more than a word shown twice.
            self._take(delta.text)
        self._reached = offset + length

    def _take(self, text: str) -> None:
        room = KEEP_TEXT - self._size
        if room > 0:
            self._parts.append(text[:room])
            self._size += min(len(text), room)

    def settle(self) -> None:
        """Put the pieces together for reading."""
        if len(self._parts) > 1 or len(self.entry.text) != self._size:
            joined = "".join(self._parts)
            self._parts = [joined]
            self.entry.text = Clean(joined)


class Log:
    """The ring. `first` is the absolute number of entry 0; it grows by one for each that is no longer kept."""

    __slots__ = ("_cut", "_items", "_keys", "_open", "_sealed", "_seqs", "_total", "rewritten")

    def __init__(self) -> None:
        self._sealed: list[LogEntry] = []
        self._seqs: list[int] = []
        self._open: dict[str, _Stream] = {}
        self._items: dict[str, None] = {}
        self._keys: dict[str, None] = {}
        self._total = 0
        self._cut = False
        self.rewritten = False
        """Something other than an addition at the end has happened; whoever reads it sets it back."""

    def __len__(self) -> int:
        return min(len(self._sealed), KEEP) + len(self._open)

    @property
    def first(self) -> int:
        return self._total - min(len(self._sealed), KEEP)

    @property
    def end(self) -> int:
        """The absolute number after the last entry."""
        return self._total + len(self._open)

    def entry(self, i: int) -> LogEntry:
        """Entry `i` of those kept, oldest first. Raises IndexError."""
        sealed = len(self._sealed)
        shown = min(sealed, KEEP)
        if not 0 <= i < len(self):
            raise IndexError(i)
        if i < shown:
            return self._sealed[sealed - shown + i]
        stream = list(self._open.values())[i - shown]
        stream.settle()
        return stream.entry

    def entries(self) -> list[LogEntry]:
        return [self.entry(i) for i in range(len(self))]

    def clear(self) -> None:
        """Forget everything; the absolute numbers go on."""
        self._total += len(self._open)
        self._sealed.clear()
        self._seqs.clear()
        self._open.clear()
        self._items.clear()
        self._keys.clear()
        self._cut = False
        self.rewritten = True

    def seen_key(self, key: str) -> bool:
        """Has an event with this identity of the source's own been added? Remembers it."""
        if key in self._keys:
            return True
        _remember(self._keys, key)
        return False

    def add(self, fact: EventFact, seq: int) -> None:
        """Add a numbered event that was not there before."""
        self._total += 1
        item = fact.item
        if item is not None:
            _remember(self._items, item)
            if self._open.pop(item, None) is not None:
                self.rewritten = True
        seqs = self._seqs
        if not seqs or seq > seqs[-1]:
            if self._open:
                self.rewritten = True
            seqs.append(seq)
            self._sealed.append(LogEntry(fact, fact.text))
        else:
            self.rewritten = True
            if self._cut and seq < seqs[0]:
                return  # older than what is kept
            at = bisect_left(seqs, seq)
            seqs.insert(at, seq)
            self._sealed.insert(at, LogEntry(fact, fact.text))
        if len(seqs) > KEEP + SLACK:
            del seqs[:SLACK], self._sealed[:SLACK]
            self._cut = True

    def stream(self, delta: EventFact) -> None:
        """Merge a piece of a streamed item; nothing happens where its whole is there already."""
        item = delta.item
        if item is None or item in self._items:
            return
        stream = self._open.get(item)
        if stream is None:
            if len(self._open) >= KEEP_OPEN:
                del self._open[next(iter(self._open))]
                self.rewritten = True
            stream = self._open[item] = _Stream(delta)
            stream.add(delta)
        elif stream.add(delta):
            self.rewritten = True


def _remember(seen: dict[str, None], key: str) -> None:
    if len(seen) >= KEEP_IDS:
        del seen[next(iter(seen))]
    seen[key] = None
