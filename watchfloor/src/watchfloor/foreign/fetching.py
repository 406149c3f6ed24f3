"""Details of the sessions that are looked at, fetched in the background of one connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from watchfloor.logs import logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

_log = logger(__name__)


class Fetches:
    """`get` fetches a session and says whether that worked, `leave` is told of one that is looked at no more; `name` is
    the source's, for the log."""

    def __init__(
        self,
        get: Callable[[str], Awaitable[bool]],
        leave: Callable[[str], Coroutine[Any, Any, None]],
        name: str,
    ) -> None:
        self._get = get
        self._leave = leave
        self._name = name
        self.tasks: set[asyncio.Task[None]] = set()
        """What is under way."""
        self._fetched: dict[str, asyncio.Task[None]] = {}

    def fetch(self, session: str, *, again: bool = True) -> asyncio.Task[None]:
        """Fetch the details of a session that is looked at; not `again`: only if that was not done yet."""
        task = self._fetched.get(session)
        if task is None or (again and task.done()):
            task = self._fetched[session] = self._in_background(self._fetch(session))
        return task

    async def _fetch(self, session: str) -> None:
        if not await self._get(session):
            self._fetched.pop(session, None)

    def let_go(self, session: str) -> None:
        """The session is looked at no more."""
        self._fetched.pop(session, None)
        self._in_background(self._leave(session))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            _log.error("the connector of %r failed", self._name, exc_info=fault)
