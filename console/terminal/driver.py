"""The terminal as the toolkit drives it, but for its input: pasted text is taken out before the toolkit parses keys.

All that is used of the toolkit's inner parts is used here: the application's `_driver`, the driver's `fileno`,
`exit_event`, `process_message` and `_writer_thread` with its `_queue`, and the parser's `feed` and `tick`.
"""

from __future__ import annotations

import os
import selectors
import time
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from typing import Final

from textual import events
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from console.terminal.pasting import ESCAPE, Dropped, Keys, Pasted, Pastes, Piece

_LOOKS_EVERY_S: Final = 0.1
_READS_MOST: Final = 4_096
_BEHIND: Final = 12
"""Writes that wait for the terminal, three a frame. At thirty the toolkit stands still until one is taken."""


class PasteDropped(Message):
    """A paste was not kept. `ended` False: its end never came."""

    def __init__(self, characters: int, *, ended: bool) -> None:
        super().__init__()
        self.characters = characters
        self.ended = ended


def messages_of(pieces: Iterable[Piece], parser: XTermParser) -> Iterator[Message]:
    """What the toolkit is told of the input, in its order."""
    for piece in pieces:
        match piece:
            case Keys(text) if text == ESCAPE:
                yield events.Key("escape", ESCAPE)
            case Keys(text):
                yield from parser.feed(text)
            case Pasted(text):
                # The toolkit leaves these out of pastes as well.
                yield events.Paste(text.replace("\x00", ""))
            case Dropped(characters, ended):
                yield PasteDropped(characters, ended=ended)


def tell_terminal(app: App[int], sequence: str) -> None:
    """Write a whole sequence that draws nothing, between two frames of the screen: the driver hands on what it is given
    in one piece, and one piece after the other."""
    if app._driver is not None and not app.is_headless and not is_behind(app):
        app._driver.write(sequence)


def is_behind(app: App[int]) -> bool:
    """Does the terminal take less than it is given? It may have been stopped (Ctrl-S), or its line stands still: who
    waits for it neither reads its sources nor keeps what they say."""
    writer = app._driver._writer_thread if isinstance(app._driver, LinuxDriver) else None
    return writer is not None and writer._queue.qsize() >= _BEHIND


class TerminalDriver(LinuxDriver):
    """Takes pasted text for text, whatever control characters stand in it."""

    def run_input_thread(self) -> None:
        """Wait for input and pass it on, until the driver wants no more."""
        parser, pastes = XTermParser(), Pastes()
        decode = getincrementaldecoder("utf-8")("replace").decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            try:
                while not self.exit_event.is_set():
                    waits = pastes.waits_s
                    if selector.select(_LOOKS_EVERY_S if waits is None else min(waits, _LOOKS_EVERY_S)):
                        data = os.read(self.fileno, _READS_MOST)
                        self._pass_on(pastes.feed(decode(data), time.monotonic()), parser)
                        if not data:  # closed: it is readable for ever
                            self.exit_event.wait(_LOOKS_EVERY_S)
                    else:
                        self._pass_on(pastes.quiet(time.monotonic()), parser)
                    for message in parser.tick():
                        self.process_message(message)
            finally:
                self._end(parser)

    def _pass_on(self, pieces: list[Piece], parser: XTermParser) -> None:
        for message in messages_of(pieces, parser):
            self.process_message(message)

    @staticmethod
    def _end(parser: XTermParser) -> None:
        try:
            for _ in parser.feed(""):
                pass
        except (EOFError, ParseError):
            pass
