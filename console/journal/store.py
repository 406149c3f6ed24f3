"""What is done to the journal's file. Synchronous: one thread owns it.

A flush is one transaction: all that it brings is in the file, or none of it. What a run has received is kept beside
its events, and read again when another console has written meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from console.fleet.absence import Mark
from console.journal import packing, pruning, reading
from console.journal.file import open_journal
from console.journal.records import Heard, Place, Pruned, Retention, Stats, Stored, TrailRow
from watchfloor import sqlite_file
from watchfloor.protocol.codec import encode
from watchfloor.protocol.events import Event
from watchfloor.protocol.frames import Events, Gap, Page, RequestFrame

KNOWN: Final = 50_000
"""Runs that are remembered between two flushes; ten thousand sessions have as many."""


class Store:
    """One open file. Every method raises a subclass of StorageError where the file fails, and has changed nothing then.

    `secrets` are texts that never reach the file, as they stand in JSON.
    """

    def __init__(self, path: Path, *, check: bool = False) -> None:
        self.path: Final = path
        self.secrets: tuple[bytes, ...] = ()
        self._db = open_journal(path, check=check)
        self._known = _Known()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # --- writing ---------------------------------------------------------------------------

    def write(self, heard: Sequence[Heard], trails: Sequence[TrailRow] = ()) -> int:
        """Keep what is to be kept of these frames, and these trails; returns how many events are new."""
        new = 0
        with self._typed(), self._transaction():
            batch = _Batch(self._db, self.secrets, self._still_known())
            for one in heard:
                new += batch.take(one)
            batch.finish()
            for trail in trails:
                self._db.execute(
                    "INSERT INTO trails (id, source, session, at, body) VALUES (?, ?, ?, ?, ?)"
                    " ON CONFLICT (id) DO UPDATE SET body = excluded.body",
                    (trail.id, packing.name(trail.source), packing.name(trail.session), trail.at,
                     packing.hidden(json.dumps(trail.body).encode(), self.secrets).decode()),
                )  # fmt: skip
        return new

    def prune(self, retention: Retention, now: int, *, most: int | None = None) -> Pruned:
        """Let go of what is older or more than is to be kept; `most` bounds the frames of one call."""
        self._known = _Known()
        with self._typed():
            return pruning.prune(self._db, self._transaction, retention, now, most)

    def see(self, source: str, left: Mapping[str, Mark]) -> None:
        """Keep how sessions of a source are while somebody looks."""
        with self._typed(), self._transaction():
            batch = _Batch(self._db, self.secrets, self._still_known())
            self._db.executemany(
                "INSERT OR REPLACE INTO seen (session, at, body) VALUES (?, ?, ?)",
                [
                    (
                        batch.session(source, name),
                        mark.at,
                        packing.hidden(packing.marked(mark).encode(), self.secrets).decode(),
                    )
                    for name, mark in left.items()
                ],
            )

    # --- reading ---------------------------------------------------------------------------

    def places(self, source: str) -> dict[str, Place]:
        """How far each session of the source was received, in the newest epoch of each."""
        with self._typed():
            return reading.places(self._db, source)

    def before(self, source: str, session: str, epoch: str, before: int, limit: int) -> Stored:
        """The last events before number `before`, without a hole between them and that: none, where there is one."""
        with self._typed():
            return reading.before(self._db, source, session, epoch, before, limit)

    def events(self, source: str, session: str, epoch: str) -> list[Event]:
        """All events of one epoch of a session that are here, in the order of their numbers."""
        with self._typed():
            return reading.events(self._db, source, session, epoch)

    def seen(self, source: str) -> dict[str, Mark]:
        """How the sessions of a source were when somebody last looked."""
        with self._typed():
            return reading.seen(self._db, source)

    def stats(self) -> Stats:
        """What is here."""
        with self._typed():
            return reading.stats(self._db)

    # --- the file --------------------------------------------------------------------------

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            self._known = _Known()
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _still_known(self) -> _Known:
        """What was read before, as far as it still holds. To be asked for within a transaction."""
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        if self._known.version != version or len(self._known.runs) > KNOWN:
            self._known = _Known(version)
        return self._known

    @contextlib.contextmanager
    def _typed(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise sqlite_file.typed(error, self.path) from None


class _Run:
    __slots__ = ("at", "held", "id", "lost", "session")

    def __init__(self, id: int, session: int, held: str, lost: str) -> None:
        self.id = id
        self.session = session
        self.held = packing.spans(held)
        self.lost = packing.spans(lost)
        self.at = 0


class _Known:
    """What the file says of sources, sessions and runs, as of a version that grows when another program writes."""

    __slots__ = ("runs", "sessions", "sources", "version")

    def __init__(self, version: int = -1) -> None:
        self.version = version
        self.sources: dict[str, int] = {}
        self.sessions: dict[tuple[str, str], int] = {}
        self.runs: dict[tuple[str, str, str], _Run] = {}


class _Batch:
    """What one transaction writes."""

    def __init__(self, db: sqlite3.Connection, secrets: Sequence[bytes], known: _Known) -> None:
        self._db = db
        self._secrets = secrets
        self._known = known
        self._runs: dict[tuple[str, str, str], _Run] = {}
        """Those of which this transaction brings something."""
        self._rows: dict[tuple[int, int], int] = {}
        """The frame that brought each event, by run and number."""
        self._left: set[int] = set()
        """Frames of which an event was told again by another one."""

    def take(self, heard: Heard) -> int:
        match heard.frame:
            case Events() | Page() as frame:
                return self._events(heard, frame)
            case Gap() as frame:
                run = self._run(heard, frame.session, frame.epoch)
                run.lost.add_range(frame.from_seq + 1, frame.to_seq)
            case RequestFrame() as frame:
                self._request(heard, frame)
            case _:
                pass
        return 0

    def finish(self) -> None:
        """Write what is written once for all frames."""
        self._db.executemany(
            "INSERT OR REPLACE INTO events (run, seq, frame) VALUES (?, ?, ?)",
            [(run, seq, frame) for (run, seq), frame in self._rows.items()],
        )
        # A source that tells everything again would fill the file with what nothing refers to.
        self._db.executemany(
            "DELETE FROM frames WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM events WHERE frame = ?1)",
            [(frame,) for frame in self._left],
        )
        self._db.executemany(
            "UPDATE runs SET held = ?, lost = ?, at = ? WHERE id = ?",
            [(packing.packed(run.held), packing.packed(run.lost), run.at, run.id) for run in self._runs.values()],
        )

    def _events(self, heard: Heard, frame: Events | Page) -> int:
        numbered = [event for event in frame.events if event.seq is not None]
        if not numbered:
            return 0  # pieces of what comes again whole
        run = self._run(heard, frame.session, frame.epoch)
        add = run.held.add
        new = [event for event in numbered if add(event.seq)]  # type: ignore[arg-type]
        if not new:
            return 0
        form, raw = packing.pack(packing.hidden(heard.raw or encode(frame), self._secrets))
        stored = self._db.execute(
            "INSERT INTO frames (source, at, form, raw) VALUES (?, ?, ?, ?)",
            (self._source(heard.source), heard.at, form, raw),
        )
        id = stored.lastrowid or 0
        for event in new:
            if event.key is not None:
                self._keyed(run, event, id)
            self._rows[run.id, event.seq or 0] = id
        return len(new)

    def _keyed(self, run: _Run, event: Event, frame: int) -> None:
        """A source that counts anew with each connection tells the same event again: it is kept once."""
        key = packing.name(event.key or "")
        ask = "SELECT run, seq, frame FROM keys WHERE session = ? AND key = ?"
        row = self._db.execute(ask, (run.session, key)).fetchone()
        if row is not None and row[:2] != (run.id, event.seq):
            self._db.execute("DELETE FROM events WHERE run = ? AND seq = ?", row[:2])
            self._rows.pop(row[:2], None)
            self._left.add(row[2])
        self._db.execute(
            "INSERT OR REPLACE INTO keys (session, key, run, seq, frame) VALUES (?, ?, ?, ?, ?)",
            (run.session, key, run.id, event.seq, frame),
        )

    def _request(self, heard: Heard, frame: RequestFrame) -> None:
        name = frame.request.subject.get("id")
        if not isinstance(name, str) or not name:
            return
        form, raw = packing.pack(packing.hidden(heard.raw or encode(frame), self._secrets))
        self._db.execute(
            "INSERT OR REPLACE INTO requests (session, name, state, at, form, raw) VALUES (?, ?, ?, ?, ?, ?)",
            (self._session(heard.source, frame.session), packing.name(name), frame.request.state.value, heard.at,
             form, raw),
        )  # fmt: skip

    def _source(self, name: str) -> int:
        if (known := self._known.sources.get(name)) is None:
            known = self._known.sources[name] = _id(self._db, "sources", name=packing.name(name))
        return known

    def session(self, source: str, name: str) -> int:
        """The row of a session, made where it is new."""
        return self._session(source, name)

    def _session(self, source: str, name: str) -> int:
        if (known := self._known.sessions.get((source, name))) is None:
            known = _id(self._db, "sessions", source=self._source(source), name=packing.name(name))
            self._known.sessions[source, name] = known
        return known

    def _run(self, heard: Heard, session: str, epoch: str) -> _Run:
        place = heard.source, session, epoch
        run = self._known.runs.get(place)
        if run is None:
            owner = self._session(heard.source, session)
            where = owner, packing.name(epoch)
            ask = "SELECT id, held, lost FROM runs WHERE session = ? AND epoch = ?"
            row = self._db.execute(ask, where).fetchone()
            if row is None:
                self._db.execute("INSERT INTO runs (session, epoch, at) VALUES (?, ?, ?)", (*where, heard.at))
                row = self._db.execute(ask, where).fetchone()
            run = self._known.runs[place] = _Run(row[0], owner, row[1], row[2])
        self._runs[place] = run
        run.at = heard.at
        return run


def _id(db: sqlite3.Connection, table: str, **columns: object) -> int:
    where = " AND ".join(f"{name} = ?" for name in columns)
    ask = f"SELECT id FROM {table} WHERE {where}"  # noqa: S608 - names of ours, values are bound
    row = db.execute(ask, tuple(columns.values())).fetchone()
    if row is None:
        marks = ", ".join("?" * len(columns))
        add = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
        row = (db.execute(add, tuple(columns.values())).lastrowid,)
    return int(row[0])
