"""Processes beside the one that is measured: the sender, and the bare loop that the console is compared to."""

from __future__ import annotations

import contextlib
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple

_TICKS: Final = 100
"""Of the processor's time that the system counts in a second."""


class Taken(NamedTuple):
    """How many events went over the wire, in how many seconds, and with how many of the processor."""

    events: int
    took_s: float
    cpu_s: float
    begun: int = 0
    """Nanoseconds of the monotonic clock, where that is known."""

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.took_s if self.took_s else 0.0


class Sender:
    """A sender in a process of its own. A context manager; `url` is where it listens."""

    def __init__(
        self, *, events: int, sessions: int, batch: int = 1, rate: int = 0, past: int = 0, hold: bool = False
    ) -> None:
        words = {"events": events, "sessions": sessions, "batch": batch, "rate": rate, "past": past}
        argv = [sys.executable, "-m", "benchmarks.sender"]
        argv += [text for name, value in words.items() for text in (f"--{name}", str(value))]
        self._process = subprocess.Popen(
            [*argv, *(["--hold"] if hold else [])], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        _, _, rest = self._line(120.0).partition("listening on ")
        self.url, _, self.digest = rest.partition(" ")

    def __enter__(self) -> Sender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def sent(self, timeout_s: float) -> Taken | None:
        """What was sent, once all of it was; None where that lasts longer."""
        _, _, rest = self._line(timeout_s).partition("sent ")
        words = rest.split()
        return Taken(int(words[0]), float(words[1]), float(words[2]), int(words[3])) if len(words) == 4 else None

    def stop(self) -> Taken | None:
        """End it before it has sent everything; what was sent until then."""
        self._process.send_signal(signal.SIGTERM)
        return self.sent(10.0)

    def _line(self, timeout_s: float) -> str:
        out = self._process.stdout
        if out is None:
            return ""
        with selectors.DefaultSelector() as waiting:
            waiting.register(out, selectors.EVENT_READ)
            return out.readline().strip() if waiting.select(timeout_s) else ""


def bare(url: str) -> Taken:
    """Take everything that a sender sends with the bare loop, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bare", url], capture_output=True, text=True, check=True, timeout=300
    )
    words = done.stdout.split()
    return Taken(int(words[1]), float(words[2]), float(words[3]))


def cpu_s(pid: int) -> float:
    """Seconds of the processor that a process has used, where the system tells."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS


def resident_mb(pid: int) -> float:
    """Megabytes of memory that a process holds, and the one that writes its journal."""
    found = 0.0
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):  # another one may just have ended
            told = dict(line.split(":", 1) for line in status.read_text().splitlines())
            if str(pid) in (status.parent.name, told["PPid"].strip()):
                found += int(told.get("VmRSS", "0").split()[0]) / 1024
    return found or float("nan")


def until(moment: float) -> None:
    """Wait until a moment of the monotonic clock."""
    time.sleep(max(0.0, moment - time.monotonic()))
