"""An operator with a real socket, for the tests of harnesses on a real host."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from watchfloor.harness.base import AgentHarness
from watchfloor.host.serving.server import Host
from watchfloor.protocol.codec import decode_host, encode
from watchfloor.protocol.events import Event
from watchfloor.protocol.frames import (
    Command,
    Events,
    Gone,
    Hello,
    Outcome,
    Profiles,
    RequestFrame,
    Sessions,
    Watch,
)
from watchfloor.protocol.model import Profile, RequestModel
from watchfloor.words import ANSWERABLE, PROTOCOL

PATIENCE_S = 60.0
S = "s"
"""The session that a test is about."""


class Operator:
    """Keeps what the host tells. Reads only while somebody waits in `until`."""

    def __init__(self, ws: ClientConnection) -> None:
        self._ws = ws
        self.sessions: dict[str, dict[str, Any]] = {}
        self.profiles: dict[str, Profile] = {}
        self.requests: dict[tuple[str, str], RequestModel] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.gone: set[str] = set()
        self._events: list[tuple[str, Event]] = []

    # --- what was told

    @property
    def summary(self) -> dict[str, Any]:
        return self.sessions.get(S, {})

    @property
    def lifecycle(self) -> str:
        return str(self.summary.get("lifecycle"))

    @property
    def result(self) -> str | None:
        found = self.summary.get("result")
        return None if found is None else str(found["text"])

    def events(self, kind: str, session: str = S) -> list[Any]:
        """The events of a kind; typed loosely, since each kind has its own fields."""
        return [event for of, event in self._events if of == session and getattr(event, "kind", "") == kind]

    def output(self) -> str:
        return "".join(event.text for event in self.events("tool_output"))

    def messages(self) -> list[str]:
        return [event.text for event in self.events("message")]

    def kinds(self) -> list[str]:
        return [str(getattr(event, "kind", "")) for of, event in self._events if of == S]

    # --- waiting

    async def until(self, met: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not met():
                self._take(await self._ws.recv(decode=False))

    async def in_state(self, lifecycle: str, attempt: int | None = None) -> None:
        """Until the session is in the state, of that attempt where one is named."""
        await self.until(lambda: self.lifecycle == lifecycle and attempt in (None, self.summary["attempt"]))

    async def request(self, session: str | None = S) -> tuple[str, str]:
        """Session and id of an open request, once there is one (of any session: None)."""

        def found() -> list[tuple[str, str]]:
            return [
                key
                for key, shown in self.requests.items()
                if session in (None, key[0]) and shown.state in ANSWERABLE and shown.decision is None
            ]

        await self.until(found)
        return found()[-1]

    def _take(self, raw: bytes) -> None:
        decoded = decode_host(raw)
        assert decoded.bad == ()
        match decoded.frame:
            case Sessions(sessions=summaries):
                for summary in summaries:
                    changed = summary.model_dump(mode="json", exclude_unset=True)
                    self.sessions.setdefault(summary.id, {}).update(changed)
            case Profiles(profiles=profiles):
                self.profiles |= profiles
            case RequestFrame(session=session, request=request):
                self.requests[session, str(request.subject["id"])] = request
            case Events(session=session, events=events):
                self._events += [(session, event) for event in events if getattr(event, "kind", "") != "delta"]
            case Gone(sessions=sessions):
                self.gone |= set(sessions)
            case Outcome() as outcome:
                self.outcomes[outcome.id] = outcome

    # --- acting

    async def send(self, primitive: str, session: str = S, **members: Any) -> str:
        """Send a command without waiting for its outcome; returns its id."""
        id = uuid.uuid4().hex
        command = Command.model_validate({"id": id, "session": session, "do": {"primitive": primitive, **members}})
        await self._ws.send(encode(command), text=True)
        return id

    async def command(self, primitive: str, session: str = S, **members: Any) -> Outcome:
        id = await self.send(primitive, session, **members)
        await self.until(lambda: id in self.outcomes)
        return self.outcomes[id]

    async def do(self, primitive: str, session: str = S, **members: Any) -> Outcome:
        """A command that must be applied."""
        outcome = await self.command(primitive, session, **members)
        assert outcome.outcome == "applied", outcome
        return outcome

    async def decide(self, key: tuple[str, str], primitive: str, **choice: Any) -> Outcome:
        return await self.do(primitive, key[0], request=key[1], digest=self.requests[key].digest, **choice)


@asynccontextmanager
async def operator(url: str) -> AsyncIterator[Operator]:
    """An operator who follows all sessions from their start."""
    async with connect(url, subprotocols=[Subprotocol(PROTOCOL)], max_size=2**24, proxy=None) as ws:
        await ws.send(encode(Hello(client="test", version="1", name="ann")), text=True)
        await ws.send(encode(Watch(session="*", start="start")), text=True)
        yield Operator(ws)


@asynccontextmanager
async def operated(harness: AgentHarness, text: str | None = None) -> AsyncIterator[Operator]:
    """A host with one session, and an operator who follows it."""
    async with Host(name="test") as host, operator(await host.serve()) as client:
        host.add(harness, name="tester", id=S, text=text)
        await client.until(lambda: client.summary)
        yield client
