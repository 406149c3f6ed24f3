"""The demo's fleet on a host, and an operator who watches and steers it over a socket."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import uuid4

from console.demo.fleet import build
from watchfloor.client import ClientCore
from watchfloor.connector import Received, Target
from watchfloor.dial import WebSocketLink, dial
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import Event, Message
from watchfloor.protocol.frames import (
    Command,
    Do,
    DoAnswer,
    DoApprove,
    DoPause,
    Events,
    Outcome,
    Profiles,
    RequestFrame,
    Sessions,
)
from watchfloor.protocol.model import Capabilities, RequestModel, Summary
from watchfloor.words import RequestKind, RequestState

PATIENCE_S = 60.0
"""Only a broken demo needs it: every test goes on as soon as it sees what it waits for."""
FAST = 400.0
"""A tempo at which the calm minutes between two requests are a moment."""
NEVER = 0.001
"""A tempo at which nothing that follows a rest ever happens."""

E = TypeVar("E", bound=Event)


class Operator:
    """What was seen of a host, and the means to intervene."""

    def __init__(self, link: WebSocketLink, name: str) -> None:
        self._link = link
        self._name = name
        self._news = asyncio.Condition()
        self._outcomes: dict[str, Outcome] = {}
        self.profiles: dict[str, Capabilities] = {}
        self.summaries: dict[str, Summary] = {}
        self.events: defaultdict[str, list[Event]] = defaultdict(list)
        self.arrivals: list[tuple[str, Event]] = []
        self.requests: dict[str, RequestModel] = {}

    async def follow(self) -> None:
        """Take in whatever arrives, until the connection ends."""
        async for batch in self._link.batches():
            async with self._news:
                for arrival in batch:
                    assert isinstance(arrival, Received), arrival
                    assert arrival.bad == ()
                    self._take(arrival.frame)
                self._news.notify_all()

    def _take(self, frame: object) -> None:
        match frame:
            case Profiles(profiles=profiles):
                self.profiles |= {id: profile.capabilities for id, profile in profiles.items()}
            case Sessions(sessions=summaries):
                for new in summaries:
                    known = self.summaries.get(new.id, new)
                    fields = {name: getattr(new, name) for name in new.model_fields_set}
                    self.summaries[new.id] = known.model_copy(update=fields)
            case RequestFrame(request=request):
                self.requests[request.read().id] = request
            case Events(session=session, events=events):
                self.events[session] += events
                self.arrivals += [(session, event) for event in events]
            case Outcome():
                self._outcomes[frame.id] = frame
            case _:
                pass

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: bool(condition()))

    # --- looking

    def capabilities(self, session: str) -> set[str]:
        return {p.value for p in self.profiles[str(self.summaries[session].profile)].advertised()}

    def of(self, session: str, kind: type[E]) -> list[E]:
        return [event for event in self.events[session] if isinstance(event, kind)]

    def said(self, session: str) -> list[str]:
        """The messages of the agent."""
        return [event.text for event in self.of(session, Message)]

    def asked(self, session: str) -> list[RequestModel]:
        """Everything that the session has asked, in order."""
        return [request for request in self.requests.values() if request.read().session == session]

    async def hears(self, session: str, part: str) -> None:
        """Wait until the agent has said something with this in it."""
        await self.until(lambda: any(part in text for text in self.said(session)))

    async def is_asked(self, session: str, kind: RequestKind = RequestKind.APPROVAL, *, by: str = "") -> RequestModel:
        """The open request of the session, with `by` in the text of its action; waits for it."""

        def find() -> RequestModel | None:
            for request in self.requests.values():
                subject = request.read()
                fits = not by or any(by in (action.text or "") for action in subject.actions)
                if subject.session == session and subject.kind is kind and request.state is RequestState.OPEN and fits:
                    return request
            return None

        await self.until(find)
        return cast(RequestModel, find())

    # --- intervening

    async def does(self, session: str, do: Do) -> Outcome:
        """Send a command and wait for its outcome."""
        command = Command(id=str(uuid4()), session=session, do=do)
        await self._link.send(command)
        await self.until(lambda: command.id in self._outcomes)
        return self._outcomes[command.id]

    async def hushes(self) -> None:
        """Pause those that work without a break at a high tempo, for tests that are about others."""
        for session in ("checksums", "docs", "linecount", "narrator"):
            await self.does(session, DoPause())

    async def decides(self, request: RequestModel, option: str) -> Outcome:
        subject = request.read()
        return await self.does(subject.session, DoApprove(request=subject.id, option=option, digest=request.digest))

    async def answers(self, request: RequestModel, **given: Any) -> Outcome:
        subject = request.read()
        return await self.does(subject.session, DoAnswer(request=subject.id, digest=request.digest, **given))


@asynccontextmanager
async def demo(
    workspace: Path, *, agents: int = 8, rate: float = 20.0, seed: int = 1, tempo: float = 1.0
) -> AsyncIterator[Operator]:
    """A demo in the folder, and an operator who follows all of it from its start."""
    async with Host(name="demo") as host:
        url = await host.serve()
        await build(host, workspace=workspace, agents=agents, rate=rate, seed=seed, tempo=tempo)
        target = Target("demo", url, user="ann")
        link = await dial(target, ClientCore(target))
        operator = Operator(link, "ann")
        following = asyncio.create_task(operator.follow())
        try:
            await operator.until(lambda: "docs-faq" in operator.summaries)
            yield operator
        finally:
            await link.close()
            with suppress(asyncio.CancelledError):
                await following
