"""The event log of a host in a file, so that a host that ends, or is killed, comes back with its history.

One transaction holds all that a flush brings: it is in the file whole or not at all, and clients are told of it
afterwards. A process that is killed loses nothing that was told. A machine that loses its power may lose the newest
transactions, as write-ahead logging with `synchronous=NORMAL` does; the log notices that it may have, by the boot of
the machine, and then gives every session a new epoch, so that no client takes new events for old ones.

    Host(log=SqliteLog("build.log.db"))

A file belongs to one process at a time. It holds what agents said and did: it is made readable by its owner alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from watchfloor import sqlite_file
from watchfloor.errors import StorageCorrupt, StorageError
from watchfloor.host.log.events import Batch, Logged, State, no_deltas
from watchfloor.protocol.events import AnyEvent, Event

KEEP: Final = 1_000_000
"""Events that a `SqliteLog` keeps by default."""
APPLICATION: Final = 0x57464C47
"""What a file of ours has as its `application_id`."""
VERSION: Final = 1

_TABLES: Final = (
    "CREATE TABLE sessions (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, epoch TEXT NOT NULL,"
    " head INTEGER NOT NULL, first INTEGER NOT NULL, lost INTEGER NOT NULL)",
    "CREATE TABLE events (pos INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL)",
    # Within a session `seq` rises with `pos`, so one index serves both.
    "CREATE UNIQUE INDEX by_seq ON events (session, seq)",
    "CREATE TABLE states (session INTEGER PRIMARY KEY, body TEXT NOT NULL)",
    "CREATE TABLE conversations (session INTEGER, n INTEGER, body TEXT NOT NULL, PRIMARY KEY (session, n))"
    " WITHOUT ROWID",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID",
)
_LETTERS: Final = (
    "CREATE TABLE IF NOT EXISTS letters (session INTEGER, n INTEGER, body TEXT NOT NULL, PRIMARY KEY (session, n))"
    " WITHOUT ROWID"
)
_ERASED: Final = "CREATE TABLE IF NOT EXISTS erased (session INTEGER PRIMARY KEY)"
SWEPT: Final = 1000
"""Events of an erased session that are deleted at once: nobody waits for a hundred thousand."""
LETTERS: Final = 1000
"""Messages to a session of which it is kept how they ended."""
_events: Final[TypeAdapter[Event]] = TypeAdapter(AnyEvent)


@dataclass(slots=True)
class _Session:
    id: int | None
    epoch: str
    head: int = 0
    first: int = 1
    lost: int = 0


class SqliteLog:
    """An `EventLog` in a file that forgets the oldest events beyond `keep` (None: never).

    `new_epoch` makes the epoch of a session. Raises a subclass of `StorageError` where the file cannot be used, and
    leaves it as it is then; the message says what to do.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        keep: int | None = KEEP,
        new_epoch: Callable[[], str] = lambda: secrets.token_hex(4),
    ) -> None:
        if keep is not None and keep < 1:
            raise ValueError("a log keeps at least one event")
        self.path: Final = Path(path)
        self._keep = keep
        self._new_epoch = new_epoch
        self._db = sqlite_file.open_file(self.path, application=APPLICATION, version=VERSION, tables=_TABLES)
        try:
            with self._typed():
                self._load()
        except BaseException:
            self._db.close()
            raise

    def _load(self) -> None:
        # Not among the tables of a new file: one that was made without them gets them now.
        self._db.execute(_LETTERS)
        self._db.execute(_ERASED)
        self._erased = [int(id) for (id,) in self._db.execute("SELECT session FROM erased")]
        # One that was erased must not come back with the events that are still there.
        highest = self._db.execute("SELECT MAX(id) FROM sessions").fetchone()[0] or 0
        self._next_id = max([int(highest), *self._erased]) + 1
        rows = self._db.execute("SELECT name, id, epoch, head, first, lost FROM sessions")
        self._sessions = {_name(row[0]): _Session(*row[1:]) for row in rows}
        facts = dict(self._db.execute("SELECT name, value FROM facts"))
        self._pos = int(facts.get("pos", 0))
        self._kept_from = int(facts.get("kept_from", 1))
        boot = sqlite_file.boot()
        with sqlite_file.transaction(self._db):
            if not facts.get("closed", 1) and (boot is None or facts.get("boot") != boot):
                for session in self._sessions.values():
                    session.epoch = self._new_epoch()
                    self._db.execute("UPDATE sessions SET epoch = ? WHERE id = ?", (session.epoch, session.id))
            self._note(closed=0, boot=boot)

    def __enter__(self) -> SqliteLog:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. A log that is closed cannot be used any more."""
        # Without this note the next one who opens it only has to be more careful.
        with contextlib.suppress(sqlite3.Error), sqlite_file.transaction(self._db):
            self._note(closed=1)
        self._db.close()

    # --- what there is

    @property
    def pos(self) -> int:
        return self._pos

    def lost(self, session: str) -> int:
        return self._of(session).lost

    def epoch(self, session: str) -> str:
        found = self._sessions.get(session)
        if found is None:
            found = self._sessions[session] = _Session(None, self._new_epoch())
        return found.epoch

    def head(self, session: str) -> int:
        return self._of(session).head

    def first(self, session: str) -> int:
        return self._of(session).first

    def sessions(self) -> tuple[str, ...]:
        """The sessions of which there are, or were, events."""
        return tuple(name for name, session in self._sessions.items() if session.id is not None)

    def _of(self, session: str) -> _Session:
        return self._sessions.get(session, _NOTHING)

    # --- writing

    def append(self, session: str, events: Sequence[Event]) -> list[Event]:
        return self.write([Batch(session, events)])[0]

    @property
    def keeps_states(self) -> bool:
        return True

    def state(self, session: str) -> tuple[str, list[str]] | None:
        id = self._of(session).id
        with self._typed():
            row = self._db.execute("SELECT body FROM states WHERE session = ?", (id,)).fetchone()
            if row is None:
                return None
            said = self._db.execute("SELECT body FROM conversations WHERE session = ? ORDER BY n", (id,))
            return str(row[0]), [str(body) for (body,) in said]

    def letters(self, session: str) -> list[str]:
        with self._typed():
            rows = self._db.execute("SELECT body FROM letters WHERE session = ? ORDER BY n", (self._of(session).id,))
            return [str(body) for (body,) in rows]

    def forget_state(self, session: str) -> None:
        id = self._of(session).id
        with self._typed(), sqlite_file.transaction(self._db):
            self._db.execute("DELETE FROM states WHERE session = ?", (id,))
            self._db.execute("DELETE FROM conversations WHERE session = ?", (id,))
            self._db.execute("DELETE FROM letters WHERE session = ?", (id,))

    def erase(self, session: str) -> None:
        id = self._of(session).id
        if id is not None:
            with self._typed(), sqlite_file.transaction(self._db):
                for table in ("states", "conversations", "letters"):
                    self._db.execute(f"DELETE FROM {table} WHERE session = ?", (id,))  # noqa: S608 - names of our own
                # Its events belong to nobody from now on, and are read no more.
                self._db.execute("DELETE FROM sessions WHERE id = ?", (id,))
                self._db.execute("INSERT INTO erased (session) VALUES (?)", (id,))
            self._erased.append(id)
        self._sessions.pop(session, None)
        with self._typed(), sqlite_file.transaction(self._db):
            self._sweep()

    def _sweep(self) -> None:
        """Delete some of the events that belong to nobody."""
        if not self._erased:
            return
        id = self._erased[0]
        some = "SELECT pos FROM events WHERE session = ? LIMIT ?"
        if self._db.execute(f"DELETE FROM events WHERE pos IN ({some})", (id, SWEPT)).rowcount < SWEPT:  # noqa: S608
            self._db.execute("DELETE FROM erased WHERE session = ?", (id,))
            # Should this not be written, it is found again when the file is opened.
            self._erased.remove(id)

    def write(self, batch: Sequence[Batch], states: Sequence[State] = ()) -> list[list[Event]]:
        no_deltas(batch)
        if not states and not any(events for _, events in batch):
            return [[] for _ in batch]
        stored: list[list[Event]] = []
        with self._typed(), self._whole() as changed, sqlite_file.transaction(self._db):
            for name, events in batch:
                stored.append(self._store(name, events, changed) if events else [])
            for state in states:
                self._keep_state(state, changed)
            self._forget(changed)
            self._sweep()
            self._db.executemany(
                "UPDATE sessions SET head = ?, first = ?, lost = ? WHERE id = ?",
                [(s.head, s.first, s.lost, s.id) for s in changed.values()],
            )
            self._note(pos=self._pos, kept_from=self._kept_from)
        return stored

    def _store(self, name: str, events: Sequence[Event], changed: dict[str, _Session]) -> list[Event]:
        session = self._row(name, changed)
        stored = [
            event.model_copy(update={"seq": session.head + number, "pos": self._pos + number})
            for number, event in enumerate(events, 1)
        ]
        self._db.executemany(
            "INSERT INTO events (pos, session, seq, body) VALUES (?, ?, ?, ?)",
            [(event.pos, session.id, event.seq, _body(event)) for event in stored],
        )
        session.head += len(stored)
        self._pos += len(stored)
        return stored

    def _keep_state(self, state: State, changed: dict[str, _Session]) -> None:
        id = self._row(state.session, changed).id
        self._db.execute("INSERT OR REPLACE INTO states (session, body) VALUES (?, ?)", (id, state.record))
        self._db.execute("DELETE FROM conversations WHERE session = ? AND n >= ?", (id, state.keep))
        self._db.executemany(
            "INSERT INTO conversations (session, n, body) VALUES (?, ?, ?)",
            [(id, number, body) for number, body in enumerate(state.messages, state.keep)],
        )
        if state.letters:
            self._db.executemany(
                "INSERT OR REPLACE INTO letters (session, n, body) VALUES (?, ?, ?)",
                [(id, number, body) for number, body in state.letters],
            )
            last = max(number for number, _ in state.letters)
            self._db.execute("DELETE FROM letters WHERE session = ? AND n <= ?", (id, last - LETTERS))

    def _row(self, name: str, changed: dict[str, _Session]) -> _Session:
        """The session as this transaction leaves it; with a row of its own."""
        session = changed[name] = changed.get(name) or replace(self._sessions.get(name) or self._fresh(name))
        if session.id is None:
            row = self._db.execute(
                "INSERT INTO sessions (id, name, epoch, head, first, lost) VALUES (?, ?, ?, 0, 1, 0)",
                (self._next_id, _key(name), session.epoch),
            )
            session.id = row.lastrowid
            self._next_id += 1
        return session

    def _fresh(self, name: str) -> _Session:
        # Its epoch may have been told before it has an event, so it must not get another one if this fails.
        self.epoch(name)
        return self._sessions[name]

    def _forget(self, changed: dict[str, _Session]) -> None:
        """Drop the oldest events beyond what is kept."""
        if self._keep is None or self._pos - self._keep < self._kept_from:
            return
        cut = self._pos - self._keep
        gone = self._db.execute(
            "SELECT name, MAX(seq), MAX(pos) FROM events JOIN sessions ON sessions.id = events.session"
            " WHERE pos <= ? GROUP BY session",
            (cut,),
        )
        for key, seq, pos in gone.fetchall():
            name = _name(key)
            session = changed[name] = changed.get(name) or replace(self._sessions[name])
            session.first, session.lost = seq + 1, pos
        self._db.execute("DELETE FROM events WHERE pos <= ?", (cut,))
        self._kept_from = cut + 1

    def _note(self, **facts: object) -> None:
        self._db.executemany("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", facts.items())

    @contextlib.contextmanager
    def _whole(self) -> Iterator[dict[str, _Session]]:
        """What is remembered changes with what is in the file: both, or neither."""
        before = self._pos, self._kept_from
        changed: dict[str, _Session] = {}
        try:
            yield changed
        except BaseException:
            self._pos, self._kept_from = before
            raise
        self._sessions.update(changed)

    # --- reading

    def after(self, pos: int, limit: int, session: str | None = None) -> list[Logged]:
        if limit < 1:
            return []
        with self._typed():
            if session is not None:
                above = self._seq_at(session, pos)
                return [Logged(session, event) for event in self.read(session, after=above, limit=limit)]
            rows = self._db.execute(
                "SELECT name, body FROM events JOIN sessions ON sessions.id = events.session"
                " WHERE pos > ? ORDER BY pos LIMIT ?",
                (pos, limit),
            )
            return [Logged(_name(name), self._read(body)) for name, body in rows]

    def _seq_at(self, session: str, pos: int) -> int:
        """`seq` of the session's newest event that is not above `pos`."""
        known = self._of(session)
        low, high = known.first - 1, known.head
        while low < high:
            middle = (low + high + 1) // 2
            row = self._db.execute(
                "SELECT pos FROM events WHERE session = ? AND seq = ?", (known.id, middle)
            ).fetchone()
            if row is None:
                raise self._damaged(f"event {middle} of {session!r} is missing")
            low, high = (middle, high) if row[0] <= pos else (low, middle - 1)
        return low

    def read(
        self, session: str, *, after: int | None = None, before: int | None = None, limit: int = 500
    ) -> list[Event]:
        known = self._of(session)
        end = known.head if before is None else min(known.head, before - 1)
        if after is None:
            low, high = end - limit, end
        else:
            low = max(after, known.first - 1)
            high = min(low + limit, end)
        with self._typed():
            rows = self._db.execute(
                "SELECT body FROM events WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq",
                (known.id, low, high),
            )
            return [self._read(body) for (body,) in rows]

    def _read(self, body: str) -> Event:
        try:
            return _events.validate_json(body)
        except ValidationError:
            pass
        try:
            # The strict reader takes no lone surrogates, which agents do say.
            return _events.validate_python(json.loads(body))
        except ValueError as error:
            raise self._damaged(f"an event cannot be read: {type(error).__name__}") from None

    # --- faults

    @contextlib.contextmanager
    def _typed(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise sqlite_file.typed(error, self.path) from None

    def _damaged(self, what: str) -> StorageError:
        return StorageCorrupt(f"{self.path} is damaged ({what}): {sqlite_file.MOVE_AWAY}")


_NOTHING: Final = _Session(None, "")


def _body(event: Event) -> str:
    try:
        return event.model_dump_json(exclude_unset=True)
    except ValueError:
        tree: Any = event.model_dump(mode="json", exclude_unset=True)
        return json.dumps(tree)


def _key(name: str) -> bytes:
    """Ids are opaque: also one that is no text."""
    return name.encode("utf-8", "surrogatepass")


def _name(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")
