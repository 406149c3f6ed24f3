"""A program's output and what we say of it, passed on to our own without holding up whoever hands it over."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import queue
import select
import sys
import threading
from collections.abc import Awaitable
from typing import Final

from console.cli import out

MOST: Final = 64 * 1024 * 1024
"""Bytes that may wait for a stopped terminal or a slow reader; beyond them the program itself has to wait."""

_Waiting = tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]


class Echo:
    """Writes in a thread of its own: a host must go on answering while nobody reads its terminal."""

    def __init__(self, *, most: int = MOST) -> None:
        self._queue: queue.SimpleQueue[tuple[int, bytes] | str | None] = queue.SimpleQueue()
        self._most = most
        self._lock = threading.Lock()
        self._waiting = 0
        self._for_room: list[_Waiting] = []
        self._gone: set[int] = set()
        self._over = threading.Event()
        threading.Thread(target=self._write_on, name="echo", daemon=True).start()

    def __call__(self, stream: str, data: bytes) -> Awaitable[None] | None:
        """Pass on what the program wrote to "stdout" or "stderr"; what is returned lasts until more may come."""
        self._queue.put((sys.stderr.fileno() if stream == "stderr" else sys.stdout.fileno(), data))
        with self._lock:
            self._waiting += len(data)
            if self._waiting <= self._most:
                return None
            loop = asyncio.get_running_loop()
            room = loop.create_future()
            self._for_room.append((loop, room))
            return room

    def say(self, text: str) -> None:
        """A line of our own on standard error, behind everything that was passed on before it."""
        self._queue.put(text)

    def close(self, wait_s: float | None = None) -> None:
        """Write what waits, for as long as somebody reads it; with `wait_s`, so many seconds at most."""
        self._queue.put(None)
        try:
            self._over.wait(wait_s)  # a thread that is joined passes for ended once Ctrl-C has come in between
        finally:
            if not self._over.is_set() and (left := self._waiting):
                out.fail(f"{left} bytes of output were not written: nobody read them")

    def _write_on(self) -> None:
        midst = False
        while (item := self._queue.get()) is not None:
            if isinstance(item, str):
                _tell(item, midst=midst)
                midst = False
                continue
            handle, data = item
            if handle not in self._gone and (fault := _write(handle, data)) is not None:
                self._gone.add(handle)
                # Whoever left a pipe, as head does, has had enough.
                if fault.errno != errno.EPIPE:
                    _tell(f"the program's output can no longer be written: {fault.strerror or fault}", midst=midst)
            if _joined(handle):
                midst = not data.endswith(b"\n")
            self._written(len(data))
        self._over.set()

    def _written(self, count: int) -> None:
        with self._lock:
            self._waiting -= count
            if self._waiting > self._most // 2:
                return
            free, self._for_room = self._for_room, []
        for loop, room in free:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(_set, room)


def _set(room: asyncio.Future[None]) -> None:
    if not room.done():
        room.set_result(None)


def _tell(text: str, *, midst: bool = False) -> None:
    """Say it on a line of its own. `midst`: the program was in the midst of a line."""
    lines = [*([""] if midst else []), *out.failure(text)]
    # Not through the stream: whoever waits for a terminal there would keep it from everybody else.
    _write(sys.stderr.fileno(), "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"))


def _joined(handle: int) -> bool:
    """Does what is written there stand where our own lines stand?"""
    try:
        return os.path.sameopenfile(handle, sys.stderr.fileno())
    except OSError:
        return False


def _write(handle: int, data: bytes) -> OSError | None:
    """Write all of it, however long that takes; what keeps it from being written, None for nothing."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(handle, view) :]
        except BlockingIOError:
            # Somebody who shares it set it so that what finds no room at once is not written at all.
            select.select([], [handle], [])
        except OSError as fault:
            return fault
    return None
