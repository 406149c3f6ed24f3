"""Questions to the journal's file. Frames are given as they stand there: to read them takes the models."""

from __future__ import annotations

import sqlite3

from console.fleet.continuity import Spans
from console.journal import packing
from console.journal.records import Found, Place, SourceStats, Stats
from watchfloor.errors import StorageCorrupt


def places(db: sqlite3.Connection, source: str) -> dict[str, Place]:
    """See `Store.places`."""
    rows = db.execute(
        "SELECT sessions.name, epoch, held, lost, first FROM runs JOIN sessions ON sessions.id = runs.session"
        " JOIN sources ON sources.id = sessions.source WHERE sources.name = ? ORDER BY runs.at, runs.id",
        (packing.name(source),),
    )
    return {packing.text(name): _place(*rest) for name, *rest in rows}


def _place(epoch: bytes, held: str, lost: str, first: int) -> Place:
    received, gone = packing.spans(held), packing.spans(lost)
    known = Spans()
    for low, high in (*received.intervals(), *gone.intervals()):
        known.add_range(low, high)
    through = known.intervals()[0][1] if known.low == 1 else 0
    gone.add_range(1, first - 1)
    kept = tuple((max(low, first), high) for low, high in received.intervals() if high >= first)
    return Place(packing.text(epoch), kept, gone.intervals(), through)


def run_of(db: sqlite3.Connection, source: str, session: str, epoch: str) -> int | None:
    """The row of one epoch of a session."""
    row = db.execute(
        "SELECT runs.id FROM runs JOIN sessions ON sessions.id = runs.session JOIN sources"
        " ON sources.id = sessions.source WHERE sources.name = ? AND sessions.name = ? AND epoch = ?",
        (packing.name(source), packing.name(session), packing.name(epoch)),
    ).fetchone()
    return None if row is None else int(row[0])


def before(db: sqlite3.Connection, source: str, session: str, epoch: str, before: int, limit: int) -> Found:
    """See `Store.before`."""
    run = run_of(db, source, session, epoch)
    if run is None:
        return Found(epoch, {}, (), False)
    rows = db.execute(
        "SELECT seq, frame FROM events WHERE run = ? AND seq < ? ORDER BY seq DESC LIMIT ?", (run, before, limit + 1)
    ).fetchall()
    wanted: dict[int, int] = {}
    for seq, frame in rows:
        if seq != before - 1 - len(wanted):
            break
        wanted[seq] = frame
    more = len(wanted) > limit
    if more:
        del wanted[min(wanted)]
    return _found(db, epoch, wanted, more)


def events(db: sqlite3.Connection, source: str, session: str, epoch: str) -> Found:
    """All events of one epoch of a session."""
    run = run_of(db, source, session, epoch)
    rows = db.execute("SELECT seq, frame FROM events WHERE run = ? ORDER BY seq", (run,))
    return _found(db, epoch, dict(rows.fetchall()), False)


def _found(db: sqlite3.Connection, epoch: str, wanted: dict[int, int], more: bool) -> Found:
    places = {id: place for place, id in enumerate(dict.fromkeys(wanted.values()))}
    frames = [frame(db, id) for id in places]
    return Found(epoch, {seq: places[id] for seq, id in wanted.items()}, frames, more)


def frame(db: sqlite3.Connection, id: int) -> bytes:
    """A frame as it came. Raises StorageCorrupt."""
    row = db.execute("SELECT form, raw FROM frames WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise StorageCorrupt(f"frame {id} of the journal is missing")
    return packing.unpack(*row)


def seen(db: sqlite3.Connection, source: str) -> dict[str, tuple[int, str]]:
    """See `Store.seen`."""
    rows = db.execute(
        "SELECT sessions.name, seen.at, seen.body FROM seen JOIN sessions ON sessions.id = seen.session"
        " JOIN sources ON sources.id = sessions.source WHERE sources.name = ?",
        (packing.name(source),),
    )
    return {packing.text(name): (at, body) for name, at, body in rows}


def size(db: sqlite3.Connection) -> int:
    """Bytes that are in use."""
    pages, free, each = (
        int(db.execute(f"PRAGMA {what}").fetchone()[0]) for what in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * each


def stats(db: sqlite3.Connection) -> Stats:
    """See `Store.stats`."""
    sources = tuple(
        SourceStats(packing.text(name), sessions, *_of_source(db, id))
        for id, name, sessions in db.execute(
            "SELECT sources.id, sources.name, COUNT(sessions.id) FROM sources LEFT JOIN sessions"
            " ON sessions.source = sources.id GROUP BY sources.id ORDER BY sources.name"
        ).fetchall()
    )
    counts = [
        int(db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608 - a name of ours
        for table in ("frames", "events", "requests", "trails")
    ]
    frames, events, requests, trails = counts
    return Stats(size(db), frames, events, requests, trails, sources)


def _of_source(db: sqlite3.Connection, source: int) -> tuple[int, int | None, int | None]:
    events = db.execute(
        "SELECT COUNT(*) FROM events JOIN runs ON runs.id = events.run JOIN sessions ON sessions.id = runs.session"
        " WHERE sessions.source = ?",
        (source,),
    ).fetchone()[0]
    first, last = db.execute("SELECT MIN(at), MAX(at) FROM frames WHERE source = ?", (source,)).fetchone()
    return int(events), first, last
