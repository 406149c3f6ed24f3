"""A session as it is read: its events as blocks, what belongs together in one of them.

A tool call, what it puts out, what it changes and how it ends are one block at the place of the call. A block that has
not changed is the same object as before, so that whoever draws it need not lay it out again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from console.fleet.facts import NO_TIME, EventFact, SessionKey
from console.fleet.log import LogEntry
from console.fleet.state import Session
from console.fleet.store import Store
from console.fleet.transcript.blocks import Scenery, kind_of, one_block, tool_block
from console.fleet.transcript.prose import BodyLine
from console.fleet.views.wording import Glyphs, Tone
from watchfloor.text import NOTHING, Clean

KEEP_OLDER: Final = 20_000
"""Entries of the past that are kept of the session that is read."""
KEEP_OLDER_TEXT: Final = 16_000_000
"""Characters of them."""

_BETWEEN: Final = 1_000
"""Entries that the log may let go of before the past is put together anew."""

_CARD: Final = frozenset({"tool_call", "tool_output", "tool_result", "diff"})


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """What is read as one. `title` and `tail` fill its first line, `body` those below; `most`: lines of the body that
    are shown while it is closed, None: all. `source`: its text as it was written. `request`: the id of the request that
    it is about. `at`: when it began, in milliseconds by the source's clock. Two blocks are equal only where they are
    the same one."""

    key: Hashable
    time: Clean
    kind: Clean
    title: Clean
    tail: Clean
    tone: Tone
    body: tuple[BodyLine, ...] = ()
    most: int | None = None
    source: Clean = NOTHING
    request: str | None = None
    attempt: int | None = None
    at: int = NO_TIME


@dataclass(slots=True)
class _Group:
    """Entries of one block, in their order."""

    key: Hashable
    entries: list[LogEntry]

    @property
    def attempt(self) -> int | None:
        return self.entries[0].fact.attempt


class _Past:
    """What came by pages: it changes only where a call that began there goes on."""

    def __init__(self, groups: list[_Group]) -> None:
        self.groups = groups
        self.cards = {group.key: group for group in groups if kind_of(group.entries[0]) in _CARD}
        self.blocks: list[Block] | None = None
        self.attempt: int | None = None
        self.attempts = _attempts(groups)


class Transcript:
    """The blocks of one session. Set `now` before `take_up`, which has to follow every change of the log.

    The newest come from the session's log; what is older, and was asked for by pages, is kept here.
    """

    def __init__(self, store: Store, key: SessionKey, glyphs: Glyphs, tz: tzinfo | None = None) -> None:
        self._store = store
        self.key: Final = key
        self._scenery = Scenery(store, key, glyphs, tz)
        self._gone = Session(key)
        self._epoch = self._session.epoch
        self._older: list[LogEntry] = []
        self._older_text = 0
        self._past: _Past | None = None
        self._between: list[LogEntry] = []
        """What the log has let go of since the last page came."""
        self._last: Sequence[LogEntry] = ()
        self._made_before: dict[Hashable, tuple[Hashable, Block]] = {}
        self._made: dict[Hashable, tuple[Hashable, Block]] = {}
        self._blocks: list[Block] = []
        self.attempt: int | None = None
        """The only attempt that is shown; None: all of them."""
        self.attempts: list[int] = []
        """Those of which something is shown, or would be."""
        self.more_before: bool | None = None
        """Does the source have older events? None: nobody has asked."""
        self.now = 0
        """Local time in milliseconds."""

    @property
    def _session(self) -> Session:
        return self._store.sessions.get(self.key, self._gone)

    def __len__(self) -> int:
        return len(self._blocks)

    def block(self, place: int, /) -> Block:
        """A block of those shown, the oldest first."""
        return self._blocks[place]

    def place(self, key: Hashable) -> int | None:
        """Where the block of this key stands."""
        return next((at for at, block in enumerate(self._blocks) if block.key == key), None)

    # --- what is older -------------------------------------------------------------------

    @property
    def oldest(self) -> int | None:
        """The number of the oldest event that is here; None where there is none."""
        if self._older:
            return self._older[0].fact.seq
        return next((fact.seq for fact in self._facts() if fact.seq is not None), None)

    def _facts(self) -> Iterable[EventFact]:
        log = self._session.log
        return (log.entry(at).fact for at in range(len(log)))

    @property
    def earlier(self) -> int:
        """Events before the oldest that is here, by the source's own count."""
        oldest = self.oldest
        return oldest - 1 if oldest is not None else self._session.head

    @property
    def full(self) -> bool:
        """Is there no room for anything older?"""
        return len(self._older) >= KEEP_OLDER or self._older_text >= KEEP_OLDER_TEXT

    def prepend(self, epoch: str, facts: Sequence[EventFact], *, more: bool) -> int:
        """Take up a page of what is older; `more`: there is still older. Returns how many entries are new."""
        if epoch != self._session.epoch:
            return 0
        self.more_before = more
        oldest = self.oldest
        new = [
            LogEntry(fact, fact.text)
            for fact in sorted((fact for fact in facts if fact.seq is not None), key=lambda fact: fact.seq or 0)
            if oldest is None or (fact.seq or 0) < oldest
        ]
        self._join()
        self._older[:0] = new
        self._older_text += sum(len(entry.text) for entry in new)
        self._past = None
        return len(new)

    def entries(self) -> list[LogEntry]:
        """All that is here, the oldest first."""
        return [*self._older, *self._between, *self._session.log.entries()]

    # --- blocks --------------------------------------------------------------------------

    def take_up(self) -> None:
        """Make blocks of what is there now."""
        session = self._session
        entries = session.log.entries()
        if session.epoch != self._epoch:
            self._epoch = session.epoch
            self._forget()
        self._carry(entries)
        self._scenery.now = self.now
        if self._past is None:
            self._past = _Past(_grouped(self._older, {}))
        past = self._past
        cards = dict(past.cards)
        lengths = {key: len(group.entries) for key, group in cards.items()}
        groups = _grouped([*self._between, *entries], cards)
        if past.attempt != self.attempt or past.blocks is None:
            made_before: dict[Hashable, tuple[Hashable, Block]] = {}
            past.attempt, past.blocks = self.attempt, self._blocks_of(past.groups, made_before)
            self._made_before = made_before
        grown = [key for key, length in lengths.items() if len(cards[key].entries) > length]
        # A call may stand in the past and its output in the log.
        before = self._regrown(past, grown)
        made: dict[Hashable, tuple[Hashable, Block]] = {}
        self._blocks = [*before, *self._blocks_of(groups, made)]
        for key in grown:
            del cards[key].entries[lengths[key] :]
        self._made = made
        self.attempts = sorted(past.attempts | _attempts(groups))

    def _blocks_of(self, groups: Iterable[_Group], made: dict[Hashable, tuple[Hashable, Block]]) -> list[Block]:
        blocks: list[Block] = []
        for group in groups:
            if self.attempt is not None and group.attempt not in (None, self.attempt):
                continue
            stamp = self._stamp(group)
            known = self._made.get(group.key) or self._made_before.get(group.key)
            block = known[1] if known is not None and known[0] == stamp else self._make(group)
            made[group.key] = stamp, block
            blocks.append(block)
        return blocks

    def _regrown(self, past: _Past, grown: Sequence[Hashable]) -> Sequence[Block]:
        blocks = past.blocks or []
        if not grown:
            return blocks
        anew = {key: self._make(past.cards[key]) for key in grown}
        return [anew.get(block.key, block) for block in blocks]

    def _carry(self, entries: Sequence[LogEntry]) -> None:
        """Where older entries are here, those that the log lets go of join them, so that no hole comes between."""
        last, self._last = self._last, entries
        first = next((entry.fact.seq for entry in entries if entry.fact.seq is not None), None)
        newest = self._between[-1].fact.seq if self._between else self._older[-1].fact.seq if self._older else None
        if newest is None or first is None or newest + 1 >= first:
            return
        dropped = [entry for entry in last if entry.fact.seq is not None and newest < entry.fact.seq < first]
        if not dropped and self._session.log.left_out:
            self._forget()
            return
        self._between += dropped
        if len(self._between) > _BETWEEN:
            self._join()

    def _join(self) -> None:
        """What the log has let go of is past as well. Not with each event: all of the past is gone through for it."""
        self._older += self._between
        self._older_text += sum(len(entry.text) for entry in self._between)
        self._between = []
        self._past = None
        over = len(self._older) - KEEP_OLDER - _BETWEEN
        if over > 0 or self._older_text > 2 * KEEP_OLDER_TEXT:
            # The source has it still.
            going = max(over, len(self._older) // 2 if self._older_text > 2 * KEEP_OLDER_TEXT else 0)
            self._older_text -= sum(len(entry.text) for entry in self._older[:going])
            del self._older[:going]
            self.more_before = True

    def _forget(self) -> None:
        self._older, self._older_text, self._past, self.more_before = [], 0, None, None
        self._between, self._made_before = [], {}

    def _stamp(self, group: _Group) -> Hashable:
        """What the block is made from: while this is the same, so is the block."""
        first, last = group.entries[0], group.entries[-1]
        of = len(group.entries), id(first), id(last), len(last.text), last.holed
        return (*of, self._scenery.changes_with(first))

    def _make(self, group: _Group) -> Block:
        first = group.entries[0]
        kind = kind_of(first)
        drawn = tool_block(group.entries, self._scenery) if kind in _CARD else one_block(first, self._scenery)
        return Block(group.key, attempt=first.fact.attempt, at=first.fact.at, **drawn)


def _attempts(groups: Iterable[_Group]) -> frozenset[int]:
    return frozenset(group.attempt for group in groups if group.attempt is not None)


def _grouped(entries: Iterable[LogEntry], cards: dict[Hashable, _Group]) -> list[_Group]:
    """What belongs together, at the place where it begins. `cards`: calls that began before; added to."""
    groups: list[_Group] = []
    for entry in entries:
        fact = entry.fact
        kind = kind_of(entry)
        call = fact.data.get("call") if kind in _CARD else None
        if call is None:
            groups.append(_Group((kind, fact.seq) if fact.seq is not None else (kind, fact.item, fact.at), [entry]))
            continue
        # The same call may be made anew by a later attempt.
        key = ("call", fact.attempt, call)
        group = cards.get(key)
        if group is None:
            group = cards[key] = _Group(key, [])
            groups.append(group)
        group.entries.append(entry)
    return groups
