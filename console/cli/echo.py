"""A program's output and what we say of it, passed on to our own without holding up whoever hands it over."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from typing import Final

from console.cli import out

MOST: Final = 64 * 1024 * 1024
"""Bytes that may wait for a stopped terminal or a slow reader; what comes on top is left out, and said."""


class Echo:
    """Writes in a thread of its own: a host must go on answering while nobody reads its terminal."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[int, bytes] | str | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._left_out = 0
        self._thread = threading.Thread(target=self._write_on, name="echo", daemon=True)
        self._thread.start()

    def __call__(self, stream: str, data: bytes) -> None:
        """Pass on what the program wrote to "stdout" or "stderr"."""
        with self._lock:
            if self._waiting + len(data) > MOST:
                self._left_out += len(data)
                return
            self._waiting += len(data)
        self._queue.put((sys.stderr.fileno() if stream == "stderr" else sys.stdout.fileno(), data))

    def say(self, text: str) -> None:
        """A line of our own on standard error, behind everything that was passed on before it."""
        self._queue.put(text)

    def close(self, wait_s: float = 5.0) -> None:
        """Write what waits, so long at most; a reader that does not read is not waited for."""
        self._queue.put(None)
        self._thread.join(wait_s)

    def _write_on(self) -> None:
        gone: set[int] = set()
        midst = False
        while (item := self._queue.get()) is not None:
            if isinstance(item, str):
                _tell(item, midst=midst)
                midst = False
                continue
            handle, data = item
            if handle not in gone and not _write(handle, data):
                gone.add(handle)
            if _joined(handle):
                midst = not data.endswith(b"\n")
            with self._lock:
                self._waiting -= len(data)
                left_out, self._left_out = self._left_out, 0
            if left_out:
                _tell(f"{left_out} bytes of output are not shown here: it is read too slowly")


def _tell(text: str, *, midst: bool = False) -> None:
    """Say it on a line of its own. `midst`: the program was in the midst of a line."""
    with contextlib.suppress(OSError):
        if midst:
            _write(sys.stderr.fileno(), b"\n")
        out.fail(text)


def _joined(handle: int) -> bool:
    """Does what is written there stand where our own lines stand?"""
    return os.path.sameopenfile(handle, sys.stderr.fileno())


def _write(handle: int, data: bytes) -> bool:
    """False when nobody reads there any more."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(handle, view) :]
    except BlockingIOError:
        return True  # somebody made our terminal non-blocking; the program itself would lose this, too
    except OSError:
        return False
    return True
