"""A program in a session of its own, with everything that it starts there.

The leader is reaped last: while it is a zombie its number cannot be given to another process, so that a signal
for its group never reaches a stranger.

On Linux the process table tells what belongs to the session, whatever process groups its shells made. Elsewhere
only the leader's own group is known and the process table is not read.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from watchfloor.errors import HarnessFailure
from watchfloor.harness import reaper, terminal
from watchfloor.harness.reaper import DEAD, HAS_PROCESS_TABLE

CHUNK: Final = 64 * 1024
"""Most bytes of one read."""

_SHORTEST_LOOK_S = 0.002
_LONGEST_LOOK_S = 0.05
_STUCK_S = 0.02
_MOST_NUDGES = 50
_UNKILLABLE_S = 2.0  # a process in the middle of a device call takes SIGKILL only after it; nobody waits for ever
_Add = Callable[[int, Callable[[], None]], None]
_Remove = Callable[[int], bool]

_HALTED = frozenset("Tt")
_DEAF = "D"

WITHHELD: Final = frozenset({"WATCHFLOOR_TOKEN", "WATCHFLOOR_JOIN_TOKEN"})
"""Variables that a program does not inherit: with an operator's token an agent could approve its own requests, and with
one that lets agents join it could pose as another."""


@dataclass(frozen=True, slots=True)
class Member:
    """One living process of a session. `state` is the letter of the process table, such as R, S or T."""

    pid: int
    parent: int
    group: int
    state: str


def members(session: int) -> tuple[Member, ...]:
    """The living processes of a session, zombies left out; empty where there is no process table to read."""
    if not HAS_PROCESS_TABLE:
        return ()
    return tuple(
        Member(pid, parent, group, state)
        for pid, state, parent, group, sid in reaper.table()
        if sid == session and state not in DEAD
    )


def _all_hang_on_children(moving: Sequence[Member], living: Sequence[Member]) -> bool:
    """Does each wait, deaf to signals, for a child that was stopped between its making and its first program?

    So it is with vfork, by which shells and others start programs. Going on for a moment resolves it.
    """
    halted = {member.parent for member in living if member.state in _HALTED}
    return all(member.state == _DEAF and member.pid in halted for member in moving)


def exit_words(code: int) -> str:
    """What an operator reads of a return code: `exit status 3`, `killed by SIGSEGV`."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


