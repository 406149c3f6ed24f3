"""What an attempt reports through: the `SessionPort` of the native host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from watchfloor.errors import StaleTarget
from watchfloor.harness.base import AgentHarness, Boundary, Conversation, Rest
from watchfloor.host.core import HostCore
from watchfloor.host.effects import HostEffect, SessionEffect
from watchfloor.host.sessions.session import SessionCore
from watchfloor.protocol.events import Event
from watchfloor.protocol.model import RequestModel, Result, Usage


class PortHost(Protocol):
    """What a port needs of its host."""

    @property
    def core(self) -> HostCore: ...

    def now(self) -> int: ...

    def perform(self, effects: list[HostEffect]) -> None: ...

    def flush(self) -> None:
        """Log and tell what has happened so far."""
        ...

    async def wait_from(self, waiter: str, session: str) -> Rest: ...

    def add_child(self, parent: str, harness: AgentHarness, name: str, text: str | None) -> str: ...


class Port:
    """The port of one attempt. Once the attempt was superseded every call raises `StaleTarget`."""

    def __init__(self, host: PortHost, session_id: str, attempt: int) -> None:
        self._host = host
        self._session = session_id
        self._attempt = attempt

    @property
    def session_id(self) -> str:
        return self._session

    @property
    def attempt(self) -> int:
        return self._attempt

    @property
    def conversation(self) -> Conversation:
        return self._core().conversation

    def now(self) -> int:
        return self._host.now()

    def _core(self) -> SessionCore:
        try:
            core = self._host.core.session(self._session)
        except KeyError:
            raise StaleTarget(f"the session {self._session!r} is gone") from None
        if core.attempt != self._attempt:
            raise StaleTarget(f"attempt {self._attempt} was superseded by attempt {core.attempt}")
        return core

    def _report(self, report: Callable[[SessionCore, int], list[SessionEffect]]) -> None:
        self._perform(report(self._core(), self._host.now()))

    def _perform(self, effects: list[SessionEffect]) -> None:
        self._host.perform(self._host.core.apply(effects))

    def emit(self, event: Event) -> None:
        self._report(lambda core, now: core.emit(event, now))

    def stream(self, item: str, of: str, text: str, *, call: str | None = None) -> None:
        self._report(lambda core, now: core.stream(item, of, text, now, call))

    def started(self) -> None:
        self._report(lambda core, now: core.started(now))

    def begin(self, work: str, name: str) -> None:
        self._report(lambda core, now: core.begin(work, name, now))
        # Before it runs: after a crash it must be known that it may have.
        self._host.flush()

    def end(self, work: str) -> None:
        self._report(lambda core, now: core.end(work, now))

    def ask(self, request: RequestModel) -> None:
        self._report(lambda core, now: core.ask(request, now))

    def withdraw(self, request: str, why: str) -> None:
        self._report(lambda core, now: core.withdraw(request, why, now))

    def checkpoint(self) -> Boundary:
        boundary, effects = self._core().checkpoint(self._host.now())
        self._perform(effects)
        return boundary

    def paused(self) -> None:
        self._report(lambda core, now: core.suspended(now))

    def resumed(self) -> None:
        self._report(lambda core, now: core.resumed(now))

    def usage(self, usage: Usage) -> None:
        self._report(lambda core, now: core.note_usage(usage, now))

    def turn_ended(self, result: Result) -> None:
        self._report(lambda core, now: core.turn_ended(result, now))

    def completed(self, result: Result) -> None:
        self._report(lambda core, now: core.completed(result, now))

    def failed(self, error: str, result: Result | None = None) -> None:
        self._report(lambda core, now: core.failed(error, now, result))

    def limited(self, result: Result) -> None:
        self._report(lambda core, now: core.limited(result, now))

    def interrupted(self) -> None:
        self._report(lambda core, now: core.interrupted(now))

    def stopped(self, result: Result | None = None) -> None:
        self._report(lambda core, now: core.stopped(now, result))

    def reply(self, ref: str, text: str) -> None:
        self._report(lambda core, now: core.reply(ref, text, now))

    async def wait(self, session: str) -> Rest:
        self._core()
        return await self._host.wait_from(self._session, session)

    def spawn(self, harness: AgentHarness, *, name: str, text: str | None = None) -> str:
        self._core()
        return self._host.add_child(self._session, harness, name, text)
