"""The demo as a process of its own, started by the console and ending with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from typing import IO, Final

from console.demo.workspace import sweep
from console.version import VERSION
from watchfloor.connector import Target
from watchfloor.errors import Unreachable
from watchfloor.text import clean_line

NAME: Final = "demo"
_ANNOUNCES: Final = "listening on "
_ENDS_IN_S: Final = 3.0
"""Seconds that the demo has for ending its agents before it is terminated, and once more before it is killed."""


class DemoProcess:
    """One demo. It ends when its standard input ends, and so with the console, however that ends.

    `agents`, `rate` and `seed` as on the command line, None: as they are there without being given.
    """

    def __init__(self, *, user: str, agents: int | None = None, rate: float | None = None, seed: int | None = None):
        self._user = user
        self._options = [
            word
            for name, value in (("--agents", agents), ("--rate", rate), ("--seed", seed))
            if value is not None
            for word in (name, str(value))
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._said: deque[str] = deque(maxlen=20)
        self._stopped = False

    async def start(self) -> Target:
        """Start the demo and wait until it listens.

        Raises:
            Unreachable: it ended before that; the message holds its last words.
        """
        import secrets  # brings a library of ciphers, which only a demo pays for

        token = secrets.token_urlsafe(24)
        url = await asyncio.to_thread(self._start, token)
        return Target(name=NAME, url=url, token=token, version=VERSION, user=self._user)

    def stop(self) -> None:
        """End the demo and wait for it, some seconds at most; does nothing where it is not running."""
        self._stopped = True
        process = self._process
        if process is None or process.stdin is None:
            return
        with contextlib.suppress(OSError):
            process.stdin.close()
        for harder in (process.terminate, process.kill):
            try:
                process.wait(_ENDS_IN_S)
                break
            except subprocess.TimeoutExpired:
                harder()
        if process.wait() == -signal.SIGKILL:
            sweep()

    def _start(self, token: str) -> str:
        words = ["demo", "--serve", "127.0.0.1:0", "--until-stdin-ends"]
        process = subprocess.Popen(
            # -P: a folder of that name where the console happens to be started is not ours.
            [sys.executable, "-P", "-m", "console.cli.main", *words, *self._options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # The keys of the terminal are the console's; what ends the demo is the end of its input.
            start_new_session=True,
        )
        self._process = process
        if self._stopped:
            self.stop()
        assert process.stdin is not None  # noqa: S101 - for the type checker
        # Neither on a disk, nor in an argument or a variable that others could read. It fits into any pipe, and a demo
        # that has ended already, or whose input `stop` has closed, says why by itself.
        with contextlib.suppress(OSError, ValueError):
            os.write(process.stdin.fileno(), f"{token}\n".encode())
        assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - for the type checker
        # Read to the end, so that a talkative demo is never stopped by a full pipe.
        words_of_fault = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        words_of_fault.start()
        with process.stdout:
            first = process.stdout.readline().decode("utf-8", "replace").strip()
        if not first.startswith(_ANNOUNCES):
            self.stop()
            words_of_fault.join(_ENDS_IN_S)
            last = self._said[-1] if self._said else f"it ended with status {process.returncode}"
            raise Unreachable(f"the demo did not start: {clean_line(last)}")
        return first.removeprefix(_ANNOUNCES)

    def _listen(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._said.append(line.decode("utf-8", "replace").rstrip("\n"))
