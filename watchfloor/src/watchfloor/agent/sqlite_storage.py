"""Sessions in a file: what an agent uses unless it is built with another storage."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from watchfloor import sqlite_file
from watchfloor.agent.permissions import Grant
from watchfloor.agent.session import Session, dumped, loaded
from watchfloor.errors import StorageCorrupt
from watchfloor.harness.base import ConversationMessage
from watchfloor.host.sessions.record import words
from watchfloor.words import Scope

APPLICATION: Final = 0x57464153
"""What a file of ours has as its `application_id`."""
VERSION: Final = 1

_TABLES: Final = (
    "CREATE TABLE sessions (id BLOB PRIMARY KEY, updated INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID",
    "CREATE INDEX by_update ON sessions (updated)",
    "CREATE TABLE messages (session BLOB, n INTEGER, body TEXT NOT NULL, PRIMARY KEY (session, n)) WITHOUT ROWID",
    "CREATE TABLE grants (n INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE)",
)
_grant: Final = TypeAdapter(Grant)
_FAR: Final = frozenset({Scope.WORKSPACE, Scope.AGENT, Scope.GLOBAL})


class SqliteStorage:
    """`Storage` and `Persistence` in a file that belongs to one process at a time, readable by its owner alone.

    Its threads share it: what reads much, as `list` does, need not be called on the event loop.

    Raises a subclass of StorageError where the file cannot be used, and leaves it as it is then.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = Path(path)
        self._db = sqlite_file.open_file(self.path, application=APPLICATION, version=VERSION, tables=_TABLES)
        self._lock = threading.RLock()
        # What of a session's messages is in the file: only what came since is written.
        self._written: dict[str, list[ConversationMessage]] = {}

    def close(self) -> None:
        """A storage that is closed cannot be used any more."""
        self._db.close()

    def load(self, id: str) -> Session | None:
        with self._typed():
            row = self._db.execute("SELECT body FROM sessions WHERE id = ?", (_key(id),)).fetchone()
            return None if row is None else self._read(id, str(row[0]))

    def list(self) -> Sequence[Session]:
        with self._typed():
            keys = self._db.execute("SELECT id FROM sessions ORDER BY updated DESC, id").fetchall()
        # One by one: whoever saves meanwhile does not wait for all of them.
        return [found for (key,) in keys if (found := self.load(_name(key))) is not None]

    def grants(self) -> Sequence[Grant]:
        with self._typed():
            rows = self._db.execute("SELECT body FROM grants ORDER BY n").fetchall()
        try:
            return [_grant.validate_json(body) for (body,) in rows]
        except ValueError as error:
            raise self._damaged("a grant", error) from None

    def save(self, session: Session, grants: Iterable[Grant] = ()) -> None:
        written = self._written.get(session.id)
        same = 0
        if written is not None:
            shortest = min(len(written), len(session.messages))
            while same < shortest and written[same] is session.messages[same]:
                same += 1
        key = _key(session.id)
        with self._typed(), sqlite_file.transaction(self._db):
            self._db.execute(
                "INSERT OR REPLACE INTO sessions (id, updated, body) VALUES (?, ?, ?)",
                (key, session.updated_at, dumped(session)),
            )
            self._db.execute("DELETE FROM messages WHERE session = ? AND n >= ?", (key, same))
            self._db.executemany(
                "INSERT INTO messages (session, n, body) VALUES (?, ?, ?)",
                [(key, number, words(message)) for number, message in enumerate(session.messages[same:], same)],
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO grants (body) VALUES (?)",
                [(_grant.dump_json(grant).decode(),) for grant in grants if grant.scope in _FAR],
            )
        self._written[session.id] = list(session.messages)

    def delete(self, id: str) -> bool:
        self._written.pop(id, None)
        with self._typed(), sqlite_file.transaction(self._db):
            self._db.execute("DELETE FROM messages WHERE session = ?", (_key(id),))
            return self._db.execute("DELETE FROM sessions WHERE id = ?", (_key(id),)).rowcount > 0

    def _read(self, id: str, body: str) -> Session:
        rows = self._db.execute("SELECT body FROM messages WHERE session = ? ORDER BY n", (_key(id),))
        try:
            return loaded(body, [text for (text,) in rows])
        except ValueError as error:
            raise self._damaged(f"session {id!r}", error) from None

    def _damaged(self, what: str, error: ValueError) -> StorageCorrupt:
        kind = type(error).__name__
        return StorageCorrupt(f"{self.path} is damaged ({what} cannot be read: {kind}): {sqlite_file.MOVE_AWAY}")

    @contextlib.contextmanager
    def _typed(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise sqlite_file.typed(error, self.path) from None


def _key(id: str) -> bytes:
    return id.encode("utf-8", "surrogatepass")


def _name(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")
