"""What a host runs: the harness of each session, its attempts, and work on conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

from watchfloor.errors import one_line
from watchfloor.harness.base import AgentHarness, AttemptSpec, Compacting, ConversationMessage
from watchfloor.host.effects import CompactNow, EndAttempt, SessionEffect, StartAttempt, Tell
from watchfloor.host.running.attempts import CLOSE_S, Attempt
from watchfloor.host.running.port import Port, PortHost
from watchfloor.host.sessions.session import SessionCore
from watchfloor.logs import logger
from watchfloor.protocol.model import Capabilities

_log = logger(__name__)


class RunnerHost(PortHost, Protocol):
    """What a runner needs of its host."""

    def advertise(self, session: str, capabilities: Capabilities) -> None: ...


@dataclass(frozen=True, slots=True)
class Hosted:
    """How a session is run."""

    harness: AgentHarness
    spec: AttemptSpec


class Runner:
    """The attempts of all sessions of one host."""

    def __init__(self, host: RunnerHost) -> None:
        self._host = host
        self._hosted: dict[str, Hosted] = {}
        self._attempts: dict[tuple[str, int], Attempt] = {}
        self._compacting: dict[str, asyncio.Task[None]] = {}

    def add(self, harness: AgentHarness, spec: AttemptSpec) -> None:
        self._hosted[spec.session_id] = Hosted(harness, spec)

    def __getitem__(self, session: str) -> Hosted:
        return self._hosted[session]

    def harness(self, session: str) -> AgentHarness | None:
        """What runs the session; None where another process does."""
        hosted = self._hosted.get(session)
        return hosted.harness if hosted is not None else None

    def forget(self, session: str) -> None:
        """The session is there no more: what it still holds is ended."""
        self._hosted.pop(session, None)
        for (of, _), attempt in self._attempts.items():
            if of == session:
                attempt.finish()
        compacting = self._compacting.pop(session, None)
        if compacting is not None:
            compacting.cancel()

    def perform(self, effect: Tell | StartAttempt | EndAttempt | CompactNow) -> None:
        """Carry out what a session core decided."""
        match effect:
            case Tell(session=session, attempt=number, signal=signal):
                attempt = self._attempts.get((session, number))
                if attempt is not None:
                    attempt.tell(signal)
            case StartAttempt(session=session, attempt=number):
                self._begin(session, number)
            case EndAttempt(session=session, attempt=number):
                attempt = self._attempts.get((session, number))
                if attempt is not None:
                    attempt.finish()
            case CompactNow(session=session, messages=messages):
                task = asyncio.create_task(self._compact(session, messages), name=f"compacting {session}")
                self._compacting[session] = task

    def _begin(self, session: str, number: int) -> None:
        hosted = self._hosted[session]
        spec = replace(hosted.spec, attempt=number)
        attempt = Attempt(hosted.harness, spec, Port(self._host, session, number), self._host.advertise)
        self._attempts[session, number] = attempt
        attempt.task.add_done_callback(lambda _: self._attempts.pop((session, number), None))

    async def _compact(self, session: str, messages: Sequence[ConversationMessage]) -> None:
        harness = self._hosted[session].harness
        try:
            shorter = tuple(await cast(Compacting, harness).compact(messages))
            if any(not isinstance(message, ConversationMessage) for message in shorter):
                raise TypeError("it returned what are no messages")
        except Exception as error:
            _log.info("%s could not be compacted", session, exc_info=error)
            why = one_line(error)
            self._report(session, lambda core, now: core.not_compacted(why, now))
        else:
            self._report(session, lambda core, now: core.compacted(shorter, now))
        self._compacting.pop(session, None)

    def _report(self, session: str, report: Callable[[SessionCore, int], list[SessionEffect]]) -> None:
        if session in self._host.core.roster:
            effects = report(self._host.core.session(session), self._host.now())
            self._host.perform(self._host.core.apply(effects))

    async def close(self) -> None:
        """End everything that runs."""
        for task in self._compacting.values():
            task.cancel()
        attempts = [attempt.task for attempt in self._attempts.values()]
        for attempt in self._attempts.values():
            attempt.abort()
        if attempts:
            await asyncio.wait(attempts, timeout=2 * CLOSE_S)
