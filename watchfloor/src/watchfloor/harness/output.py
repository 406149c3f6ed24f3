"""A program's output, from bytes as they come to pieces of text worth an event. No I/O and no clock."""

from __future__ import annotations

import codecs
from collections import deque
from dataclasses import dataclass
from typing import Final

PIECE: Final = 64 * 1024
"""Most bytes of one piece, as UTF-8."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of one stream, at most `PIECE` bytes. Pieces put together are the stream, line ends included."""

    stream: str
    text: str


class Output:
    """Collects what two streams say, in the order in which their lines were completed.

    Bytes that are not UTF-8 become U+FFFD. A line that has not ended is held back until `take(partial=True)`,
    or until it alone fills a piece.
    """

    def __init__(self) -> None:
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._lines: deque[tuple[str, str]] = deque()
        self._tails: dict[str, str] = {}
        self.size = 0
        """Characters that `take` would give now, without partial lines."""
        self.last_line = ""
        """The newest line that was not blank, cut to 200 characters."""

    @property
    def has_partial(self) -> bool:
        return bool(self._tails)

    def feed(self, stream: str, data: bytes) -> None:
        """Bytes that arrived on a stream."""
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = codecs.getincrementaldecoder("utf-8")("replace")
        self._add(stream, decoder.decode(data))

    def end(self, stream: str) -> None:
        """The stream is at its end: an unfinished character becomes U+FFFD, an unfinished line is given out."""
        decoder = self._decoders.pop(stream, None)
        if decoder is not None:
            self._add(stream, decoder.decode(b"", final=True))
        if tail := self._tails.pop(stream, ""):
            self._queue(stream, tail)

    def take(self, *, partial: bool = False) -> list[Piece]:
        """What is ready; with `partial` also the lines that have not ended."""
        if partial:
            for stream, tail in self._tails.items():
                self._queue(stream, tail)
            self._tails.clear()
        pieces: list[Piece] = []
        while self._lines:
            stream, text = self._lines.popleft()
            run = [text]
            while self._lines and self._lines[0][0] == stream:
                run.append(self._lines.popleft()[1])
            pieces += [Piece(stream, part) for part in _cut("".join(run))]
        self.size = 0
        return pieces

    def _add(self, stream: str, text: str) -> None:
        if not text:
            return
        text = self._tails.pop(stream, "") + text
        whole = text.rfind("\n") + 1
        if whole:
            self._queue(stream, text[:whole])
        tail = text[whole:]
        if len(tail) >= PIECE:
            self._queue(stream, tail)
        elif tail:
            self._tails[stream] = tail

    def _queue(self, stream: str, text: str) -> None:
        self._lines.append((stream, text))
        self.size += len(text)
        if line := next((x for x in reversed(text[-400:].split("\n")) if x.strip()), ""):
            self.last_line = line.strip()[:200]


def _cut(text: str) -> list[str]:
    """Parts of at most `PIECE` bytes, at line ends where there are some."""
    # Four bytes are the most that a character takes: cheaper than measuring, and pieces need not be full.
    most = PIECE if text.isascii() else PIECE // 4
    parts, start = [], 0
    while len(text) - start > most:
        end = text.rfind("\n", start, start + most) + 1 or start + most
        parts.append(text[start:end])
        start = end
    if start < len(text):
        parts.append(text[start:])
    return parts
