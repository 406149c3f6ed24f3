"""The journal as the console has it: what is handed over to the process that owns the file, and what is asked of it.

Nothing here waits for the disk. What is not known to be in the file is remembered, up to a bound; beyond it, it is
counted as lost. Where the writer ends it is started again and given what it may not have written. The console goes on
in any case and says so (`says`).

Importing this, and making a journal, loads neither the database nor the models.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from console.fleet.continuity import Spans
from console.journal.records import (
    PARTS,
    TRAIL,
    Asked,
    Found,
    Gone,
    Missed,
    Place,
    Retention,
    Said,
    Stored,
    TrailRow,
)
from watchfloor.connector import Streamed

if TYPE_CHECKING:
    from console.connectors.supervisor import Item
    from console.fleet.absence import Mark
    from console.journal.line import Line
    from console.journal.wire import Message
    from watchfloor.connector import Clock

_log = logging.getLogger(__name__)

JOURNAL: Final = "journal.db"
"""Its file in the folder where the console keeps what it writes."""
MOST_BYTES: Final = 64 * 1024**2
"""Bytes that wait in memory at most."""
ENOUGH_BYTES: Final = 8 * 1024**2
"""Bytes that wait before sources are read more slowly."""
BEHIND_ROWS: Final = 2_000
"""Events that wait before it is said."""
RETRY_S: Final = 1.0
"""Before the writer is started once more, unless it has worked since it was."""
MOST_ENDS: Final = 3
"""Lives in which the writer has done nothing before it ended: what it is given first is then left out."""
CLOSE_S: Final = 5.0
"""How long the end of the console waits for what is not written yet."""
ANSWER_S: Final = 3.0
"""How long a question to the file may take before it counts as unanswered."""
OPENING_S: Final = 15.0
"""The same while the writer may still be starting."""
_KEPT: Final = frozenset({"events", "page", "gap", "request"})
_TAGS: Final = {kind: tag for tag, kind in enumerate(PARTS)}


class _Block(NamedTuple):
    """What was handed over at once."""

    number: int
    rows: int
    size: int
    data: bytes


class Journal:
    """What is kept of all sources of one console. To be used on one event loop.

    `path` is the file, `clock` gives milliseconds since 1970 UTC.
    """

    def __init__(self, path: Path, *, clock: Clock, retention: Retention | None = None) -> None:
        self.path: Final = path
        self._clock = clock
        self._retention = retention or Retention()
        self._line: Line | None = None
        self._again: asyncio.TimerHandle | None = None
        self._begun = self._closing = False
        self._over = asyncio.Event()
        self._numbers = count(1)
        self._queue: deque[_Block] = deque()
        """What is not known to be in the file."""
        self._rows = 0
        self._bytes = 0
        self._questions: dict[int, tuple[bytes, asyncio.Future[Any]]] = {}
        self._secrets: tuple[bytes, ...] = ()
        self._opened = False
        self._ends = 0
        self._missed: dict[tuple[str, str, str], Spans] = {}
        self._lost_there = 0
        self.lost = 0
        """Events that came and are not in the file, for there was no room for them to wait."""
        self.fault: str | None = None
        """Why nothing can be written now, in one line; None while all is well."""
        self.notice = ""
        """What has become of a file that could not be used, in one line; "" where there was none."""

    def start(self) -> None:
        """Start the writer, and give it what is handed over, until `close`. Must be called on the event loop."""
        if not self._begun and not self._closing:
            self._begun = True
            self._begin()

    @property
    def writer(self) -> int | None:
        """The process that writes; None while there is none."""
        return self._line.pid if self._line is not None else None

    # --- what is handed over ---------------------------------------------------------------

    def take(self, source: str, items: Sequence[Item]) -> None:
        """Keep what is to be kept of what arrived from a source."""
        from console.journal.handing import handed

        kept: list[Said | Gone | Asked] = []
        for item in items:
            if isinstance(item, Streamed):
                session, epoch, _, numbers, _, keys, *_ = item.stream
                if numbers:
                    kept.append(Said(session, epoch, numbers, keys, item.raw or b""))
                continue
            frame = getattr(item, "frame", None)
            if frame is None or frame.type not in _KEPT:
                continue
            try:
                what = handed(frame, getattr(item, "raw", None))
            except Exception:
                _log.exception("the journal could not take what arrived")
                self.lost += 1
                continue
            if what is not None:
                kept.append(what)
        if kept:
            self._put(source, kept)

    def trail(self, row: TrailRow) -> None:
        """Keep how far a command has come."""
        self._put(row.source, [row])

    def hide(self, secrets: Iterable[str]) -> None:
        """From now on these texts never reach the file, whoever repeats them.

        Those under 4 characters are ignored: they would hide ordinary words.
        """
        from console.journal.packing import spelt
        from console.journal.wire import framed

        new = [form for secret in secrets if len(secret) >= 4 for form in spelt(secret)]
        self._secrets = tuple(dict.fromkeys((*self._secrets, *new)))
        if self._line is not None and new:
            self._line.send(framed(("hide", tuple(new))))

    def see(self, source: str, left: Mapping[str, Mark]) -> None:
        """Keep how sessions of the source are while somebody looks."""
        from console.journal.marks import marked
        from console.journal.wire import framed

        if self._line is not None and not self._closing:
            told = {name: (mark.at, marked(mark)) for name, mark in left.items()}
            self._line.send(framed(("ask", next(self._numbers), "see", (source, told))))

    def _put(self, source: str, entries: Sequence[Said | Gone | Asked | TrailRow]) -> None:
        from console.journal.wire import framed

        if self._closing:
            return
        parts: list[tuple[int, tuple[Any, ...]]] = []
        rows = size = 0
        for entry in entries:
            weight = _size(entry)
            if self._bytes + size + weight > MOST_BYTES:
                self._note_lost(source, entry)
                continue
            parts.append((_TAGS.get(type(entry), TRAIL), tuple(entry)))
            rows += len(entry.numbers) if type(entry) is Said else 1
            size += weight
        if not parts:
            return
        number = next(self._numbers)
        try:
            data = framed(("keep", number, source, self._clock(), parts))
        except ValueError:
            _log.exception("the journal could not take what arrived")
            self.lost += rows
            return
        self._queue.append(_Block(number, rows, size, data))
        self._rows += rows
        self._bytes += size
        if self._line is not None:
            self._line.send(data)

    def _note_lost(self, source: str, entry: Said | Gone | Asked | TrailRow) -> None:
        if not isinstance(entry, Said):
            self.lost += 1
            return
        self.lost += len(entry.numbers)
        spans = self._missed.setdefault((source, entry.session, entry.epoch), Spans())
        for number in entry.numbers:
            spans.add(number)

    # --- how it stands ---------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Events that came and are not known to be written yet."""
        return self._rows

    @property
    def full(self) -> bool:
        """Should nothing be handed over for a moment? Never so while the file cannot be written: that may last."""
        return self._bytes > ENOUGH_BYTES and self.fault is None and self._opened

    @property
    def roomy(self) -> bool:
        """Is there room for much more?"""
        return self._bytes <= ENOUGH_BYTES // 2 and self.fault is None and self._opened

    def missed(self) -> list[Missed]:
        """Which events had no room, once there is room for them; each is told once. Whoever takes them over asks for
        them again, and says by `made_good` how many have come."""
        if not self._missed or not self.roomy:
            return []
        missed, self._missed = self._missed, {}
        return [Missed(*run, *interval) for run, spans in missed.items() for interval in spans.intervals()]

    def made_good(self, events: int) -> None:
        """So many of those that had no room were handed over again."""
        self.lost = max(0, self.lost - events)

    @property
    def says(self) -> str:
        """What the operator should know, in one line; "" while everything is kept."""
        said: list[str] = []
        if self.fault is not None:
            said.append(f"the journal keeps nothing new: {self.fault}")
        elif self._rows > BEHIND_ROWS:
            said.append(f"the journal is {self._rows:,} events behind")
        if self.lost:
            said.append(f"{self.lost:,} events are not in the journal")
        if self.notice:
            said.append(self.notice)
        return "; ".join(said)

    # --- what is asked ---------------------------------------------------------------------

    async def places(self, source: str) -> dict[str, Place]:
        """How far each session of the source was received; nothing where the file cannot be read."""
        found: Mapping[str, tuple[Any, ...]] = await self._ask("places", (source,), wait_s=OPENING_S) or {}
        return {name: Place(*place) for name, place in found.items()}

    async def before(self, source: str, session: str, epoch: str, before: int, limit: int) -> Stored:
        """The last events before number `before` that are here without a hole; none where the file cannot be read."""
        wait_s = ANSWER_S if self._opened else OPENING_S
        found = await self._ask("before", (source, session, epoch, before, limit), wait_s=wait_s)
        if found is not None:
            from console.journal.decoding import stored
            from watchfloor.errors import StorageError

            try:
                # A thousand events take some tens of milliseconds.
                return await asyncio.to_thread(stored, Found(*found))
            except StorageError as fault:
                _log.warning("the journal cannot be read: %s", fault)
        return Stored(epoch, (), False)

    async def seen(self, source: str) -> dict[str, Mark]:
        """How the sessions of the source were when somebody last looked; nothing where the file cannot be read."""
        from console.journal.marks import mark

        found: Mapping[str, tuple[int, str]] = await self._ask("seen", (source,), wait_s=OPENING_S) or {}
        return {name: one for name, told in found.items() if (one := mark(*told)) is not None}

    async def flushed(self) -> None:
        """Wait until all that was handed over so far is in the file, or cannot be."""
        await self._ask("nothing", (), wait_s=None)

    async def _ask(self, what: str, arguments: tuple[Any, ...], *, wait_s: float | None) -> Any:
        from console.journal.wire import framed

        if not self._begun or self._closing:
            return None
        id = next(self._numbers)
        asked = framed(("ask", id, what, arguments))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._questions[id] = asked, answer
        if self._line is not None:
            self._line.send(asked)
        try:
            return await asyncio.wait_for(answer, wait_s)
        except TimeoutError:
            _log.warning("the journal did not answer within %g s", wait_s)
            return None
        finally:
            self._questions.pop(id, None)

    # --- the writer ------------------------------------------------------------------------

    async def close(self) -> None:
        """Have what waits written, and the file closed; waits for that a few seconds at most. It is written also where
        that takes longer, unless the writer is ended."""
        if self._closing:
            return
        self._closing = True
        if self._line is None:
            if not self._begun or not self._queue:
                return
            self._begin()
        if self._line is not None:
            self._line.finish()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), CLOSE_S)
        if self._again is not None:
            self._again.cancel()
        if self._line is not None:
            self._line.let_go()
            self._line = None

    def _begin(self) -> None:
        from console.journal.line import Line
        from console.journal.wire import framed

        if self._again is not None:
            self._again.cancel()
            self._again = None
        try:
            line = self._line = Line(self._heard, self._ended)
        except OSError as fault:
            self._failed(f"its writer cannot be started ({fault.strerror or fault})")
            self._begin_later(RETRY_S)
            return
        keep = self._retention
        line.send(framed(("open", str(self.path.absolute()), keep.age_s, keep.size)))
        if self._secrets:
            line.send(framed(("hide", self._secrets)))
        for block in self._queue:
            line.send(block.data)
        for asked, _ in self._questions.values():
            line.send(asked)

    def _begin_later(self, seconds: float) -> None:
        self._again = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _heard(self, message: Message) -> None:
        match message:
            case ("state", done, lost, fault, opened, notice):
                self._done(done)
                self.lost += lost - self._lost_there
                self._lost_there = lost
                self._opened = opened
                self.notice = notice or self.notice
                if fault:
                    self._failed(fault)
                else:
                    self.fault = None
            case ("answer", id, fault, value):
                if fault:
                    _log.warning("the journal cannot be read: %s", fault)
                if (question := self._questions.get(id)) is not None and not question[1].done():
                    question[1].set_result(value)
            case ("said", line):
                _log.warning("%s", line)

    def _done(self, number: int) -> None:
        """All that was handed over up to here is in the file."""
        while self._queue and self._queue[0].number <= number:
            block = self._queue.popleft()
            self._rows -= block.rows
            self._bytes -= block.size
            self._ends = 0

    def _failed(self, fault: str) -> None:
        if self.fault is None:
            _log.warning("the journal cannot be written: %s", fault)
        self.fault = fault

    def _ended(self, why: str) -> None:
        self._line = None
        self._opened = False
        self._lost_there = 0
        if self._closing:
            self._over.set()
            return
        self._failed(f"its writer has to be started again: {why}")
        self._ends += 1
        if self._ends % MOST_ENDS == 0 and self._queue:
            # Whatever is wrong with it would end the next one as well.
            block = self._queue.popleft()
            self._rows -= block.rows
            self._bytes -= block.size
            self.lost += block.rows
        self._begin_later(RETRY_S if self._ends > 1 else 0.0)


def _size(entry: Said | Gone | Asked | TrailRow) -> int:
    """About how many bytes wait with it."""
    return 256 + len(entry.raw) if isinstance(entry, Said | Asked) else 1_024
