"""The bounded queue of frames that wait for one client."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed

MAX_BYTES: Final = 8 * 1024 * 1024
MIN_BYTES: Final = 2 * 1024 * 1024
"""A slice of the past, on top of what may wait already, must fit."""
MAX_FRAMES: Final = 4096
LOW_BYTES: Final = 512 * 1024
"""Below this there is room for more of the past."""
CLOSE_S: Final = 5.0
"""Seconds that a client has to read what is queued, and then to take leave."""
SLOW: Final = 1013
"""WebSocket close code of a client that does not keep up."""


class Outbox:
    """Frames on their way to one client. `more` is called when there is room; it puts frames in, if it has any."""

    def __init__(
        self,
        ws: Connection,
        more: Callable[[], bool],
        *,
        max_bytes: int = MAX_BYTES,
        max_frames: int = MAX_FRAMES,
    ) -> None:
        self._ws = ws
        self._more = more
        self._max_bytes = max_bytes
        self._max_frames = max_frames
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._close: tuple[int, str] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._late: asyncio.TimerHandle | None = None

    @property
    def _roomy(self) -> bool:
        return self._bytes < LOW_BYTES and len(self._frames) * 8 < self._max_frames

    @property
    def crowded(self) -> bool:
        """Does so much wait that nothing should be added that the client can fetch later?"""
        return len(self._frames) * 2 >= self._max_frames or self._bytes * 2 >= self._max_bytes

    @property
    def tight(self) -> bool:
        """Is the room that is left for what cannot be fetched later?"""
        return len(self._frames) * 4 >= self._max_frames * 3 or self._bytes * 4 >= self._max_bytes * 3

    def put(self, data: bytes) -> None:
        """Queue a frame. Where the queue is full the client is given up; it can resume by `pos`."""
        if self._close is not None:
            return
        if len(self._frames) >= self._max_frames or self._bytes >= self._max_bytes:
            self.close(SLOW, "this client does not keep up", drop=True)
            return
        self._frames.append(data)
        self._bytes += len(data)
        self._filled.set()

    def close(self, code: int, why: str, *, drop: bool = False) -> None:
        """End the connection after what is queued, or at once with `drop`."""
        if self._close is not None:
            return
        self._close = (code, why)
        if drop:
            self._frames.clear()
            if self._writing is not None:
                # It hangs in a send that the client does not read.
                self._writing.cancel()
        elif self._writing is not None:
            # Nobody is told any more then that this client hangs: it would keep the host from ending.
            self._late = asyncio.get_running_loop().call_later(CLOSE_S, self._writing.cancel)
        self._filled.set()

    async def run(self) -> None:
        """Write until the connection ends."""
        self._writing = asyncio.create_task(self._write())
        try:
            with suppress(asyncio.CancelledError):
                await self._writing
            if self._close is None:
                return
            code, why = self._close
            try:
                async with asyncio.timeout(CLOSE_S):
                    await self._ws.close(code, why)
            except TimeoutError:
                self._ws.transport.abort()
        except ConnectionClosed:
            return
        finally:
            self._writing.cancel()
            if self._late is not None:
                self._late.cancel()

    async def _write(self) -> None:
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._frames:
                data = self._frames.popleft()
                self._bytes -= len(data)
                await self._ws.send(data, text=True)
                if self._roomy and self._close is None and self._more():
                    # A long past must not keep the event loop from everything else.
                    await asyncio.sleep(0)
            if self._close is not None:
                return
