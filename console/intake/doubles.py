"""What a source says twice where it may be said once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from watchfloor.protocol import events as e
from watchfloor.protocol import frames as f
from watchfloor.protocol.model import Summary
from watchfloor.protocol.stream import Stream, inside

LONG: Final = 200
"""Sessions in one frame that are looked through at once; what lists more is for later (`is_long`)."""


class _Twice(Exception):
    pass


def member_twice(raw: bytes) -> str:
    """The name of a member that stands twice in an object of this frame; "" where none does, or it cannot be read.

    Readers differ in which of the two they take, so that two people may read two requests in one.
    """
    try:
        json.loads(raw, object_pairs_hook=_once)
    except _Twice as found:
        return str(found)
    except (ValueError, RecursionError):
        pass
    return ""


def told_twice(raw: bytes, frame: f.HostFrame | f.UnknownFrame) -> str:
    """As `member_twice`, where most frames are let through by counting their members."""
    match frame:
        case f.Events() | f.Page():
            given, pieces = len(frame.__pydantic_fields_set__), True
            for event in frame.events:
                given += len(event.__pydantic_fields_set__)
                if type(event) is not e.Delta:
                    pieces = False
                    if type(event) is e.ToolCall and event.arguments is not None:
                        given += inside(event.arguments)[0]
            # Pieces: their whole follows, and stands instead of them. There is a colon for each member, and in most
            # texts there is none. Other events that hold objects have more members, and are read once more.
            if pieces or raw.count(b":") == given or _members(raw) == given:
                return ""
        case f.Sessions() if is_long(frame):
            return ""
        case _:
            pass
    return member_twice(raw)


def streamed_twice(raw: bytes, stream: Stream) -> bool:
    """May a member stand twice in an object of what streams? To be looked through with the models then."""
    if stream.pieces or (raw.count(b":") == stream.colons and b"\\u003" not in raw):
        return False  # pieces: their whole follows, and stands instead of them
    return _members(raw) != stream.members


def _members(raw: bytes) -> int | None:
    """How many members all objects have together; None where that is not to be had by counting."""
    parts = raw.split(b'"')
    if b"\\" in raw and any(part.endswith(b"\\") for part in parts[1::2]):
        return None  # a quote within a text
    # Outside of texts a colon stands behind each name, and nowhere else.
    return b"".join(parts[::2]).count(b":")


def is_long(frame: object) -> bool:
    """Is it a list of sessions that would take longer to be looked through than to be taken up?"""
    return type(frame) is f.Sessions and len(frame.sessions) > LONG


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = dict(pairs)
    if len(whole) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for name in names if names.count(name) > 1))
    return whole


def sessions_twice(summaries: Sequence[Summary]) -> list[str]:
    """Ids that one frame gives to several sessions: each of them is told whole, with a log of its own."""
    whole = [summary.id for summary in summaries if "epoch" in summary.model_fields_set]
    if len(set(whole)) == len(whole):
        return []
    seen: set[str] = set()
    return [id for id in whole if id in seen or seen.add(id)]  # type: ignore[func-returns-value]
