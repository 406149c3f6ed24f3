"""The connector of a foreign system, and its connections: a host's core between a source and whoever looks at it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final

from watchfloor.connector import Arrival, Clock, Received, Record, Target
from watchfloor.errors import ConnectionLost, WatchfloorError
from watchfloor.foreign.execution import carry_out
from watchfloor.foreign.fetching import Fetches
from watchfloor.foreign.mirror import Mirror
from watchfloor.foreign.source import ForeignSource
from watchfloor.host.core import HEARTBEAT_S, HostCore
from watchfloor.host.effects import Forward, HostEffect, SendFrame
from watchfloor.host.log.events import MemoryLog
from watchfloor.host.principals import Principal
from watchfloor.protocol.events import Level, Notice
from watchfloor.protocol.frames import (
    ALL,
    ClientFrame,
    Command,
    Events,
    Hello,
    History,
    HostInfo,
    Recall,
    UnknownFrame,
    Unwatch,
    Watch,
)

ANSWERS_IN_S: Final = 60.0
"""Seconds that a command may take until its outcome is unknown."""
FLUSH_S: Final = 0.02
"""What happens within this time goes out together."""
TICK_S: Final = 0.25
BATCH: Final = 256
"""Frames that are handed over at a time."""
FETCHED_S: Final = 10.0
"""Seconds that a page of history waits for the details of its session."""
KEEP_EVENTS: Final = 50_000
"""Events of a foreign system that its connector keeps for history."""


class ForeignCore(HostCore):
    """A host's core that tells which sessions its clients look at."""

    looked: Callable[[str], None] | None = None
    left: Callable[[str], None] | None = None
    """Told of a session at which the last client that looked at it looks no more."""
    waits: Callable[[str, History], bool] | None = None
    """Does a question for history wait until the details of its session are there? Whoever says so has it answered."""

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self._lookers: dict[str, set[str]] = {}

    def take(self, conn: str, frame: ClientFrame | UnknownFrame, now: int) -> list[HostEffect]:
        if self.looked is not None and isinstance(frame, Watch | History) and frame.session in self.roster:
            self._lookers.setdefault(frame.session, set()).add(conn)
            self.looked(frame.session)
        elif isinstance(frame, Unwatch):
            self._looks_away(conn, frame.session)
        if self.waits is not None and isinstance(frame, History) and self.waits(conn, frame):
            return []
        return super().take(conn, frame, now)

    def disconnect(self, conn: str) -> None:
        super().disconnect(conn)
        for session in list(self._lookers):
            self._looks_away(conn, session)

    def _looks_away(self, conn: str, session: str) -> None:
        lookers = self._lookers.get(session, set())
        if conn in lookers:
            lookers.discard(conn)
            if not lookers:
                del self._lookers[session]
                if self.left is not None:
                    self.left(session)

    def answer(self, conn: str, frame: History, now: int) -> list[HostEffect]:
        """Answer a question for history that has waited long enough."""
        return super().take(conn, frame, now)


