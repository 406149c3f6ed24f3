"""What is behind an agent's `Run`: the words, requests and calls of one turn, reported to the host."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from watchfloor.errors import AgentError, CapabilityNotSupported, Interrupted, LimitReached, Stopped, one_line
from watchfloor.harness.base import (
    AgentHarness,
    AttemptSpec,
    Conversation,
    ConversationMessage,
    Decided,
    MailItem,
    SessionPort,
    Withdrawn,
)
from watchfloor.harness.calls import distinct, in_thread, result_text, sound
from watchfloor.harness.steps import Steps
from watchfloor.protocol.events import Event, Message, ToolCall, ToolResult, ToolStatus
from watchfloor.protocol.model import Action, Capabilities, RequestModel, Subject, Usage
from watchfloor.words import Primitive


@dataclass(slots=True)
class AttemptRecord:
    """What the turns of one attempt share. `child` makes a harness like this one out of another function."""

    port: SessionPort
    spec: AttemptSpec
    capabilities: Capabilities
    child: Callable[[Any], AgentHarness]
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    """The label of the model that the agent works with until operators choose another one."""


def remember_mail(conversation: Conversation, mail: Iterable[MailItem]) -> None:
    """Make mail part of the conversation, once: a turn that is taken up again brings the same mail."""
    known = {message.ref for message in conversation.messages if message.ref is not None}
    conversation.messages += [
        ConversationMessage("user", item.text, item.ref) for item in mail if item.ref not in known
    ]


class Desk:
    """The engine of one turn. All of it belongs to the event loop of the host."""

    def __init__(self, attempt: AttemptRecord, turn: str, steps: Steps) -> None:
        self.attempt = attempt
        self.port = attempt.port
        self.turn = turn
        self.steps = steps
        self.said: str | None = None
        """The last thing that the agent said in this turn."""
        self._steered: list[MailItem] = []

    # --- mail and words

    async def boundary(self) -> None:
        """Between two steps: a pause that was asked for lands, mail is taken, a gentle stop ends the turn."""
        while True:
            boundary = self.port.checkpoint()
            remember_mail(self.port.conversation, boundary.mail)
            self._steered += boundary.mail
            self.steps.check_stop()
            if boundary.limit is not None:
                raise LimitReached(boundary.limit)
            if boundary.stopped:
                raise Stopped("the session was stopped")
            if not boundary.paused:
                return
            await self.steps.rest()

    def take_steered(self) -> tuple[MailItem, ...]:
        """Mail that was taken at boundaries and that the agent has not seen."""
        mail, self._steered = tuple(self._steered), []
        return mail

    def speak(self, text: str) -> None:
        text = sound(text)
        self.emit(Message(at=0, text=text))
        self.remember(text)

    def last_words(self, text: str) -> None:
        """What the agent still had to say when its turn was over."""
        self.report(Message(at=0, text=sound(text)))
        self.remember(sound(text))

    def remember(self, text: str) -> None:
        """The agent said this: part of the conversation."""
        self.said = text
        with suppress(AgentError):  # a newer attempt has the conversation now
            self.port.conversation.messages.append(ConversationMessage("assistant", text))

    # --- events

    def emit(self, event: Event) -> None:
        """Record an event of this turn. Raises what ended the turn."""
        self.steps.check()
        self.port.emit(event.model_copy(update={"turn": self.turn}))

    def report(self, event: Event) -> None:
        """Record how something ended: also when the turn is over, but not for an agent that was given up on."""
        if not self.steps.given_up:
            self._report_anyway(event)

    def _report_anyway(self, event: Event) -> None:
        with suppress(AgentError):  # nobody asks a superseded attempt any more
            self.port.emit(event.model_copy(update={"turn": self.turn}))

    # --- requests

    def need(self, primitive: Primitive) -> None:
        """Refuse to ask what nobody could ever answer."""
        if not self.attempt.capabilities.advertises(primitive):
            raise CapabilityNotSupported(f"this session does not advertise {primitive.value}: nobody could decide it")

    async def request(self, subject: Subject, about: str | None) -> Decided | Withdrawn:
        """Open a request and wait for its end. It is withdrawn where the agent stops waiting."""
        distinct("options", [option.id for option in subject.options])
        distinct("fields", [one.name for one in subject.fields])
        end = self.steps.expect(subject.id)
        try:
            self.port.ask(
                RequestModel.ask(subject, asked_at=self.port.now(), **({"about": sound(about)} if about else {}))
            )
            return await end
        finally:
            if self.steps.forget(subject.id):
                with suppress(AgentError):
                    self.port.withdraw(subject.id, "the agent no longer waits for it")

    # --- calls

    def announce(self, action: Action, *, gated: bool) -> None:
        fields = action.model_dump(include={"call", "text", "arguments", "cwd"}, exclude_unset=True)
        self.emit(ToolCall(at=0, name=action.tool, gated=gated, **fields))

    def not_executed(self, action: Action, status: ToolStatus, note: str | None) -> None:
        """The call ended without having been executed."""
        self.report(ToolResult(at=0, call=str(action.call), status=status, text=sound(note or "")))

    async def execute(self, action: Action, call: Callable[[], Any]) -> Any:
        """Execute an announced call once and report what came of it; raises what it raises."""
        id, begun = str(action.call), self.port.now()
        self.port.begin(id, action.tool)
        thread: asyncio.Future[Any] | None = None
        try:
            if inspect.iscoroutinefunction(call):
                value = await call()
            else:
                thread = in_thread(call)
                value = await asyncio.shield(thread)
                if inspect.isawaitable(value):
                    value = await value
        except BaseException as error:
            if thread is not None and not thread.done():
                # It cannot be cancelled: it stays in flight, and how it ends is told when it does.
                thread.add_done_callback(lambda done: self._ended_late(id, begun, done))
            else:
                self._failed(id, begun, error)
            raise
        self._ended(id, begun, value)
        return value

    def _ended_late(self, id: str, begun: int, done: asyncio.Future[Any]) -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is not None:
            self._failed(id, begun, error)
        elif inspect.iscoroutine(value := done.result()):
            value.close()  # the thread only prepared the work
            self._failed(id, begun, asyncio.CancelledError())
        else:
            self._ended(id, begun, value)

    def _ended(self, id: str, begun: int, value: object) -> None:
        text, cut = result_text(value)
        self._result(id, begun, ToolStatus.OK, text, cut)

    def _failed(self, id: str, begun: int, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError | Interrupted | Stopped):
            self._result(id, begun, ToolStatus.CANCELLED, "")
        else:
            self._result(id, begun, ToolStatus.ERROR, one_line(error))

    def _result(self, id: str, begun: int, status: ToolStatus, text: str, cut: bool = False) -> None:
        with suppress(AgentError):
            self.port.end(id)
        duration = max(0, self.port.now() - begun)
        self._report_anyway(ToolResult(at=0, call=id, status=status, text=text, cut=cut, duration_ms=duration))
