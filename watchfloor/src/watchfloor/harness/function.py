"""An async function as an agent.

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str | Result | None: ...

It is called once per turn with the mail that woke it. Returning ends the turn: the session is idle, with a result
(completed with `once=True`, where only a new attempt can follow). `Interrupted` escaping leaves it idle, `LimitReached`
paused until its budget is raised and it is resumed, which calls the function again with the same mail; any other
exception fails the attempt with one line, and a retry calls the function again with the same mail and conversation.
A turn that was suspended by force is taken up again in the same way.

The function shares the host's event loop: what blocks belongs into `run.tool` as a plain function. An agent that does
not end within the grace time after an interrupt, a forced pause or a kill is given up: it is cut off from its session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum

from watchfloor.errors import (
    AgentError,
    CapabilityNotSupported,
    ContractError,
    Interrupted,
    LimitReached,
    StaleTarget,
    Stopped,
    innermost,
    one_line,
)
from watchfloor.harness.base import (
    AttemptSpec,
    ConversationMessage,
    Decided,
    Interrupt,
    MailItem,
    Pause,
    Resume,
    SessionPort,
    Signal,
    Stop,
    Wake,
    Withdrawn,
)
from watchfloor.harness.calls import awaited, sound, taking
from watchfloor.harness.current import CURRENT
from watchfloor.harness.desk import AttemptRecord, Desk, remember_mail
from watchfloor.harness.run import AgentFunction, Answer, Approval, Returned, Run, ToolOutcome
from watchfloor.harness.steps import Steps
from watchfloor.logs import logger
from watchfloor.protocol.events import Level, Notice
from watchfloor.protocol.model import (
    BudgetOptions,
    Capabilities,
    NoOptions,
    PauseOptions,
    ReseedOptions,
    Result,
    SendOptions,
    StopOptions,
    Traits,
)
from watchfloor.words import Priority, ReseedMode, StopReason

__all__ = ["FULL_CONTROL", "AgentFunction", "Answer", "Approval", "FunctionHarness", "Run", "ToolOutcome"]

FULL_CONTROL = Capabilities(
    send=SendOptions(priorities=tuple(Priority), replies=True),
    pause=PauseOptions(interrupt=True),
    resume=NoOptions(),
    interrupt=NoOptions(),
    stop=StopOptions(kill=True),
    reseed=ReseedOptions(modes=(ReseedMode.CLEAR, ReseedMode.REPLACE, ReseedMode.REWIND)),
    fork=NoOptions(),
    budget=BudgetOptions(tokens=True, turns=True),
    approve=NoOptions(),
    answer=NoOptions(),
    notify=NoOptions(),
    delete=NoOptions(),
)
"""Everything that any agent function can do. One with a `model` can be reseeded with another one, and one with
`compact` can be compacted, too."""

Compact = Callable[[Sequence[ConversationMessage]], Awaitable[Sequence[ConversationMessage]]]
"""Puts a conversation into fewer words: gets its messages, and returns those that take their place."""

_KILL_S = 1.0

_log = logger(__name__)

_given_up: set[asyncio.Task[object]] = set()
"""Tasks of agents that were given up: they hang somewhere, and must not be collected while they do."""


class FunctionHarness:
    """Runs an agent function.

    `once`: a turn's end completes the attempt. `capabilities`: what is advertised, at most `FULL_CONTROL`.
    `starts_itself`: the function is called without mail as soon as an attempt starts. `grace_s`: seconds that the
    function has to end once it was told to. `model`: the label of the model that the agent works with until operators
    choose another one (`run.model`). `compact`: puts a conversation into fewer words, for operators who ask for that.

    Raises TypeError for what cannot be called so.

    An exception that escapes fails the attempt: consoles are told its one line, and its traceback goes to the logger
    `watchfloor.harness.function`, which prints nothing unless the program configures logging.
    """

    def __init__(
        self,
        agent: AgentFunction,
        *,
        once: bool = False,
        capabilities: Capabilities = FULL_CONTROL,
        starts_itself: bool = False,
        grace_s: float = 5.0,
        model: str | None = None,
        compact: Compact | None = None,
    ) -> None:
        taking(agent, "a Run", "its mail")
        self._agent = agent
        self._model = model
        self._compact = compact
        self._once = once
        self._capabilities = _with_modes(capabilities, model=model is not None, compact=compact is not None)
        self._starts_itself = starts_itself
        self._grace_s = grace_s

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def traits(self) -> Traits:
        return Traits()

    @property
    def starts_itself(self) -> bool:
        return self._starts_itself

    @property
    def grace_s(self) -> float:
        return self._grace_s

    async def compact(self, messages: Sequence[ConversationMessage]) -> Sequence[ConversationMessage]:
        """Raises CapabilityNotSupported where the agent has no way to do that."""
        if self._compact is None:
            raise CapabilityNotSupported("this agent cannot compact its conversation")
        return await self._compact(messages)

    async def start(self, spec: AttemptSpec, port: SessionPort) -> FunctionSession:
        def child(agent: AgentFunction) -> FunctionHarness:
            return FunctionHarness(
                agent,
                once=self._once,
                capabilities=self._capabilities,
                grace_s=self._grace_s,
                model=self._model,
                compact=self._compact,
            )

        record = AttemptRecord(port, spec, self._capabilities, child, model=self._model)
        session = FunctionSession(self._agent, record, once=self._once, grace_s=self._grace_s)
        port.started()
        return session


def _with_modes(capabilities: Capabilities, *, model: bool, compact: bool) -> Capabilities:
    """With the ways to reseed that what was given makes possible, where reseeding is advertised at all."""
    if capabilities.reseed is None:
        return capabilities
    more = [mode for mode, has in ((ReseedMode.COMPACT, compact), (ReseedMode.MODEL, model)) if has]
    modes = tuple(dict.fromkeys((*capabilities.reseed.modes, *more)))
    return capabilities.model_copy(update={"reseed": ReseedOptions(modes=modes)})


class _Ending(IntEnum):
    """Why a turn is being ended from outside; a higher one takes over."""

    NONE = 0
    PAUSE = 1
    INTERRUPT = 2
    STOP = 3
    CLOSE = 4


_RAISED = {
    _Ending.PAUSE: (Interrupted, "an operator paused the session"),
    _Ending.INTERRUPT: (Interrupted, "an operator interrupted the turn"),
    _Ending.STOP: (Stopped, "an operator stopped the session"),
    _Ending.CLOSE: (Stopped, "the host shuts down"),
}


@dataclass(slots=True)
class _Turn:
    desk: Desk
    ending: _Ending = _Ending.NONE
    task: asyncio.Task[object] | None = None

    @property
    def steps(self) -> Steps:
        return self.desk.steps


class FunctionSession:
    """One attempt of an agent function."""

    def __init__(self, agent: AgentFunction, record: AttemptRecord, *, once: bool, grace_s: float) -> None:
        self._agent = agent
        self._record = record
        self._port = record.port
        self._once = once
        self._grace_s = grace_s
        self._turn: _Turn | None = None
        self._stopping = False
        self._watches: set[asyncio.Task[None]] = set()

    @property
    def capabilities(self) -> Capabilities:
        return self._record.capabilities

    async def intervene(self, signal: Signal) -> None:
        turn = self._turn
        match signal:
            case Wake():
                self._begin(signal)
            case Decided() | Withdrawn() if turn is not None:
                turn.steps.settle(signal)
            case Pause() if self.capabilities.pause is None:
                raise CapabilityNotSupported("this agent cannot be paused")
            case Interrupt() if self.capabilities.interrupt is None:
                raise CapabilityNotSupported("this agent cannot be interrupted")
            case Pause(interrupt=True) if turn is not None:
                self._cut(turn, _Ending.PAUSE)
            case Resume():
                if turn is not None and turn.steps.release():
                    self._port.resumed()
            case Interrupt() if turn is not None:
                self._cut(turn, _Ending.INTERRUPT)
            case Stop():
                self._stop(signal)
            case _:  # what lands at the next boundary, or finds nothing that runs
                return

    async def close(self) -> None:
        turn = self._turn
        if turn is not None and turn.task is not None:
            self._cut(turn, _Ending.CLOSE)
            await asyncio.wait({turn.task, *self._watches}, return_when=asyncio.FIRST_COMPLETED)
        for watch in self._watches:
            watch.cancel()

    # --- a turn ----------------------------------------------------------------------------

    def _begin(self, wake: Wake) -> None:
        if self._turn is not None:
            raise ContractError(f"turn {wake.turn} cannot begin: {self._turn.desk.turn} still runs")
        remember_mail(self._port.conversation, wake.mail)
        usage = self._record.usage
        self._record.usage = usage.model_copy(update={"turns": usage.turns + 1})
        turn = self._turn = _Turn(Desk(self._record, wake.turn, Steps()))
        turn.task = asyncio.create_task(self._work(turn, wake.mail), name=f"turn {wake.turn}")

    async def _work(self, turn: _Turn, mail: tuple[MailItem, ...]) -> None:
        returned: Returned = None
        error: BaseException | None = None
        CURRENT.set(self._port.session_id)
        try:
            # Not earlier: a task that is cancelled before it runs would never get here, and nobody would report.
            turn.steps.begin()
            returned = await awaited(self._agent, self._agent(run := Run(turn.desk), mail))
            # Mail that a boundary inside of the last call brought has joined this turn.
            while turn.ending is _Ending.NONE and (rest := turn.desk.take_steered()):
                if isinstance(returned, str):
                    turn.desk.speak(returned)
                returned = await awaited(self._agent, self._agent(run, rest))
        except (Exception, asyncio.CancelledError, SystemExit) as raised:
            error = raised
        turn.steps.close(StaleTarget, f"turn {turn.desk.turn} is over")
        if self._turn is turn:
            self._turn = None
            with suppress(StaleTarget):  # the host gave up first
                self._settle(turn, returned, error)

    def _settle(self, turn: _Turn, returned: Returned, error: BaseException | None) -> None:
        if turn.ending is not _Ending.NONE or (self._stopping and error is not None):
            if error is not None and not isinstance(innermost(error), asyncio.CancelledError | AgentError):
                _log.error("%s ended badly after it was cut short", self._record.spec.name, exc_info=error)
            self._report_cut(turn, returned)
        elif error is None:
            self._report_end(turn, returned)
        elif isinstance(innermost(error), Interrupted):
            self._port.interrupted()
        elif isinstance(innermost(error), LimitReached):
            said = turn.desk.said
            session = self._port.session_id
            self._port.limited(Result(final_message=said, stop_reason=StopReason.LIMIT_REACHED, session_id=session))
        elif isinstance(innermost(error), Stopped):
            self._port.stopped()
        else:
            self._fail(error)

    def _report_end(self, turn: _Turn, returned: Returned) -> None:
        try:
            result = self._result(turn, returned)
        except ContractError as error:
            return self._fail(error)
        if isinstance(returned, str):
            turn.desk.remember(sound(returned))
        if self._stopping:
            self._port.stopped(result)
        elif self._once:
            self._port.completed(result)
        else:
            self._port.turn_ended(result)

    def _report_cut(self, turn: _Turn, returned: Returned) -> None:
        """The turn was ended from outside. What the function managed to return is kept as its last words."""
        if isinstance(returned, str) and turn.ending is not _Ending.CLOSE:
            turn.desk.last_words(returned)
        match turn.ending:
            case _Ending.PAUSE:
                self._port.paused()
            case _Ending.INTERRUPT:
                self._port.interrupted()
            case _Ending.CLOSE:
                return
            case _:
                self._port.stopped()

    def _result(self, turn: _Turn, returned: object) -> Result:
        session = self._port.session_id
        match returned:
            case Result():
                return returned.model_copy(update={"session_id": session})
            case str():
                return Result(text=sound(returned), stop_reason=StopReason.END_TURN, session_id=session)
            case None:
                return Result(final_message=turn.desk.said, stop_reason=StopReason.END_TURN, session_id=session)
            case _:
                raise ContractError(f"an agent returns a text, a Result or None, not {type(returned).__name__}")

    def _fail(self, error: BaseException) -> None:
        _log.error("%s failed", self._record.spec.name, exc_info=error)
        self._port.failed(one_line(error))

    # --- ending it from outside ------------------------------------------------------------

    def _stop(self, signal: Stop) -> None:
        self._stopping = True
        if self._turn is None:
            self._port.stopped()
        elif signal.kill:
            self._cut(self._turn, _Ending.STOP)
        else:
            # The host follows with a kill when the grace time is over.
            self._turn.steps.stop_gently(_RAISED[_Ending.STOP][1])

    def _cut(self, turn: _Turn, ending: _Ending) -> None:
        if ending <= turn.ending:
            return
        turn.ending = ending
        turn.steps.end(*_RAISED[ending])
        watch = asyncio.create_task(self._give_up_late(turn), name=f"end of turn {turn.desk.turn}")
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)

    async def _give_up_late(self, turn: _Turn) -> None:
        assert turn.task is not None  # noqa: S101 - set where the turn begins
        # Whoever kills does not want to wait for manners.
        patience = min(self._grace_s, _KILL_S) if turn.ending is _Ending.STOP else self._grace_s
        await asyncio.wait({turn.task}, timeout=patience)
        if self._turn is not turn:
            return
        text = f"the agent did not end within {patience:g} s and was given up; what it does may still go on"
        turn.desk.report(Notice(at=0, level=Level.WARNING, code="given_up", text=text))
        _log.warning("%s: %s", self._record.spec.name, text)
        turn.steps.give_up()
        turn.task.cancel()
        _given_up.add(turn.task)
        turn.task.add_done_callback(_given_up.discard)
        self._turn = None
        with suppress(StaleTarget):
            self._report_cut(turn, None)
