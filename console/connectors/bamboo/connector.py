"""A bamboo server as a source: the shell around the feed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from console.connectors.bamboo.acting import Acting
from console.connectors.bamboo.api import BASE, Api
from console.connectors.bamboo.feed import Feed
from console.connectors.bamboo.history import Choice
from console.connectors.bamboo.live import EventStreamLive, Live, WebSocketLive
from console.connectors.bamboo.reader import Reader
from console.connectors.bamboo.state import Session, Want
from console.connectors.web.address import address_of
from console.connectors.web.reading import Json, each, number, text, texts
from watchfloor.connector import Connector, Record, Target
from watchfloor.errors import ConnectionFailed, ConnectionLost, NotAHost, WatchfloorError
from watchfloor.foreign import ForeignConnector, Handled, Mirror
from watchfloor.protocol.frames import Command

SCHEMES: Final = {"bamboo+http": "http", "bamboo+https": "https"}
RECENT: Final = 30
"""Sessions at rest whose history is read when all are followed."""
BEAT_S: Final = 15.0
BUSY_BEAT_S: Final = 2.0
"""The same while children run: their permissions are in the server's list for some seconds, and told nowhere."""
ACTING: Final = 90.0
"""Seconds for a command: a server waits up to 15 s for a run that is ending, and is asked again then."""
_log = logging.getLogger(__name__)


class BambooFactory:
    """Makes connectors for bamboo servers."""

    schemes = frozenset(SCHEMES)

    def __call__(self, target: Target) -> Connector:
        return ForeignConnector(target, BambooSource, name="bamboo", answers_in_s=ACTING)


