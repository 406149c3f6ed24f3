"""The console and the terminal that it was given: sleeping at its shell's wish, and ending when the terminal is lost.

The toolkit writes to the terminal through a thread and a bounded queue. Where that thread has died, since the
terminal was closed, or hangs, since nobody reads it, the event loop soon waits for it for ever, and nothing on the
loop is called any more. So what notices this, and what ends the console then, is a thread of its own.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import signal
import termios
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final, Protocol

_log = logging.getLogger(__name__)

LOST: Final = 128 + signal.SIGHUP
"""Status of a console that ended because its terminal did."""
ENDS_BY: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that end the console in good order: by default they would leave the terminal as the toolkit has set it."""
ENDS_IN_S: Final = 4.0
"""Seconds that an end asked for by a signal may take before it is forced."""
_PARTS_IN_S: Final = 3.5
"""Seconds for letting go of everything once the terminal is lost."""
MOST: Final = (1280, 500)
"""Columns and rows of the largest terminal that is believed, more than any display can show: painting takes as long as
there are cells."""
USUAL: Final = (80, 24)
"""Columns and rows of a terminal that does not say how large it is."""
_LOOKS_EVERY_S: Final = 0.25
_STOPS_IN_S: Final = 1.0
_RESTORES_IN_S: Final = 0.3

_WRITER: Final = "textual-output"
"""Name of the thread through which the toolkit writes to the terminal."""
_HUNG_UP: Final = frozenset({errno.EIO, errno.ENXIO, errno.EBADF})
_RESTORE: Final = (
    b"\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
"""Undoes every mode that the toolkit sets, for when it cannot do so itself."""
_SAYS: Final = b"watchfloor: the terminal could no longer be written to\r\n"


def believed(columns: int, rows: int) -> tuple[int, int]:
    """The size to draw at, where a terminal says that it has so many columns and rows."""
    return min(columns, MOST[0]) or USUAL[0], min(rows, MOST[1]) or USUAL[1]


class Held(Protocol):
    """What hangs on the lifeline. Its methods are called from signal handlers and threads, and only pass on."""

    def end(self, status: int) -> None:
        """Begin an orderly end with this exit status."""

    def part(self) -> None:
        """Let go of everything without the event loop's help, and without writing to the terminal. May take long."""

    def sleep(self) -> None:
        """Somebody wants the console to stop, and to go on later."""

    def wake(self) -> None:
        """The console goes on after it was stopped by force."""


class Lifeline:
    """Watches over the terminal on standard input and standard error. A context manager, for the main thread."""

    def __init__(self) -> None:
        self._ttys = tuple(fd for fd in (0, 2) if os.isatty(fd))
        self._attributes: list[Any] | None = None
        self._held: Held | None = None
        self._status: int | None = None
        self._due = 0.0
        self._broken = False
        self._awake = True
        self._over = threading.Event()
        self._excepthook = threading.excepthook

    def __enter__(self) -> Lifeline:
        with contextlib.suppress(termios.error, IndexError):
            self._attributes = termios.tcgetattr(self._ttys[0])
        for fd in self._ttys:
            # Whoever had the terminal before may have left it so that what finds no room at once is not written.
            os.set_blocking(fd, True)
        for exported in ("COLUMNS", "LINES"):
            # The toolkit would believe these more than the terminal, which may be another one than they tell of.
            os.environ.pop(exported, None)
        for number in ENDS_BY:
            signal.signal(number, self._asked)
        self._excepthook = threading.excepthook
        threading.excepthook = self._thread_died
        threading.Thread(target=self._watch, name="lifeline", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._held = None
        threading.excepthook = self._excepthook
        for number in ENDS_BY:
            signal.signal(number, signal.SIG_DFL)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal that is drawn on."""
        return believed(*shutil.get_terminal_size(USUAL))

    def hold(self, held: Held) -> None:
        """Hold this from now on. To be called once the toolkit has its own signal handlers, which are replaced: they
        would set the terminal up again in a console that has given it back."""
        self._held = held
        signal.signal(signal.SIGTSTP, lambda number, frame: held.sleep())
        signal.signal(signal.SIGCONT, self._continued)
        if self._status is not None:
            held.end(self._status)

    def leaving(self) -> None:
        """The console begins to end: from now on it is not to be stopped, for it might never go on to its end."""
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        signal.signal(signal.SIGCONT, signal.SIG_DFL)

    # --- sleeping --------------------------------------------------------------------------

    @property
    def can_sleep(self) -> bool:
        """Is there a shell that could wake us? One with job control gives each job a process group of its own."""
        return os.getpgrp() != os.getsid(0)

    def sleep(self) -> None:
        """Stop this job, and whatever started us as a part of it; returns once it goes on. The terminal must have been
        given back before."""
        self._awake = False
        asked = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        # It may take a moment until we are stopped, and if nobody could wake us we are not.
        patience = time.monotonic() + _STOPS_IN_S
        while not self._awake and time.monotonic() < patience:
            time.sleep(0.01)
        self._awake = True
        signal.signal(signal.SIGTSTP, asked)

    def _continued(self, number: int, frame: FrameType | None) -> None:
        if not self._awake:
            self._awake = True
        elif self._held is not None:
            self._held.wake()

    # --- ending ----------------------------------------------------------------------------

    def _asked(self, number: int, frame: FrameType | None) -> None:
        if self._status is None:
            self._status, self._due = 128 + number, time.monotonic() + ENDS_IN_S
        if self._held is not None and not self._lost():
            self._held.end(self._status)

    def _thread_died(self, died: threading.ExceptHookArgs) -> None:
        if died.thread is not None and died.thread.name == _WRITER:
            self._broken = True
        else:
            _log.error("the thread %s died", died.thread and died.thread.name, exc_info=died.exc_value)

    def _lost(self) -> bool:
        """Is the terminal gone, or can it no longer be written to?"""
        if self._broken:
            return True
        for fd in self._ttys:
            try:
                termios.tcgetattr(fd)
            except termios.error as error:
                if error.args[0] in _HUNG_UP:
                    return True
        return False

    def _watch(self) -> None:
        while not self._over.wait(_LOOKS_EVERY_S):
            if self._lost():
                self._bounded(self._part, _PARTS_IN_S)
                self._force(LOST)
            elif self._status is not None and time.monotonic() >= self._due:
                self._force(self._status)

    def _part(self) -> None:
        if self._held is not None:
            self._held.part()

    def _force(self, status: int) -> None:
        if not self._over.is_set():
            self._bounded(self._restore, _RESTORES_IN_S)
            os._exit(status)

    def _restore(self) -> None:
        if self._attributes is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._ttys[0], termios.TCSANOW, self._attributes)
        rest = _RESTORE + (_SAYS if self._broken else b"")
        with contextlib.suppress(OSError, IndexError):
            while rest:
                try:
                    rest = rest[os.write(self._ttys[-1], rest) :]
                except BlockingIOError:
                    time.sleep(0.02)

    @staticmethod
    def _bounded(work: Callable[[], None], seconds: float) -> None:
        """Do this in a thread of its own, which is left alone where it takes longer."""
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(seconds)
