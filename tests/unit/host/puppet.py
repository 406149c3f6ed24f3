"""A session core with an attempt at its other end that does what it is told, when the test lets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from watchfloor.harness.base import (
    Boundary,
    Decided,
    Interrupt,
    MailArrived,
    Pause,
    Reseed,
    Resume,
    Signal,
    Stop,
    Wake,
    Withdrawn,
)
from watchfloor.host.effects import Handled, Publish, RequestChanged, SessionEffect, StartAttempt, Tell
from watchfloor.host.sessions.session import SessionCore
from watchfloor.protocol.events import Event, Mail
from watchfloor.protocol.frames import DoAnswer, DoApprove, DoReseed
from watchfloor.protocol.model import (
    Action,
    Capabilities,
    FormField,
    NoOptions,
    Option,
    PauseOptions,
    RequestModel,
    ReseedOptions,
    Result,
    SendOptions,
    StopOptions,
    Subject,
)
from watchfloor.words import Lifecycle, Op, OptionKind, Priority, RequestKind, ReseedMode, StopReason

E = TypeVar("E", bound=Event)

FULL: Final = Capabilities(
    send=SendOptions(priorities=tuple(Priority)),
    pause=PauseOptions(interrupt=True),
    resume=NoOptions(),
    interrupt=NoOptions(),
    stop=StopOptions(kill=True),
    reseed=ReseedOptions(modes=(ReseedMode.CLEAR,)),
    approve=NoOptions(),
    answer=NoOptions(),
)
ALLOW: Final = Option(id="yes", label="Yes", kind=OptionKind.ALLOW)
DENY: Final = Option(id="no", label="No", kind=OptionKind.DENY)
BY: Final = "robin"


def approval(
    core: SessionCore,
    id: str = "r1",
    *,
    call: str | None = None,
    blocks: bool = True,
    deadline: int | None = None,
    at_deadline: str | None = None,
    options: Sequence[Option] = (ALLOW, DENY),
) -> RequestModel:
    """A request of the session's current attempt."""
    action = Action(tool="shell", text="make migrate", call=call)
    subject = Subject(
        session=core.id,
        attempt=core.attempt,
        id=id,
        kind=RequestKind.APPROVAL,
        actions=(action,),
        options=tuple(options),
    )
    return RequestModel.ask(subject, asked_at=1, blocks=blocks, deadline=deadline, at_deadline=at_deadline)


def question(
    core: SessionCore, id: str = "q1", *, fields: Sequence[FormField] = (), options: Sequence[Option] = ()
) -> RequestModel:
    subject = Subject(
        session=core.id,
        attempt=core.attempt,
        id=id,
        kind=RequestKind.QUESTION,
        fields=tuple(fields),
        options=tuple(options),
    )
    return RequestModel.ask(subject, asked_at=1)


class Puppet:
    """Keeps what the core lets out. `react` answers all signals and starts; nothing else does."""

    def __init__(self, *, starts_itself: bool = False, capabilities: Capabilities = FULL, grace_s: float = 5.0) -> None:
        self.now = 1_000
        self.core = SessionCore(
            "s1", capabilities=capabilities, now=self.now, starts_itself=starts_itself, grace_s=grace_s
        )
        self.effects: list[SessionEffect] = []
        self._reacted = 0

    # --- what came out

    @property
    def events(self) -> list[Event]:
        return [effect.event for effect in self.effects if isinstance(effect, Publish)]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def state(self) -> Lifecycle:
        """The lifecycle state now. A method, since every look may see another one."""
        return self.core.lifecycle

    @property
    def told(self) -> list[Signal]:
        return [effect.signal for effect in self.effects if isinstance(effect, Tell)]

    @property
    def starts(self) -> list[int]:
        return [effect.attempt for effect in self.effects if isinstance(effect, StartAttempt)]

    @property
    def requests(self) -> list[RequestModel]:
        return [effect.request for effect in self.effects if isinstance(effect, RequestChanged)]

    def mail(self, ref: str) -> list[str]:
        """The states that a message went through."""
        return [event.state.value for event in self.of(Mail) if event.ref == ref]

    def mail_error(self, ref: str) -> str | None:
        return next((event.error for event in reversed(self.of(Mail)) if event.ref == ref), None)

    def forget(self) -> None:
        """What came out so far was looked at."""
        self.effects.clear()
        self._reacted = 0

    # --- what goes in

    def take(self, effects: list[SessionEffect]) -> None:
        self.effects += effects
        self.now += 1_000

    def operate(self, op: Op) -> Handled:
        """An operation of the table, by an operator."""
        core, now = self.core, self.now
        match op:
            case Op.SEND:
                handled = core.send("hello", BY, now)
            case Op.PAUSE | Op.PAUSE_INTERRUPT:
                handled = core.pause(BY, now, interrupt=op is Op.PAUSE_INTERRUPT)
            case Op.INTERRUPT:
                handled = core.interrupt(BY, now)
            case Op.RESUME:
                handled = core.resume(BY, now)
            case Op.STOP | Op.STOP_KILL:
                handled = core.stop(BY, now, kill=op is Op.STOP_KILL)
            case Op.RESEED:
                handled = core.reseed(DoReseed(mode=ReseedMode.CLEAR), BY, now)
            case _:
                raise AssertionError("waiting is no command")
        self.take(handled.effects)
        return handled

    def send(self, text: str = "hello", priority: Priority = Priority.NORMAL) -> Handled:
        handled = self.core.send(text, BY, self.now, priority=priority)
        self.take(handled.effects)
        return handled

    def ask(self, request: RequestModel) -> RequestModel:
        self.take(self.core.ask(request, self.now))
        return request

    def decide(self, request: RequestModel, option: str = "yes", by: str = BY) -> Handled:
        do = DoApprove(request=str(request.subject["id"]), option=option, digest=request.digest)
        handled = self.core.decide(do, by, self.now)
        self.take(handled.effects)
        return handled

    def answer(self, request: RequestModel, **answer: object) -> Handled:
        do = DoAnswer.model_validate(
            {"request": str(request.subject["id"]), "digest": request.digest, "primitive": "answer", **answer}
        )
        handled = self.core.decide(do, BY, self.now)
        self.take(handled.effects)
        return handled

    def begin(self, work: str = "w1") -> None:
        self.take(self.core.begin(work, "work", self.now))

    def checkpoint(self) -> Boundary:
        boundary, effects = self.core.checkpoint(self.now)
        self.take(effects)
        return boundary

    def end_turn(self) -> None:
        self.take(self.core.turn_ended(self.result(), self.now))

    def result(self) -> Result:
        return Result(text="done", stop_reason=StopReason.END_TURN, session_id=self.core.id)

    def react(self) -> None:
        """Do what the signals ask for, until there are no more."""
        while self._reacted < len(self.effects):
            effect = self.effects[self._reacted]
            self._reacted += 1
            if isinstance(effect, StartAttempt):
                self.take(self.core.started(self.now))
            elif isinstance(effect, Tell):
                self._obey(effect.signal)

    def _obey(self, signal: Signal) -> None:
        match signal:
            case Pause(interrupt=True):
                self.take(self.core.suspended(self.now))
            case Pause():
                self.checkpoint()
            case Resume():
                self.take(self.core.resumed(self.now))
            case Interrupt():
                self.take(self.core.interrupted(self.now))
            case Stop():
                self.take(self.core.stopped(self.now))
            case Wake() | MailArrived() | Decided() | Withdrawn() | Reseed():
                return

    def no_more_signals(self) -> None:
        """Signals so far were dealt with by the test itself."""
        self._reacted = len(self.effects)
