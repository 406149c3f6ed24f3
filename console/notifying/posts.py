"""Alerts on their way out: a bounded queue and a task for each channel that takes time, so that none holds up another
or the console."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from console.notifying.alerts import Alert
from console.notifying.rules import Channel

KEPT: Final = 8
"""Alerts that wait for a channel: of more the oldest are dropped, since the newest tells what waits now."""
_log = logging.getLogger(__name__)


class NotTold(Exception):
    """A channel did not tell; the message says why, in one line of ours."""


class Way(Protocol):
    """How a channel tells."""

    async def tell(self, alert: Alert) -> None:
        """Tell it. Raises NotTold."""
        ...

    async def close(self) -> None:
        """Let go of whatever it holds."""
        ...


class Post:
    """The way of one channel, and what waits for it. `moved` is called when `fault` has changed."""

    def __init__(self, channel: Channel, way: Way, moved: Callable[[], None]) -> None:
        self.channel: Final = channel
        self._way = way
        self._moved = moved
        self._waiting: deque[Alert] = deque(maxlen=KEPT)
        self._task: asyncio.Task[None] | None = None
        self.fault = ""
        """Why the last alert was not told, in one line; "" where it was."""

    def put(self, alert: Alert) -> None:
        """Tell this when its turn comes. Must be called on the event loop."""
        self._waiting.append(alert)
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name=f"notify by {self.channel.value}")

    async def _work(self) -> None:
        while self._waiting:
            alert = self._waiting.popleft()
            try:
                await self._way.tell(alert)
            except NotTold as fault:
                self._say(str(fault))
            except Exception as fault:
                # A fault of ours in one channel is no reason to lose the console.
                _log.exception("notifying by %s failed", self.channel.value)
                self._say(f"our own fault: {type(fault).__name__}")
            else:
                self._say("")
        self._task = None

    def _say(self, fault: str) -> None:
        if fault != self.fault:
            self.fault = fault
            self._moved()

    async def close(self) -> None:
        """Tell nothing any more."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._way.close()
