"""One subscription over one socket, followed across breaks for as long as it is wanted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Final

from console.connectors.aion.reading import Json, obj, text
from console.connectors.aion.server import Refused, Server
from console.connectors.web.reading import parsed
from console.connectors.web.socket import Socket, open_socket
from watchfloor.errors import ConnectionFailed, ConnectionLost, NotAHost

PATH: Final = "/events/stream"
LAGGED: Final = "transcript_lagged"
FINAL: Final = frozenset({"namespace_denied", "deploy_denied", "grant_denied", "not_found", "invalid_input"})
"""Refusals that another try does not change."""
FIRST_WAIT_S: Final = 0.25
LONGEST_WAIT_S: Final = 5.0


class Following:
    """Follows what `arm` subscribes to. `take` gets each frame, `broken` each end with its reason.

    `broken` is told the code of the server's error frame ("" for another end) and its words.
    """

    def __init__(
        self,
        server: Server,
        arm: Callable[[], Json],
        take: Callable[[Json], None],
        broken: Callable[[str, str], None],
    ) -> None:
        self._server, self._arm, self._take, self._broken = server, arm, take, broken
        self.failures = 0

    async def run(self) -> None:
        """Follow for good: also what the server ends in good order is taken up again, as when a proxy is restarted.

        Raises Refused where the server does not want us, and ConnectionFailed where it opens none.
        """
        while True:
            await self._once()
            await asyncio.sleep(min(FIRST_WAIT_S * 2 ** min(max(self.failures - 1, 0), 8), LONGEST_WAIT_S))

    async def _once(self) -> None:
        try:
            socket = await open_socket(self._server.address, PATH, headers=self._server.headers)
            try:
                await self._follow(socket)
            finally:
                await socket.close()
        except ConnectionFailed as failed:
            if not failed.retry or isinstance(failed, NotAHost):
                raise
            self.failures += 1
            self._broken("", str(failed))

    async def _follow(self, socket: Socket) -> None:
        await socket.send(json.dumps({"subscription": self._arm()}))
        async for raw in socket.frames():
            frame = self._parsed(raw)
            error = obj(frame.get("error"))
            if not error:
                self.failures = 0
                self._take(frame)
                continue
            code = text(error.get("code"))
            if code in FINAL:
                raise Refused(0, code, text(error.get("message")))
            self.failures += code != LAGGED
            return self._broken(code, text(error.get("message")) or code)
        self.failures += 1
        return self._broken("", "the server closed it")

    def _parsed(self, raw: str | bytes) -> Json:
        try:
            frame = parsed(raw)
        except (ValueError, RecursionError):
            frame = None
        if not isinstance(frame, dict):
            raise ConnectionLost(f"{self._server.where} sent a frame that cannot be read")
        return frame
