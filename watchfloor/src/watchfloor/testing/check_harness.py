"""Holds a harness to what hosts rely on, on a real host: for those who write one.

async def test_my_harness() -> None:
    await check_harness(lambda: MyHarness(...), short="say hello", long="work until you are interrupted")
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from watchfloor.errors import AgentError, CapabilityNotSupported, ContractError
from watchfloor.harness.base import (
    AgentHarness,
    AgentSession,
    AttemptSpec,
    Interrupt,
    Pause,
    SessionPort,
    Signal,
)
from watchfloor.harness.streamed import Streamed, StreamHarness, StreamSession
from watchfloor.harness.wrapped import WrappedHarness
from watchfloor.host.serving.adding import only_harness
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import MailState
from watchfloor.protocol.frames import DoInterrupt, DoStop
from watchfloor.protocol.model import Capabilities
from watchfloor.words import TERMINAL, Lifecycle, Primitive

Make = Callable[[], AgentHarness]

RESULTS: Final = ("completed", "failed", "stopped")
_CHANGES: Final = (*RESULTS, "turn_ended", "interrupted", "limited", "paused", "resumed")
_REST: Final = {Lifecycle.IDLE, Lifecycle.COMPLETED}
_GENTLE: Final[tuple[tuple[Primitive, Signal], ...]] = (
    (Primitive.PAUSE, Pause()),
    (Primitive.PAUSE, Pause(interrupt=True)),
    (Primitive.INTERRUPT, Interrupt()),
)
"""What a harness refuses where it does not advertise it. A stop it always takes: a host that ends must end it."""


class HarnessFault(AssertionError):
    """The harness breaks its contract. The message says which check failed, and what was seen."""


async def check_harness(
    make: Make, *, short: str | None, long: str | None, patience_s: float = 30.0, settle_s: float = 0.2
) -> tuple[str, ...]:
    """Check a harness; returns the names of the checks that applied to it. Raises HarnessFault.

    `make`: a new harness for each check. `short`: a message whose turn ends by itself, without asking for anything.
    `long`: one whose turn does not end before it is interrupted or stopped. Both None: the harness takes no messages,
    starts by itself, and lasts until it is stopped. `patience_s`: how long a check waits for what must come;
    `settle_s`: how long it waits for what must not. A harness of the smaller seam is given as `Streamed(...)`.
    """
    if not callable(make):
        raise TypeError(f"what makes a harness is called for each check: lambda: {type(make).__name__}(...)")
    only_harness(make())
    done: list[str] = []
    for name, check in _CHECKS.items():
        stage = _Stage(name, make(), short, long, patience_s, settle_s)
        if await stage.play(check):
            done.append(name)
    return tuple(done)


# --- what is watched -----------------------------------------------------------------------


class _Port:
    """A port that keeps what the attempt reports; all else is the host's own."""

    def __init__(self, port: SessionPort, watched: _Watched) -> None:
        self._port = port
        self._watched = watched

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._port, name)
        if name not in _CHANGES:
            return real

        def report(*args: Any, **kwargs: Any) -> None:
            self._watched.reports.append((self._port.attempt, name))
            self._watched.moved.set()
            real(*args, **kwargs)

        return report


class _Session:
    """An attempt whose capabilities are compared around each signal."""

    def __init__(self, session: AgentSession, watched: _Watched) -> None:
        self.session = session
        self._watched = watched
        self._first = session.capabilities

    @property
    def capabilities(self) -> Capabilities:
        return self._first

    def compare(self) -> None:
        if self.session.capabilities != self._first:
            self._watched.fault = "the capabilities changed while the attempt ran"

    async def intervene(self, signal: Signal) -> None:
        await self.session.intervene(signal)
        self.compare()

    async def close(self) -> None:
        await self.session.close()


class _Watched(WrappedHarness):
    """A harness whose attempts are watched."""

    def __init__(self, harness: AgentHarness) -> None:
        super().__init__(harness)
        self.reports: list[tuple[int, str]] = []
        self.moved = asyncio.Event()
        self.session: _Session | None = None
        self.fault: str | None = None

    async def start(self, spec: AttemptSpec, port: SessionPort) -> AgentSession:
        session = await super().start(spec, cast(SessionPort, _Port(port, self)))
        self.session = _Session(session, self)
        self.moved.set()
        return self.session


