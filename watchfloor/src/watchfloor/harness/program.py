"""Any command as a session: its output as events, the process group as what is paused, continued and stopped."""

from __future__ import annotations

import asyncio
import shlex
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from watchfloor.errors import CapabilityNotSupported, StaleTarget
from watchfloor.harness.base import (
    AttemptSpec,
    Interrupt,
    MailArrived,
    MailItem,
    Pause,
    Resume,
    SessionPort,
    Signal,
    Stop,
    Wake,
)
from watchfloor.harness.output import PIECE, Output
from watchfloor.harness.process import Process, exit_words
from watchfloor.logs import logger
from watchfloor.protocol.events import Event, Level, Notice, ToolOutput
from watchfloor.protocol.model import (
    Capabilities,
    NoOptions,
    PauseOptions,
    Result,
    SendOptions,
    StopOptions,
    Traits,
)
from watchfloor.words import StopReason

Echo = Callable[[str, bytes], Awaitable[None] | None]
"""Called with "stdout" or "stderr" and the bytes as the program wrote them.

While what it returns lasts nothing more is read of a program that runs, which so waits for whoever takes its output.
"""

Ended = Callable[[int], None]

Halted = Callable[[bool, str | None], None]
"""Called with True once the processes stand still and with False before they go on, and with who asked for it, where
somebody did."""

BATCH_S: Final = 0.05
"""Lines are gathered this long into one event."""
BUDGET: Final = 4 * PIECE
"""Bytes that are read of one program in each `BATCH_S`; a program that writes more waits for its pipe."""
PARTIAL_S: Final = 0.5
"""A line without an end (a prompt) is shown after this time."""
_DRAIN_S = 2.0  # for what is left in the pipes; somebody outside of the session may hold their other end for ever

_log = logger(__name__)