class Process:
    """A running program. Made by `spawn` on a running event loop; `reap` must be awaited in the end."""

    def __init__(self, popen: subprocess.Popen[bytes], lifeline: _Lifeline, ours: int | None = None) -> None:
        self._popen = popen
        self._terminal = ours
        self._lifeline = lifeline
        self._loop = asyncio.get_running_loop()
        self.pid = popen.pid
        self._exited = asyncio.Event()
        for pipe in (popen.stdin, popen.stdout, popen.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        threading.Thread(target=self._watch, name=f"wait for {popen.pid}", daemon=True).start()

    @classmethod
    def spawn(
        cls,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bool = False,
        size: tuple[int, int] | None = None,
    ) -> Process:
        """Start a program. `env` is the whole environment; None hands on our own except for what is `WITHHELD`.

        `size`: on a terminal of so many columns and rows, which is its input and both of its outputs, as "stdout".
        Raises HarnessFailure with one line that says why it cannot be started.
        """
        if not argv:
            raise HarnessFailure("no program was given")
        given = {k: v for k, v in os.environ.items() if k not in WITHHELD} if env is None else dict(env)
        if size is not None:
            return cls._on_terminal(argv, cwd, given, size)
        lifeline = _Lifeline()
        try:
            popen = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=cwd,
                env=given,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            lifeline.over()
            raise HarnessFailure(_refusal(argv[0], cwd, error)) from error
        lifeline.hold(popen.pid)
        return cls(popen, lifeline)

    @classmethod
    def _on_terminal(
        cls, argv: Sequence[str], cwd: str | None, env: Mapping[str, str], size: tuple[int, int]
    ) -> Process:
        if shutil.which(argv[0], path=env.get("PATH")) is None:
            raise HarnessFailure(f"cannot run {argv[0]!r}: there is no such program, or it may not be run by this user")
        ours, its = os.openpty()
        lifeline = _Lifeline()
        try:
            terminal.sized(ours, *size)
            starter = [sys.executable, "-I", "-S", terminal.__file__]
            popen = subprocess.Popen(
                [*starter, *argv], stdin=its, stdout=its, stderr=its, cwd=cwd, env=dict(env), start_new_session=True
            )
        except (OSError, ValueError) as error:
            lifeline.over()
            os.close(ours)
            raise HarnessFailure(_refusal(argv[0], cwd, error)) from error
        finally:
            os.close(its)
        lifeline.hold(popen.pid)
        os.set_blocking(ours, False)
        return cls(popen, lifeline, ours)

    def _watch(self) -> None:
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):  # reaped meanwhile
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:  # macOS before Python 3.13: the group may lose its name a moment before its last members go
            self._popen.wait()

        try:
            self._loop.call_soon_threadsafe(self._exited.set)
        except RuntimeError:  # the loop was closed before the program ended
            return

    @property
    def ended(self) -> bool:
        """Has the leader ended? It is not reaped by that."""
        return self._exited.is_set()

    async def wait(self) -> None:
        """Wait until the leader has ended."""
        await self._exited.wait()

    # --- signals ---------------------------------------------------------------------------

    def members(self) -> tuple[Member, ...]:
        """What lives of the session; empty where it cannot be known."""
        return members(self.pid)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process group of the session."""
        for group in {self.pid, *(m.group for m in self.members())}:
            try:
                os.killpg(group, number)
            except (ProcessLookupError, PermissionError):  # gone; on macOS a group of zombies only is "not permitted"
                continue

    async def halt(self) -> bool:
        """Stop (SIGSTOP) the session; True once the process table shows all of it stopped, False if it ended."""
        delay, nudges = _SHORTEST_LOOK_S, 0
        while not self.ended:
            # Again each time: a group made since the last look was not reached by the signals before.
            self.signal(signal.SIGSTOP)
            if not HAS_PROCESS_TABLE:
                return True
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_LOOK_S)
            living = self.members()
            moving = [member for member in living if member.state not in _HALTED]
            if living and not moving:
                return True
            if moving and delay > _STUCK_S and _all_hang_on_children(moving, living):
                if nudges == _MOST_NUDGES:
                    return True  # not one of them can take a step before its child goes on
                nudges += 1
                self.proceed()
                await asyncio.sleep(_SHORTEST_LOOK_S)
                delay = _SHORTEST_LOOK_S
        return False

    def proceed(self) -> None:
        """Continue (SIGCONT) the session."""
        self.signal(signal.SIGCONT)

    async def end(self, grace_s: float) -> None:
        """End the session: SIGTERM, and SIGCONT since a stopped process takes nothing else, then SIGKILL.

        Returns once nothing of it lives. A grace of 0 kills at once.
        """
        if grace_s > 0:
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGCONT)
            if await self._gone(grace_s):
                return
        self.signal(signal.SIGKILL)
        await self._gone(_UNKILLABLE_S)

    async def _gone(self, timeout_s: float) -> bool:
        deadline = self._loop.time() + timeout_s
        with suppress(TimeoutError):
            await asyncio.wait_for(self.wait(), timeout_s)
        delay = _SHORTEST_LOOK_S
        while not self.ended or self._something_lives():
            left = deadline - self._loop.time()
            if left <= 0:
                return False
            await asyncio.sleep(min(delay, left))
            delay = min(delay * 2, _LONGEST_LOOK_S)
        return True

    def _something_lives(self) -> bool:
        if HAS_PROCESS_TABLE:
            return bool(self.members())
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def reap(self) -> int:
        """Take the return code off the process table and close the pipes. The leader has ended, or was just killed."""
        self._lifeline.over()
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None
        try:
            return self._popen.wait(_UNKILLABLE_S)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL

    # --- pipes -----------------------------------------------------------------------------

    async def read(self, stream: str) -> bytes:
        """The next bytes of "stdout" or "stderr", at most `CHUNK`; empty at its end."""
        pipe = self._popen.stdout if stream == "stdout" else self._popen.stderr
        if self._terminal is not None and stream != "stdout":
            return b""
        source = self._terminal if pipe is None else pipe.fileno()
        assert source is not None  # noqa: S101 - there are pipes, or there is a terminal
        while True:
            try:
                return os.read(source, CHUNK)
            except BlockingIOError:
                await self._ready(source, self._loop.add_reader, self._loop.remove_reader)
            except OSError as error:
                if pipe is None and error.errno == errno.EIO:  # nobody has the terminal open any more
                    return b""
                raise

    async def write(self, data: bytes) -> None:
        """Write to the program's input, waiting while it does not read. Raises BrokenPipeError when it is closed."""
        pipe = self._popen.stdin
        target = self._terminal if pipe is None else pipe.fileno()
        if target is None:
            raise BrokenPipeError("the program has no input")
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(target, rest) :]
            except BlockingIOError:
                await self._ready(target, self._loop.add_writer, self._loop.remove_writer)
            except OSError as error:
                if pipe is None and error.errno == errno.EIO:
                    raise BrokenPipeError("the program has let go of its terminal") from None
                raise

    async def _ready(self, fd: int, add: _Add, remove: _Remove) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()

        def set_ready() -> None:
            if not ready.done():
                ready.set_result(None)

        add(fd, set_ready)
        try:
            await ready
        finally:
            remove(fd)


class _Lifeline:
    """Has a program ended when this process is killed: a process of its own waits for the end of a pipe from us."""

    def __init__(self) -> None:
        self._popen: subprocess.Popen[bytes] | None = None
        # Where none can be started the program runs all the same.
        with suppress(OSError, ValueError):
            self._popen = subprocess.Popen(
                # Started before the program, so that there is hardly a moment in which nothing watches over it.
                [sys.executable, "-I", "-S", reaper.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                start_new_session=True,
            )

    def hold(self, session: int) -> None:
        """End the processes of this session if we are killed."""
        self._write(b"%d\n" % session)

    def over(self) -> None:
        """There is nothing to be ended any more."""
        self._write(b".")
        popen, self._popen = self._popen, None
        if popen is not None:
            if popen.stdin is not None:
                popen.stdin.close()
            threading.Thread(target=popen.wait, name=f"wait for {popen.pid}", daemon=True).start()

    def _write(self, data: bytes) -> None:
        if self._popen is not None and self._popen.stdin is not None:
            with suppress(OSError):
                self._popen.stdin.write(data)


def _refusal(program: str, cwd: str | None, error: OSError | ValueError) -> str:
    if cwd is not None and not Path(cwd).is_dir():
        return f"cannot run {program!r} in {cwd!r}: there is no such folder"
    match error:
        case FileNotFoundError() if shutil.which(program) is not None:
            return f"cannot run {program!r}: the interpreter that it names does not exist"
        case FileNotFoundError():
            return f"cannot run {program!r}: there is no such program"
        case PermissionError():
            return f"cannot run {program!r}: it is not an executable file, or may not be run by this user"
        case OSError(strerror=str(why)):
            return f"cannot run {program!r}: {why}"
        case _:
            return f"cannot run {program!r}: {error}"
