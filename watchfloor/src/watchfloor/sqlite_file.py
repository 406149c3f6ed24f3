"""Files of SQLite that belong to this library: opened by one process at a time, never taken for something else.

What cannot be used is left exactly as it is: the header of a file is read before the database touches it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from watchfloor.errors import (
    StorageCorrupt,
    StorageError,
    StorageForeign,
    StorageFull,
    StorageInUse,
    StorageNewer,
    StorageReadOnly,
)

MOVE_AWAY: Final = "keep a copy, then restore a backup of it or start with another file"
_MAGIC: Final = b"SQLite format 3\x00"
_HEADER: Final = 100
_VERSION_AT: Final = 60
_APPLICATION_AT: Final = 68
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def open_file(path: Path, *, application: int, version: int, tables: Sequence[str]) -> sqlite3.Connection:
    """The file as a database of ours, made with these tables where it is not there or empty.

    No transaction is open: whoever writes begins one. Raises a subclass of StorageError.
    """
    look(path, application, version)
    try:
        # What agents said is nobody else's; the files that SQLite adds take their mode from this one.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StorageReadOnly(_cannot_write(path, error.strerror or str(error))) from None
    try:
        db = sqlite3.connect(path, timeout=0.0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise typed(error, path) from None
    try:
        _prepare(db, path, application, version, tables)
    except sqlite3.Error as error:
        db.close()
        raise typed(error, path) from None
    except BaseException:
        db.close()
        raise
    return db


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """What is written within is in the file wholly, or not at all."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def look(path: Path, application: int, version: int) -> None:
    """Is there nothing, an empty file, or one of ours that this version knows? Raises a subclass of StorageError."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageReadOnly(f"{path} cannot be read: {error.strerror or error}") from None
    if not header:
        return
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        raise StorageForeign(f"{path} is not a database of Watchfloor: name another file")
    found = int.from_bytes(header[_APPLICATION_AT : _APPLICATION_AT + 4], "big")
    wrote = int.from_bytes(header[_VERSION_AT : _VERSION_AT + 4], "big")
    if found not in (0, application):
        raise StorageForeign(f"{path} is the database of another program: name another file")
    if found == application and wrote > version:
        raise StorageNewer(
            f"{path} was written by a newer version (format {wrote}, this one knows {version}): "
            "update watchfloor, or name another file"
        )


def _prepare(db: sqlite3.Connection, path: Path, application: int, version: int, tables: Sequence[str]) -> None:
    # Kept until the connection is closed, so that no second process writes into what this one remembers.
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("BEGIN EXCLUSIVE")
    if db.execute("PRAGMA application_id").fetchone()[0] != application:
        if db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise StorageForeign(f"{path} is the database of another program: name another file")
        for table in tables:
            db.execute(table)
        db.execute(f"PRAGMA application_id = {application}")
        db.execute(f"PRAGMA user_version = {version}")
    db.execute("COMMIT")
    # Only now, so that the marks stand in the file's own header, where the next one looks for them.
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    said = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if said != "ok":
        raise StorageCorrupt(f"{path} is damaged ({said.splitlines()[0][:120]}): {MOVE_AWAY}")


def boot() -> str | None:
    """Which boot of the machine this is; None where the system does not tell."""
    try:
        return _BOOT.read_text("ascii").strip() or None
    except (OSError, ValueError):
        return None


def typed(error: sqlite3.Error, path: Path) -> StorageError:
    """The fault as what it means to whoever has the file."""
    # The extended codes hold the plain one in their lowest byte.
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StorageCorrupt(f"{path} is damaged ({error}): {MOVE_AWAY}")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return StorageReadOnly(_cannot_write(path, str(error)))
        case sqlite3.SQLITE_FULL:
            return StorageFull(f"{path} cannot grow ({error}): make room on its disk")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StorageInUse(
                f"{path} is in use, by another process or already by this one: end that one, or name another file"
            )
        case _:
            return StorageError(f"{path} cannot be used: {error}")


def _cannot_write(path: Path, why: str) -> str:
    return f"{path} cannot be written ({why}): let this user write it and its folder, or name another file"
