"""What is done to the journal's file. Synchronous: one process owns it.

A flush is one transaction: all that it brings is in the file, or none of it. What a run has received is kept beside
its events, and read again when another console has written meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from console.journal import packing, pruning, reading
from console.journal.file import open_journal
from console.journal.records import Asked, Found, Gone, Heard, Place, Pruned, Retention, Said, Stats, TrailRow
from watchfloor import sqlite_file

if TYPE_CHECKING:
    from watchfloor.protocol.events import Event

KNOWN: Final = 50_000
"""Runs that are remembered between two flushes; ten thousand sessions have as many."""


class Store:
    """One open file. Every method raises a subclass of StorageError where the file fails, and has changed nothing then.

    `secrets` are texts that never reach the file, as they stand in JSON. With `deflating` large frames are made
    smaller: that takes longer than all else that is done for them.
    """

    def __init__(self, path: Path, *, check: bool = False) -> None:
        self.path: Final = path
        self.secrets: tuple[bytes, ...] = ()
        self.deflating = True
        self._db = open_journal(path, check=check)
        self._file = _file_at(path)
        self._known = _Known()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def in_place(self) -> bool:
        """Is it still what stands at its path?"""
        return _file_at(self.path) == self._file

    # --- writing ---------------------------------------------------------------------------

    def write(self, heard: Sequence[Heard], trails: Sequence[TrailRow] = ()) -> int:
        """Keep these; returns how many events are new."""
        new = 0
        with self._changing():
            batch = _Batch(self._db, self.secrets, self._still_known(), deflating=self.deflating)
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
            return pruning.prune(self._db, partial(sqlite_file.transaction, self._db), retention, now, most)

    def see(self, source: str, left: Mapping[str, tuple[int, str]]) -> None:
        """Keep how sessions of a source are while somebody looks: when that was, and how, by session."""
        with self._changing():
            batch = _Batch(self._db, self.secrets, self._still_known())
            self._db.executemany(
                "INSERT OR REPLACE INTO seen (session, at, body) VALUES (?, ?, ?)",
                [
                    (batch.session(source, name), at, packing.hidden(body.encode(), self.secrets).decode())
                    for name, (at, body) in left.items()
                ],
            )

    # --- reading ---------------------------------------------------------------------------

    def places(self, source: str) -> dict[str, Place]:
        """How far each session of the source was received, in the newest epoch of each."""
        with self._typed():
            return reading.places(self._db, source)

    def before(self, source: str, session: str, epoch: str, before: int, limit: int) -> Found:
        """The last events before number `before`, without a hole between them and that: none, where there is one."""
        with self._typed():
            return reading.before(self._db, source, session, epoch, before, limit)

    def events(self, source: str, session: str, epoch: str) -> list[Event]:
        """All events of one epoch of a session that are here, in the order of their numbers."""
        from console.journal.decoding import stored

        with self._typed():
            return list(stored(reading.events(self._db, source, session, epoch)).events)

    def seen(self, source: str) -> dict[str, tuple[int, str]]:
        """How the sessions of a source were when somebody last looked, as `see` was told it."""
        with self._typed():
            return reading.seen(self._db, source)

    def stats(self) -> Stats:
        """What is here."""
        with self._typed():
            return reading.stats(self._db)

    # --- the file --------------------------------------------------------------------------

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            with self._typed(), sqlite_file.transaction(self._db):
                yield
        except BaseException:
            # It may hold numbers of rows that are not there.
            self._known = _Known()
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


def _file_at(path: Path) -> tuple[int, int] | None:
    """Which file stands there; None for none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class _Run:
    __slots__ = ("at", "held", "id", "lost", "relost", "session")

    def __init__(self, id: int, session: int, held: str, lost: str) -> None:
        self.id = id
        self.session = session
        self.held = packing.spans(held)
        self.lost = packing.spans(lost)
        self.relost = False
        """Is more of it lost than the file says?"""
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

    def __init__(
        self, db: sqlite3.Connection, secrets: Sequence[bytes], known: _Known, *, deflating: bool = True
    ) -> None:
        self._db = db
        self._secrets = secrets
        self._known = known
        self._deflating = deflating
        self._runs: dict[int, _Run] = {}
        """Those of which this transaction brings something, by row."""
        self._frames: list[tuple[int, int, int, int, bytes]] = []
        self._last = 0
        """The row of the newest frame; nobody else adds any while the transaction lasts. 0: not asked yet."""
        self._rows: dict[tuple[int, int], int] = {}
        """The frame that brought each event, by run and number."""
        self._left: set[int] = set()
        """Frames of which an event was told again by another one."""

    def take(self, heard: Heard) -> int:
        what = heard.what
        if isinstance(what, Said):
            return self._events(heard, what)
        if isinstance(what, Gone):
            run = self._run(heard, what.session, what.epoch)
            run.lost.add_range(what.first, what.last)
            run.relost = True
        else:
            self._request(heard, what)
        return 0

    def finish(self) -> None:
        """Write what is written once for all frames. In the order in which it stands in the file: with many sessions
        each row has a page of its own, and neighbours are found faster."""
        self._db.executemany("INSERT INTO frames (id, source, at, form, raw) VALUES (?, ?, ?, ?, ?)", self._frames)
        self._db.executemany(
            "INSERT OR REPLACE INTO events (run, seq, frame) VALUES (?, ?, ?)",
            [(run, seq, frame) for (run, seq), frame in sorted(self._rows.items())],
        )
        # A source that tells everything again would fill the file with what nothing refers to.
        self._db.executemany(
            "DELETE FROM frames WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM events WHERE frame = ?1)",
            [(frame,) for frame in self._left],
        )
        runs = [run for _, run in sorted(self._runs.items())]
        self._db.executemany(
            "UPDATE runs SET held = ?, at = ? WHERE id = ?",
            [(packing.packed(run.held), run.at, run.id) for run in runs],
        )
        self._db.executemany(
            "UPDATE runs SET lost = ? WHERE id = ?",
            [(packing.packed(run.lost), run.id) for run in runs if run.relost],
        )

    def _events(self, heard: Heard, said: Said) -> int:
        run = self._run(heard, said.session, said.epoch)
        add = run.held.add
        new = [number for number in said.numbers if add(number)]
        if not new:
            return 0
        raw = packing.hidden(said.raw, self._secrets) if self._secrets else said.raw
        form, raw = packing.pack(raw) if self._deflating else (packing.PLAIN, raw)
        if not self._last:
            (self._last,) = self._db.execute("SELECT COALESCE(MAX(id), 0) FROM frames").fetchone()
        self._last += 1
        id = self._last
        self._frames.append((id, self._source(heard.source), heard.at, form, raw))
        for number in new:
            if said.keys is not None and (key := said.keys.get(number)) is not None:
                self._keyed(run, number, key, id)
            self._rows[run.id, number] = id
        return len(new)

    def _keyed(self, run: _Run, number: int, named: str, frame: int) -> None:
        """A source that counts anew with each connection tells the same event again: it is kept once."""
        key = packing.name(named)
        ask = "SELECT run, seq, frame FROM keys WHERE session = ? AND key = ?"
        row = self._db.execute(ask, (run.session, key)).fetchone()
        if row is not None and row[:2] != (run.id, number):
            self._db.execute("DELETE FROM events WHERE run = ? AND seq = ?", row[:2])
            self._rows.pop(row[:2], None)
            self._left.add(row[2])
        self._db.execute(
            "INSERT OR REPLACE INTO keys (session, key, run, seq, frame) VALUES (?, ?, ?, ?, ?)",
            (run.session, key, run.id, number, frame),
        )

    def _request(self, heard: Heard, asked: Asked) -> None:
        form, raw = packing.pack(packing.hidden(asked.raw, self._secrets))
        self._db.execute(
            "INSERT OR REPLACE INTO requests (session, name, state, at, form, raw) VALUES (?, ?, ?, ?, ?, ?)",
            (self._session(heard.source, asked.session), packing.name(asked.name), asked.state, heard.at, form, raw),
        )

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
                add = "INSERT INTO runs (session, epoch, at) VALUES (?, ?, ?)"
                row = self._db.execute(add, (*where, heard.at)).lastrowid or 0, "[]", "[]"
            run = self._known.runs[place] = _Run(row[0], owner, row[1], row[2])
        self._runs[run.id] = run
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
