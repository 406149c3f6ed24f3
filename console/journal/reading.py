"""Questions to the journal's file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from console.fleet.absence import Mark
from console.fleet.continuity import Spans
from console.journal import packing
from console.journal.records import Place, SourceStats, Stats, Stored
from watchfloor.errors import ProtocolError, StorageCorrupt
from watchfloor.protocol.codec import decode_host
from watchfloor.protocol.events import Event
from watchfloor.protocol.frames import Events, Page


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


def before(db: sqlite3.Connection, source: str, session: str, epoch: str, before: int, limit: int) -> Stored:
    """See `Store.before`."""
    run = run_of(db, source, session, epoch)
    nothing = Stored(epoch, (), False)
    if run is None:
        return nothing
    rows = db.execute(
        "SELECT seq, frame FROM events WHERE run = ? AND seq < ? ORDER BY seq DESC LIMIT ?", (run, before, limit + 1)
    ).fetchall()
    wanted: dict[int, int] = {}
    for seq, frame in rows:
        if seq != before - 1 - len(wanted):
            break
        wanted[seq] = frame
    if not wanted:
        return nothing
    more = len(wanted) > limit
    if more:
        del wanted[min(wanted)]
    return Stored(epoch, tuple(_read(db, wanted)), more)


def events(db: sqlite3.Connection, source: str, session: str, epoch: str) -> list[Event]:
    """See `Store.events`."""
    run = run_of(db, source, session, epoch)
    rows = db.execute("SELECT seq, frame FROM events WHERE run = ? ORDER BY seq", (run,))
    return _read(db, dict(rows.fetchall()))


def _read(db: sqlite3.Connection, wanted: dict[int, int]) -> list[Event]:
    """The events of one run with these numbers, each from the frame that brought it."""
    found: dict[int, Event] = {}
    for frame in dict.fromkeys(wanted.values()):
        for event in frame_events(db, frame):
            if event.seq is not None and wanted.get(event.seq) == frame:
                found[event.seq] = event
    return [found[seq] for seq in sorted(wanted) if seq in found]


def frame_events(db: sqlite3.Connection, frame: int) -> Iterable[Event]:
    """What a frame brought. Raises StorageCorrupt."""
    row = db.execute("SELECT form, raw FROM frames WHERE id = ?", (frame,)).fetchone()
    if row is None:
        raise StorageCorrupt(f"frame {frame} of the journal is missing")
    try:
        read = decode_host(packing.unpack(*row)).frame
    except ProtocolError as fault:
        raise StorageCorrupt(f"frame {frame} of the journal cannot be read: {fault}") from None
    return read.events if isinstance(read, Events | Page) else ()


def seen(db: sqlite3.Connection, source: str) -> dict[str, Mark]:
    """See `Store.seen`."""
    rows = db.execute(
        "SELECT sessions.name, seen.at, seen.body FROM seen JOIN sessions ON sessions.id = seen.session"
        " JOIN sources ON sources.id = sessions.source WHERE sources.name = ?",
        (packing.name(source),),
    )
    found = ((packing.text(name), packing.mark(at, body)) for name, at, body in rows)
    return {name: mark for name, mark in found if mark is not None}


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