class BambooSource:
    """A `watchfloor.foreign.ForeignSource`. Raises ConfigError for an address or token that cannot be used."""

    def __init__(self, target: Target, mirror: Mirror) -> None:
        self._mirror = mirror
        self._address = address_of(target, SCHEMES)
        self._token = target.token
        self._follow_all = target.record is Record.ALL
        self.feed: Final = Feed(mirror, follow_all=self._follow_all)
        self._api: Api | None = Api(self._address, self._token)
        self._live: Live | None = None
        self._has: frozenset[str] = frozenset()
        self._snapshots = True
        self._reader = Reader(self.feed, self)
        self._moved = asyncio.Event()
        self._lost: asyncio.Future[None] | None = None
        self.acting: Final = Acting(self.feed, self, mirror)

    # --- connecting

    async def open(self) -> None:
        if self._api is None:
            self._api = Api(self._address, self._token)
        api, feed = self._api, self.feed
        found = await api.discover()
        self._has = frozenset(texts(found, "capabilities"))
        self._mirror.host(version=text(found, "server", "version") or "")
        await api.login()
        since, asked_at = await self._head(), self._mirror.now()
        await self._reader.roster()
        for session in list(feed.sessions.values()):
            if (Want.READ, session.id) in feed.wants:
                feed.wants.discard((Want.READ, session.id))
                self._reader.want(Want.READ, session.id)
        # What waits for a person is read before the roster is shown: it says what is asked, not only that something is.
        await self._reader.done()
        if self._snapshots:
            await self._children(asked_at)
        feed.opened(since or 0)
        self._live = await self._open_live(since)
        self.told()
        if self._follow_all:
            for session in list(feed.sessions.values())[:RECENT]:
                if not session.read:
                    self._reader.want(Want.PAST, session.id)
        self._reader.start_metrics()

    async def _head(self) -> int | None:
        """The number of the feed's newest event; None where the server does not say it."""
        found = await self.api.find(f"{BASE}/subagents/snapshot")
        self._snapshots = found is not None
        head = number(found, "snapshot_seq")
        if head is None:
            # Everything that is kept will be told again: only what happens from now on is news.
            self.feed.live_from = self._mirror.now()
        return head

    async def _open_live(self, since: int | None) -> Live:
        """A socket; where the server has none, streams of events."""
        acks, beats = "auth.ws_hello_ack.v1" in self._has, "realtime.application_heartbeat.v1" in self._has
        live: Live = WebSocketLive(self.api, self.feed, self.told, acks=acks, beats=beats)
        try:
            await live.open(since)
        except NotAHost as refused:
            await live.close()
            _log.info("%s has no WebSocket, so its event streams are read: %s", self._address.where, refused)
            live = EventStreamLive(self.api, self.feed, self.told)
            self._live = live
            await live.open(since)
        return live

    # --- reading

    def told(self) -> None:
        """Something came: ask for what follows from it."""
        self._mirror.heard()
        wants, self.feed.wants = self.feed.wants, set()
        for want, id in wants:
            self._reader.want(want, id)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def run(self) -> None:
        live = self._live
        if live is None:
            raise ConnectionLost(f"{self._address.where} is not connected")
        reading = asyncio.create_task(live.run(), name="bamboo live")
        beating = asyncio.create_task(self._beat(), name="bamboo beat")
        lost = self._lost = asyncio.get_running_loop().create_future()
        try:
            done, _ = await asyncio.wait({reading, beating, lost}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (reading, beating, lost):
                task.cancel()
            await asyncio.gather(reading, beating, lost, return_exceptions=True)

    async def _beat(self) -> None:
        """Ask from time to time what runs: the end of a run may be told nowhere. Raises ConnectionLost where the
        server answers no more."""
        failures = 0
        while True:
            busy = any(session.children_run for session in self.feed.sessions.values())
            await asyncio.sleep(BUSY_BEAT_S if busy else BEAT_S)
            try:
                moves = {session.id: session.moves for session in self.feed.sessions.values()}
                active = await self.api.find(f"{BASE}/runs/active")
                if active is not None:
                    self.feed.active(each(active, "sessions"), moves)
                if self._snapshots:
                    await self._children(self._mirror.now())
                for session in self.feed.sessions.values():
                    if session.unread:
                        self._reader.want(Want.READ, session.id)
                failures = 0
                self.told()
            except ConnectionFailed as fault:
                failures += 1
                if failures > 2 or not fault.retry:
                    raise ConnectionLost(str(fault)) from None

    async def _children(self, asked_at: int) -> None:
        found = await self.api.find(f"{BASE}/subagents/snapshot")
        if found is not None:
            self.feed.gates.snapshot(each(found, "approvals"), asked_at)

    # --- for the acting part and the reader (a `Server`)

    @property
    def api(self) -> Api:
        if self._api is None:
            raise ConnectionLost(f"{self._address.where} is not connected")
        return self._api

    @property
    def connected(self) -> bool:
        return self._live is not None

    async def follow(self, session: str) -> None:
        """Open the session's channel."""
        if self._live is not None:
            await self._live.follow(session)

    @property
    def exact_stop(self) -> bool:
        """Does the server end a named run, and no other?"""
        return "http.native_receipt_run.v1" in self._has

    def lose(self, why: str) -> None:
        if self._lost is not None and not self._lost.done():
            self._lost.set_exception(ConnectionLost(f"{self._address.where}: {why}"))

    def read_again(self, session: str) -> None:
        self._reader.want(Want.READ, session)

    async def choice(self, session: Session, asked: Json) -> Choice | None:
        return await self._reader.choice(session, asked)

    async def until(self, met: Callable[[], bool], within_s: float) -> bool:
        """Wait until it is so: False where it is not within this time."""
        try:
            async with asyncio.timeout(within_s):
                while not met():
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    # --- the rest of a source

    async def execute(self, command: Command, by: str) -> Handled:
        try:
            return await self.acting.execute(command, by)
        finally:
            self.told()

    async def watch(self, session: str) -> None:
        known = self.feed.sessions.get(session)
        if known is None:
            return
        known.watched = True
        if not known.read:
            # Live events that come before the past was read would stand before it.
            await self._reader.past(session)
        await self._reader.read(session)
        self.told()

    async def unwatch(self, session: str) -> None:
        if (known := self.feed.sessions.get(session)) is not None:
            known.watched = False

    async def close(self) -> None:
        live, self._live = self._live, None
        await self._reader.stop()
        try:
            if live is not None:
                await live.close()
            self.feed.disconnected()
            if self._api is not None:
                await self._api.close()
        except (WatchfloorError, OSError) as fault:
            _log.info("closing %s: %s", self._address.where, fault)
        self._api = None
