"""What an agent function is given: its means to speak, to ask and to act under the eyes of its operators."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar, cast, overload

from pydantic import JsonValue

from watchfloor.harness.base import AgentHarness, ConversationMessage, Decided, MailItem, Rest, Withdrawn
from watchfloor.harness.calls import new_id, plain, sound
from watchfloor.harness.desk import Desk
from watchfloor.protocol.events import Level, Message, Notice, Progress, Reasoning, ToolStatus
from watchfloor.protocol.given import given
from watchfloor.protocol.model import Action, Choice, FieldType, FormField, Option, Result, Subject
from watchfloor.words import OptionKind, Primitive, RequestKind, Scope

T = TypeVar("T")

Returned = str | Result | None
AgentFunction = Callable[["Run", tuple[MailItem, ...]], Awaitable[Returned]]
"""An agent: called once per turn with the mail that woke it; see `watchfloor.harness.function`."""

ALLOW_ONCE: Final = Option(id="allow", label="Allow once", kind=OptionKind.ALLOW, scope=Scope.ONCE)
DENY: Final = Option(id="deny", label="Deny", kind=OptionKind.DENY)
_MAIN_FIELD: Final = "answer"


@dataclass(frozen=True, slots=True)
class ToolOutcome(Generic[T]):
    """What became of a tool call: `ok` with the value, or `declined` without one. `note` is the operator's.

    `option` is the id of the option that was taken; None where nobody was asked, or the request was withdrawn.
    """

    status: ToolStatus
    value: T | None = None
    note: str | None = None
    option: str | None = None

    @property
    def ok(self) -> bool:
        return self.status is ToolStatus.OK


@dataclass(frozen=True, slots=True)
class Approval:
    """How an approval ended. `option` is what was taken; None where it was withdrawn or expired, which allows nothing.

    `note` is the operator's, or says why it was withdrawn.
    """

    allowed: bool
    option: str | None = None
    by: str = ""
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """How a question ended: by an option (its value), in words, or by fields. None of them: it was withdrawn."""

    option: str | None = None
    text: str | None = None
    fields: dict[str, JsonValue] = field(default_factory=dict)
    by: str = ""
    note: str | None = None

    @property
    def answered(self) -> bool:
        return self.option is not None or self.text is not None or bool(self.fields)


class Run:
    """One turn of an agent function.

    Everything awaited here can raise `Interrupted` (an operator ended or suspended the turn) or `Stopped`; let them
    pass. After the turn has ended every call raises. All of it belongs to the host's event loop.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._port = desk.port
        self._steps = desk.steps

    # --- what there is to know -------------------------------------------------------------

    @property
    def session_id(self) -> str:
        return self._port.session_id

    @property
    def name(self) -> str:
        return self._desk.attempt.spec.name

    @property
    def attempt(self) -> int:
        """Counts from 1; a retry or relaunch is a new attempt."""
        return self._port.attempt

    @property
    def turn(self) -> str:
        return self._desk.turn

    @property
    def cwd(self) -> str | None:
        """The folder that the session belongs to, where it has one."""
        return self._desk.attempt.spec.cwd

    @property
    def messages(self) -> list[ConversationMessage]:
        """The conversation: mail as "user", what was said or returned as "assistant". It outlives turn and attempt.

        The agent may add to it. Ask for it anew each time: a reseed replaces its content.
        """
        return self._port.conversation.messages

    @property
    def model(self) -> str | None:
        """The label of the model to work with: what operators chose, else what the harness was given."""
        return self._port.conversation.model or self._desk.attempt.model

    # --- between steps ---------------------------------------------------------------------

    async def checkpoint(self) -> tuple[MailItem, ...]:
        """The boundary between two steps: a pause lands here; a gentle stop, or a used up budget, ends the turn.

        Returns the mail that arrived since the turn began or since the last checkpoint.
        """
        async with self._steps.step():
            await self._desk.boundary()
            return self._desk.take_steered()

    async def sleep(self, seconds: float) -> None:
        """Do nothing for a time, as one step that can be interrupted."""
        async with self._steps.step():
            await self._steps.rest(seconds)
            self._steps.check_stop()

    async def wait(self, session: str) -> Rest:
        """Until nothing of another session of this host runs or waits, as one step that can be interrupted.

        Raises Deadlock where that one waits for this one, directly or not, and StaleTarget where it is not there.
        """
        async with self._steps.step():
            rest = await self._port.wait(session)
            self._steps.check_stop()
            return rest

    # --- speaking --------------------------------------------------------------------------

    async def say(self, text: str) -> None:
        """Say something; it becomes part of the conversation."""
        async with self._steps.step():
            self._desk.speak(text)

    async def reply(self, to: MailItem | str, text: str) -> None:
        """Answer a message: whoever sent it and waits for the response gets this, and not the last words of the turn.

        It is said as well. `to`: the message or its ref. Raises KeyError where the session has no such message.
        """
        async with self._steps.step():
            self._port.reply(to if isinstance(to, str) else to.ref, sound(text))
            self._desk.speak(text)

    @asynccontextmanager
    async def stream(self, of: Literal["message", "reasoning"] = "message") -> AsyncIterator[Stream]:
        """Say or think something piece by piece: `async with run.stream() as out: await out.write(piece)`.

        The whole is recorded at the end, marked as cut where the block was left by an exception.
        """
        out = Stream(self._desk, of)
        whole = False
        try:
            yield out
            whole = True
        finally:
            if text := out.text:
                kind = Message if of == "message" else Reasoning
                self._desk.report(kind(at=0, item=out.item, text=text, cut=not whole))
                if of == "message":
                    self._desk.remember(text)

    def notice(self, text: str, level: Level = Level.INFO, code: str | None = None) -> None:
        """Tell the operators something that is not part of the conversation."""
        self._desk.emit(Notice(at=0, level=level, code=code, text=sound(text)))

    def progress(self, note: str) -> None:
        """Say in a few words how far the work is."""
        self._desk.emit(Progress(at=0, note=sound(note)))

    def usage(self, *, input_tokens: int = 0, output_tokens: int = 0) -> None:
        """Count tokens that were used since the last call."""
        self._steps.check()
        attempt = self._desk.attempt
        total = {
            "input_tokens": attempt.usage.input_tokens + input_tokens,
            "output_tokens": attempt.usage.output_tokens + output_tokens,
        }
        attempt.usage = attempt.usage.model_copy(update=total)
        self._port.usage(attempt.usage)

    # --- asking ----------------------------------------------------------------------------

    async def approve(
        self,
        actions: Action | Sequence[Action],
        *,
        options: Sequence[Option] = (ALLOW_ONCE, DENY),
        about: str | None = None,
    ) -> Approval:
        """Ask whether something may be done; the caller does it. `about` is shown as the agent's own words.

        Only an option of the kind `allow` allows. Raises CapabilityNotSupported where approvals are not advertised.
        """
        async with self._steps.step():
            self._desk.need(Primitive.APPROVE)
            approval = await self._approval(actions, options, about)
            await self._desk.boundary()
            return approval

    async def _approval(
        self, actions: Action | Sequence[Action], options: Sequence[Option], about: str | None
    ) -> Approval:
        subject = Subject(
            session=self.session_id,
            attempt=self.attempt,
            id=new_id("req"),
            kind=RequestKind.APPROVAL,
            actions=(actions,) if isinstance(actions, Action) else tuple(actions),
            options=tuple(options),
        )
        end = await self._desk.request(subject, about)
        if isinstance(end, Withdrawn):
            return Approval(False, note=end.why)
        return Approval(end.kind is OptionKind.ALLOW, end.option, end.by, end.note)

    async def ask(
        self,
        question: str,
        options: Sequence[str | Choice] = (),
        *,
        free_text: bool | None = None,
        fields: Sequence[FormField] = (),
    ) -> Answer:
        """Ask the operators a question: by options, in words (`free_text`; so it is where nothing else is given),
        or by a form of `fields`. Raises CapabilityNotSupported where questions are not advertised, ValueError for two
        options, or two fields, that nobody could tell apart.
        """
        choices = tuple(o if isinstance(o, Choice) else Choice(value=sound(o), label=sound(o)) for o in options)
        words = not (choices or fields) if free_text is None else free_text
        form = (*_main_field(sound(question), choices, words), *fields)
        subject = Subject(
            session=self.session_id,
            attempt=self.attempt,
            id=new_id("req"),
            kind=RequestKind.QUESTION,
            fields=form,
            options=tuple(Option(id=c.value, label=c.label, kind=OptionKind.ANSWER) for c in choices),
        )
        async with self._steps.step():
            self._desk.need(Primitive.ANSWER)
            end = await self._desk.request(subject, question)
            await self._desk.boundary()
            return _answer(end, {choice.value for choice in choices})

    # --- acting ----------------------------------------------------------------------------

    @overload
    async def tool(
        self,
        name: str,
        args: object,
        call: Callable[[], Awaitable[T]],
        *,
        gate: bool = ...,
        text: str | None = ...,
        cwd: str | None = ...,
        diff: str | None = ...,
        options: Sequence[Option] = ...,
        about: str | None = ...,
    ) -> ToolOutcome[T]: ...

    @overload
    async def tool(
        self,
        name: str,
        args: object,
        call: Callable[[], T],
        *,
        gate: bool = ...,
        text: str | None = ...,
        cwd: str | None = ...,
        diff: str | None = ...,
        options: Sequence[Option] = ...,
        about: str | None = ...,
    ) -> ToolOutcome[T]: ...

    async def tool(
        self,
        name: str,
        args: object,
        call: Callable[[], Any],
        *,
        gate: bool = True,
        text: str | None = None,
        cwd: str | None = None,
        diff: str | None = None,
        options: Sequence[Option] = (ALLOW_ONCE, DENY),
        about: str | None = None,
    ) -> ToolOutcome[Any]:
        """Announce a tool call, have it approved (`gate`), execute it at most once, and report what came of it.

        `args` are the exact arguments as JSON, `text` the exact command line where there is one, `cwd` the folder it
        happens in, `diff` what it changes in a file: this is what an operator decides on. What an option with a wider
        scope than once grants is for the agent to remember. `about` is the agent's own explanation.

        `call` takes no arguments. A coroutine function runs on the event loop; anything else in a thread of its own,
        which cannot be cancelled: after an interrupt it stays in flight until it ends by itself.

        Returns an outcome of status `ok` or `declined`; what `call` raises is reported and raised again. A pause that
        was asked for lands before `call` is executed. Raises CanonicalError where `args` are not JSON
        or a text cannot be written as UTF-8.
        """
        shown = plain(given(tool=name, text=text, arguments=args, cwd=cwd, diff=diff))
        action = Action(call=new_id("call"), **shown)
        return await self._carry_out(action, call, gate=gate, options=options, about=about)

    async def _carry_out(
        self,
        action: Action,
        call: Callable[[], Any],
        *,
        gate: bool,
        options: Sequence[Option],
        about: str | None,
        approved: Callable[[Approval | None], None] = lambda _: None,
    ) -> ToolOutcome[Any]:
        """See `tool`. `approved` is called when nothing keeps the call from being executed any more."""
        async with self._steps.step():
            approval = None
            if gate:
                self._desk.need(Primitive.APPROVE)
                self._desk.announce(action, gated=True)
                approval = await self._gate(action, options, about)
                if not approval.allowed:
                    await self._desk.boundary()
                    return ToolOutcome(ToolStatus.DECLINED, None, approval.note, approval.option)
            else:
                await self._desk.boundary()
                self._desk.announce(action, gated=False)
            approved(approval)
            value = await self._desk.execute(action, call)
            if approval is None:
                return ToolOutcome(ToolStatus.OK, value)
            return ToolOutcome(ToolStatus.OK, value, approval.note, approval.option)

    async def _gate(self, action: Action, options: Sequence[Option], about: str | None) -> Approval:
        try:
            approval = await self._approval((action,), options, about)
            if approval.allowed:
                await self._desk.boundary()
        except BaseException:
            self._desk.not_executed(action, ToolStatus.CANCELLED, None)
            raise
        if not approval.allowed:
            self._desk.not_executed(action, ToolStatus.DECLINED, approval.note)
        return approval

    def spawn(self, agent: AgentFunction | AgentHarness, name: str, text: str | None = None) -> str:
        """Add a child session, at work at once when `text` is given; returns its id.

        A function becomes a session with the same capabilities as this one.
        """
        self._steps.check()
        harness = cast(AgentHarness, agent) if hasattr(agent, "start") else self._desk.attempt.child(agent)
        return self._port.spawn(harness, name=sound(name), text=None if text is None else sound(text))


