"""The app-server's JSON-RPC over a WebSocket: calls, answers, and what the server says by itself."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

from console.connectors.web.reading import Json, number, part, text
from console.connectors.web.socket import Socket
from watchfloor.errors import ConnectionLost, WatchfloorError

ANSWERS_IN_S: Final = 30.0
"""Seconds that the server may take to answer a call."""
DRAINING: Final = "serverShuttingDown"
SLICE: Final = 64
"""Frames that are taken at a time: a flood of them must leave others their turn."""
_UNKNOWN: Final = re.compile(r"unknown variant `([^`]*)`, expected (?:one of )?(.+)", re.DOTALL)
_log = logging.getLogger(__name__)

Told = Callable[[Json], None]
"""Takes a notification, or a request of the server."""


class CallRefused(WatchfloorError):
    """The server answered with an error. Nothing was done.

    `unknown`: what in the call the server does not know, a method or one of a few words; `known`: all that it knows in
    its place.
    """

    def __init__(self, error: Json) -> None:
        said = text(error, "message") or f"error {number(error, 'code')}"
        found = _UNKNOWN.search(said)
        self.unknown: str | None = found[1] if found else None
        self.known: frozenset[str] | None = frozenset(re.findall(r"`([^`]+)`", found[2])) if found else None
        # All that a server knows instead is a list of hundreds of words.
        super().__init__(f"the server does not know {found[1]!r}" if found else said)
        self.draining = text(error, "data", "reason") == DRAINING

    @classmethod
    def saying(cls, message: str) -> CallRefused:
        return cls({"message": message})


class Rpc:
    """One connection. `told` is called for each frame of the server that is no answer, in the order of arrival."""

    def __init__(self, socket: Socket, told: Told) -> None:
        self._socket = socket
        self._told = told
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[Json]] = {}
        self._reading: asyncio.Task[None] | None = None
        self.unreadable = 0
        """Frames of which nothing could be used."""

    def begin(self) -> None:
        """Read from now on."""
        self._reading = asyncio.create_task(self._read(), name="codex reader")

    async def ended(self) -> None:
        """Wait for the end of the connection. Raises ConnectionLost where it was not in good order."""
        assert self._reading is not None  # noqa: S101 - a connection is begun before it is used
        await asyncio.shield(self._reading)

    async def call(self, method: str, params: Json | None = None, *, timeout_s: float = ANSWERS_IN_S) -> Json:
        """The result of a call. Raises CallRefused, ConnectionLost, and TimeoutError where no answer came."""
        id = next(self._numbers)
        answer = self._asked[id] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": id, "method": method, "params": params or {}})
            async with asyncio.timeout(timeout_s):
                frame = await answer
        finally:
            self._asked.pop(id, None)
        if "error" in frame:
            raise CallRefused(part(frame, "error"))
        return part(frame, "result")

    async def notify(self, method: str) -> None:
        await self._send({"method": method})

    async def answer(self, id: int | str, result: Json) -> None:
        """Answer a request of the server. It says nothing to that, also where the answer came too late."""
        await self._send({"id": id, "result": result})

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._socket.close()

    async def _send(self, frame: Json) -> None:
        await self._socket.send(json.dumps(frame, ensure_ascii=False))

    async def _read(self) -> None:
        fault: Exception | None = None
        try:
            taken = 0
            async for raw in self._socket.frames():
                self._take(raw)
                taken += 1
                if taken % SLICE == 0:
                    await asyncio.sleep(0)
        except ConnectionLost as lost:
            fault = lost
            raise
        finally:
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(fault or ConnectionLost("the server ended the connection"))

    def _take(self, raw: str | bytes) -> None:
        try:
            frame: Any = json.loads(raw)
        except (ValueError, RecursionError):
            frame = None
        if not isinstance(frame, Mapping):
            self.unreadable += 1
            _log.warning("a frame that cannot be read: %r", raw[:200])
        elif "method" in frame:
            try:
                self._told(frame)
            except Exception:
                # One frame that we handle badly must not cost the connection to all threads.
                _log.exception("a frame of the app-server could not be handled: %r", raw[:400])
        else:
            id = frame.get("id")
            answer = self._asked.get(id) if isinstance(id, int) else None
            if answer is not None and not answer.done():
                answer.set_result(frame)
