"""The process that owns the journal's file: it writes what the console hands over, and answers what it asks.

    python -m console.journal.writer FD

It reads from the socket FD without a pause, so that what the console has handed over outlives the console, and ends by
itself when the socket is closed: whatever became of the console, what came until then is written. Nothing here loads
the models or the toolkit: it starts in a fraction of the console's time.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from console.journal.file import put_aside
from console.journal.records import PARTS, TRAIL, Heard, Retention, TrailRow
from console.journal.store import Store
from console.journal.wire import Message, Messages, framed
from watchfloor.errors import StorageCorrupt, StorageError, StorageForeign, StorageFull, StorageInUse

FLUSH_S: Final = 0.05
"""How long what came is gathered before it is written."""
ROWS: Final = 500
"""Events after which it is written sooner."""
MOST_ROWS: Final = 5_000
"""Events that one transaction holds at most (what was handed over at once is never parted). With many sessions each
has its own pages of the file: what is behind is written in a fraction of the time where each page is written once for
many events."""
HURRIED_ROWS: Final = 2_000
"""Events that wait, from which on frames are written as they came: to deflate them takes longer than all else."""
RETRY_S: Final = 1.0
LOOK_S: Final = 1.0
"""How often it is looked whether the file is still the one that was opened."""
PRUNE_S: Final = 60.0
PRUNED_AT_ONCE: Final = 2_000
"""Frames that one pruning lets go of, so that what comes meanwhile does not wait."""
ENDS_S: Final = 5.0
"""How long a file that somebody else holds is waited for when the console has ended."""
_READ: Final = 1 << 18


class Block(NamedTuple):
    """What was handed over at once. `rows`: how many events that is."""

    number: int
    entries: Sequence[Heard | TrailRow]
    rows: int


def block(number: int, source: str, at: int, parts: Iterable[tuple[int, Sequence[Any]]]) -> Block:
    """What the console has handed over, from what it said."""
    entries: list[Heard | TrailRow] = []
    rows = 0
    for tag, fields in parts:
        if tag == TRAIL:
            entries.append(TrailRow(*fields))
            rows += 1
        else:
            what = PARTS[tag]._make(fields)
            entries.append(Heard(source, at, what))
            rows += len(what.numbers) if tag == 0 else 1
    return Block(number, entries, rows)


class Writer:
    """One file, and what waits for it. `tell` is given messages for the console; `clock` gives milliseconds since 1970
    UTC. `take`, `ask`, `hide` and `end` may be called from any thread, all else from the one that is in `live`."""

    def __init__(self, path: Path, clock: Callable[[], int], retention: Retention, tell: Callable[[Message], None]):
        self.path: Final = path
        self._clock = clock
        self._retention = retention
        self._tell = tell
        self._lock = threading.Condition()
        self._queue: deque[Block] = deque()
        self._rows = 0
        self._questions: deque[tuple[int, str, Sequence[Any]]] = deque()
        self._secrets: tuple[bytes, ...] = ()
        self._ending = False
        self._store: Store | None = None
        self._pruned_at = float("-inf")
        self._looked_at = float("-inf")
        self._suspect = False
        self._fault: StorageError | OSError | None = None
        self._notice = ""
        self._done = 0
        self._lost = 0

    # --- what comes ------------------------------------------------------------------------

    def take(self, block: Block) -> None:
        """Keep this."""
        with self._lock:
            self._queue.append(block)
            self._rows += block.rows
            self._lock.notify()

    def ask(self, id: int, what: str, arguments: Sequence[Any]) -> None:
        """Answer this, once all that came before is written."""
        with self._lock:
            self._questions.append((id, what, arguments))
            self._lock.notify()

    def hide(self, forms: Iterable[bytes]) -> None:
        """These never reach the file, from what waits by now on."""
        with self._lock:
            self._secrets = tuple(dict.fromkeys((*self._secrets, *forms)))

    def end(self) -> None:
        """Nothing more comes."""
        with self._lock:
            self._ending = True
            self._lock.notify()

    # --- what is done ----------------------------------------------------------------------

    def live(self) -> None:
        """Open the file, and write until `end`, and until what came before that is written."""
        self.open()
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._ending or self._queue or self._questions, PRUNE_S)
                self._lock.wait_for(lambda: self._ending or self._rows >= ROWS or self._questions, FLUSH_S)
                ending = self._ending
                questions, self._questions = self._questions, deque()
            while self._queue and self.flush():
                if not (questions or ending):
                    break
            for question in questions:
                self.answer(*question)
            if ending:
                break
            if self._fault is not None:
                self._wait_for_better()
            elif time.monotonic() - self._pruned_at >= PRUNE_S:
                self.prune()
        patience = time.monotonic() + ENDS_S
        while self._queue and isinstance(self._fault, StorageInUse) and time.monotonic() < patience:
            self.flush()
        self._shut()

    def _wait_for_better(self) -> None:
        with self._lock:
            self._lock.wait_for(lambda: self._ending or self._questions, RETRY_S)
        if self._store is None:
            self.open()

    def flush(self) -> bool:
        """Write the oldest of what waits; False where that cannot be done now."""
        with self._lock:
            blocks: list[Block] = []
            rows = 0
            for one in self._queue:
                if blocks and rows + one.rows > MOST_ROWS:
                    break
                blocks.append(one)
                rows += one.rows
            secrets, hurried = self._secrets, self._rows > HURRIED_ROWS
        if time.monotonic() - self._looked_at >= LOOK_S:
            self._look()
        if self._store is None:
            return False
        entries = [entry for one in blocks for entry in one.entries]
        self._store.secrets = secrets
        self._store.deflating = not hurried
        try:
            _write(self._store, entries)
        except StorageError as fault:
            self._failed(fault)
            return False
        except Exception:
            self._tell(("said", f"the journal could not take what arrived: {traceback.format_exc()}"))
            self._one_by_one(self._store, entries)
        with self._lock:
            for _ in blocks:
                self._queue.popleft()
            self._rows -= rows
        self._fault = None
        self._done = blocks[-1].number
        self._report()
        return True

    def _one_by_one(self, store: Store, entries: Sequence[Heard | TrailRow]) -> None:
        """What is wrong with one of these would be so for ever: it must not keep the others from being kept."""
        for entry in entries:
            try:
                _write(store, [entry])
            except Exception:
                self._lost += 1

    def answer(self, id: int, what: str, arguments: Sequence[Any]) -> None:
        """Tell the console what the file says; nothing where there is none."""
        value: object = None
        try:
            if self._store is not None:
                value = _ANSWERS[what](self._store, *arguments)
        except StorageError as fault:
            self._tell(("answer", id, str(fault), None))
            if isinstance(fault, StorageCorrupt):
                self._failed(fault)
        except Exception as fault:
            self._tell(("answer", id, f"{type(fault).__name__}: {fault}", None))
        else:
            self._tell(("answer", id, "", value))

    def prune(self) -> None:
        """Let go of some of what is too old or too much."""
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

    # --- the file --------------------------------------------------------------------------

    def open(self) -> None:
        """Open the file, or say why it cannot be opened."""
        try:
            self._store = Store(self.path, check=self._suspect)
        except (StorageCorrupt, StorageForeign) as fault:
            self._begin_anew(fault)
        except StorageError as fault:
            self._failed(fault)
            return
        else:
            self._fault, self._suspect = None, False
        self._report()

    def _begin_anew(self, why: StorageError) -> None:
        stamp = datetime.fromtimestamp(self._clock() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        try:
            aside = put_aside(self.path, stamp)
            self._store = Store(self.path)
        except (OSError, StorageError) as fault:
            self._fault = fault
            return
        self._fault, self._suspect = None, False
        self._notice = f"the journal could not be used and is kept as {aside.name}; a new one has begun"
        self._tell(("said", f"{self._notice} ({why})"))

    def _look(self) -> None:
        """A file that was removed, or is another one now, takes what is written, and nobody would ever read it."""
        self._looked_at = time.monotonic()
        if self._store is None or self._store.in_place:
            return
        self._shut()
        self._notice = "the journal was removed while it was open; a new one has begun"
        self._tell(("said", self._notice))
        self.open()

    def _failed(self, fault: StorageError) -> None:
        self._fault = fault
        self._suspect = isinstance(fault, StorageCorrupt)
        if not isinstance(fault, StorageFull | StorageInUse):
            self._shut()
        self._report()

    def _shut(self) -> None:
        if self._store is not None:
            with contextlib.suppress(Exception):
                self._store.close()
            self._store = None

    def _report(self) -> None:
        fault = "" if self._fault is None else str(self._fault)
        self._tell(("state", self._done, self._lost, fault, self._store is not None, self._notice))


def _write(store: Store, entries: Sequence[Heard | TrailRow]) -> None:
    heard = [entry for entry in entries if isinstance(entry, Heard)]
    store.write(heard, [entry for entry in entries if isinstance(entry, TrailRow)])


def _places(store: Store, source: str) -> object:
    return {name: (one.epoch, one.held, one.gone, one.through) for name, one in store.places(source).items()}


def _before(store: Store, source: str, session: str, epoch: str, before: int, limit: int) -> object:
    return tuple(store.before(source, session, epoch, before, limit))


def _seen(store: Store, source: str) -> object:
    return store.seen(source)


def _see(store: Store, source: str, left: dict[str, tuple[int, str]]) -> object:
    store.see(source, left)
    return None


def _nothing(store: Store) -> object:
    return None


_ANSWERS: Final[dict[str, Callable[..., object]]] = {
    "places": _places,
    "before": _before,
    "seen": _seen,
    "see": _see,
    "nothing": _nothing,
}


def serve(line: socket.socket, clock: Callable[[], int]) -> None:
    """Do what the console says, until it ends."""
    messages = Messages()

    def tell(message: Message) -> None:
        with contextlib.suppress(OSError):  # the console has ended, and nobody is there to be told
            line.sendall(framed(message))

    first: list[Message] = []
    while not first and (data := line.recv(_READ)):
        first += messages.feed(data)
    if not first:
        return
    _, path, age_s, size = first.pop(0)
    writer = Writer(Path(path), clock, Retention(age_s, size), tell)

    def read() -> None:
        try:
            for message in first:
                _do(writer, message)
            while data := line.recv(_READ):
                for message in messages.feed(data):
                    _do(writer, message)
        except OSError:
            pass
        finally:
            writer.end()

    threading.Thread(target=read, name="console", daemon=True).start()
    writer.live()


def _do(writer: Writer, message: Message) -> None:
    match message[0]:
        case "keep":
            writer.take(block(*message[1:]))
        case "ask":
            writer.ask(*message[1:])
        case "hide":
            writer.hide(message[1])


def main() -> None:
    """Serve the console at the other end of a socket."""
    with socket.socket(fileno=int(sys.argv[1])) as line:
        serve(line, lambda: time.time_ns() // 1_000_000)


if __name__ == "__main__":
    main()
