"""Ctrl-C and its kin, heeded in order by a verb that serves."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from console.cli.exits import OK


class Ends:
    """Who asked us to end, and with which status."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        """Set by each asking; whoever heeds it may clear it, to wait for the next."""
        self.was_asked = False
        self.status = OK
        self.reason = ""

    def ask(self, status: int, reason: str = "") -> None:
        self.status, self.reason, self.was_asked = status, reason, True
        self.asked.set()

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Ctrl-C and its kin ask, instead of tearing down what runs."""
        loop = asyncio.get_running_loop()
        reasons = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "its terminal closed"}

        def heard(number: int, _: FrameType | None) -> None:
            # At once, and not by the loop's own handlers: those forget a signal that comes in their last moment.
            self.status, self.reason, self.was_asked = 128 + number, reasons[signal.Signals(number)], True
            loop.call_soon_threadsafe(self.asked.set)

        before = {number: signal.signal(number, heard) for number in reasons}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
