"""The journal as the console has it: a queue, and one thread that owns the file.

Nothing here waits for the disk but that thread. What cannot be written waits in memory, up to a bound; beyond it, it is
counted as lost. The console goes on in either case and says so (`says`).

Importing this, and making a journal, loads neither the database nor the models; its thread does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from console.fleet.continuity import Spans
from console.journal.records import Heard, Missed, Place, Retention, Stored, TrailRow
from watchfloor.errors import StorageCorrupt, StorageError, StorageForeign, StorageFull, StorageInUse

if TYPE_CHECKING:
    from console.connectors.supervisor import Item
    from console.fleet.absence import Mark
    from console.journal.store import Store
    from watchfloor.connector import Clock

_log = logging.getLogger(__name__)
T = TypeVar("T")

JOURNAL: Final = "journal.db"
"""Its file in the folder where the console keeps what it writes."""
FLUSH_S: Final = 0.05
"""How long what came is gathered before it is written."""
ROWS: Final = 500
"""Events after which it is written sooner."""
MOST_ROWS: Final = 5_000
"""Events that one transaction holds at most (a frame is never parted). With many sessions each has its own pages of the
file: what is behind is written in a fraction of the time where each page is written once for many events."""
MOST_BYTES: Final = 64 * 1024**2
"""Bytes that wait in memory at most."""
ENOUGH_BYTES: Final = 8 * 1024**2
"""Bytes that wait before sources are read more slowly."""
RETRY_S: Final = 1.0
PRUNE_S: Final = 60.0
PRUNED_AT_ONCE: Final = 2_000
"""Frames that one pruning lets go of, so that what comes meanwhile does not wait."""
CLOSE_S: Final = 5.0
"""How long the end of the console waits for what is not written yet."""
ANSWER_S: Final = 3.0
"""How long a question to the file may take before it counts as unanswered."""
_KEPT: Final = frozenset({"events", "page", "gap", "request"})


class Journal:
    """What is kept of all sources of one console. All methods but `close` return at once.

    `path` is the file, `clock` gives milliseconds since 1970 UTC.
    """

    def __init__(self, path: Path, *, clock: Clock, retention: Retention | None = None) -> None:
        self.path: Final = path
        self._clock = clock
        self._retention = retention or Retention()
        self._lock = threading.Condition()
        self._queue: deque[tuple[Heard | TrailRow, int]] = deque()
        self._rows = 0
        self._bytes = 0
        self._jobs: deque[tuple[Callable[[Store | None], object], Future[object]]] = deque()
        self._secrets: tuple[bytes, ...] = ()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._store: Store | None = None
        self._pruned_at = float("-inf")
        self._suspect = False
        self._fault: StorageError | OSError | None = None
        self._missed: dict[tuple[str, str, str], Spans] = {}
        self.lost = 0
        """Events that came and are not in the file, for there was no room for them to wait."""
        self.notice = ""
        """What has become of a file that could not be used, in one line; "" where there was none."""

    # --- for the event loop ----------------------------------------------------------------

    def start(self) -> None:
        """Open the file, and write what is handed over, until `close`."""
        if self._thread is None and not self._closing:
            self._thread = threading.Thread(target=self._live, name="journal", daemon=True)
            self._thread.start()

    def take(self, source: str, items: Sequence[Item]) -> None:
        """Keep what is to be kept of what arrived from a source."""
        now = self._clock()
        kept: list[tuple[Heard, int]] = []
        for item in items:
            frame = getattr(item, "frame", None)
            if frame is not None and frame.type in _KEPT:
                kept.append((Heard(source, now, frame, getattr(item, "raw", None)), len(getattr(frame, "events", "1"))))
        if kept:
            self._put(kept)

    def trail(self, row: TrailRow) -> None:
        """Keep how far a command has come."""
        self._put([(row, 1)])

    def hide(self, secrets: Iterable[str]) -> None:
        """From now on these texts never reach the file, whoever repeats them.

        Those under 4 characters are ignored: they would hide ordinary words.
        """
        from console.journal.packing import spelt

        new = [form for secret in secrets if len(secret) >= 4 for form in spelt(secret)]
        with self._lock:
            self._secrets = tuple(dict.fromkeys((*self._secrets, *new)))

    @property
    def waiting(self) -> int:
        """Events that came and are not written yet."""
        return self._rows

    @property
    def full(self) -> bool:
        """Should nothing be handed over for a moment? Never so while the file cannot be written: that may last."""
        return self._bytes > ENOUGH_BYTES and self._fault is None and self._store is not None

    @property
    def roomy(self) -> bool:
        """Is there room for much more?"""
        return self._bytes <= ENOUGH_BYTES // 2 and self._fault is None and self._store is not None

    def missed(self) -> list[Missed]:
        """Which events had no room, once there is room for them; each is told once. Whoever takes them over asks for
        them again, and says by `made_good` how many have come."""
        if not self._missed or not self.roomy:
            return []
        with self._lock:
            missed, self._missed = self._missed, {}
        return [Missed(*run, *interval) for run, spans in missed.items() for interval in spans.intervals()]

    def made_good(self, events: int) -> None:
        """So many of those that had no room were handed over again."""
        with self._lock:
            self.lost = max(0, self.lost - events)

    @property
    def fault(self) -> str | None:
        """Why nothing can be written now, in one line; None while all is well."""
        return None if self._fault is None else str(self._fault)

    @property
    def says(self) -> str:
        """What the operator should know, in one line; "" while everything is kept."""
        said: list[str] = []
        if self._fault is not None:
            said.append(f"the journal keeps nothing new: {self._fault}")
        elif self._rows > 4 * ROWS:
            said.append(f"the journal is {self._rows:,} events behind")
        if self.lost:
            said.append(f"{self.lost:,} events are not in the journal")
        if self.notice:
            said.append(self.notice)
        return "; ".join(said)

    async def places(self, source: str) -> dict[str, Place]:
        """How far each session of the source was received; nothing where the file cannot be read."""
        nothing: dict[str, Place] = {}
        return await self._ask(lambda store: store.places(source), nothing)

    async def before(self, source: str, session: str, epoch: str, before: int, limit: int) -> Stored:
        """The last events before number `before` that are here without a hole; none where the file cannot be read."""
        nothing = Stored(epoch, (), False)
        return await self._ask(lambda store: store.before(source, session, epoch, before, limit), nothing)

    async def seen(self, source: str) -> dict[str, Mark]:
        """How the sessions of the source were when somebody last looked; nothing where the file cannot be read."""
        nothing: dict[str, Mark] = {}
        return await self._ask(lambda store: store.seen(source), nothing)

    def see(self, source: str, left: Mapping[str, Mark]) -> None:
        """Keep how sessions of the source are while somebody looks."""
        with self._lock:
            if self._thread is not None and not self._closing:
                self._jobs.append((lambda store: store.see(source, left) if store is not None else None, Future()))
                self._lock.notify_all()

    async def flushed(self) -> None:
        """Wait until all that was handed over so far is in the file, or cannot be."""
        await self._ask(lambda _: None, None, wait_s=None)

    def close(self) -> None:
        """Write what waits, and close the file; waits for that a few seconds at most. From any thread."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    async def _ask(self, do: Callable[[Store], T], otherwise: T, *, wait_s: float | None = ANSWER_S) -> T:
        answer: Future[object] = Future()
        with self._lock:
            if self._thread is None or self._closing:
                return otherwise
            self._jobs.append((lambda store: otherwise if store is None else do(store), answer))
            self._lock.notify_all()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(answer), wait_s)  # type: ignore[arg-type]
        except TimeoutError:
            _log.warning("the journal did not answer within %g s", wait_s)
        except StorageError as fault:
            _log.warning("the journal cannot be read: %s", fault)
        return otherwise

    def _put(self, entries: Sequence[tuple[Heard | TrailRow, int]]) -> None:
        with self._lock:
            if self._closing:
                return
            for entry, rows in entries:
                size = _size(entry)
                if self._bytes + size > MOST_BYTES:
                    self._note_lost(entry)
                    continue
                self._queue.append((entry, rows))
                self._rows += rows
                self._bytes += size
            self._lock.notify_all()

    def _note_lost(self, entry: Heard | TrailRow) -> None:
        frame = entry.frame if isinstance(entry, Heard) else None
        if frame is None or frame.type not in ("events", "page"):
            self.lost += 1
            return
        numbers = [event.seq for event in getattr(frame, "events", ()) if event.seq is not None]
        if not numbers:
            return  # pieces of what comes again whole
        self.lost += len(numbers)
        run = entry.source, getattr(frame, "session", ""), getattr(frame, "epoch", "")
        spans = self._missed.setdefault(run, Spans())
        for number in numbers:
            spans.add(number)

    # --- the thread ------------------------------------------------------------------------

    def _live(self) -> None:
        self._reopen()
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._closing or self._queue or self._jobs, PRUNE_S)
                self._lock.wait_for(lambda: self._closing or self._rows >= ROWS or self._jobs, FLUSH_S)
                closing = self._closing
                jobs, self._jobs = self._jobs, deque()
            while self._queue and self._flush():
                if not (jobs or closing):
                    break
            self._answer(jobs)
            if closing:
                break
            if self._fault is not None:
                self._wait_for_better()
            elif time.monotonic() - self._pruned_at >= PRUNE_S:
                self._prune()
        self._shut()

    def _wait_for_better(self) -> None:
        with self._lock:
            self._lock.wait_for(lambda: self._closing or self._jobs, RETRY_S)
        if self._store is None:
            self._reopen()

    def _flush(self) -> bool:
        """Write the oldest of what waits; False where that cannot be done now."""
        with self._lock:
            batch: list[Heard | TrailRow] = []
            rows = size = 0
            for entry, count in self._queue:
                if batch and rows + count > MOST_ROWS:
                    break
                batch.append(entry)
                rows += count
                size += _size(entry)
            secrets = self._secrets
        if self._store is None:
            return False
        heard = [entry for entry in batch if isinstance(entry, Heard)]
        trails = [entry for entry in batch if isinstance(entry, TrailRow)]
        try:
            self._store.secrets = secrets
            self._store.write(heard, trails)
        except StorageError as fault:
            self._failed(fault)
            return False
        except Exception:
            _log.exception("the journal could not take what arrived")
            self._one_by_one(self._store, batch)
        self._fault = None
        with self._lock:
            for _ in batch:
                self._queue.popleft()
            self._rows -= rows
            self._bytes -= size
        return True

    def _one_by_one(self, store: Store, batch: Sequence[Heard | TrailRow]) -> None:
        """What is wrong with one of these would be so for ever: it must not keep the others from being kept."""
        for entry in batch:
            try:
                store.write(*(([entry], ()) if isinstance(entry, Heard) else ((), [entry])))
            except Exception:
                self.lost += 1

    def _answer(self, jobs: Iterable[tuple[Callable[[Store | None], object], Future[object]]]) -> None:
        for do, answer in jobs:
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(do(self._store))
            except BaseException as fault:
                answer.set_exception(fault)
                if isinstance(fault, StorageCorrupt):
                    self._failed(fault)

    def _prune(self) -> None:
        self._pruned_at = time.monotonic()
        if self._store is None:
            return
        try:
            pruned = self._store.prune(self._retention, self._clock(), most=PRUNED_AT_ONCE)
        except StorageError as fault:
            self._failed(fault)
            return
        if pruned.frames >= PRUNED_AT_ONCE:
            self._pruned_at = float("-inf")  # there is more of it

    def _failed(self, fault: StorageError) -> None:
        if self._fault is None:
            _log.warning("the journal cannot be written: %s", fault)
        self._fault = fault
        self._suspect = isinstance(fault, StorageCorrupt)
        if not isinstance(fault, StorageFull | StorageInUse):
            self._shut()

    def _shut(self) -> None:
        if self._store is not None:
            with contextlib.suppress(Exception):
                self._store.close()
            self._store = None

    def _reopen(self) -> None:
        from console.journal.store import Store

        try:
            self._store = Store(self.path, check=self._suspect)
        except (StorageCorrupt, StorageForeign) as fault:
            self._begin_anew(fault)
        except StorageError as fault:
            self._failed(fault)
        else:
            self._fault, self._suspect = None, False

    def _begin_anew(self, why: StorageError) -> None:
        from console.journal.file import put_aside
        from console.journal.store import Store

        stamp = datetime.fromtimestamp(self._clock() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        try:
            aside = put_aside(self.path, stamp)
            self._store = Store(self.path)
        except (OSError, StorageError) as fault:
            self._fault = fault
            return
        self._fault, self._suspect = None, False
        self.notice = f"the journal could not be used and is kept as {aside.name}; a new one has begun"
        _log.warning("%s (%s)", self.notice, why)


def _size(entry: Heard | TrailRow) -> int:
    """About how many bytes wait with it."""
    return 256 + len(entry.raw or b"") if isinstance(entry, Heard) else 1_024
