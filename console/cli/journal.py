"""`watchfloor journal`: what is kept of the sources, whether it is in order, and how to get it out."""

from __future__ import annotations

import time
from argparse import Namespace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from console.cli import out
from console.cli.exits import OK, USAGE, Fail
from console.config import load
from console.files import expanded
from console.journal.journal import JOURNAL
from console.places import state_folder
from watchfloor.errors import StorageError
from watchfloor.text import Clean, clean_line

if TYPE_CHECKING:
    import sqlite3

FAULTY: Final = 2
"""The exit status where something is wrong with it."""
MB: Final = 1024**2


def journal(args: Namespace) -> int:
    """Do what is asked. Raises Fail where the file cannot be used."""
    path = expanded(args.file) if args.file is not None else state_folder() / JOURNAL
    if not path.exists():
        raise Fail(f"{path} does not exist: a console makes it when it opens", USAGE)
    try:
        match args.what:
            case "stats":
                return _stats(args, path)
            case "check":
                return _check(args, path)
            case "prune":
                return _prune(args, path)
            case _:
                return _export(args, path)
    except StorageError as fault:
        raise Fail(str(fault), FAULTY) from None


def _opened(path: Path) -> sqlite3.Connection:
    from console.journal.file import open_journal

    return open_journal(path, read_only=True)


def _stats(args: Namespace, path: Path) -> int:
    from console.journal.reading import stats

    db = _opened(path)
    try:
        found = stats(db)
    finally:
        db.close()
    if args.json:
        out.record(
            {
                "file": str(path),
                "bytes": found.bytes,
                "frames": found.frames,
                "events": found.events,
                "requests": found.requests,
                "commands": found.trails,
                "sources": [
                    {"source": s.name, "sessions": s.sessions, "events": s.events, "from": s.first_at, "to": s.last_at}
                    for s in found.sources
                ],
            }
        )
        return OK
    counts = f"{found.events:,} events, {found.requests:,} requests, {found.trails:,} commands"
    out.line(clean_line(f"{path}: {found.bytes / MB:.1f} MB, {counts}"))
    if found.sources:
        rows = [
            [
                clean_line(s.name),
                Clean(f"{s.sessions:,}"),
                Clean(f"{s.events:,}"),
                _time(s.first_at),
                _time(s.last_at),
            ]
            for s in found.sources
        ]
        out.table(("source", "sessions", "events", "from", "to"), rows)
    return OK


def _check(args: Namespace, path: Path) -> int:
    import sqlite3

    from console.journal.inspecting import check, rebuild
    from watchfloor.sqlite_file import typed

    if args.rebuild is not None:
        into = expanded(args.rebuild)
        try:
            events, lost = rebuild(path, into)
        except FileExistsError:
            raise Fail(f"{into} exists already and is left as it is", USAGE) from None
        out.line(clean_line(f"{into}: {events:,} events of {path}; {lost:,} frames could not be read"))
        return OK
    try:
        db = _opened(path)
        try:
            found = check(db)
        finally:
            db.close()
    except sqlite3.Error as error:
        raise typed(error, path) from None
    if args.json:
        out.record({"file": str(path), "frames": found.frames, "events": found.events, "faults": list(found.faults)})
    else:
        for fault in found.faults:
            out.line(clean_line(fault))
        state = "is in order" if not found.faults else "is not in order"
        out.line(clean_line(f"{path} {state}: {found.events:,} events in {found.frames:,} frames can be read"))
    return OK if not found.faults else FAULTY


def _prune(args: Namespace, path: Path) -> int:
    from console.journal.records import Retention
    from console.journal.store import Store

    days, mb = args.days, args.mb
    if days is None and mb is None:
        config = load()
        days, mb = config.journal_days, config.journal_mb
    retention = Retention.of(days, mb)
    store = Store(path)
    try:
        pruned = store.prune(retention, time.time_ns() // 1_000_000)
    finally:
        store.close()
    gone = f"{pruned.events:,} events, {pruned.requests:,} requests and {pruned.trails:,} commands"
    out.line(clean_line(f"{path}: let go of {gone}"))
    return OK


def _export(args: Namespace, path: Path) -> int:
    from console.journal.inspecting import export
    from console.recording.scrubber import scrubbed

    db = _opened(path)
    try:
        found = False
        for record in export(db, args.source, args.session):
            found = True
            out.record(record if args.raw else scrubbed(record))
        if not found:
            asked = [f"{name} {value!r}" for name in ("source", "session") if (value := getattr(args, name))]
            of = f" of {' and '.join(asked)}" if asked else ""
            out.note(f"{path} holds nothing{of}")
    finally:
        db.close()
    return OK


def _time(at: int | None) -> Clean:
    if at is None:
        return Clean("-")
    return Clean(datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M"))
