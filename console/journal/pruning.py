"""What the journal lets go of: the oldest first, by age and by size."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from console.journal.reading import size
from console.journal.records import Pruned, Retention

AT_ONCE: Final = 1_000
"""Frames of one transaction, so that what is to be written does not wait for long."""
SETTLED: Final = ("resolved", "expired", "withdrawn")


def prune(
    db: sqlite3.Connection,
    transaction: Callable[[], AbstractContextManager[None]],
    retention: Retention,
    now: int,
    most: int | None,
) -> Pruned:
    """See `Store.prune`."""
    pruned = Pruned()
    if retention.age_s is not None:
        oldest = now - int(retention.age_s * 1000)
        while (last := _older(db, oldest, _step(most, pruned))) is not None:
            with transaction():
                pruned += _frames_through(db, last)
        with transaction():
            pruned += _rest(db, oldest)
    if retention.size is not None:
        while (over := size(db) - retention.size) > 0 and (last := _first(db, over, _step(most, pruned))) is not None:
            with transaction():
                pruned += _frames_through(db, last)
    if pruned.frames:
        # Its rows have to be fetched for anything to happen.
        db.execute("PRAGMA incremental_vacuum").fetchall()
    return pruned


def _step(most: int | None, pruned: Pruned) -> int:
    return AT_ONCE if most is None else min(AT_ONCE, most - pruned.frames)


def _older(db: sqlite3.Connection, oldest: int, frames: int) -> int | None:
    """The last of the first few frames, as far as they came before `oldest`."""
    rows = db.execute("SELECT id, at FROM frames ORDER BY id LIMIT ?", (max(0, frames),)).fetchall()
    last = None
    for id, at in rows:
        if at >= oldest:
            break
        last = int(id)
    return last


def _first(db: sqlite3.Connection, bytes: int, frames: int) -> int | None:
    """The last of so many of the oldest frames, fewer where those take that many bytes."""
    last = None
    for id, length in db.execute("SELECT id, length(raw) FROM frames ORDER BY id LIMIT ?", (max(0, frames),)):
        last, bytes = int(id), bytes - length
        if bytes <= 0:
            break
    return last


def _frames_through(db: sqlite3.Connection, last: int) -> Pruned:
    runs = [run for (run,) in db.execute("SELECT DISTINCT run FROM events WHERE frame <= ?", (last,)).fetchall()]
    events = db.execute("DELETE FROM events WHERE frame <= ?", (last,)).rowcount
    db.execute("DELETE FROM keys WHERE frame <= ?", (last,))
    frames = db.execute("DELETE FROM frames WHERE id <= ?", (last,)).rowcount
    for run in runs:
        row = db.execute("SELECT MIN(seq) FROM events WHERE run = ?", (run,)).fetchone()
        if row[0] is None:
            row = db.execute("SELECT MAX(held.value) + 1 FROM runs, json_tree(runs.held) AS held WHERE runs.id = ?"
                             " AND held.type = 'integer'", (run,)).fetchone()  # fmt: skip
        db.execute("UPDATE runs SET first = MAX(first, ?) WHERE id = ?", (row[0] or 1, run))
    return Pruned(frames=frames, events=events)


def _rest(db: sqlite3.Connection, oldest: int) -> Pruned:
    marks = ", ".join("?" * len(SETTLED))
    settled = f"DELETE FROM requests WHERE at < ? AND state IN ({marks})"  # noqa: S608 - marks only
    requests = db.execute(settled, (oldest, *SETTLED)).rowcount
    trails = db.execute("DELETE FROM trails WHERE at < ?", (oldest,)).rowcount
    return Pruned(requests=requests, trails=trails)
