"""What an attempt reports through when no host is there: the `SessionPort` of a stored session.

What must not be lost is saved before the attempt goes on. When something is asked that was not answered yet the run is
suspended: what asked is stored, and the attempt is ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from watchfloor.agent.request import ExecuteRequest
from watchfloor.agent.session import RunState, Session, conversation_of
from watchfloor.agent.storage import SessionAccess
from watchfloor.errors import CapabilityNotSupported, ContractError, StaleTarget
from watchfloor.harness.base import AgentHarness, Boundary, Conversation, Rest
from watchfloor.host.sessions.kept import KeptAnswer, KeptAnswers
from watchfloor.host.sessions.request_events import opened
from watchfloor.host.sessions.requests import Requests
from watchfloor.protocol.events import Delta, Event, Message, ResultEvent, ToolResult, ToolStatus
from watchfloor.protocol.model import RequestModel, Result, Usage


class End(Enum):
    DONE = "done"
    SUSPENDED = "suspended"
    CANCELLED = "cancelled"
    FAILED = "failed"
    LIMITED = "limited"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. `text`: its error, or which limit."""

    how: End
    text: str | None = None


class RunPort:
    """The port of one run. After its end every report is `StaleTarget`, or passed over."""

    def __init__(
        self,
        session: Session,
        access: SessionAccess,
        now: Callable[[], int],
        tell: Callable[[Event], None],
        request: ExecuteRequest,
    ) -> None:
        self.session = session
        self.request = request
        self.end_of_run: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self.suspend: Callable[[], None] = lambda: None
        """Called when the attempt has to be ended because something waits for an answer."""
        self.answer: Callable[[KeptAnswer, str], None] = lambda _answer, _request: None
        """Called with an answer that was given before to what is asked now, and the request's id."""
        self._access = access
        self._now = now
        self._tell = tell
        self._conversation = conversation_of(session)
        self._kept = KeptAnswers()
        self._kept.put_back(session.answers)
        self._stopping = False
        self._streams: dict[str, int] = {}
        self._seq = 0

    # --- what the attempt reads

    @property
    def session_id(self) -> str:
        return self.session.id

    @property
    def attempt(self) -> int:
        return self.session.attempt

    @property
    def turn(self) -> str:
        return f"t{self.session.turns}"

    @property
    def instruction(self) -> str | None:
        return self.session.instruction

    @property
    def conversation(self) -> Conversation:
        if self.end_of_run.done():
            raise StaleTarget(f"the run of {self.session.id!r} is over")
        return self._conversation

    def now(self) -> int:
        return self._now()

    def checkpoint(self) -> Boundary:
        return Boundary(stopped=self._stopping)

    def stop_at_boundary(self) -> None:
        self._stopping = True

    # --- what it reports

    def emit(self, event: Event) -> None:
        pending = self.session.pending
        if pending is not None and isinstance(event, ToolResult) and event.status is ToolStatus.CANCELLED:
            # The call was not given up: it waits for its answer.
            return
        fill: dict[str, object] = {"attempt": self.session.attempt, "turn": event.turn or self.turn}
        if event.at == 0:
            fill["at"] = self._now()
        if not isinstance(event, Delta):
            self._seq += 1
            fill["seq"] = self._seq
        if event.item is not None and not isinstance(event, Delta):
            self._streams.pop(event.item, None)
        if isinstance(event, ToolResult):
            self.session.calls.pop(event.call, None)
        self._tell(event.model_copy(update=fill))
        if isinstance(event, Message | ToolResult):
            self._save()

    def stream(self, item: str, of: str, text: str, *, call: str | None = None) -> None:
        offset = self._streams.get(item, 0)
        self._streams[item] = offset + len(text)
        more = {"call": call} if call is not None else {}
        self._tell(
            Delta.model_validate({"at": self._now(), "item": item, "of": of, "offset": offset, "text": text} | more)
        )

    def started(self) -> None:
        return

    def begin(self, work: str, name: str) -> None:
        self.session.calls[work] = True
        self._kept.begun(work)
        self._keep()
        self._save()

    def end(self, work: str) -> None:
        self.session.calls.pop(work, None)

    def ask(self, request: RequestModel) -> None:
        if self.end_of_run.done():
            raise StaleTarget(f"the run of {self.session.id!r} is over")
        if self.session.pending is not None:
            # It is being suspended: this is asked when it goes on.
            return
        request, subject = Requests(self.session.id).ask(request, self.session.attempt)
        answer = self._kept.take(subject)
        if answer is not None:
            self.answer(answer, subject.id)
            return
        self.session.pending = request
        self.session.state = RunState.SUSPENDED
        self._keep()
        self._save()
        self.emit(opened(request, subject, self._now()))
        self.suspend()

    def withdraw(self, request: str, why: str) -> None:
        # Only what a suspended run asked is open, and that stays so.
        return

    def _keep(self) -> None:
        self.session.answers = self._kept.answers()

    def usage(self, usage: Usage) -> None:
        self.session.usage = usage

    def reply(self, ref: str, text: str) -> None:
        if all(message.ref != ref for message in self.session.messages):
            raise KeyError(ref)

    # --- how it ends

    def paused(self) -> None:
        if self.session.pending is None:
            raise ContractError("nobody asked for a pause")
        self._over(Ended(End.SUSPENDED))

    def resumed(self) -> None:
        return

    def turn_ended(self, result: Result) -> None:
        if self.session.pending is None:
            self._result(result)
            self._over(Ended(End.DONE))
        else:
            self._over(Ended(End.SUSPENDED))

    def completed(self, result: Result) -> None:
        self.turn_ended(result)

    def failed(self, error: str, result: Result | None = None) -> None:
        if result is not None:
            self._result(result)
        self._over(Ended(End.FAILED, error))

    def limited(self, result: Result) -> None:
        self._result(result)
        self._over(Ended(End.LIMITED, "the budget is used up"))

    def interrupted(self) -> None:
        self._over(Ended(End.CANCELLED))

    def stopped(self, result: Result | None = None) -> None:
        if result is not None and not self._stopping:
            self._result(result)
        self._over(Ended(End.CANCELLED))

    def _result(self, result: Result) -> None:
        self.session.result = result
        self.emit(ResultEvent(at=0, result=result))

    def _over(self, end: Ended) -> None:
        if self.end_of_run.done():
            return
        if self.session.pending is not None:
            end = Ended(End.SUSPENDED)
        self.end_of_run.set_result(end)

    def _save(self) -> None:
        self._access.save_and_cache(self.session)

    # --- what needs a host

    async def wait(self, session: str) -> Rest:
        raise StaleTarget(f"{session!r} runs on a host, and this run has none: spawn the agent instead")

    def spawn(self, harness: AgentHarness, *, name: str, text: str | None = None) -> str:
        raise CapabilityNotSupported("children need a host: spawn the agent instead of running it")
