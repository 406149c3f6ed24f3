"""Runs attempts: starts them with their harness, hands them their signals in order, ends what they hold."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final, Protocol

from watchfloor.errors import ContractError, StaleTarget, one_line
from watchfloor.harness.base import AgentHarness, AgentSession, AttemptSpec, SessionPort, Signal, Stop
from watchfloor.logs import logger
from watchfloor.protocol.model import Capabilities

INTERVENE_S: Final = 10.0
"""Seconds that an attempt may take to accept a signal."""
CLOSE_S: Final = 10.0
"""Seconds that an attempt may take to end what it holds."""

_log = logger(__name__)


class Advertise(Protocol):
    def __call__(self, session: str, capabilities: Capabilities) -> None: ...


class Attempt:
    """One attempt, from its start until everything that it holds has ended."""

    def __init__(self, harness: AgentHarness, spec: AttemptSpec, port: SessionPort, advertise: Advertise) -> None:
        self._harness = harness
        self._spec = spec
        self._port = port
        self._advertise = advertise
        self._signals: asyncio.Queue[Signal | None] = asyncio.Queue()
        self._starting: asyncio.Task[AgentSession] | None = None
        self._killed = False
        self._finished = False
        self.task = asyncio.create_task(self._run(), name=f"attempt {spec.attempt} of {spec.session_id}")

    def tell(self, signal: Signal) -> None:
        """Hand over a signal after those before it. A kill also ends a start that is under way."""
        if isinstance(signal, Stop) and signal.kill:
            self._killed = True
            if self._starting is not None:
                self._starting.cancel()
        self._signals.put_nowait(signal)

    def finish(self) -> None:
        """No more signals: end what the attempt holds. One that is still being started is ended once it stands."""
        if not self._finished:
            self._finished = True
            self._signals.put_nowait(None)

    def abort(self) -> None:
        """As `finish`, without waiting for a start that is under way."""
        self.finish()
        if self._starting is not None:
            self._starting.cancel()

    async def _run(self) -> None:
        agent = await self._start()
        if agent is None:
            return
        try:
            while (signal := await self._signals.get()) is not None and not self._finished:
                try:
                    async with asyncio.timeout(INTERVENE_S):
                        await agent.intervene(signal)
                except Exception as error:
                    self._failed(f"the harness could not take {type(signal).__name__}: {one_line(error)}", error)
        finally:
            try:
                async with asyncio.timeout(CLOSE_S):
                    await agent.close()
            except Exception as error:
                _log.info("%s did not close: %s", self._spec.session_id, one_line(error), exc_info=error)

    async def _start(self) -> AgentSession | None:
        if self._killed:
            self._stopped()
            return None
        starting = self._starting = asyncio.create_task(self._harness.start(self._spec, self._port))
        try:
            agent = await starting
            if not hasattr(agent, "capabilities") or not hasattr(agent, "intervene"):
                raise ContractError(f"its harness started {type(agent).__name__}, which is no AgentSession")
        except asyncio.CancelledError:
            if not starting.cancelled():
                # We are being cancelled, not the start.
                starting.cancel()
                raise
            self._stopped()
            return None
        except Exception as error:
            self._failed(f"could not be started: {one_line(error)}", error)
            return None
        finally:
            self._starting = None
        self._advertise(self._spec.session_id, agent.capabilities)
        return agent

    def _stopped(self) -> None:
        with suppress(StaleTarget):
            self._port.stopped()

    def _failed(self, text: str, error: Exception) -> None:
        _log.info("attempt %d of %s: %s", self._spec.attempt, self._spec.session_id, text, exc_info=error)
        with suppress(StaleTarget):
            self._port.failed(text)
