"""Frames of the journal as events. The models are loaded here, and nowhere else where the file is written."""

from __future__ import annotations

from collections.abc import Sequence

from console.journal.records import Found, Stored
from watchfloor.errors import ProtocolError, StorageCorrupt
from watchfloor.protocol.codec import decode_host
from watchfloor.protocol.events import Event
from watchfloor.protocol.frames import Events, Page


def frame_events(raw: bytes, what: object) -> Sequence[Event]:
    """What a frame brought; `what` names it. Raises StorageCorrupt."""
    try:
        read = decode_host(raw).frame
    except ProtocolError as fault:
        raise StorageCorrupt(f"frame {what} of the journal cannot be read: {fault}") from None
    return read.events if isinstance(read, Events | Page) else ()


def stored(found: Found) -> Stored:
    """What was found, each event from the frame that brought it. Raises StorageCorrupt."""
    events: dict[int, Event] = {}
    for place, raw in enumerate(found.frames):
        for event in frame_events(raw, "(found)"):
            if event.seq is not None and found.wanted.get(event.seq) == place:
                events[event.seq] = event
    return Stored(found.epoch, tuple(events[seq] for seq in sorted(events)), found.more)