class ProgramHarness:
    """Runs a command for each attempt.

    `argv` is the program and its arguments; `cwd` the folder it runs in (else that of the session); `env` its whole
    environment (None: ours, without operator's tokens). `stdin` advertises `send`: a message is a line on its input,
    typed once, also over relaunches. `observe` advertises nothing. `grace_s` is the time between SIGTERM and SIGKILL.
    `terminal`: run it on a terminal of so many columns and rows, for one that behaves differently there. `echo` gets
    the output as it comes; `ended` the return code (negative: the signal) once a run is over and all of its output was
    passed on; `halted` each pause and its end.

    An attempt ends with the program: completed on exit status 0, failed on any other, stopped when it was told to
    stop. What the program left behind in its session is ended too.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bool = False,
        observe: bool = False,
        grace_s: float = 5.0,
        echo: Echo | None = None,
        ended: Ended | None = None,
        halted: Halted | None = None,
        terminal: tuple[int, int] | None = None,
    ) -> None:
        self._argv = tuple(argv)
        self._cwd = cwd
        self._env = None if env is None else dict(env)
        self._stdin = stdin
        self._echo = echo
        self._ended = ended
        self._halted = halted
        self._terminal = terminal
        self._grace_s = grace_s
        self._capabilities = Capabilities() if observe else _advertised(stdin=stdin)
        self._typed: dict[str, set[str]] = {}

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def traits(self) -> Traits:
        return Traits(stop_cuts_step=True)

    @property
    def starts_itself(self) -> bool:
        return True

    @property
    def grace_s(self) -> float:
        return self._grace_s

    async def start(self, spec: AttemptSpec, port: SessionPort) -> ProgramSession:
        """Start the program. Raises HarnessFailure with one line that says why it cannot be started."""
        folder = self._cwd or spec.cwd
        process = Process.spawn(self._argv, cwd=folder, env=self._env, stdin=self._stdin, size=self._terminal)
        typed = self._typed.setdefault(spec.session_id, set())
        session = ProgramSession(
            process, port, self._capabilities, self._grace_s, typed, self._echo, self._ended, self._halted
        )
        session.begin(f"{shlex.join(self._argv)}  (process {process.pid})")
        return session


def _advertised(*, stdin: bool) -> Capabilities:
    return Capabilities(
        send=SendOptions() if stdin else None,
        pause=PauseOptions(),
        resume=NoOptions(),
        stop=StopOptions(kill=True),
    )


class ProgramSession:
    """One run of the program."""

    def __init__(
        self,
        process: Process,
        port: SessionPort,
        capabilities: Capabilities,
        grace_s: float,
        typed: set[str],
        echo: Echo | None,
        ended: Ended | None,
        halted: Halted | None,
    ) -> None:
        # Refs of the messages that were written, to this process or an earlier one: a relaunch brings the mail of
        # the last attempt again, and what was typed once must not be typed by itself a second time.
        self._typed = typed
        self._process = process
        self._port = port
        self._capabilities = capabilities
        self._grace_s = grace_s
        self._echo = echo
        self._ended = ended
        self._halted = halted
        self._output = Output()
        self._loop = asyncio.get_running_loop()
        self._timers: dict[bool, asyncio.TimerHandle] = {}  # by whether it flushes partial lines
        self._window_end = 0.0
        self._spent = 0
        self._input: asyncio.Queue[MailItem] = asyncio.Queue()
        self._halting: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._stopping = False
        self._closing = False
        self._life: asyncio.Task[None] | None = None

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self, line: str) -> None:
        self._port.started()
        self._emit(Notice(at=0, code="process", text=line))
        self._life = asyncio.create_task(self._live(), name=f"program {self._process.pid}")

    async def intervene(self, signal: Signal) -> None:
        match signal:
            case Pause() if self._capabilities.pause is None:
                raise CapabilityNotSupported("this program is only watched: it cannot be paused")
            case Interrupt():
                raise CapabilityNotSupported("a program cannot be interrupted, only stopped")
            case Pause(by=by):
                self._halt(by)
            case Resume(by=by):
                self._proceed(by)
            case Stop(kill=kill):
                self._stopping = True
                self._end(0 if kill else self._grace_s)
            case Wake(mail=mail):
                self._hand_in(mail)
            case MailArrived() if self._halting is None:
                self._take_mail()
            case _:  # the rest is not advertised, or waits until the program goes on
                return

    async def close(self) -> None:
        self._closing = True
        self._end(self._grace_s)
        if self._life is not None:
            # Whoever gives up waiting for us wants it over now.
            try:
                await asyncio.shield(self._life)
            except asyncio.CancelledError:
                self._process.signal(signal.SIGKILL)
                raise

    # --- pause, resume, stop ---------------------------------------------------------------

    def _halt(self, by: str | None = None) -> None:
        if self._halting is None and self._ending is None:
            self._halting = asyncio.create_task(self._halt_and_tell(by))

    async def _halt_and_tell(self, by: str | None) -> None:
        if await self._process.halt():
            if self._halted is not None:
                self._halted(True, by)
            with suppress(StaleTarget):
                self._port.paused()

    def _proceed(self, by: str | None) -> None:
        if self._halting is None or self._ending is not None:
            return
        self._halting.cancel()
        self._halting = None
        if self._halted is not None:
            self._halted(False, by)
        self._process.proceed()
        self._port.resumed()
        self._take_mail()

    def _end(self, grace_s: float) -> None:
        if self._halting is not None:
            self._halting.cancel()  # it would stop the processes again and again
        if self._ending is None:
            self._ending = asyncio.create_task(self._process.end(grace_s))
        elif grace_s == 0:
            self._process.signal(signal.SIGKILL)

    # --- input -----------------------------------------------------------------------------

    def _take_mail(self) -> None:
        boundary = self._port.checkpoint()
        self._hand_in(boundary.mail)
        if boundary.paused:
            self._halt()

    def _hand_in(self, mail: Sequence[MailItem]) -> None:
        for item in mail:
            if item.ref not in self._typed:
                self._input.put_nowait(item)

    async def _write_input(self) -> None:
        while True:
            item = await self._input.get()
            try:
                await self._process.write((item.text + "\n").encode("utf-8", "replace"))
                self._typed.add(item.ref)
            except (BrokenPipeError, asyncio.CancelledError) as error:
                self._not_read(item)
                if isinstance(error, asyncio.CancelledError):
                    raise

    def _not_read(self, item: MailItem) -> None:
        text = f"message {item.ref} was not handed over: the program reads no input any more"
        self._emit(Notice(at=0, level=Level.WARNING, code="input", text=text))

    # --- output ----------------------------------------------------------------------------

    async def _read_output(self, stream: str) -> None:
        while data := await self._process.read(stream):
            room = self._pass_on(stream, data)
            self._output.feed(stream, data)
            if self._output.size >= PIECE:
                self._flush()
            self._arm()
            await self._pace(len(data))
            if room is not None:
                await self._wait_for(room)
        self._output.end(stream)
        self._flush()

    def _pass_on(self, stream: str, data: bytes) -> Awaitable[None] | None:
        if self._echo is None:
            return None
        try:
            return self._echo(stream, data)
        except OSError as error:  # such as a pager that was left
            self._echo = None
            _log.warning("the program's output is no longer passed on: %s", error)
            return None

    async def _wait_for(self, room: Awaitable[None]) -> None:
        """Wait for it, but not beyond the program's end: what is left in its pipes then is little."""
        ended = asyncio.create_task(self._process.wait())
        taken = asyncio.ensure_future(room)
        try:
            await asyncio.wait((taken, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            taken.cancel()
            ended.cancel()

    async def _pace(self, amount: int) -> None:
        now = self._loop.time()
        if now >= self._window_end:
            self._window_end = now + BATCH_S
            self._spent = 0
        self._spent += amount
        if self._spent >= BUDGET:
            await asyncio.sleep(self._window_end - now)

    def _arm(self) -> None:
        for partial, wanted, delay in (
            (False, self._output.size > 0, BATCH_S),
            (True, self._output.has_partial, PARTIAL_S),
        ):
            if not wanted:
                if timer := self._timers.pop(partial, None):
                    timer.cancel()
            elif partial not in self._timers:
                self._timers[partial] = self._loop.call_later(delay, self._on_time, partial)

    def _on_time(self, partial: bool) -> None:
        del self._timers[partial]
        self._flush(partial=partial)
        self._arm()

    def _flush(self, *, partial: bool = False) -> None:
        for piece in self._output.take(partial=partial):
            self._emit(ToolOutput(at=0, stream=piece.stream, text=piece.text))

    def _emit(self, event: Event) -> None:
        with suppress(StaleTarget):  # a newer attempt runs; what this one still says is nobody's business
            self._port.emit(event)

    # --- life ------------------------------------------------------------------------------

    async def _live(self) -> None:
        readers = {asyncio.create_task(self._read_output(stream)) for stream in ("stdout", "stderr")}
        writer = asyncio.create_task(self._write_input())
        try:
            await self._process.wait()
            await self._end_the_rest()
            await asyncio.wait(readers, timeout=_DRAIN_S)
            await self._wind_up({*readers, writer})
        finally:
            # Reached in disorder only when the event loop is torn down: nothing may outlive it.
            if not self._process.ended:
                self._process.signal(signal.SIGKILL)
            code = self._process.reap()
        self._report(code)
        if self._ended is not None:
            self._ended(code)

    async def _end_the_rest(self) -> None:
        left = len(self._process.members())
        if self._ending is None:
            if left:
                text = f"ending {left} process{'es' if left > 1 else ''} that the program left behind"
                self._emit(Notice(at=0, code="process", text=text))
            self._end(self._grace_s)
        assert self._ending is not None  # noqa: S101 - set by _end
        await self._ending

    async def _wind_up(self, tasks: set[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                _log.error("a pipe of the program broke", exc_info=outcome)
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._flush(partial=True)
        while not self._input.empty():
            self._not_read(self._input.get_nowait())

    def _report(self, code: int) -> None:
        if self._closing:
            return
        words = exit_words(code)

        def result(reason: StopReason) -> Result:
            return Result(
                text=words,
                final_message=self._output.last_line or None,
                stop_reason=reason,
                session_id=self._port.session_id,
            )

        with suppress(StaleTarget):
            if self._stopping:
                self._port.stopped(result(StopReason.CANCELLED))
            elif code == 0:
                self._port.completed(result(StopReason.END_TURN))
            else:
                self._port.failed(words, result(StopReason.ERROR))
