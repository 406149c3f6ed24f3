"""A console's end of the Dagger connector: what its frames tell of each agent, and the commands that go back."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from console.connectors.dagger.connector import DaggerFactory, DaggerSource
from tests.peers.dagger_server import DaggerServer
from watchfloor.connector import Received, Record, Target
from watchfloor.errors import ConnectionFailed
from watchfloor.foreign import ForeignConnector, ForeignLink
from watchfloor.protocol.events import Event, Mail, Message, Notice
from watchfloor.protocol.frames import Command, Do, Events, Outcome, Profiles, RequestFrame, Sessions, Watch
from watchfloor.protocol.model import Capabilities, Profile, RequestModel, Summary, Traits

E = TypeVar("E", bound=Event)
PATIENCE_S = 60.0


class Desk:
    """Everything that one connector has told, over all its connections."""

    def __init__(self, server: DaggerServer, *, record: Record = Record.ALL, token: str | None = "") -> None:
        target = Target("engine", server.url, token=server.token if token == "" else token, user="ann", record=record)
        self.connector: ForeignConnector = DaggerFactory()(target)
        source = self.connector.source
        assert isinstance(source, DaggerSource)
        self.source = source
        self.told: dict[str, dict[str, Any]] = {}
        self.profiles: dict[str, Profile] = {}
        self.requests: dict[str, RequestModel] = {}
        self.events: dict[str, list[Event]] = defaultdict(list)
        self.outcomes: dict[str, Outcome] = {}
        self.fault: ConnectionFailed | None = None
        self.over = False
        self.listed = False
        self._numbers = itertools.count(1)
        self._moved = asyncio.Event()
        self._link: ForeignLink | None = None
        self._reading: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        self.fault, self.over = None, False
        self._link = await self.connector.connect()
        self.listed = False
        self._reading = asyncio.create_task(self._read(self._link))
        await self.until(lambda: self.listed or self.over)

    async def close(self) -> None:
        if self._link is not None and self._reading is not None:
            await self._link.close()
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        self._link = None

    async def _read(self, link: ForeignLink) -> None:
        try:
            async for batch in link.batches():
                for arrival in batch:
                    if isinstance(arrival, Received):
                        self._take(arrival.frame)
                self._move()
        except ConnectionFailed as fault:
            self.fault = fault
        self.over = True
        self._move()

    def _move(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    def _take(self, frame: object) -> None:
        match frame:
            case Profiles(profiles=profiles):
                self.profiles |= profiles
            case Sessions(sessions=sessions, listed=listed):
                self.listed = self.listed or listed
                for summary in sessions:
                    set_now = {name: getattr(summary, name) for name in summary.model_fields_set}
                    self.told[summary.id] = {**self.told.get(summary.id, {}), **set_now}
            case RequestFrame(request=request):
                self.requests[str(request.subject["id"])] = request
            case Events(session=session, events=events):
                self.events[session] += events
            case Outcome(id=id):
                self.outcomes[id] = frame
            case _:
                pass

    # --- what is known

    async def until(self, holds: Callable[[], object]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not holds():
                    await self._moved.wait()
        except TimeoutError:
            raise AssertionError(f"it was never told: {self.told} {dict(self.events)} {self.fault}") from None

    def summary(self, handle: str) -> Summary:
        return Summary.model_validate(self.told[handle])

    def by_name(self, name: str) -> Summary:
        return next(self.summary(id) for id, fields in self.told.items() if fields.get("name") == name)

    def capabilities(self, handle: str) -> Capabilities:
        return self.profiles[str(self.told[handle]["profile"])].capabilities

    def traits(self, handle: str) -> Traits:
        return self.profiles[str(self.told[handle]["profile"])].traits

    def of(self, handle: str, kind: type[E]) -> list[E]:
        return [event for event in self.events[handle] if isinstance(event, kind)]

    def texts(self, handle: str) -> list[str]:
        return [event.text for event in self.of(handle, Message)]

    def notices(self, handle: str) -> list[str]:
        return [event.text for event in self.of(handle, Notice)]

    def mail(self, handle: str, ref: str) -> list[str]:
        """What was told of a message, in order."""
        return [event.state.value for event in self.of(handle, Mail) if event.ref == ref]

    async def reads(self, handle: str, lifecycle: str) -> Summary:
        """Wait until the agent is shown in this state."""
        await self.until(lambda: handle in self.told and self.told[handle].get("lifecycle") == lifecycle)
        return self.summary(handle)

    # --- what is done

    async def start(self, session: str, do: Do) -> str:
        """Send a command; its outcome is awaited elsewhere."""
        assert self._link is not None
        id = f"c{next(self._numbers)}"
        await self._link.send(Command(id=id, session=session, do=do))
        return id

    async def watch(self, session: str) -> None:
        """The operator looks at the session."""
        assert self._link is not None
        await self._link.send(Watch(session=session, start="head"))

    async def outcome(self, id: str) -> Outcome:
        await self.until(lambda: id in self.outcomes)
        return self.outcomes[id]

    async def do(self, session: str, do: Do) -> Outcome:
        return await self.outcome(await self.start(session, do))


@asynccontextmanager
async def desk(server: DaggerServer, *, record: Record = Record.ALL) -> AsyncIterator[Desk]:
    """A connected console's end."""
    made = Desk(server, record=record)
    await made.connect()
    try:
        yield made
    finally:
        await made.close()
