"""The events of one session that are kept for reading: a bounded ring in the order of their numbers.

Deltas have no number. They gather in one open entry for each item, below everything else; the whole item
takes its numbered place and the open entry goes. What could not be read has no number either: a remark on it
stands behind the newest event.
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
"""Characters of a streamed item that are kept until its whole comes; and of its pieces that came too early."""
ENTRY: Final = 640
"""What a numbered entry takes of memory besides its text, counted as so many characters: of short lines it is most."""
KEEP_ALL: Final = 4_000_000
"""Weight of all numbered entries of a session: ordinary logs stay far below, sixty whole diffs fill it."""
KEEP_OPEN_ALL: Final = 1_000_000
"""Characters of all items of a session that are streamed at once."""
UNREAD: Final = "unread"
"""The kind of an entry for what could not be read, and of one for an error that the source reports of the session."""
KEEP_ITEMS: Final = 128
"""Ids of whole items that are remembered, to tell pieces that come after them: they are late by a few frames."""
KEEP_KEYS: Final = 2_048
"""Keys of events that are remembered, to tell what a source tells again."""


@dataclass(slots=True)
class LogEntry:
    """One event as it is kept. `open`: streamed and not whole yet; `holed`: a part of its text has not come."""

    fact: EventFact
    text: Clean
    open: bool = False
    holed: bool = False


class _Stream:
    """The pieces of a streamed item. Offsets count code points as received, not as cleaned."""

    __slots__ = ("_late", "_late_size", "_parts", "_reached", "entry", "size")

    def __init__(self, fact: EventFact) -> None:
        self.entry = LogEntry(fact, Clean(""), open=True)
        self._parts: list[str] = []
        self._late: dict[int, EventFact] = {}
        self._late_size = 0
        self._reached = 0
        self.size = 0

    def add(self, delta: EventFact) -> bool:
        """Merge one piece; False where it brings nothing new."""
        offset, length = delta.offset or 0, delta.data.get("length", len(delta.text))
        if offset + length <= self._reached:
            return False
        if offset > self._reached:
            room = len(self._late) < KEEP_LATE and self._late_size + len(delta.text) <= KEEP_TEXT
            known = self._late.get(offset)
            if room and (known is None or len(known.text) < len(delta.text)):
                self._late[offset] = delta
                self._late_size += len(delta.text) - (len(known.text) if known is not None else 0)
        else:
            self._join(delta, offset, length)
            while self._late and (at := min(self._late)) <= self._reached:
                following = self._late.pop(at)
                self._late_size -= len(following.text)
                size = following.data.get("length", len(following.text))
                if at + size > self._reached:
                    self._join(following, at, size)
        self.entry.holed = bool(self._late)
        return True

    def _join(self, delta: EventFact, offset: int, length: int) -> None:
        overlap = self._reached - offset
        if offset == 0:  # everything so far, for a late joiner
            self._parts.clear()
            self.size = 0
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
        room = KEEP_TEXT - self.size
        if room > 0:
            self._parts.append(text[:room])
            self.size += min(len(text), room)

    def settle(self) -> None:
        """Put the pieces together for reading."""
        if len(self._parts) > 1 or len(self.entry.text) != self.size:
            joined = "".join(self._parts)
            self._parts = [joined]
            self.entry.text = Clean(joined)


class Log:
    """The ring. `first` is the absolute number of entry 0; it grows by one for each that is no longer kept."""

    __slots__ = (
        "_cut", "_items", "_keys", "_left", "_open", "_open_chars", "_sealed", "_seqs", "_total",
        "counted", "rewritten", "weight",
    )  # fmt: skip

    def __init__(self) -> None:
        self._sealed: list[LogEntry] = []
        self._seqs: list[int] = []
        self._open: dict[str, _Stream] = {}
        self._items: dict[str, None] = {}
        self._keys: dict[str, None] = {}
        self._total = 0
        self.weight = 0
        """Characters of the numbered entries, and `ENTRY` for each of them."""
        self.counted = 0
        """How many of them whoever keeps a budget for many logs has counted."""
        self._open_chars = 0
        self._left = 0
        self._cut = False
        self.rewritten = False
        """Something other than an addition at the end has happened; whoever reads it sets it back."""

    def __len__(self) -> int:
        return min(len(self._sealed), KEEP) + len(self._open)

    @property
    def first(self) -> int:
        return self._total - min(len(self._sealed), KEEP)

    @property
    def left_out(self) -> int:
        """Entries that were there and are no longer in memory."""
        return self._left + max(0, len(self._sealed) - KEEP)

    @property
    def end(self) -> int:
        """The absolute number after the last entry."""
        return self._total + len(self._open)

    @property
    def place(self) -> tuple[int, int]:
        """`first` and `end`."""
        total, sealed = self._total, len(self._sealed)
        return total - (sealed if sealed < KEEP else KEEP), total + len(self._open)

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
        self.weight = self._open_chars = self._left = 0
        self._cut = False
        self.rewritten = True

    def seen_key(self, key: str) -> bool:
        """Has an event with this identity of the source's own been added? Remembers it."""
        if key in self._keys:
            return True
        _remember(self._keys, key, KEEP_KEYS)
        return False

    def add(self, fact: EventFact, seq: int) -> None:
        """Add a numbered event that was not there before."""
        self._total += 1
        item = fact.item
        if item is not None:
            _remember(self._items, item, KEEP_ITEMS)
            if self._close(item):
                self.rewritten = True
        seqs = self._seqs
        if not seqs or seq >= seqs[-1]:
            if self._open:
                self.rewritten = True
            seqs.append(seq)
            self._sealed.append(LogEntry(fact, fact.text))
        else:
            self.rewritten = True
            if self._cut and seq < seqs[0]:
                self._left += 1
                return  # older than what is kept
            at = bisect_left(seqs, seq)
            seqs.insert(at, seq)
            self._sealed.insert(at, LogEntry(fact, fact.text))
        self.weight += len(fact.text) + ENTRY
        if len(seqs) > KEEP + SLACK:
            self._let_go(SLACK)
        if self.weight > KEEP_ALL:
            self.lighten(KEEP_ALL * 9 // 10)

    def note(self, reason: Clean, at: int, count: int, *, told: bool) -> None:
        """Add a remark on something that could not be read, or on an error (`told`) that the source reports; several
        in a row are one entry, since a source may send nothing else."""
        last = self._sealed[-1].fact if self._sealed else None
        if last is not None and last.kind == UNREAD and last.data["told"] is told:
            self._sealed[-1] = LogEntry(_remark(reason, at, last.data["count"] + count, told), reason)
            self.weight += len(reason) - len(last.text)
            self.rewritten = True
        else:
            self.add(_remark(reason, at, count, told), self._seqs[-1] if self._seqs else 0)

    def tell(self, text: Clean, at: int) -> None:
        """Add a remark of the console's own behind the newest event; `at`: milliseconds by the source's clock."""
        data = {"level": "warning"}
        fact = EventFact("notice", at, None, None, None, None, None, None, None, Clean("console"), text, data)
        self.add(fact, self._seqs[-1] if self._seqs else 0)

    def stream(self, delta: EventFact) -> None:
        """Merge a piece of a streamed item; nothing happens where its whole is there already."""
        item = delta.item
        if item is None or item in self._items:
            return
        stream = self._open.get(item)
        if stream is None:
            stream = self._open[item] = _Stream(delta)
            stream.add(delta)
            before = 0
        else:
            before = stream.size
            if stream.add(delta):
                self.rewritten = True
        self._open_chars += stream.size - before
        while len(self._open) > KEEP_OPEN or (self._open_chars > KEEP_OPEN_ALL and len(self._open) > 1):
            self._close(next(iter(self._open)))
            self.rewritten = True

    def _close(self, item: str) -> bool:
        stream = self._open.pop(item, None)
        if stream is None:
            return False
        self._open_chars -= stream.size
        return True

    def _let_go(self, entries: int) -> None:
        """Forget the oldest entries."""
        self.weight -= sum(len(entry.text) + ENTRY for entry in self._sealed[:entries])
        del self._seqs[:entries], self._sealed[:entries]
        self._left += entries
        self._cut = True

    def lighten(self, most: int) -> bool:
        """Forget the oldest entries until the weight of the others is within `most`, except for the newest; False where
        nothing was left to forget."""
        over, entries = self.weight - most, 0
        while over > 0 and entries < len(self._sealed) - 1:
            over -= len(self._sealed[entries].text) + ENTRY
            entries += 1
        if entries:
            self._let_go(entries)
        return entries > 0


def _remark(reason: Clean, at: int, count: int, told: bool) -> EventFact:
    data = {"count": count, "told": told}
    return EventFact(UNREAD, at, None, None, None, None, None, None, None, Clean(""), reason, data)


def _remember(seen: dict[str, None], key: str, most: int) -> None:
    if len(seen) >= most:
        del seen[next(iter(seen))]
    seen[key] = None
