"""What the console and the writer of its journal say to each other: messages of plain values over a socket.

They are two processes of one program, started by one interpreter: what they say is never seen by anybody else and is
in no file, so that the interpreter's own form of values serves, which takes a fraction of any other.

To the writer: `("open", path, age_s, size)` first, `("hide", forms)`, `("keep", number, source, at, parts)` with parts
of a tag and the fields that belong to it, `("ask", id, what, arguments)`. From it: `("state", number, lost, fault,
opened, notice)`, where all that was handed over up to `number` is done with, `("answer", id, fault, value)` and
`("said", line)` for the log.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

Message: TypeAlias = tuple[Any, ...]
_SIZE: Final = 4
# The newer forms look for values that stand in several places, which takes longer than to write them twice.
_FORM: Final = 2


def framed(message: Message) -> bytes:
    """The message as it goes over the socket. Raises ValueError where it holds something other than plain values."""
    body = marshal.dumps(message, _FORM)
    return len(body).to_bytes(_SIZE, "big") + body


class Messages:
    """Bytes in, messages out."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are whole by now."""
        held = self._held
        held += data
        begin = 0
        while len(held) - begin >= _SIZE:
            end = begin + _SIZE + int.from_bytes(held[begin : begin + _SIZE], "big")
            if len(held) < end:
                break
            with memoryview(held) as view:
                message: Message = marshal.loads(view[begin + _SIZE : end])  # noqa: S302 - our own process wrote it
            yield message
            begin = end
        del held[:begin]
