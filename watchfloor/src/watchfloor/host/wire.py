"""Frames as bytes, none larger than a client must accept."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from watchfloor.errors import ProtocolError
from watchfloor.protocol.codec import MAX_RECEIVE, SPLIT_AT, encode
from watchfloor.protocol.events import Delta, Event, Raw
from watchfloor.protocol.frames import Events, Frame

T = TypeVar("T")
F = TypeVar("F", bound=Frame)

LARGEST_EVENT: Final = MAX_RECEIVE // 4
"""Bytes of one event that are still sent. Of a larger one the clients get its place and its size."""


def wire(frame: Frame) -> bytes:
    """The frame's bytes. Lone surrogates, which programs do print, become U+FFFD."""
    try:
        return encode(frame)
    except ProtocolError:
        tree = sound(frame.model_dump(mode="json", exclude_unset=True))
        return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode()


def encoded(frame: Frame) -> tuple[Frame, bytes]:
    """A frame with its bytes."""
    return frame, wire(frame)


def split(items: Sequence[T], make: Callable[[Sequence[T]], F], limit: int = SPLIT_AT) -> list[tuple[F, bytes]]:
    """As few frames as hold the items in order, each at most `limit` bytes unless a single item is larger."""
    frame = make(items)
    data = wire(frame)
    if len(data) <= limit or len(items) < 2:
        return [(frame, data)]
    half = len(items) // 2
    return split(items[:half], make, limit) + split(items[half:], make, limit)


def event_frames(session: str, epoch: str, events: Sequence[Event]) -> list[tuple[Events, bytes]]:
    """Events of one session as frames."""

    def make(some: Sequence[Event]) -> Events:
        return Events(session=session, epoch=epoch, events=anys(some))

    frames = split(events, make)
    for index, (frame, data) in enumerate(frames):
        if len(data) > LARGEST_EVENT:
            small = make([_too_large(event, len(data)) for event in frame.events])
            frames[index] = (small, wire(small))
    return frames


def anys(events: Sequence[Event]) -> list[Any]:
    """Events as the field of a frame takes them: it names every class, which a list of the base cannot show."""
    return list(events)


def join_deltas(events: Sequence[Event]) -> list[Event]:
    """The same events with neighbouring deltas of one item joined."""
    joined: list[Event] = []
    run: list[Delta] = []

    def close() -> None:
        if len(run) > 1:
            joined.append(run[0].model_copy(update={"text": "".join(delta.text for delta in run)}))
        else:
            joined.extend(run)
        run.clear()

    for event in events:
        if not isinstance(event, Delta):
            close()
            joined.append(event)
            continue
        if run and run[0].item != event.item:
            close()
        run.append(event)
    close()
    return joined


def _too_large(event: Event, size: int) -> Event:
    place = {name: getattr(event, name) for name in ("seq", "pos", "attempt", "at", "turn", "item", "key", "author")}
    kind = getattr(event, "kind", "event")
    return Raw(data=None, note=f"a {kind} of {size} bytes was left out", **place)


def sound(tree: Any) -> Any:
    """The same tree of JSON values with U+FFFD in place of every lone surrogate."""
    match tree:
        case str():
            return tree if tree.isascii() else tree.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [sound(item) for item in tree]
        case dict():
            return {sound(key): sound(value) for key, value in tree.items()}
        case _:
            return tree
