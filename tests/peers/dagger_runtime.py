"""The agents of a stand-in Dagger engine: their loops, mailboxes and states.

Nothing here is driven by a table: it is the machine that the table describes, so that each is held against the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.peers.dagger_conversation import Block, Conversation, Origin, StepFailed, Turn, said

if TYPE_CHECKING:
    from tests.peers.dagger_engine import Engine
    from tests.peers.dagger_telemetry import Span


class Refused(Exception):
    """The engine's answer to what a state does not allow."""


@dataclass
class Mail:
    """One message. `delivery` is what was decided when it came; `delivered` and `answer` are what callers wait for."""

    ref: str
    text: str
    delivery: str
    reply_to: str = ""
    origin: Origin | None = None
    delivered: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    answer: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def ends(self, why: str) -> None:
        """It will never be answered."""
        for future in (self.delivered, self.answer):
            if not future.done():
                future.set_exception(Refused(why))
                future.exception()  # nobody has to wait for it


class Runtime:
    """One agent that this session has."""

    def __init__(self, engine: Engine, name: str, handle: str, seed: Conversation) -> None:
        self.engine, self.name, self.handle = engine, name, handle
        self.seed = self.conversation = seed
        self.parent: Runtime | None = None
        self.error = ""
        self.mail: list[Mail] = []
        self.mailbox: list[Mail] = []
        self.consumed: list[Mail] = []
        self.subscribers: dict[str, tuple[Runtime, list[str]]] = {}
        self.span: Span | None = None
        self.stop_reason = ""
        self.awaits_input = False
        """Reads WAITING_INPUT: nothing in the engine leads there yet, its enum has it."""
        self._started = self._done = self._sealed = False
        self._paused = self._in_step = self._turn_open = self._stopping = False
        self._told = ""
        self._news = False
        self._loop: asyncio.Task[None] | None = None
        self._step: asyncio.Task[Turn] | None = None
        self._moved = asyncio.Event()

    # --- what it is

    @property
    def state(self) -> str:
        if self._done:
            return "FAILED" if self.error and not self._sealed else "STOPPED"
        if self.awaits_input:
            return "WAITING_INPUT"
        if self._in_step:
            return "RUNNING"
        if self._paused:
            return "PAUSED"
        if self._turn_open or self.mailbox or (self._started and self.conversation.pending):
            return "RUNNING"
        return "IDLE"

    @property
    def stopped(self) -> bool:
        return self._done and self._sealed

    # --- verbs

    def send(self, text: str, reply_to: str = "", origin: Origin | None = None) -> Mail:
        if self.stopped:
            self._relaunch()
            delivery = "STARTED"
        elif self._done or self._paused:
            delivery = "QUEUED"
        elif self._in_step or self._turn_open or self.mailbox or self.state == "RUNNING":
            delivery = "STEERED"
        else:
            delivery = "STARTED"
        ref = f"#{len(self.mail) + 1}"
        kind = origin or Origin("USER")
        mail = Mail(ref, text, delivery, reply_to, Origin(kind.kind, kind.agent, ref, reply_to))
        self.mail.append(mail)
        self.mailbox.append(mail)
        self.awaits_input = False
        if delivery == "QUEUED":
            mail.delivered.set_result("QUEUED")
        else:
            self._start()
        self._move()
        return mail

    def pause(self, interrupt: bool) -> None:
        if self.stopped:
            verb = "interrupted" if interrupt else "paused"
            raise Refused(f'agent "{self.name}" is stopped; a released runtime cannot be {verb}')
        self._paused = True
        if interrupt:
            self._discard(f'agent "{self.name}" was interrupted before consuming this message')
            if self._step is not None:
                self._step.cancel()
        self._move()

    def resume(self) -> None:
        self._paused = False
        if self._done:
            self._relaunch()
        self._start()
        self._move()

    async def stop(self, kill: bool) -> None:
        if self.stopped:
            return
        self._stopping = True
        if kill and self._step is not None:
            self._step.cancel()
        self._move()
        if self._loop is not None and not self._loop.done():
            await asyncio.shield(self._loop)
        self.seal("EXPLICIT")

    def seal(self, reason: str) -> None:
        """The loop is down, for good unless somebody relaunches it."""
        if self.stopped:
            return
        self._end_turn(f'agent "{self.name}" was stopped before completing the turn that consumed this message')
        self._discard(f'agent "{self.name}" was stopped before consuming this message')
        self._done = self._sealed = True
        self._stopping = self._paused = self.awaits_input = False
        self.stop_reason = reason
        self._move()
        if self.span is not None:
            self.engine.telemetry.end(self.span)

    def reseed(self, conversation: Conversation) -> None:
        if self.stopped:
            raise Refused(f'agent "{self.name}" is stopped; a released runtime\'s conversation cannot be replaced')
        if self.state in ("RUNNING", "WAITING_INPUT"):
            raise Refused(
                f'agent "{self.name}" is mid-turn; wait for the turn to finish (or interrupt it) before reseeding'
            )
        self._end_turn(f'agent "{self.name}" was rewound before completing the turn that consumed this message')
        self.conversation = conversation
        self._move()

    async def wait(self) -> None:
        while self.state not in ("IDLE", "FAILED", "STOPPED"):
            await self._moved.wait()

    def notify(self, subscriber: Runtime, states: list[str]) -> None:
        if subscriber is self:
            raise Refused(f'agent "{self.name}" cannot subscribe to its own lifecycle')
        self.subscribers.pop(subscriber.handle, None)
        if states:
            self.subscribers[subscriber.handle] = (subscriber, states)
            self._inform(subscriber, states)
        if self.span is not None:
            self.engine.telemetry.subscription(self.span, subscriber.handle, states)

    def message(self, ref: str) -> Mail:
        found = next((mail for mail in self.mail if mail.ref.lstrip("#") == ref.lstrip("#")), None)
        if found is None:
            raise Refused(f'agent "{self.name}" has no record of message "{ref}"')
        return found

    # --- its loop

    def _start(self) -> None:
        self._started = True
        if self._loop is None or self._loop.done():
            if self.span is None or self.span.end:
                above = self.parent.span.id if self.parent is not None and self.parent.span is not None else ""
                self.span = self.engine.telemetry.span(
                    f"agent: {self.name}", above, handle=self.handle, agent=self.name
                )
                self._told = ""
            self._loop = asyncio.get_running_loop().create_task(self._run())

    def _relaunch(self) -> None:
        self._done = self._sealed = self._stopping = self._paused = False
        self.error = self.stop_reason = ""

    async def _run(self) -> None:
        while not self._stopping:
            if self._paused or not (self._turn_open or self.mailbox or self.conversation.pending):
                await self._moved.wait()
                continue
            self._drain()
            self._turn_open = self._in_step = True
            self._step = asyncio.get_running_loop().create_task(self.engine.models.step(self.conversation))
            self._move()
            try:
                reply = await self._step
            except asyncio.CancelledError:
                if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                    raise
                reply = None
            except StepFailed as failure:
                self._in_step = False
                self._fail(str(failure))
                return
            self._in_step, self._step = False, None
            if reply is not None:
                self._commit(reply)
            self._move()

    def _drain(self) -> None:
        for mail in self.mailbox:
            self.conversation = self.conversation.plus(said(mail.text, mail.origin))
            if not mail.delivered.done():
                mail.delivered.set_result(mail.delivery)
            self.consumed.append(mail)
        self.mailbox.clear()

    def _commit(self, reply: Turn) -> None:
        self._news = True
        self.conversation = self.conversation.plus(reply)
        if reply.calls:
            results = tuple(Block("TOOL_RESULT", f"{call.tool}: ok", call_id=call.call_id) for call in reply.calls)
            self.conversation = self.conversation.plus(Turn("USER", results))
        elif not self.mailbox:
            for mail in self.consumed:
                if not mail.answer.done():
                    mail.answer.set_result(reply.text)
            self.consumed.clear()
            self._turn_open = False

    def _fail(self, why: str) -> None:
        self.error, self._done, self._sealed, self._news = why, True, False, True
        self._end_turn(f'agent "{self.name}" failed during the turn that consumed this message: {why}')
        self._move()

    def _end_turn(self, why: str) -> None:
        for mail in self.consumed:
            mail.ends(why)
        self.consumed.clear()
        self._turn_open = False

    def _discard(self, why: str) -> None:
        for mail in self.mailbox:
            mail.ends(why)
        self.mailbox.clear()

    # --- who hears of it

    def _move(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
        state = self.state
        if state == self._told:
            return
        self._told = state
        if self.span is not None:
            self.engine.telemetry.state(
                self.span,
                state,
                stop=self.stop_reason,
                failure=self.error,
                parent=self.parent.handle if self.parent is not None else "",
            )
        if state in ("IDLE", "FAILED", "PAUSED", "STOPPED") and self._news:
            for subscriber, states in list(self.subscribers.values()):
                self._inform(subscriber, states)
            self._news = False

    def _inform(self, subscriber: Runtime, states: list[str]) -> None:
        if self.state not in states or subscriber.stopped or not self._started:
            return
        text = f'Agent "{self.name}" is now {self.state.lower()}.\n\nIts final reply:\n\n{self.conversation.last_reply}'
        if self.state == "FAILED":
            text = f'Agent "{self.name}" FAILED: {self.error}'
        subscriber.send(text, origin=Origin("EVENT", self.name))

    async def until(self, holds: Callable[[Runtime], object]) -> None:
        """For tests: wait until something is so of this agent."""
        async with asyncio.timeout(30):
            while not holds(self):
                await self._moved.wait()

    def end(self) -> None:
        """The session ends."""
        self.seal("SESSION")
        if self._loop is not None:
            self._loop.cancel()
