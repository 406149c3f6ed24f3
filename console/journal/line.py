"""The console's end of the journal's writer: its process, and the socket between them, on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from typing import Final

from console.journal.wire import Message, Messages

_READ: Final = 1 << 18
_ROOM: Final = 1 << 20
"""Bytes that the system is asked to hold between the two; it may hold fewer."""


class Line:
    """One life of the writer. `on_message` is given what it says, `on_end` how it ended, once.

    Made on a running event loop. Raises OSError where it cannot be started.
    """

    def __init__(self, on_message: Callable[[Message], None], on_end: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_message = on_message
        self._on_end = on_end
        self._messages = Messages()
        self._unsent: deque[memoryview] = deque()
        self._finishing = False
        self._open = True
        self._end, other = socket.socketpair()
        try:
            self._end.setblocking(False)
            with contextlib.suppress(OSError):
                self._end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM)
            self._process = subprocess.Popen(
                # -P: a folder of that name where the console happens to be started is not ours.
                [sys.executable, "-P", "-m", "console.journal.writer", str(other.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # The terminal is the console's.
                stderr=subprocess.DEVNULL,
                pass_fds=(other.fileno(),),
                # What the terminal's keys end or stop is the console: this ends behind it.
                start_new_session=True,
            )
        except BaseException:
            self._end.close()
            raise
        finally:
            other.close()
        self._loop.add_reader(self._end, self._read)

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def send(self, data: bytes) -> None:
        """Hand this over: as much as there is room for at once, the rest when there is."""
        if not self._open:
            return
        if not self._unsent:
            try:
                sent = self._end.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                return  # its end is read next
            if sent == len(data):
                return
            self._unsent.append(memoryview(data)[sent:])
            self._loop.add_writer(self._end, self._write)
        else:
            self._unsent.append(memoryview(data))

    def finish(self) -> None:
        """Nothing more is sent. It ends once it has written everything."""
        self._finishing = True
        if not self._unsent:
            self._hang_up()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)

    def _write(self) -> None:
        while self._unsent:
            try:
                sent = self._end.send(self._unsent[0])
            except BlockingIOError:
                return
            except OSError:
                self._unsent.clear()
                break
            if sent < len(self._unsent[0]):
                self._unsent[0] = self._unsent[0][sent:]
                return
            self._unsent.popleft()
        self._loop.remove_writer(self._end)
        if self._finishing:
            self._hang_up()

    def _read(self) -> None:
        try:
            data = self._end.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            for message in self._messages.feed(data):
                self._on_message(message)
            return
        self.let_go()
        # Whoever closes that socket is about to end.
        self._loop.call_soon(self._bury, 0)

    def _bury(self, tries: int) -> None:
        status = self._process.poll()
        if status is None and tries < 200:
            self._loop.call_later(0.005, self._bury, tries + 1)
            return
        self._on_end("it does not end" if status is None else _ended(status))

    def let_go(self) -> None:
        """Have nothing more to do with it."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._end)
            self._loop.remove_writer(self._end)
            self._unsent.clear()
            self._end.close()


def _ended(status: int) -> str:
    return f"it was ended by signal {-status}" if status < 0 else f"it ended with status {status}"