class Stream:
    """A message or a thought in the making; see `Run.stream`."""

    def __init__(self, desk: Desk, of: Literal["message", "reasoning"]) -> None:
        self._desk = desk
        self._of = of
        self._parts: list[str] = []
        self.item = new_id("item")

    @property
    def text(self) -> str:
        """What was written so far."""
        return "".join(self._parts)

    async def write(self, text: str) -> None:
        """Append a piece."""
        async with self._desk.steps.step():
            text = sound(text)
            self._desk.port.stream(self.item, self._of, text)
            self._parts.append(text)


def _main_field(question: str, choices: tuple[Choice, ...], words: bool) -> tuple[FormField, ...]:
    """The question as a field, so that its words are part of what is decided."""
    if choices:
        kind = FieldType.CHOICE
        return (FormField(name=_MAIN_FIELD, type=kind, label=question, choices=choices, free_text=words),)
    return (FormField(name=_MAIN_FIELD, type=FieldType.TEXT, label=question),) if words else ()


def _answer(end: Decided | Withdrawn, values: Collection[str]) -> Answer:
    if isinstance(end, Withdrawn):
        return Answer(note=end.why)
    fields = dict(end.fields or {})
    option, text = end.option, end.text
    main = fields.pop(_MAIN_FIELD, None)
    if isinstance(main, str):
        option, text = (main, text) if main in values else (option, main)
    return Answer(option, text, fields, end.by, end.note)
