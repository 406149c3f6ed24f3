"""A foreign system, served as a host: its connector's core behind the shell of our own host.

    async with Bridge(connector, tokens=...) as bridge:
        await bridge.serve("127.0.0.1", 7340)
        await bridge.run()

Clients are let in only while the foreign system is reached, and are sent away when it is lost: they see that it is
not there, as if they had dialled it themselves.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from watchfloor.errors import ConnectionFailed, ConnectionLost
from watchfloor.foreign import ForeignConnector
from watchfloor.foreign.connector import FETCHED_S
from watchfloor.host.effects import Close, Forward, HostEffect
from watchfloor.host.serving.connections import DRAINING
from watchfloor.host.serving.server import Host
from watchfloor.logs import logger
from watchfloor.protocol.frames import History

FIRST_DELAY_S: Final = 0.5
LONGEST_DELAY_S: Final = 30.0
_log = logger(__name__)


class Bridge(Host):
    """Serves what a connector of a foreign system knows and can do. Agents of its own it has none.

    `told` is called with a line for people whenever the foreign system is reached or lost.
    """

    def __init__(
        self,
        connector: ForeignConnector,
        *,
        told: Callable[[str], None] = lambda line: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **rest: Any,
    ) -> None:
        """`rest`: what a `Host` takes."""
        super().__init__(name=connector.core.info.name, **rest)
        self._core = connector.core
        self._foreign = connector
        self._told = told
        self._said = ""
        self._sleep = sleep
        self._why = "it is not reached yet"
        self._looking: dict[str, asyncio.Task[bool]] = {}
        self._asked: set[asyncio.Task[None]] = set()
        self.reached = asyncio.Event()
        """Set while the foreign system is reached."""
        connector.serve_through(self.perform, self._looked, self._left, self._waits)

    async def run(self) -> None:
        """Keep the foreign system connected, until cancelled.

        Raises ConnectionFailed where another try is of no use.
        """
        tries = 0
        while True:
            try:
                await self._connected()
                tries = 0
                self._why = "it has ended the connection"
            except ConnectionFailed as failure:
                if not failure.retry:
                    raise
                tries = 0 if isinstance(failure, ConnectionLost) else tries + 1
                self._why = str(failure)
            finally:
                await self._lost()
            self._tell(self._why)
            # Many bridges that lost one server do not come back in step.
            ceiling = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(tries, 16))
            await self._sleep(random.uniform(0, ceiling))  # noqa: S311 - nobody gains by guessing it

    async def _connected(self) -> None:
        await self._foreign.source.open()
        self.reached.set()
        self._tell(f"{self._foreign.target.name} is reached")
        await self._foreign.source.run()

    def _tell(self, line: str) -> None:
        """What is so for hours is told once, however often it is tried again."""
        if line != self._said:
            self._said = line
            self._told(line)

    async def _lost(self) -> None:
        self.reached.clear()
        for task in (*self._looking.values(), *self._asked):
            task.cancel()
        self._looking.clear()
        await self._foreign.end_commands()
        self._flush_now()
        self.perform([Close(conn=conn, code=DRAINING, why=self._why[:100]) for conn in self._core.connections()])
        await self._foreign.source.close()

    def perform(self, effects: list[HostEffect]) -> None:
        super().perform(effects)
        for effect in effects:
            if isinstance(effect, Forward):
                self._foreign.forward(effect.command, effect.by)

    def _looked(self, session: str) -> None:
        if session not in self._looking:
            task = self._looking[session] = asyncio.create_task(self._foreign.fetch(session))
            task.add_done_callback(lambda done: self._fetched(session, done))

    def _left(self, session: str) -> None:
        self._looking.pop(session, None)
        task = asyncio.create_task(self._foreign.source.unwatch(session))
        self._asked.add(task)
        task.add_done_callback(self._left_it)

    def _left_it(self, task: asyncio.Task[None]) -> None:
        self._asked.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            _log.error("the connector of %r failed", self._foreign.target.name, exc_info=fault)

    def _waits(self, conn: str, frame: History) -> bool:
        """What is not fetched is in no page: the first one waits for it."""
        fetching = self._looking.get(frame.session)
        if fetching is None or fetching.done():
            return False
        task = asyncio.create_task(self._answer_after(fetching, conn, frame))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        return True

    async def _answer_after(self, fetching: asyncio.Task[bool], conn: str, frame: History) -> None:
        await asyncio.wait({fetching}, timeout=FETCHED_S)
        if conn in self._core.connections():
            self.perform(self._foreign.core.answer(conn, frame, self.now()))

    def _fetched(self, session: str, task: asyncio.Task[bool]) -> None:
        if task.cancelled():
            return
        if (fault := task.exception()) is not None:
            _log.error("the connector of %r failed", self._foreign.target.name, exc_info=fault)
        elif not task.result():
            self._looking.pop(session, None)

    def unready(self) -> str | None:
        return None if self.reached.is_set() else f"{self._foreign.target.name}: {self._why}"
