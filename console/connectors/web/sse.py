"""Server-sent events, bytes in and events out (WHATWG HTML, "Server-sent events"), and bounded, unlike libraries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from watchfloor.errors import ProtocolError

LARGEST: Final = 16 * 1024 * 1024
"""Bytes of one event that are accepted."""
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event. `id` is the last one that the stream named, so that it is what to resume after."""

    data: str
    event: str = "message"
    id: str = ""


class SseDecoder:
    """Takes the stream in pieces of any size.

    `retry_ms` is how long the server asks to wait before the next connection, None where it does not say. Comments,
    which servers send to keep the stream alive, are counted in `comments`.
    """

    def __init__(self, *, largest: int = LARGEST) -> None:
        self._largest = largest
        self._rest = bytearray()
        self._skip_newline = False
        self._begun = False
        self._data: list[bytes] = []
        self._size = 0
        self._event = ""
        self.last_id = ""
        self.retry_ms: int | None = None
        self.comments = 0

    def feed(self, piece: bytes) -> list[SseEvent]:
        """The events that end in this piece. Raises ProtocolError for one that is too large."""
        if self._skip_newline and piece[:1] == b"\n":
            piece = piece[1:]
        self._skip_newline = False
        start = len(self._rest)
        self._rest += piece
        events: list[SseEvent] = []
        done = 0
        while (end := self._end(max(start, done))) >= 0:
            line = bytes(self._rest[done:end])
            after = end + 1
            if self._rest[end] == 0x0D:
                if after == len(self._rest):
                    self._skip_newline = True
                elif self._rest[after] == 0x0A:
                    after += 1
            done = after
            if (event := self._line(line)) is not None:
                events.append(event)
        del self._rest[:done]
        if len(self._rest) + self._size > self._largest:
            raise ProtocolError(f"an event of more than {self._largest} bytes", bytes(self._rest[:4096]))
        return events

    def _end(self, start: int) -> int:
        """Index of the next end of a line, -1 for none."""
        newline, back = self._rest.find(b"\n", start), self._rest.find(b"\r", start)
        return min(newline, back) if newline >= 0 and back >= 0 else max(newline, back)

    def _line(self, line: bytes) -> SseEvent | None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"":
                self.comments += 1
            case b"data":
                self._data.append(value)
                self._size += len(value) + 1
            case b"event":
                self._event = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self.last_id = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit() and len(value) < 10:
                self.retry_ms = int(value)
            case _:
                pass
        return None

    def _dispatch(self) -> SseEvent | None:
        data, event = self._data, self._event
        self._data, self._event, self._size = [], "", 0
        if not data:
            return None
        return SseEvent(b"\n".join(data).decode("utf-8", "replace"), event or "message", self.last_id)
