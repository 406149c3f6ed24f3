"""One of the session's two streams of telemetry, followed across breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from console.connectors.web.http import Http
from watchfloor.errors import ConnectionFailed, ConnectionLost, Denied, NotAHost, Unreachable

TRACES: Final = "/v1/traces"
LOGS: Final = "/v1/logs"
QUIET_S: Final = 0.25
"""Seconds without news after which the past counts as read: the stream does not say where it ends."""
PAST_S: Final = 5.0
"""Seconds that reading the past may take until the roster is shown as far as it is known."""
TRIES: Final = 3
AGAIN_S: Final = 0.3
SILENCE_S: Final = 86_400.0
"""A session where nothing happens tells nothing; whether it lives is asked elsewhere."""


class SessionEnded(Exception):
    """The stream ended in good order, and nobody gives it out any more. The session may have ended with it."""


class Feed:
    """Reads one stream; `take` gets the data of each event of the given name, `broke` is told when it is cut."""

    def __init__(
        self, http: Http, path: str, name: str, take: Callable[[str], None], broke: Callable[[], None]
    ) -> None:
        self._http, self._path, self._name, self._take, self._broke = http, path, name, take, broke
        self.cursor = ""
        self._opened = False
        self._heard = asyncio.Event()
        self._subscribed = asyncio.Event()

    @property
    def answered(self) -> bool:
        """Has the stream ever begun?"""
        return self._subscribed.is_set()

    async def past(self) -> bool:
        """Wait until what happened before has been read, as far as can be told. False: it took too long."""
        try:
            async with asyncio.timeout(PAST_S):
                await self._subscribed.wait()
                while await self._hears():
                    pass
        except TimeoutError:
            return False
        return True

    async def _hears(self) -> bool:
        """Does something come soon?"""
        self._heard.clear()
        try:
            async with asyncio.timeout(QUIET_S):
                await self._heard.wait()
        except TimeoutError:
            return False
        return True

    async def run(self) -> None:
        """Read on, for ever. Raises SessionEnded, Denied, NotAHost where there is no such stream, and
        ConnectionLost where no try helps."""
        failures = ends = 0
        before = ""
        while True:
            before, self._opened = self.cursor, False
            try:
                await self._follow()
                failures, ends = 0, ends + 1 if self.cursor == before else 1
                if ends > 1:
                    # It ends as soon as it is opened: there is nothing more to come.
                    raise SessionEnded
            except (Denied, NotAHost):
                raise
            except ConnectionFailed as fault:
                if ends and not self._opened and isinstance(fault, Unreachable):
                    raise SessionEnded from None
                failures, ends = failures + 1 if self.cursor == before else 1, 0
                if failures >= TRIES:
                    raise ConnectionLost(str(fault)) from None
            self._broke()
            await asyncio.sleep(AGAIN_S)

    async def _follow(self) -> None:
        headers = {"last-event-id": self.cursor} if self.cursor else {}
        async with self._http.events(self._path, headers=headers, silence_s=SILENCE_S) as events:
            self._opened = True
            async for event in events:
                self._heard.set()
                if event is None:
                    continue
                self._subscribed.set()
                if event.id:
                    self.cursor = event.id
                if event.event == self._name:
                    self._take(event.data)
