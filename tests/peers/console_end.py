"""A console's end of a foreign system's connector: what its frames tell of each session, and what goes back."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from watchfloor.connector import Received
from watchfloor.errors import ConnectionFailed
from watchfloor.foreign import ForeignConnector, ForeignLink
from watchfloor.protocol.events import Event, Message, Notice
from watchfloor.protocol.frames import Command, Do, Events, Gone, Outcome, Profiles, RequestFrame, Sessions, Watch
from watchfloor.protocol.model import Capabilities, Profile, RequestModel, Summary, Traits

E = TypeVar("E", bound=Event)
PATIENCE_S = 60.0


class ConsoleEnd:
    """Everything that one connector has told, over all its connections."""

    def __init__(self, connector: ForeignConnector) -> None:
        self.connector = connector
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
            case Gone(sessions=gone):
                for id in gone:
                    self.told.pop(id, None)
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

    def summary(self, session: str) -> Summary:
        return Summary.model_validate(self.told[session])

    def capabilities(self, session: str) -> Capabilities:
        return self.profiles[str(self.told[session]["profile"])].capabilities

    def traits(self, session: str) -> Traits:
        return self.profiles[str(self.told[session]["profile"])].traits

    def of(self, session: str, kind: type[E]) -> list[E]:
        return [event for event in self.events[session] if isinstance(event, kind)]

    def texts(self, session: str) -> list[str]:
        return [event.text for event in self.of(session, Message)]

    def notices(self, session: str) -> list[str]:
        return [event.text for event in self.of(session, Notice)]

    async def reads(self, session: str, lifecycle: str) -> Summary:
        """Wait until the session is shown in this state."""
        await self.until(lambda: session in self.told and self.told[session].get("lifecycle") == lifecycle)
        return self.summary(session)

    # --- what is done

    async def start(self, session: str, do: Do, *, attempt: int | None = None) -> str:
        """Send a command; its outcome is awaited elsewhere."""
        assert self._link is not None
        id = f"c{next(self._numbers)}"
        await self._link.send(Command(id=id, session=session, attempt=attempt, do=do))
        return id

    async def watch(self, session: str) -> None:
        """The operator looks at the session."""
        assert self._link is not None
        await self._link.send(Watch(session=session, start="head"))

    async def outcome(self, id: str) -> Outcome:
        await self.until(lambda: id in self.outcomes)
        return self.outcomes[id]

    async def do(self, session: str, do: Do, *, attempt: int | None = None) -> Outcome:
        return await self.outcome(await self.start(session, do, attempt=attempt))
