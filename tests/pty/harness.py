"""A terminal for tests: a program in a pty of its own, read through a screen model.

Standard library and pyte only. Nothing runs in the background: the program's output is taken in while the test
waits for something, so a test never reads a screen that changes under it.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

import pyte

PATIENCE_S: Final = 60.0
"""How long a test waits for what has to come: nobody waits so long for what does come, however slow the machine."""

# What a modern terminal answers to the questions that the toolkit asks.
_REPLIES: Final = (
    (re.compile(rb"\x1b\[\?2026\$p"), b"\x1b[?2026;2$y"),
    (re.compile(rb"\x1b\[\?2048\$p"), b"\x1b[?2048;0$y"),
    (re.compile(rb"\x1b\[6n"), b"\x1b[1;1R"),
    (re.compile(rb"\x1b\[c"), b"\x1b[?62;22c"),
)

# Private modes of the keyboard that the screen model would print as text.
_WHOLE_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*(?:\x07|\x1b\\)|[^\[\]PX^_])", re.DOTALL)
_FRAME_BEGINS: Final = "\x1b[?2026h"
_FRAME_ENDS: Final = "\x1b[?2026l"
_NOT_FOR_THE_MODEL: Final = re.compile(r"\x1b\[[<>=][0-9;]*[a-zA-Z]")

KEYS: Final[Mapping[str, bytes]] = {
    "enter": b"\r",
    "escape": b"\x1b",
    "tab": b"\t",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "end": b"\x1b[F",
    "home": b"\x1b[H",
    "pageup": b"\x1b[5~",
    "pagedown": b"\x1b[6~",
    "backspace": b"\x7f",
    "delete": b"\x1b[3~",
    "ctrl+c": b"\x03",
    "ctrl+l": b"\x0c",
    "ctrl+u": b"\x15",
    "ctrl+z": b"\x1a",
    "space": b" ",
}


class Terminal:
    """A program in a terminal of `size` (columns, rows). Use it as a context manager; its end ends the program.

    `controls`: the terminal is the program's controlling one, so that it gets the terminal's signals. `drawn`: what it
    writes is drawn on a screen, which takes long where that is huge; without, there is only `raw`.
    """

    def __init__(
        self,
        argv: Sequence[str],
        size: tuple[int, int] = (80, 24),
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        controls: bool = True,
        drawn: bool = True,
    ) -> None:
        columns, rows = size
        self.raw = bytearray()
        """Everything that the program has written."""
        self._drawn = drawn
        self._screen = pyte.Screen(columns, rows) if drawn else pyte.Screen(1, 1)
        self._stream = pyte.Stream(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._carry = b""
        self._pending = ""
        self._ended = False
        self._fd, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        whole = {**inherited, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", **(env or {})}
        try:
            self.process = subprocess.Popen(
                list(argv),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=whole,
                cwd=cwd,
                start_new_session=True,
                preexec_fn=_take_terminal if controls else None,
            )
        finally:
            os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the program, if it still runs, and give the terminal back."""
        for number, grace_s in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            if self.process.poll() is None:
                self.process.send_signal(number)
                self.wait_until(lambda: self.process.poll() is not None, grace_s, or_fail=False)
        self.hang_up()

    def hang_up(self) -> None:
        """Close the terminal, as when its window is closed or the line drops."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._ended = True

    def screen(self) -> str:
        """What the terminal shows, one line a row."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def line(self, y: int) -> str:
        """One row of what the terminal shows."""
        return self._screen.display[y].rstrip()

    def press(self, *keys: str) -> None:
        """Press keys by name (see `KEYS`); any other text is typed as it is."""
        for key in keys:
            self.write(KEYS.get(key) or key.encode())

    def write(self, data: bytes) -> None:
        """Send bytes as the terminal would."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def scribble(self, text: str) -> None:
        """Show what another program has written to the terminal."""
        self._stream.feed(text)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, text: str | re.Pattern[str], timeout_s: float = PATIENCE_S) -> str:
        """Wait until the screen holds the text or matches the pattern; return the screen.

        Raises:
            AssertionError: it did not; the message holds the last screen.
        """
        found = text.search if isinstance(text, re.Pattern) else lambda screen: text in screen
        self.wait_until(lambda: found(self.screen()), timeout_s, what=repr(text))
        return self.screen()

    def wait_gone(self, text: str, timeout_s: float = PATIENCE_S) -> str:
        """Wait until the screen no longer holds the text."""
        self.wait_until(lambda: text not in self.screen(), timeout_s, what=f"{text!r} to go")
        return self.screen()

    def wait_until(
        self, holds: Callable[[], object], timeout_s: float = PATIENCE_S, *, what: str = "", or_fail: bool = True
    ) -> bool:
        """Take in output until the condition holds.

        Raises:
            AssertionError: it did not in time, unless `or_fail` is False.
        """
        deadline = time.monotonic() + timeout_s
        while not holds():
            left = deadline - time.monotonic()
            if left <= 0:
                assert not or_fail, f"waited {timeout_s} s for {what or 'a condition'}; the screen is:\n{self.screen()}"
                return False
            self.take_in(min(left, 0.05))
        return True

    def wait_exit(self, timeout_s: float = PATIENCE_S) -> int:
        """Wait for the program's end; return its status."""
        self.wait_until(lambda: self.process.poll() is not None, timeout_s, what="the program's end")
        self.take_in(0.05)
        return self.process.returncode

    def take_in(self, timeout_s: float) -> None:
        """Take in what the program writes within this time, or its next piece of output."""
        if self._ended:
            time.sleep(timeout_s)
            return
        ready, _, _ = select.select([self._fd], [], [], timeout_s)
        if not ready:
            return
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # the last process on the other side has closed it
            data = b""
        if not data:
            self._ended = True
            return
        self.raw += data
        self._answer(data)
        if not self._drawn:
            return
        text = self._pending + self._decoder.decode(data)
        whole = _whole(text)
        text, self._pending = text[:whole], text[whole:]
        self._stream.feed(_NOT_FOR_THE_MODEL.sub("", text))

    def _answer(self, data: bytes) -> None:
        probe = self._carry + data
        for question, answer in _REPLIES:
            if question.search(probe):
                self.write(answer)
                probe = question.sub(b"", probe)
        tail = probe[-16:]
        self._carry = tail if b"\x1b" in tail else b""


def _whole(text: str) -> int:
    """How much of the output can be shown: no half an escape sequence, and no frame that is still being drawn."""
    begun = text.rfind(_FRAME_BEGINS)
    if begun > text.rfind(_FRAME_ENDS):
        return begun
    cut = text.rfind("\x1b")
    return len(text) if cut < 0 or _WHOLE_ESCAPE.match(text, cut) else cut


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
