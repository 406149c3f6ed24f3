"""A console's end of a connector: keeps what its frames tell, and sends commands."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, TypeVar

from console.connectors.codex.connector import CodexFactory
from watchfloor.connector import Connector, Link, Received, Record, Target
from watchfloor.errors import ConnectionFailed
from watchfloor.protocol.events import Event
from watchfloor.protocol.frames import (
    Command,
    Do,
    DoApprove,
    Events,
    Gone,
    Outcome,
    Page,
    Profiles,
    RequestFrame,
    Sessions,
    Unwatch,
    Watch,
    Welcome,
)
from watchfloor.protocol.model import Capabilities, Profile, RequestModel, Subject, Summary

E = TypeVar("E", bound=Event)
WAIT_S = 60.0


class Told:
    """What frames have told."""

    def __init__(self) -> None:
        self.welcome: Welcome | None = None
        self.listed = False
        self.sessions: dict[str, dict[str, Any]] = {}
        self.profiles: dict[str, Profile] = {}
        self.requests: dict[str, RequestModel] = {}
        self.events: dict[str, list[Event]] = defaultdict(list)
        self.outcomes: dict[str, Outcome] = {}
        self.pages: list[Page] = []

    def take(self, frame: object) -> None:
        match frame:
            case Welcome():
                self.welcome = frame
            case Profiles():
                self.profiles |= frame.profiles
            case Sessions():
                self.listed = self.listed or frame.listed
                for summary in frame.sessions:
                    given = {name: getattr(summary, name) for name in summary.model_fields_set}
                    self.sessions[summary.id] = {**self.sessions.get(summary.id, {}), **given}
            case Gone():
                for id in frame.sessions:
                    self.sessions.pop(id, None)
            case RequestFrame():
                self.requests[str(frame.request.subject["id"])] = frame.request
            case Events():
                self.events[frame.session] += frame.events
            case Page():
                self.pages.append(frame)
            case Outcome():
                self.outcomes[frame.id] = frame
            case _:
                pass

    def summary(self, id: str) -> Summary:
        return Summary.model_validate(self.sessions[id])

    def capabilities(self, id: str) -> Capabilities:
        return self.profiles[str(self.sessions[id]["profile"])].capabilities

    def of(self, id: str, kind: type[E]) -> list[E]:
        """The events of a kind of a session, in order."""
        return [event for event in self.events[id] if isinstance(event, kind)]

    def open(self, id: str) -> list[RequestModel]:
        """The open requests of a session whose text has come."""
        listed = self.sessions.get(id, {}).get("requests", ())
        return [self.requests[ref.id] for ref in listed if ref.id in self.requests]


class Desk(Told):
    """What one connection has told. Reads in the background while it is entered."""

    def __init__(self, connector: Connector) -> None:
        super().__init__()
        self.connector = connector
        self.fault: ConnectionFailed | None = None
        self.ended = False
        self._numbers = count(1)
        self._moved = asyncio.Event()
        self._link: Link | None = None

    @property
    def link(self) -> Link:
        assert self._link is not None
        return self._link

    async def read(self) -> None:
        """Connect, and read until the connection ends. Raises ConnectionFailed where it cannot connect."""
        self.ended, self.fault = False, None
        self._link = await self.connector.connect()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for batch in self.link.batches():
                for arrival in batch:
                    if isinstance(arrival, Received):
                        self.take(arrival.frame)
                self._moved.set()
        except ConnectionFailed as fault:
            self.fault = fault
        self.ended = True
        self._moved.set()

    async def close(self) -> None:
        if self._link is not None:
            await self._link.close()
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def until(self, met: Callable[[], object], within_s: float = WAIT_S) -> None:
        """Wait until what was told meets the condition."""
        try:
            async with asyncio.timeout(within_s):
                while not met():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            raise AssertionError(f"it was never told:\n{self.sessions}\n{dict(self.events)}\n{self.fault}") from None

    # --- what is done

    async def asked(self, id: str) -> tuple[RequestModel, Subject]:
        """The next open request of a session."""
        await self.until(lambda: self.open(id))
        request = self.open(id)[0]
        return request, request.read()

    async def send(self, session: str, do: Do, *, turn: str | None = None) -> str:
        """Send a command; returns its id."""
        id = f"command-{next(self._numbers)}"
        command = Command(id=id, session=session, do=do)
        await self.link.send(command if turn is None else command.model_copy(update={"turn": turn}))
        return id

    async def do(self, session: str, do: Do, *, turn: str | None = None) -> Outcome:
        """Send a command and wait for its outcome."""
        id = await self.send(session, do, turn=turn)
        await self.until(lambda: id in self.outcomes)
        return self.outcomes[id]

    async def decide(self, session: str, option: str) -> Outcome:
        """Take an option of the session's open request."""
        request, subject = await self.asked(session)
        return await self.do(session, DoApprove(request=subject.id, option=option, digest=request.digest))

    async def watch(self, session: str) -> None:
        await self.link.send(Watch(session=session, start="head"))

    async def unwatch(self, session: str) -> None:
        await self.link.send(Unwatch(session=session))


@asynccontextmanager
async def desk(
    url: str, *, token: str | None = None, record: Record = Record.ALL, user: str = "ann"
) -> AsyncIterator[Desk]:
    """A connected desk."""
    made = Desk(CodexFactory()(Target("codex", url, token=token, user=user, record=record)))
    await made.read()
    try:
        await made.until(lambda: made.listed)
        yield made
    finally:
        await made.close()
