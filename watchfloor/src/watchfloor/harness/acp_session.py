"""One attempt of an agent of the Agent Client Protocol: its turns, its questions, its end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast

from acp import RequestError
from acp import interfaces as protocol
from acp.client.connection import ClientSideConnection
from acp.helpers import text_block
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
)
from pydantic import ValidationError

from watchfloor.errors import AgentError, ContractError, one_line
from watchfloor.harness.acp_asking import misfit, subject
from watchfloor.harness.acp_updates import Call, Emission, Piece, Updates, Work, explained, stop_reason
from watchfloor.harness.acp_wire import Wire
from watchfloor.harness.base import (
    ConversationMessage,
    Decided,
    Interrupt,
    MailItem,
    SessionPort,
    Signal,
    Stop,
    Wake,
    Withdrawn,
)
from watchfloor.harness.calls import sound
from watchfloor.harness.desk import remember_mail
from watchfloor.harness.output import Output
from watchfloor.harness.process import Process, exit_words
from watchfloor.protocol.events import Event, Level, Message, Notice, ToolStatus
from watchfloor.protocol.given import given
from watchfloor.protocol.model import Capabilities, RequestModel, Result, Usage
from watchfloor.words import OptionKind, StopReason

MOST_OPEN: Final = 64
"""Requests that one agent may have open at a time."""
_MOST_NOISE = 5
_MOST_NOTICE = 4096
_BATCH_S = 0.05
_DRAIN_S = 2.0  # for what is left in the pipes; somebody outside of the session may hold their other end for ever


@dataclass(slots=True)
class Turn:
    """One prompt, from its sending to its answer."""

    id: str
    updates: Updates = field(default_factory=Updates)
    cancelled: bool = False
    """We have asked the agent to end it."""
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class Open:
    """A request that waits for its decision; the future gets the option, or None where there will be none."""

    end: asyncio.Future[str | None]
    call: Call
    turn: Turn | None
    """In which it was asked; None: between two turns."""


class _Client:
    """What the package calls. It has no files, no terminal and no forms: the wire refuses those by itself."""

    def __init__(self, session: AcpSession) -> None:
        self._session = session

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        option = await self._session.ask(session_id, tool_call, options)
        if option is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option))


class AcpSession:
    """One process of the agent. Made by the harness; `begin` once a session with it stands."""

    def __init__(
        self,
        process: Process,
        port: SessionPort,
        capabilities: Capabilities,
        grace_s: float,
        ended: Callable[[int], None] | None = None,
    ) -> None:
        self._process = process
        self._port = port
        self._capabilities = capabilities
        self._grace_s = grace_s
        self._ended = ended
        self._wire = Wire(process, self._updated, self._noise)
        self.connection = ClientSideConnection(cast(protocol.Client, _Client(self)), self._wire)
        self._agent_session = ""
        self._between = Updates()
        self._turn: Turn | None = None
        self._open: dict[str, Open] = {}
        self._noises = 0
        self._errors = Output()
        self._reading = asyncio.create_task(self._read_errors(), name=f"stderr of {process.pid}")
        self._cancelling: set[asyncio.Task[None]] = set()
        self._ending: asyncio.Task[None] | None = None
        self._over: asyncio.Task[int] | None = None
        self._life: asyncio.Task[None] | None = None
        self._stopping = False
        self._closing = False
        self._failure: str | None = None

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self, line: str, agent_session: str) -> None:
        """The agent has begun the session that it calls so."""
        self._agent_session = agent_session
        self._port.started()
        self._emit(Notice(at=0, code="process", text=sound(line)))
        self._life = asyncio.create_task(self._live(), name=f"agent {self._process.pid}")

    async def abandon(self) -> None:
        """No session was begun: nothing of the process stays."""
        self._closing = True
        self._end(0)
        await self._take_down()

    async def words(self) -> str:
        """How the agent ended, once it has."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _DRAIN_S)
        self._end(0)
        return self._said_last(exit_words(await self._take_down()))

    async def intervene(self, signal: Signal) -> None:
        match signal:
            case Wake():
                self._begin_turn(signal)
            case Decided(request=request, option=option):
                self._settle(request, option, declined=signal.kind is OptionKind.DENY)
            case Withdrawn(request=request):
                self._settle(request, None, declined=True)
            case Interrupt() if self._turn is not None:
                self._cancel(self._turn)
            case Stop(kill=kill):
                self._stop(kill=kill)
            case _:  # not advertised, or mail that waits for the end of the turn
                return

    async def close(self) -> None:
        self._closing = True
        self._end(self._grace_s)
        try:
            await self._take_down()
        except asyncio.CancelledError:
            # Whoever gives up waiting for us wants it over now.
            self._process.signal(signal.SIGKILL)
            raise

    # --- a turn ----------------------------------------------------------------------------

    def _begin_turn(self, wake: Wake) -> None:
        if self._turn is not None:
            raise ContractError(f"turn {wake.turn} cannot begin: {self._turn.id} still runs")
        remember_mail(self._port.conversation, wake.mail)
        turn = self._turn = Turn(wake.turn)
        turn.task = asyncio.create_task(self._prompt(turn, wake.mail), name=f"turn {wake.turn}")

    async def _prompt(self, turn: Turn, mail: tuple[MailItem, ...]) -> None:
        word: str | None = None
        error: str | None = None
        try:
            if mail:
                blocks: list[Any] = [text_block(sound(item.text)) for item in mail]
                answer = await self.connection.prompt(session_id=self._agent_session, prompt=blocks)
                word = answer.stop_reason
                self._count(answer)
            else:
                word = "end_turn"  # there is nothing to prompt it with
        except ConnectionError:
            return  # it has ended, or is about to: its end is the end of the turn
        except RequestError as fault:
            error = error_words(fault)
        except ValidationError:
            self.notice("the agent ended its turn in a way that this client does not know")
        self._turn_over(turn, word, error)

    def _count(self, answer: PromptResponse) -> None:
        if answer.usage is not None:
            used = Usage(input_tokens=answer.usage.input_tokens, output_tokens=answer.usage.output_tokens)
            with suppress(AgentError):
                self._port.usage(used)

    def _turn_over(self, turn: Turn, word: str | None, error: str | None) -> None:
        cut = turn.cancelled and (error is not None or word == "cancelled")
        self._close_turn(turn, ToolStatus.CANCELLED if cut or word == "cancelled" else ToolStatus.UNKNOWN, cut=cut)
        if self._stopping:
            self._end(self._grace_s)
        elif error is not None and not turn.cancelled:
            self._failure = error
            self._end(self._grace_s)
        else:
            with suppress(AgentError):  # the host gave up first
                if cut:
                    self._port.interrupted()
                else:
                    self._port.turn_ended(self._result(stop_reason(word), said=turn.updates.said))

    def _close_turn(self, turn: Turn, status: ToolStatus, *, cut: bool) -> None:
        self._turn = None
        if turn.timer is not None:
            turn.timer.cancel()
        self._tell(turn.updates.end(status, cut=cut), turn)
        for request, waiting in list(self._open.items()):
            if waiting.turn is turn:
                with suppress(AgentError):
                    self._port.withdraw(request, "the turn is over")
                self._settle(request, None)

    def _cancel(self, turn: Turn) -> None:
        if turn.cancelled:
            return
        turn.cancelled = True
        # In this order: the agent hears of the cancellation before the answers that follow from it.
        task = asyncio.create_task(self._send_cancel(), name=f"cancel {turn.id}")
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)
        for request in list(self._open):
            self._settle(request, None)
        loop = asyncio.get_running_loop()
        turn.timer = loop.call_later(self._grace_s, self._give_up, turn)

    async def _send_cancel(self) -> None:
        with suppress(ConnectionError):
            await self.connection.cancel(session_id=self._agent_session)

    def _give_up(self, turn: Turn) -> None:
        if self._turn is turn:
            self._failure = f"the agent did not end its turn within {self._grace_s:g} s of being told to"
            self._end(self._grace_s)

    def _stop(self, *, kill: bool) -> None:
        self._stopping = True
        if kill:
            self._end(0)
        elif self._turn is None:
            self._end(self._grace_s)
        else:
            self._cancel(self._turn)

    # --- requests --------------------------------------------------------------------------

    async def ask(self, of: str, told: ToolCallUpdate, options: list[PermissionOption]) -> str | None:
        """Have a permission decided: the option's id, or None where nobody will. Raises RequestError."""
        turn = self._turn
        fault = misfit(options) if of == self._agent_session else "there is no such session"
        if fault is None and len(self._open) >= MOST_OPEN:
            fault = f"{MOST_OPEN} requests are open already"
        if fault is not None:
            self.notice(f"a permission request of the agent was refused: {fault}")
            raise RequestError.invalid_params({"details": fault})
        if self._ending is not None or (turn is not None and turn.cancelled):
            return None
        # Some agents go on after they have ended a turn; what they ask then is for operators all the same.
        updates = self._between if turn is None else turn.updates
        call = updates.learn(told)
        self._tell((*updates.close(), *updates.announce(told, gated=True)), turn)
        asked = subject(self._port.session_id, self._port.attempt, told, call, options)
        about = given(about=explained(told))
        end: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._open[asked.id] = Open(end, updates.calls.get(told.tool_call_id, call), turn)
        try:
            now = self._port.now()
            self._port.ask(RequestModel.ask(asked, asked_at=now, blocks=turn is not None, **about))
            return await end
        except AgentError:  # a newer attempt runs, or nothing does
            return None
        finally:
            self._open.pop(asked.id, None)

    def _settle(self, request: str, option: str | None, *, declined: bool = False) -> None:
        waiting = self._open.pop(request, None)
        if waiting is not None and not waiting.end.done():
            waiting.call.declined = declined
            waiting.end.set_result(option)

    # --- what it tells ---------------------------------------------------------------------

    def _updated(self, params: object) -> None:
        if not self._agent_session:
            return  # what it tells of an earlier session stands in our events already
        turn = self._turn
        if turn is not None:
            self._tell(turn.updates.take(params, self._agent_session), turn)
        else:
            between = self._between
            self._tell((*between.take(params, self._agent_session), *between.close()), None)

    def _tell(self, emissions: Iterable[Emission], turn: Turn | None) -> None:
        with suppress(AgentError):  # a newer attempt runs; what this one still says is nobody's business
            for emission in emissions:
                match emission:
                    case Piece(item, of, text):
                        self._port.stream(item, of, text)
                    case Work(call, name, begins):
                        self._port.begin(call, name) if begins else self._port.end(call)
                    case Event():
                        of_turn = {} if turn is None else {"turn": turn.id}
                        self._port.emit(emission.model_copy(update=of_turn))
                        if isinstance(emission, Message):
                            said = ConversationMessage("assistant", emission.text)
                            self._port.conversation.messages.append(said)

    def notice(self, text: str, level: Level = Level.WARNING) -> None:
        """Tell the operators something about the agent."""
        self._emit(Notice(at=0, level=level, code="agent", text=sound(text)))

    def _emit(self, event: Event) -> None:
        with suppress(AgentError):
            self._port.emit(event)

    def _noise(self, text: str) -> None:
        self._noises += 1
        if self._noises <= _MOST_NOISE:
            self.notice(f"the agent printed what is no message of the protocol: {text}")
        elif self._noises == _MOST_NOISE + 1:
            self.notice("the agent prints more that is no message of the protocol; it is left out")

    async def _read_errors(self) -> None:
        while data := await self._process.read("stderr"):
            self._errors.feed("stderr", data)
            self._show_errors()
            await asyncio.sleep(_BATCH_S)  # so that an agent which writes without end waits for its pipe
        self._errors.end("stderr")
        self._show_errors()

    def _show_errors(self) -> None:
        for piece in self._errors.take():
            text = piece.text.rstrip("\n")
            if len(text) > _MOST_NOTICE:
                text = text[:_MOST_NOTICE] + " …"
            if text.strip():
                self._emit(Notice(at=0, code="stderr", text=text))

    # --- life ------------------------------------------------------------------------------

    def _end(self, grace_s: float) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._process.end(grace_s))
        elif grace_s == 0:
            self._process.signal(signal.SIGKILL)

    async def _live(self) -> None:
        ways = {asyncio.create_task(self._process.wait()), asyncio.create_task(self._wire.ended.wait())}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
        # An agent that says nothing more is over as well; so is what it left behind.
        self._end(self._grace_s)
        code = await self._take_down()
        self._report(code)
        if self._ended is not None:
            self._ended(code)

    async def _take_down(self) -> int:
        """Until nothing of the process is left, and all that it said was told; its return code."""
        if self._over is None:
            self._over = asyncio.create_task(self._wind_up(), name=f"end of {self._process.pid}")
        return await asyncio.shield(self._over)

    async def _wind_up(self) -> int:
        try:
            assert self._ending is not None  # noqa: S101 - whoever takes it down has ended it
            await self._ending
            said = asyncio.create_task(self._wire.ended.wait())
            await asyncio.wait({said, self._reading}, timeout=_DRAIN_S)
            said.cancel()
            await self.connection.close()
            self._reading.cancel()
            turn = self._turn
            if turn is not None and turn.task is not None:
                await asyncio.wait({turn.task})
        finally:
            # Reached in disorder only when the event loop is torn down: nothing may outlive it.
            if not self._process.ended:
                self._process.signal(signal.SIGKILL)
            code = self._process.reap()
        return code

    def _report(self, code: int) -> None:
        turn = self._turn
        if turn is not None:
            self._close_turn(turn, ToolStatus.CANCELLED if self._stopping else ToolStatus.UNKNOWN, cut=True)
        if self._closing:
            return
        words = exit_words(code)
        with suppress(AgentError):
            if self._stopping:
                self._port.stopped(self._result(StopReason.CANCELLED, text=words))
            elif self._failure is not None:
                self._port.failed(self._failure, self._result(StopReason.ERROR, text=self._failure))
            elif code == 0 and turn is None:
                self._port.completed(self._result(StopReason.END_TURN, text=words))
            else:
                error = self._said_last(words)
                self._port.failed(error, self._result(StopReason.ERROR, text=error))

    def _said_last(self, words: str) -> str:
        return f"{words}: {self._errors.last_line}" if self._errors.last_line else words

    def _result(self, reason: StopReason, *, text: str = "", said: str = "") -> Result:
        session = self._port.session_id
        return Result(text=text, final_message=said or None, stop_reason=reason, session_id=session)


def error_words(error: RequestError) -> str:
    """An error of the agent in one line."""
    text = " ".join(str(error).split()) or "error"
    data = error.data
    more = data.get("message") or data.get("details") if isinstance(data, dict) else data
    line = f"{text}: {more}" if isinstance(more, str) and more.strip() else text
    return one_line(AgentError(line)).removeprefix("AgentError: ")
