"""The ways in which a server tells what happens: one WebSocket, or streams of events where it has none."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from console.connectors.bamboo import frames
from console.connectors.bamboo.api import BASE, Api, of
from console.connectors.bamboo.feed import Feed
from console.connectors.web.reading import Json
from console.connectors.web.socket import Socket, open_socket
from watchfloor.errors import ConnectionFailed, ConnectionLost, Denied, NotAHost

BATCH_MS: Final = 100
"""What is said within this time comes in one piece."""
WELCOME_S: Final = 10.0
SILENCE_S: Final = 12.0
"""Six signs of life that did not come, of a server that gives one every two seconds."""
LONG_SILENCE_S: Final = 50.0
"""Three answers that did not come, of an older server."""
PING_S: Final = 15.0
SSE_AGAIN_S: Final = 0.5
_log = logging.getLogger(__name__)


class Live(Protocol):
    """`heard` is called for whatever comes, `moved` after the feed was told something."""

    async def open(self, since: int | None) -> None:
        """Follow the feed after this number, or (None) from its beginning. Raises ConnectionFailed."""
        ...

    async def follow(self, session: str) -> None:
        """Open the session's channel."""
        ...

    async def run(self) -> None:
        """Read, until the connection ends: raises ConnectionLost."""
        ...

    async def close(self) -> None: ...


class WebSocketLive:
    """One socket for everything. `acks`: the server answers a hello. `beats`: it gives a sign of life every 2 s."""

    def __init__(
        self, api: Api, feed: Feed, told: Callable[[], None], *, acks: bool, beats: bool, silence_s: float | None = None
    ) -> None:
        self._api = api
        self._feed = feed
        self._told = told
        self._acks, self._beats = acks, beats
        self._gives_signs = beats
        self._silence_s = silence_s or (SILENCE_S if beats else LONG_SILENCE_S)
        self._socket: Socket | None = None
        self._frames: AsyncIterator[str | bytes] | None = None

    async def open(self, since: int | None) -> None:
        api = self._api
        path = f"/v2/stream?batch_ms={BATCH_MS}"
        socket = await open_socket(api.address, path, headers=api.headers, subprotocols=(frames.PROTOCOL,))
        self._socket, self._frames = socket, socket.frames()
        hello = {"type": "hello"}
        if api.device is not None:
            hello |= {"device_id": api.device[0], "token": api.device[1]}
        await socket.send(json.dumps(hello))
        if self._acks:
            try:
                async with asyncio.timeout(WELCOME_S):
                    while not frames.is_welcome(await self._next()):
                        pass
            except TimeoutError:
                raise ConnectionLost(f"{api.where} opens its stream and does not greet") from None
        await socket.send(frames.subscribe(frames.FEED, since))

    async def _next(self) -> Json:
        if self._frames is None:
            raise ConnectionLost(f"{self._api.where} is not connected")
        try:
            return frames.read(await anext(self._frames))
        except StopAsyncIteration:
            raise ConnectionLost(f"{self._api.where} has closed its stream") from None

    async def follow(self, session: str) -> None:
        if self._socket is None:
            raise ConnectionLost(f"{self._api.where} is not connected")
        await self._socket.send(frames.subscribe(frames.AGENT + session))

    async def run(self) -> None:
        asking = None if self._beats else asyncio.create_task(self._ask_for_life(), name="bamboo pings")
        try:
            await self._read()
        finally:
            if asking is not None:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)

    async def _ask_for_life(self) -> None:
        """Older servers say nothing where nothing happens, but some answer when they are asked."""
        while self._socket is not None:
            await asyncio.sleep(PING_S)
            await self._socket.send(frames.PING)

    async def _read(self) -> None:
        while True:
            try:
                # Of one that never gave a sign of life silence says nothing: the pings of the protocol find its end.
                async with asyncio.timeout(self._silence_s if self._gives_signs else None):
                    frame = await self._next()
            except TimeoutError:
                raise ConnectionLost(f"{self._api.where} gave no sign of life for {self._silence_s:g} s") from None
            self._gives_signs = self._gives_signs or frames.is_sign_of_life(frame)
            frames.take(self._feed, frame)
            self._told()

    async def close(self) -> None:
        socket, self._socket, self._frames = self._socket, None, None
        if socket is not None:
            await socket.close()


class EventStreamLive:
    """One stream of durable events, and one more for each session that runs."""

    def __init__(self, api: Api, feed: Feed, told: Callable[[], None], *, silence_s: float = LONG_SILENCE_S) -> None:
        self._api = api
        self._feed = feed
        self._told = told
        self._silence_s = silence_s
        self._reading: asyncio.Task[None] | None = None
        self._channels: dict[str, asyncio.Task[None]] = {}

    async def open(self, since: int | None) -> None:
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._follow_feed(since, opened), name="bamboo feed")
        await asyncio.wait({opened, self._reading}, return_when=asyncio.FIRST_COMPLETED)
        if self._reading.done():
            self._reading.result()

    async def _follow_feed(self, since: int | None, opened: asyncio.Future[None]) -> None:
        query = "" if since is None else f"?since={since}"
        stream = self._api.http.events(f"{BASE}/stream{query}", headers=self._api.headers, silence_s=self._silence_s)
        async with stream as events:
            if not opened.done():
                opened.set_result(None)
            async for event in events:
                if event is not None:
                    frames.take_feed_line(self._feed, event.data, event.id)
                self._told()
        raise ConnectionLost(f"{self._api.where} has closed its stream")

    async def follow(self, session: str) -> None:
        known = self._channels.get(session)
        if known is None or known.done():
            task = self._channels[session] = asyncio.create_task(self._follow_session(session), name="bamboo channel")
            task.add_done_callback(
                lambda _: self._channels.pop(session, None) if task is self._channels.get(session) else None
            )

    async def _follow_session(self, session: str) -> None:
        """A session's stream to its end. One that breaks off loses what was said meanwhile, without a word."""
        path = f"{of(session, 'events')}?batch_ms={BATCH_MS}"
        while True:
            try:
                async with self._api.http.events(path, headers=self._api.headers, silence_s=self._silence_s) as events:
                    async for event in events:
                        if event is not None and not frames.take_session_line(self._feed, session, event.data):
                            self._told()
                            return
                        self._told()
            except NotAHost as refused:
                _log.info("the stream of session %r cannot be followed: %s", session, refused)
                self._feed.channel_over(session)
                return
            except Denied:
                # Its cookie has run out. Where that is not so, this says it as well.
                await self._renew()
            except ConnectionFailed as fault:
                _log.info("the stream of session %r broke: %s", session, fault)
            self._feed.broke(session)
            self._told()
            await asyncio.sleep(SSE_AGAIN_S)

    async def _renew(self) -> None:
        try:
            await self._api.login()
        except ConnectionFailed as fault:
            _log.info("no new credential: %s", fault)

    async def run(self) -> None:
        if self._reading is not None:
            await asyncio.shield(self._reading)

    async def close(self) -> None:
        tasks = [task for task in (self._reading, *self._channels.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._reading, self._channels = None, {}
