"""The tables of the journal's file, by version. A new file takes every step; an older one those that it lacks."""

from __future__ import annotations

from typing import Final

APPLICATION: Final = 0x57464A4C
"""What a file of ours has as its `application_id`."""

STEPS: Final[list[tuple[str, ...]]] = [
    (
        "CREATE TABLE sources (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE)",
        "CREATE TABLE sessions (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, name BLOB NOT NULL,"
        " UNIQUE (source, name))",
        # One epoch of a session. `held` and `lost` are intervals of numbers, as JSON: what was received, and what the
        # source said is gone for good. `first` is the oldest that is still here. Rows stay when their events go, so
        # that nothing is asked for again only because it is no longer kept.
        "CREATE TABLE runs (id INTEGER PRIMARY KEY, session INTEGER NOT NULL, epoch BLOB NOT NULL,"
        " held TEXT NOT NULL DEFAULT '[]', lost TEXT NOT NULL DEFAULT '[]', first INTEGER NOT NULL DEFAULT 1,"
        " at INTEGER NOT NULL, UNIQUE (session, epoch))",
        # The bytes as they came. `form` 1: deflated.
        "CREATE TABLE frames (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, at INTEGER NOT NULL,"
        " form INTEGER NOT NULL, raw BLOB NOT NULL)",
        "CREATE TABLE events (run INTEGER NOT NULL, seq INTEGER NOT NULL, frame INTEGER NOT NULL,"
        " PRIMARY KEY (run, seq)) WITHOUT ROWID",
        "CREATE INDEX events_by_frame ON events (frame)",
        # Where a source names its events itself: one that is read again under another number is the same one.
        "CREATE TABLE keys (session INTEGER NOT NULL, key BLOB NOT NULL, run INTEGER NOT NULL, seq INTEGER NOT NULL,"
        " frame INTEGER NOT NULL, PRIMARY KEY (session, key)) WITHOUT ROWID",
        "CREATE INDEX keys_by_frame ON keys (frame)",
        "CREATE TABLE requests (session INTEGER NOT NULL, name BLOB NOT NULL, state TEXT NOT NULL,"
        " at INTEGER NOT NULL, form INTEGER NOT NULL, raw BLOB NOT NULL, PRIMARY KEY (session, name))",
        "CREATE TABLE trails (id TEXT PRIMARY KEY, source BLOB NOT NULL, session BLOB NOT NULL, at INTEGER NOT NULL,"
        " body TEXT NOT NULL)",
    ),
    (
        # How each session was when somebody last could look at it.
        "CREATE TABLE seen (session INTEGER PRIMARY KEY, at INTEGER NOT NULL, body TEXT NOT NULL)",
    ),
]


def version() -> int:
    """The newest version that this program knows."""
    return len(STEPS)