# --- the checks ----------------------------------------------------------------------------


class _Stage:
    """One harness on one host."""

    def __init__(
        self, name: str, harness: AgentHarness, short: str | None, long: str | None, patience_s: float, settle_s: float
    ) -> None:
        self._name = name
        self.watched = _Watched(harness)
        self.short = short
        self.long = long
        self.patience_s = patience_s
        self._settle_s = settle_s
        self.host: Host
        self.id = ""
        self.refs: list[str] = []

    async def play(self, check: Callable[[_Stage], Any]) -> bool:
        """Run a check; False where it does not apply."""
        async with Host(name="check") as host:
            self.host = host
            self.id = host.add(self.watched, name="checked")
            applied = bool(await check(self))
        self.hold()
        return applied

    def fail(self, what: str) -> HarnessFault:
        seen = ", ".join(name for _, name in self.watched.reports) or "nothing"
        return HarnessFault(f"{self._name}: {what} (reported: {seen})")

    def hold(self) -> None:
        """Raise what was seen to be wrong, whatever is being checked."""
        for attempt in {attempt for attempt, _ in self.watched.reports}:
            results = [name for of, name in self.watched.reports if of == attempt and name in RESULTS]
            if len(results) > 1:
                raise self.fail(f"attempt {attempt} gave {len(results)} results")
        if self.watched.fault is not None:
            raise self.fail(self.watched.fault)

    @property
    def lifecycle(self) -> Lifecycle:
        return self.host.core.session(self.id).lifecycle

    async def until(self, met: Callable[[], bool], what: str) -> None:
        """Wait for what must come. Raises HarnessFault when it does not."""
        deadline = asyncio.get_running_loop().time() + self.patience_s
        while not met():
            self.hold()
            if asyncio.get_running_loop().time() > deadline:
                raise self.fail(f"{what} within {self.patience_s:g} s; the session is {self.lifecycle.value}")
            self.watched.moved.clear()
            try:
                # The host changes the state a moment after the report.
                await asyncio.wait_for(self.watched.moved.wait(), 0.02)
            except TimeoutError:
                continue

    async def settle(self) -> None:
        """Give what must not happen the time to happen."""
        await asyncio.sleep(self._settle_s)
        self.hold()

    def send(self, text: str) -> str:
        ref = self.host.send(self.id, text)
        self.refs.append(ref)
        return ref

    async def turn(self) -> None:
        """A short turn, from its message to its end."""
        assert self.short is not None  # noqa: S101 - checks that need it look first
        before = len(self.watched.reports)
        self.send(self.short)
        ended = ("turn_ended", "completed")
        await self.until(
            lambda: any(name in ended for _, name in self.watched.reports[before:]) and self.lifecycle in _REST,
            f"the turn of {self.short!r} did not end",
        )

    async def at_work(self) -> None:
        """Something runs, and goes on."""
        if self.long is not None:
            self.send(self.long)
        await self.until(lambda: self.watched.session is not None, "it did not start")
        await self.until(lambda: self.lifecycle in (Lifecycle.RUNNING, Lifecycle.WAITING), "nothing runs")
        await self.settle()
        if self.lifecycle not in (Lifecycle.RUNNING, Lifecycle.WAITING):
            raise self.fail(f"what should last is {self.lifecycle.value}")

    async def stop(self, *, kill: bool) -> None:
        self.host.command(self.id, DoStop(kill=kill))
        await self.until(lambda: self.lifecycle in TERMINAL, "it did not stop")
        await self.settle()


async def _capabilities(stage: _Stage) -> bool:
    await stage.at_work()
    session = stage.watched.session
    assert session is not None  # noqa: S101 - it is at work
    if session.capabilities != stage.watched.capabilities:
        raise stage.fail("the attempt advertises something else than its harness")
    if session.capabilities.send is None and (stage.short is not None or stage.long is not None):
        raise stage.fail("it takes no messages, though some were given to check it with")
    await stage.stop(kill=False)
    session.compare()
    return True


async def _stopped_at_rest(stage: _Stage) -> bool:
    if stage.short is None:
        return False
    await stage.turn()
    await stage.stop(kill=False)
    return True


