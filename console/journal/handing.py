"""What of a frame is kept: taken out of it where it arrived, so that whoever writes it needs no models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.journal.records import Asked, Gone, Said

if TYPE_CHECKING:
    from watchfloor.protocol.frames import HostFrame, UnknownFrame


def handed(frame: HostFrame | UnknownFrame, raw: bytes | None) -> Said | Gone | Asked | None:
    """What is to be kept of a frame, which came as `raw` (None: its connector made it); None: nothing.

    Raises ProtocolError for one that its connector made and that cannot be written.
    """
    match frame.type:
        case "events" | "page":
            # Those without a number are pieces of what comes again whole.
            numbers = [event.seq for event in frame.events if event.seq is not None]  # type: ignore[union-attr]
            if not numbers:
                return None
            keys = {
                event.seq: event.key
                for event in frame.events  # type: ignore[union-attr]
                if event.key is not None and event.seq is not None
            }
            return Said(frame.session, frame.epoch, numbers, keys or None, raw or _written(frame))  # type: ignore[union-attr]
        case "gap":
            return Gone(frame.session, frame.epoch, frame.from_seq + 1, frame.to_seq)  # type: ignore[union-attr]
        case "request":
            name = frame.request.subject.get("id")  # type: ignore[union-attr]
            if not isinstance(name, str) or not name:
                return None
            return Asked(frame.session, name, frame.request.state.value, raw or _written(frame))  # type: ignore[union-attr]
        case _:
            return None


def _written(frame: HostFrame | UnknownFrame) -> bytes:
    from watchfloor.protocol.codec import encode

    return encode(frame)
