"""The browser as the toolkit drives it through `watchfloor web`: pasted text is taken out before keys are parsed, as it
is in a terminal, and the console ends with whoever serves it."""

from __future__ import annotations

import time
from codecs import getincrementaldecoder

from textual import messages
from textual._xterm_parser import XTermParser
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver

from console.terminal.driver import messages_of
from console.terminal.pasting import Pastes


class BrowserDriver(WebDriver):
    """Takes pasted text for text, whatever control characters stand in it."""

    def start_application_mode(self) -> None:
        """Begin to draw; the toolkit asks for the mouse here whether it is wanted or not."""
        super().start_application_mode()
        if not self._mouse:
            self._disable_mouse_support()

    def run_input_thread(self) -> None:
        """Wait for input and pass it on, until there is no more."""
        parser, pastes, stream = XTermParser(), Pastes(), ByteStream()
        decode = getincrementaldecoder("utf-8")("replace").decode
        for data in self._input_reader:
            if data:
                for kind, payload in stream.feed(data):
                    if kind == "D":
                        for message in messages_of(pastes.feed(decode(payload), time.monotonic()), parser):
                            self.process_message(message)
                    else:
                        self._on_meta(kind, payload)
            else:
                for message in messages_of(pastes.quiet(time.monotonic()), parser):
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)
        if not self.exit_event.is_set():
            # Nobody is there any more who could see it.
            self.process_message(messages.ExitApp())
