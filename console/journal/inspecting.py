"""Looking at a journal as a whole: is it in order, what is in it, and what of a damaged one can be saved."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from console.journal import packing, reading
from console.journal.decoding import frame_events
from console.journal.handing import handed
from console.journal.records import Findings, Heard, TrailRow
from console.journal.store import Store
from watchfloor import sqlite_file
from watchfloor.errors import ProtocolError, StorageCorrupt
from watchfloor.protocol.codec import decode_host

MOST_FAULTS: Final = 20
"""Faults that are told one by one."""
_OWNED: Final = (
    "SELECT events.seq, sources.name, sessions.name, epoch FROM events JOIN runs ON runs.id = events.run"
    " JOIN sessions ON sessions.id = runs.session JOIN sources ON sources.id = sessions.source"
    " WHERE events.frame = ? ORDER BY events.run, events.seq"
)


def check(db: sqlite3.Connection) -> Findings:
    """Look at every page, every frame and every event."""
    faults = [f"the file: {line}" for (line,) in db.execute(f"PRAGMA integrity_check({MOST_FAULTS})") if line != "ok"]
    frames = events = 0
    for (id,) in db.execute("SELECT id FROM frames ORDER BY id").fetchall():
        wanted = [seq for (seq,) in db.execute("SELECT seq FROM events WHERE frame = ?", (id,))]
        try:
            there = {event.seq for event in frame_events(reading.frame(db, id), id)}
        except StorageCorrupt as fault:
            faults.append(str(fault))
            continue
        frames += 1
        events += len(there.intersection(wanted))
        if missing := sorted(set(wanted) - there):
            faults.append(
                f"frame {id} lacks event {missing[0]}" + (f" and {len(missing) - 1} more" * bool(missing[1:]))
            )
    orphans = db.execute("SELECT COUNT(*) FROM events WHERE frame NOT IN (SELECT id FROM frames)").fetchone()[0]
    if orphans:
        faults.append(f"{orphans} events have lost the frame that brought them")
    for run, held in db.execute("SELECT id, held FROM runs").fetchall():
        known = packing.spans(held)
        stray = sum(seq not in known for (seq,) in db.execute("SELECT seq FROM events WHERE run = ?", (run,)))
        if stray:
            faults.append(f"{stray} events are here that do not count as received (run {run})")
    more = len(faults) - MOST_FAULTS
    told = (*faults[:MOST_FAULTS], f"and {more} more") if more > 0 else tuple(faults)
    return Findings(frames, events, told)


def export(db: sqlite3.Connection, source: str | None = None, session: str | None = None) -> Iterator[dict[str, Any]]:
    """Everything that is here, or of one source or session, as JSON objects: events in the order in which they came,
    with all that their sources said of them, then requests, then commands of ours."""
    for id, at, form, raw in db.execute("SELECT id, at, form, raw FROM frames ORDER BY id"):
        rows = db.execute(_OWNED, (id,)).fetchall()
        if not rows:
            continue
        tree = _tree(packing.unpack(form, raw), id)
        found = {item.get("seq"): item for item in tree.get("events", ()) if isinstance(item, dict)}
        for seq, *names in rows:
            of = _owner(*names[:2])
            if seq in found and _wanted(of, source, session):
                yield {"type": "event", "at": at, **of, "epoch": packing.text(names[2]), "event": found[seq]}
    for name, owner, of_source, state, at, form, raw in db.execute(
        "SELECT requests.name, sessions.name, sources.name, state, at, form, raw FROM requests JOIN sessions"
        " ON sessions.id = requests.session JOIN sources ON sources.id = sessions.source ORDER BY at, requests.name"
    ):
        of = _owner(of_source, owner)
        if _wanted(of, source, session):
            request = _tree(packing.unpack(form, raw), packing.text(name)).get("request")
            yield {"type": "request", "at": at, **of, "state": state, "request": request}
    for id, of_source, owner, at, body in db.execute(
        "SELECT id, source, session, at, body FROM trails ORDER BY at, id"
    ):
        of = _owner(of_source, owner)
        if _wanted(of, source, session):
            yield {"type": "command", "at": at, **of, "id": id, **json.loads(body)}


def _owner(source: bytes, session: bytes) -> dict[str, str]:
    return {"source": packing.text(source), "session": packing.text(session)}


def _wanted(of: dict[str, str], source: str | None, session: str | None) -> bool:
    return source in (None, of["source"]) and session in (None, of["session"])


def _tree(raw: bytes, what: object) -> dict[str, Any]:
    try:
        tree = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise StorageCorrupt(f"frame {what} of the journal cannot be read") from None
    return tree if isinstance(tree, dict) else {}


def rebuild(damaged: Path, into: Path) -> tuple[int, int]:
    """Make a new journal of what can still be read; returns how many events it has, and how many frames are lost.

    The damaged file is only read. Raises StorageError where the new one cannot be made, FileExistsError where it is
    there already.
    """
    if into.exists():
        raise FileExistsError(into)
    try:
        db = sqlite3.connect(f"{damaged.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise sqlite_file.typed(error, damaged) from None
    store = Store(into)
    events = lost = 0
    try:
        for source, at, form, raw in _readable(db):
            try:
                whole = packing.unpack(form, raw)
                what = handed(decode_host(whole).frame, whole)
            except (ProtocolError, StorageCorrupt):
                lost += 1
                continue
            if what is not None:
                events += store.write([Heard(packing.text(source), at, what)])
        with contextlib.suppress(sqlite3.Error):
            for id, of, session, at, body in db.execute("SELECT id, source, session, at, body FROM trails"):
                store.write([], [TrailRow(id, packing.text(of), packing.text(session), at, json.loads(body))])
    finally:
        store.close()
        db.close()
    return events, lost


def _readable(db: sqlite3.Connection) -> Iterator[tuple[bytes, int, int, bytes]]:
    """The frames and requests that are still found, one by one, so that a bad page costs only what is on it."""
    with contextlib.suppress(sqlite3.Error):
        sources = dict(db.execute("SELECT id, name FROM sources"))
        last = 0
        with contextlib.suppress(sqlite3.Error, TypeError):
            last = int(db.execute("SELECT MAX(id) FROM frames").fetchone()[0])
        misses = 0
        id = 0
        # Past the last number that is known there may be more, where the page that tells it is damaged.
        while id <= last or misses < 10_000:
            id += 1
            try:
                row = db.execute("SELECT source, at, form, raw FROM frames WHERE id = ?", (id,)).fetchone()
            except sqlite3.Error:
                row = None
            misses = 0 if row is not None else misses + 1
            if row is not None and row[0] in sources:
                yield sources[row[0]], row[1], row[2], row[3]
    with contextlib.suppress(sqlite3.Error):
        yield from db.execute(
            "SELECT sources.name, at, form, raw FROM requests JOIN sessions ON sessions.id = requests.session"
            " JOIN sources ON sources.id = sessions.source"
        )
