"""The journal's file: opened beside other consoles that write it too, brought up to date, or kept aside.

What cannot be used is never written to and never removed. A file that is damaged, or is no journal at all, is renamed,
so that a new journal can begin; one of a newer version belongs to whoever made it and stays where it is.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final

from console.journal.schema import APPLICATION, STEPS, version
from watchfloor import sqlite_file
from watchfloor.errors import StorageCorrupt, StorageForeign, StorageReadOnly

BUSY_MS: Final = 2_000
"""How long another console may hold the file before that counts as a fault."""
CHECKED: Final = 64 * 1024**2
"""Bytes up to which a file is looked through whenever it is opened."""
CHECKPOINT_PAGES: Final = 16_000
"""Pages (of 4 kB) that are written beside the file before they are moved into it."""
CACHE_KB: Final = 32_768
"""Of the file that is kept in memory: with ten thousand sessions a flush touches some thousand pages all over it."""
COMPANIONS: Final = ("", "-wal", "-shm")
"""A database in this mode is three files."""


def open_journal(path: Path, *, read_only: bool = False, check: bool = False) -> sqlite3.Connection:
    """The journal in this file, made where there is none. Raises a subclass of StorageError.

    A small file is looked through; a large one only with `check`, for that takes seconds.
    """
    sqlite_file.look(path, APPLICATION, version())
    try:
        if not read_only:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # What agents said is nobody else's; the files that SQLite adds take their mode from this one.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        where = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}"
        db = sqlite3.connect(where, uri=True, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    except OSError as error:
        raise StorageReadOnly(f"{path} cannot be written: {error.strerror or error}") from None
    except sqlite3.Error as error:
        raise sqlite_file.typed(error, path) from None
    try:
        if read_only:
            _must_be_of_now(db, path)
        else:
            _prepare(db, path, check=check or path.stat().st_size <= CHECKED)
    except sqlite3.Error as error:
        db.close()
        raise sqlite_file.typed(error, path) from None
    except BaseException:
        db.close()
        raise
    return db


def _must_be_of_now(db: sqlite3.Connection, path: Path) -> None:
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise StorageForeign(f"{path} is no journal")
    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found != version():
        raise StorageForeign(f"{path} is of an older version ({found}): open it with a console once")


def _prepare(db: sqlite3.Connection, path: Path, *, check: bool) -> None:
    if not db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
        # Without it the file could never become smaller; it has to be said before the first table.
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("BEGIN EXCLUSIVE")
    ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    if not ours and db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
        raise StorageForeign(f"{path} is the database of another program")
    for step in STEPS[db.execute("PRAGMA user_version").fetchone()[0] if ours else 0 :]:
        for statement in step:
            db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {version()}")
    db.execute("COMMIT")
    # Only now, so that the marks stand in the file's own header, where the next one looks for them.
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA cache_size = -{CACHE_KB}")
    # Each checkpoint waits for the disk; a page that many flushes write goes to the file itself once.
    db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    if check and (said := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise StorageCorrupt(f"{path} is damaged ({said.splitlines()[0][:120]})")


def put_aside(path: Path, stamp: str) -> Path:
    """Rename what stands here, so that a new journal can begin. Returns the new name. Raises OSError."""
    number = 1
    while True:
        aside = path.with_name(f"{path.stem}.aside-{stamp}{'' if number == 1 else f'-{number}'}{path.suffix}")
        if not aside.exists():
            break
        number += 1
    os.rename(path, aside)
    for companion in COMPANIONS[1:]:
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{companion}", f"{aside}{companion}")
    return aside
