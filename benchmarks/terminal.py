"""A program in a pty, whose output is stamped as it is read and looked at only afterwards. Standard library only."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, NamedTuple

# What a modern terminal answers to the questions that the toolkit asks.
_REPLIES: Final = (
    (re.compile(rb"\x1b\[\?2026\$p"), b"\x1b[?2026;2$y"),
    (re.compile(rb"\x1b\[\?2048\$p"), b"\x1b[?2048;0$y"),
    (re.compile(rb"\x1b\[6n"), b"\x1b[1;1R"),
    (re.compile(rb"\x1b\[c"), b"\x1b[?62;22c"),
)
CONSOLE: Final = (sys.executable, "-m", "console.cli.main")
PLAIN: Final = (sys.executable, "-m", "benchmarks.plain")


class Chunk(NamedTuple):
    """What one read gave. `at`: nanoseconds of the monotonic clock."""

    at: int
    data: bytes


class Run:
    """A program in a terminal of `size` (columns, rows), from its start on. A context manager; its end ends it.

    `begun`: when it was started, nanoseconds of the monotonic clock.
    """

    def __init__(self, argv: Sequence[str], size: tuple[int, int], env: Mapping[str, str]) -> None:
        columns, rows = size
        self.chunks: list[Chunk] = []
        self._carry = b""
        self._ended = False
        self._fd, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        whole = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", **env}
        # A program that is installed has its byte code beside it: what forbids to write that would be measured as well.
        for stale in ("COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE"):
            whole.pop(stale, None)
        self.begun = time.monotonic_ns()
        try:
            self.process = subprocess.Popen(
                list(argv), stdin=slave, stdout=slave, stderr=slave, env=whole, start_new_session=True
            )
        finally:
            os.close(slave)

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
                patience = time.monotonic_ns() + 6_000_000_000
                while self.process.poll() is None and time.monotonic_ns() < patience:
                    self.take_in(time.monotonic_ns() + 20_000_000)
        os.close(self._fd)

    def press(self, key: bytes) -> int:
        """Send a key; returns when."""
        at = time.monotonic_ns()
        os.write(self._fd, key)
        return at

    def take_in(self, until: int) -> None:
        """Stamp what the program writes until then."""
        while (left := (until - time.monotonic_ns()) / 1e9) > 0:
            if self._ended:
                time.sleep(left)
            elif select.select([self._fd], [], [], left)[0]:
                self._read()

    def wait_for(self, *texts: bytes, timeout_s: float = 60.0) -> int:
        """When the output came to hold all of these texts. Raises TimeoutError."""
        patience = time.monotonic_ns() + int(timeout_s * 1e9)
        seen, read = b"", 0
        while time.monotonic_ns() < patience and not self._ended:
            if select.select([self._fd], [], [], 0.05)[0]:
                self._read()
            for chunk in self.chunks[read:]:
                seen += chunk.data
                if all(text in seen for text in texts):
                    return chunk.at
            read = len(self.chunks)
        raise TimeoutError(f"{' and '.join(map(repr, texts))} did not show; the last was {seen[-300:]!r}")

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # the program has closed its side
            data = b""
        if not data:
            self._ended = True
            return
        self.chunks.append(Chunk(time.monotonic_ns(), data))
        probe = self._carry + data
        for question, answer in _REPLIES:
            if question.search(probe):
                os.write(self._fd, answer)
                probe = question.sub(b"", probe)
        tail = probe[-16:]
        self._carry = tail if b"\x1b" in tail else b""


def load() -> str:
    """The load average, to be printed beside figures: what else ran takes its share."""
    return f"load average {' '.join(f'{value:.2f}' for value in os.getloadavg())} on {os.cpu_count()} cores"
