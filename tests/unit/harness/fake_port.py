"""A session port that records what it is told, and hands over what a test put there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from watchfloor.errors import StaleTarget
from watchfloor.harness.base import (
    AgentHarness,
    AttemptSpec,
    Boundary,
    Conversation,
    Decided,
    MailItem,
    Rest,
    Wake,
)
from watchfloor.protocol.events import Event, ToolOutput
from watchfloor.protocol.model import RequestModel, Result, Subject, Usage
from watchfloor.words import Lifecycle, OptionKind

E = TypeVar("E", bound=Event)

PATIENCE_S = 60.0
"""Far more than anything here takes; a test that waits this long has failed."""


class FakePort:
    """Follows the host's rules for what a harness sees: boundaries, conversation, superseded attempts."""

    def __init__(self, session_id: str = "s1", attempt: int = 1) -> None:
        self._session_id = session_id
        self._attempt = attempt
        self._conversation = Conversation()
        self._clock = 1_000
        self._refs = 0
        self._moved = asyncio.Event()
        self.mailbox: list[MailItem] = []
        self.pausing = False
        self.stopping = False
        self.limit: str | None = None
        self.superseded = False
        self.events: list[Event] = []
        self.deltas: list[tuple[str, str, str]] = []
        self.log: list[str] = []
        """The reports in order, such as `started`, `ended`, `begin shell`."""
        self.in_flight: dict[str, str] = {}
        self.requests: dict[str, RequestModel] = {}
        self.withdrawn: dict[str, str] = {}
        self.usages: list[Usage] = []
        self.result: Result | None = None
        self.error: str | None = None
        self.children: list[tuple[str, str | None, AgentHarness]] = []

    # --- for the test

    def spec(self, cwd: str | None = None) -> AttemptSpec:
        return AttemptSpec(self._session_id, self._attempt, "tester", cwd)

    def mail(self, *texts: str) -> tuple[MailItem, ...]:
        items = []
        for text in texts:
            self._refs += 1
            items.append(MailItem(f"#{self._refs}", text, "op"))
        return tuple(items)

    def wake(self, *texts: str, turn: str = "t1") -> Wake:
        return Wake(turn, self.mail(*texts))

    def post(self, text: str) -> MailItem:
        (item,) = self.mail(text)
        self.mailbox.append(item)
        return item

    async def until(self, met: Callable[[], object]) -> None:
        """Wait until something that the harness reports has made it true."""
        async with asyncio.timeout(PATIENCE_S):
            while not met():
                self._moved.clear()
                await self._moved.wait()

    async def until_log(self, line: str) -> None:
        await self.until(lambda: line in self.log)

    async def open_request(self) -> Subject:
        """The newest request, once there is one that is open."""
        await self.until(lambda: self.requests)
        return list(self.requests.values())[-1].read()

    def decide(
        self,
        subject: Subject,
        option: str | None = None,
        *,
        note: str | None = None,
        text: str | None = None,
        fields: dict[str, object] | None = None,
    ) -> Decided:
        """The signal that tells of a decision; the request is open no more."""
        del self.requests[subject.id]
        kinds = {o.id: o.kind for o in subject.options}
        kind = kinds[option] if option is not None else OptionKind.ANSWER
        return Decided(subject.id, option, kind, "op", note, text, fields)  # type: ignore[arg-type]

    def kinds(self) -> list[str]:
        return [str(event.kind) for event in self.events if hasattr(event, "kind")]

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        (event,) = self.all(kind)
        return event

    def output(self, stream: str = "stdout") -> str:
        return "".join(event.text for event in self.all(ToolOutput) if event.stream == stream)

    def _did(self, line: str) -> None:
        self.log.append(line)
        self._moved.set()

    def _check(self) -> None:
        if self.superseded:
            raise StaleTarget("a newer attempt runs")

    # --- SessionPort

    @property
    def session_id(self) -> str:
        return self._session_id

    @property
    def attempt(self) -> int:
        return self._attempt

    @property
    def conversation(self) -> Conversation:
        return self._conversation

    def now(self) -> int:
        self._clock += 7
        return self._clock

    def emit(self, event: Event) -> None:
        self._check()
        event.model_dump_json(exclude_unset=True).encode()  # what cannot be written must not get this far
        self.events.append(event)
        self._moved.set()

    def stream(self, item: str, of: str, text: str, *, call: str | None = None) -> None:
        self._check()
        self.deltas.append((item, of, text))
        self._moved.set()

    def started(self) -> None:
        self._did("started")

    def begin(self, work: str, name: str) -> None:
        self._check()
        self.in_flight[work] = name
        self._did(f"begin {name}")

    def end(self, work: str) -> None:
        self._check()
        self._did(f"end {self.in_flight.pop(work)}")

    def ask(self, request: RequestModel) -> None:
        self._check()
        subject = request.read()
        assert (subject.session, subject.attempt) == (self._session_id, self._attempt)
        self.requests[subject.id] = request
        self._did("ask")

    def withdraw(self, request: str, why: str) -> None:
        self._check()
        if self.requests.pop(request, None) is not None:
            self.withdrawn[request] = why
            self._did("withdraw")

    def checkpoint(self) -> Boundary:
        self._check()
        self._did("checkpoint")
        if self.stopping:
            return Boundary(stopped=True)
        if self.pausing:
            self._did("parked")
            return Boundary(paused=True)
        if self.limit is not None:
            return Boundary(limit=self.limit)
        mail, self.mailbox = tuple(self.mailbox), []
        return Boundary(mail=mail)

    def paused(self) -> None:
        self._did("paused")

    def resumed(self) -> None:
        self._did("resumed")

    def usage(self, usage: Usage) -> None:
        self._check()
        self.usages.append(usage)

    def turn_ended(self, result: Result) -> None:
        self.result = result
        self._did("ended")

    def completed(self, result: Result) -> None:
        self.result = result
        self._did("completed")

    def failed(self, error: str, result: Result | None = None) -> None:
        self.error, self.result = error, result
        self._did("failed")

    def reply(self, ref: str, text: str) -> None:
        self._check()
        self._did(f"reply {ref} {text}")

    async def wait(self, session: str) -> Rest:
        self._check()
        self._did(f"wait {session}")
        return Rest(Lifecycle.IDLE)

    def limited(self, result: Result) -> None:
        self._check()
        self.result = result
        self._did("limited")

    def interrupted(self) -> None:
        self._did("interrupted")

    def stopped(self, result: Result | None = None) -> None:
        self.result = result
        self._did("stopped")

    def spawn(self, harness: AgentHarness, *, name: str, text: str | None = None) -> str:
        self._check()
        self.children.append((name, text, harness))
        return f"child-{len(self.children)}"