class ForeignConnector:
    """A `watchfloor.connector.Connector` over a `ForeignSource`. `name` and `version` are the foreign system's."""

    def __init__(
        self,
        target: Target,
        source: Callable[[Target, Mirror], ForeignSource],
        *,
        name: str,
        version: str = "",
        clock: Clock | None = None,
        answers_in_s: float = ANSWERS_IN_S,
    ) -> None:
        self._target = target
        self._clock = clock or _wall_clock
        self._answers_in_s = answers_in_s
        info = HostInfo(name=name, version=version, instance=secrets.token_hex(8))
        self.core: Final = ForeignCore(
            info, MemoryLog(lambda: secrets.token_hex(4), keep=KEEP_EVENTS), heartbeat_s=HEARTBEAT_S, beats=False
        )
        self.mirror: Final = Mirror(self.core, self._perform, self._clock)
        self.source: Final = source(target, self.mirror)
        self._link: ForeignLink | None = None
        self._connections = 0
        self._pos = 0
        self._watched: dict[str, None] = {}
        self._owed: dict[str, None] = {}
        """Commands that were handed to us and whose outcome the console has not got."""
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._outlet: Callable[[list[HostEffect]], None] | None = None

    @property
    def target(self) -> Target:
        return self._target

    async def connect(self) -> ForeignLink:
        try:
            await self.source.open()
        except BaseException:
            await self.source.close()
            raise
        self._connections += 1
        link = self._link = ForeignLink(self, f"c{self._connections}")
        now = self._clock()
        first = self._connections == 1
        self.core.connect(link.conn, Principal(self._target.user or "operator"), now)
        hello = Hello(client=self._target.client, version=self._target.version, name=self._target.user)
        self._take(link, hello)
        if self._target.record is Record.ALL:
            after = self.core.log.pos if first and self._target.start_at_head else self._pos
            self._take(link, Watch(session=ALL, after=after))
        for session in self._watched:
            self._take(link, Watch(session=session, after=self._pos))
        if self._owed:
            self._take(link, Recall(ids=tuple(self._owed)))
        link.begin()
        for session in self._watched:
            link.fetches.fetch(session)
        return link

    # --- for the link

    def _take(self, link: ForeignLink, frame: ClientFrame) -> None:
        self._perform(self.core.take(link.conn, frame, self._clock()))

    def _perform(self, effects: list[HostEffect]) -> None:
        if self._outlet is not None:
            self._outlet(effects)
            return
        link = self._link
        for effect in effects:
            match effect:
                case SendFrame() if link is not None and effect.conn == link.conn:
                    link.put(effect)
                case Forward(command=command, by=by):
                    self.forward(command, by)
                case _:
                    pass
        if link is not None and self.core.wants_flush:
            link.flush_soon()

    def forward(self, command: Command, by: str) -> None:
        """Have the foreign system carry out a command; the core is told what became of it."""
        task = asyncio.get_running_loop().create_task(self._execute(command, by))
        self._under_way[command.id] = task
        task.add_done_callback(lambda _, id=command.id: self._under_way.pop(id, None))  # type: ignore[misc]

    def serve_through(
        self,
        outlet: Callable[[list[HostEffect]], None],
        looked: Callable[[str], None],
        left: Callable[[str], None],
        waits: Callable[[str, History], bool],
    ) -> None:
        """Somebody else connects clients to the core and carries out what it decides, instead of `connect`.

        `looked` is told which session a client looks at; `left` and `waits`: see `ForeignCore`.
        """
        self._outlet = outlet
        self.core.looked = looked
        self.core.left = left
        self.core.waits = waits

    async def fetch(self, session: str) -> bool:
        """Fetch the details of a session that is looked at; False, and a notice, where that did not work."""
        try:
            await self.source.watch(session)
        except (WatchfloorError, OSError) as fault:
            if session in self.mirror:
                text = f"its details could not be fetched: {fault}"
                self.mirror.emit(session, Notice(at=0, level=Level.WARNING, text=text))
            return False
        return True

    async def end_commands(self) -> None:
        """What is under way will not be answered any more."""
        waiting = list(self._under_way.values())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def flush(self) -> None:
        """Tell what happened since the last time."""
        self._perform(self.core.flush(self._clock()))

    def tick(self) -> None:
        """Tell what had to wait."""
        self._perform(self.core.tick(self._clock()))

    async def _execute(self, command: Command, by: str) -> None:
        handled = await carry_out(self.source, command, by, name=self._target.name, answers_in_s=self._answers_in_s)
        self._perform(self.core.answered(command.id, handled, self._clock()))

    def sent(self, frame: ClientFrame) -> None:
        """The console hands over a frame."""
        link = self._link
        if link is None:
            raise ConnectionLost(f"not sent: {self._target.name} is not connected")
        match frame:
            case Command():
                self._owed[frame.id] = None
            case Watch(session=session) if session != ALL:
                self._watched[session] = None
                if self._target.record is Record.ALL:
                    # Its events come anyway.
                    frame = Watch(session=session, start="head")
                link.fetches.fetch(session)
            case Unwatch(session=session) if session != ALL:
                self._watched.pop(session, None)
                link.fetches.let_go(session)
            case _:
                pass
        self._take(link, frame)

    def delivered(self, frames: Iterable[SendFrame]) -> None:
        """The console has these frames."""
        for sent in frames:
            frame = sent.frame
            if isinstance(frame, Events):
                self._pos = max([self._pos, *(event.pos or 0 for event in frame.events)])
            elif getattr(frame, "type", "") == "outcome":
                self._owed.pop(getattr(frame, "id", ""), None)

    async def ended(self, link: ForeignLink) -> None:
        """The connection is over."""
        self.core.disconnect(link.conn)
        if self._link is link:
            self._link = None
        await self.end_commands()
        await self.source.close()


class ForeignLink:
    """One connection to a foreign system (a `watchfloor.connector.Link`)."""

    def __init__(self, connector: ForeignConnector, conn: str) -> None:
        self.conn: Final = conn
        self._connector = connector
        self._frames: deque[SendFrame] = deque()
        self._wake = asyncio.Event()
        self._flush: asyncio.TimerHandle | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ticker: asyncio.Task[None] | None = None
        self.fetches: Final = Fetches(connector.fetch, connector.source.unwatch, connector.target.name)
        self._closed = False

    def begin(self) -> None:
        """Read the foreign system from now on."""
        self._reader = asyncio.create_task(
            self._connector.source.run(), name=f"reader of {self._connector.target.name}"
        )
        self._reader.add_done_callback(lambda _: self._wake.set())
        self._ticker = asyncio.create_task(self._tick(), name=f"ticker of {self._connector.target.name}")

    # --- for the console

    async def batches(self) -> AsyncIterator[Sequence[Arrival]]:
        core, reader = self._connector.core, self._reader
        assert reader is not None  # noqa: S101 - a link is begun before it is handed out
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._frames:
                sent = [self._frames.popleft() for _ in range(min(BATCH, len(self._frames)))]
                yield [Received(effect.frame, effect.wire) for effect in sent]  # type: ignore[arg-type]
                self._connector.delivered(sent)
                await asyncio.sleep(0)
            if core.behind(self.conn):
                self._connector._perform(core.pull(self.conn, self._connector.mirror.now()))
                self._wake.set()
            elif reader.done():
                self._connector.flush()
                if not self._frames:
                    reader.result()
                    return
                self._wake.set()

    async def send(self, frame: ClientFrame) -> None:
        if isinstance(frame, History) and frame.session in self._connector.mirror:
            # What is not fetched is in no page: who asks for the past of a session looks at it.
            await asyncio.wait({self.fetches.fetch(frame.session, again=False)}, timeout=FETCHED_S)
        self._connector.sent(frame)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._flush is not None:
            self._flush.cancel()
        tasks = [task for task in (self._reader, self._ticker, *self.fetches.tasks) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._connector.ended(self)

    # --- for the connector

    def put(self, effect: SendFrame) -> None:
        self._frames.append(effect)
        self._wake.set()

    def flush_soon(self) -> None:
        if self._flush is None and not self._closed:
            self._flush = asyncio.get_running_loop().call_later(FLUSH_S, self._flush_now)

    def _flush_now(self) -> None:
        self._flush = None
        self._connector.flush()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._connector.tick()
            if self._connector.core.behind(self.conn):
                self._wake.set()


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000