async def _stopped_at_work(stage: _Stage) -> bool:
    await stage.at_work()
    await stage.stop(kill=False)
    return _one_result(stage)


async def _killed_at_work(stage: _Stage) -> bool:
    await stage.at_work()
    await stage.stop(kill=True)
    return _one_result(stage)


def _one_result(stage: _Stage) -> bool:
    if [name for _, name in stage.watched.reports if name in RESULTS] != ["stopped"]:
        raise stage.fail("an attempt that is stopped reports `stopped`, once")
    return True


async def _taken_once(stage: _Stage) -> bool:
    """Of a harness of the smaller seam: whoever asks for its result a second time is told so."""
    if not isinstance(stage.watched.harness, Streamed):
        return False
    kept = _Kept(stage.watched.harness.harness)
    stage.watched.harness = Streamed(kept, starts_itself=stage.watched.starts_itself, grace_s=stage.watched.grace_s)
    await stage.at_work()
    await stage.stop(kill=False)
    for session in kept.sessions:
        try:
            async with asyncio.timeout(stage.patience_s):
                await session.wait_result()
        except ContractError:
            continue
        except TimeoutError:
            raise stage.fail("a second wait_result waits for ever; it raises ContractError") from None
        raise stage.fail("it gives its result twice; a second wait_result raises ContractError")
    return True


class _Kept:
    """Keeps the attempts that it starts."""

    def __init__(self, harness: StreamHarness) -> None:
        self._harness = harness
        self.sessions: list[StreamSession] = []

    @property
    def capabilities(self) -> Capabilities:
        return self._harness.capabilities

    async def start(self, spec: AttemptSpec) -> StreamSession:
        session = await self._harness.start(spec)
        self.sessions.append(session)
        return session


async def _refused(stage: _Stage) -> bool:
    await stage.at_work()
    session = stage.watched.session
    assert session is not None  # noqa: S101 - it is at work
    refused = [(p, signal) for p, signal in _GENTLE if not session.capabilities.advertises(p)]
    for primitive, signal in refused:
        before = len(stage.watched.reports)
        try:
            await session.intervene(signal)
        except CapabilityNotSupported:
            continue
        except AgentError as error:
            raise stage.fail(f"{primitive.value} is refused with CapabilityNotSupported, not {error!r}") from error
        await stage.settle()
        if stage.watched.reports[before:]:
            raise stage.fail(f"it does not advertise {primitive.value}, and applied it")
    await stage.stop(kill=True)
    return bool(refused)


async def _interrupted(stage: _Stage) -> bool:
    if stage.short is None or stage.long is None or not stage.watched.capabilities.advertises(Primitive.INTERRUPT):
        return False
    await stage.turn()
    for late in (False, True):
        if late:
            await stage.at_work()
        else:
            stage.send(stage.long)  # nothing of the turn has run yet
        stage.host.command(stage.id, DoInterrupt())
        await stage.until(lambda: stage.lifecycle in _REST, "an interrupt was lost: the turn did not end")
        # An interrupt that came too late must not end the turn after it.
        await stage.turn()
    await stage.stop(kill=False)
    return True


async def _mail(stage: _Stage) -> bool:
    if stage.short is None or stage.long is None:
        return False
    await stage.turn()
    await stage.at_work()
    stage.send(stage.short)
    await stage.settle()
    await stage.stop(kill=False)
    letters = [(ref, stage.host.message(stage.id, ref)) for ref in stage.refs]
    lost = [ref for ref, letter in letters if letter.state is MailState.SENT]
    if lost:
        raise stage.fail(f"the session is over, and {', '.join(lost)} ended neither consumed nor with an error")
    if letters[0][1].state is not MailState.CONSUMED:
        raise stage.fail(f"a turn took {letters[0][0]} up and ended, and it is not consumed")
    return True


_CHECKS: Final[dict[str, Callable[[_Stage], Any]]] = {
    "capabilities are fixed for an attempt": _capabilities,
    "one result when it is stopped at rest": _stopped_at_rest,
    "one result when it is stopped at work": _stopped_at_work,
    "one result when it is killed at work": _killed_at_work,
    "a result is taken once": _taken_once,
    "what is not advertised is refused": _refused,
    "no interrupt is lost": _interrupted,
    "every message has an end": _mail,
}
