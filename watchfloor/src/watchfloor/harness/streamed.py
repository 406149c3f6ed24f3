"""A seam for harnesses that know no host: an attempt tells its events as a stream, and has one result.

`Streamed(harness)` makes of one what hosts run. The smaller seam has no step boundaries: mail that comes while a turn
runs begins the next one, and a pause lands when the attempt says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, Protocol

from watchfloor.errors import AgentError, CapabilityNotSupported, ContractError, StaleTarget, one_line
from watchfloor.harness.base import (
    AgentSession,
    AttemptSpec,
    ConversationMessage,
    Interrupt,
    MailArrived,
    Pause,
    SessionPort,
    Signal,
    Stop,
    Wake,
)
from watchfloor.harness.desk import remember_mail
from watchfloor.logs import logger
from watchfloor.protocol.events import (
    Child,
    Delta,
    Event,
    Intervention,
    LifecycleChanged,
    Mail,
    Message,
    Progress,
    RequestOpened,
    RequestResolved,
    Reseeded,
    ResultEvent,
    ToolCall,
    ToolResult,
    UnknownEvent,
)
from watchfloor.protocol.model import Capabilities, RequestModel, Result, Traits, Usage
from watchfloor.words import Lifecycle, Primitive

Told = Event | RequestModel
"""What an attempt tells."""

_OF_THE_HOST: Final = (Child, Intervention, Mail, RequestOpened, RequestResolved, Reseeded, UnknownEvent)
_SESSION: Final = ("capabilities", "events", "intervene", "wait_result", "close")
_log = logger(__name__)


class StreamSession(Protocol):
    """One attempt."""

    @property
    def capabilities(self) -> Capabilities:
        """Fixed for the attempt."""
        ...

    @property
    def events(self) -> AsyncIterator[Told]:
        """What happens, until the attempt ends; read once.

        A `ResultEvent` ends the turn, interrupted or not. A `RequestModel` asks, naming session and attempt as its spec
        does, and its end arrives as `Decided` or `Withdrawn`. A `ToolCall` is in flight until its `ToolResult`.
        `LifecycleChanged` says that a pause has landed (`paused`), or is over (`running`).
        """
        ...

    async def intervene(self, signal: Signal) -> None:
        """Take a signal, promptly. `Wake` begins a turn, `Stop` ends the attempt.

        Raises CapabilityNotSupported, and StaleTarget for what is over.
        """
        ...

    async def wait_result(self) -> Result | None:
        """How the attempt ended, once its events have; None where it was stopped. A second call raises ContractError.

        Raises TransportError, ProtocolError, HarnessFailure or ContractError where it failed.
        """
        ...

    async def close(self) -> None:
        """End everything that the attempt owns."""
        ...


class StreamHarness(Protocol):
    """Starts attempts."""

    @property
    def capabilities(self) -> Capabilities: ...

    async def start(self, spec: AttemptSpec) -> StreamSession:
        """Start an attempt; what it raises says why it cannot be started."""
        ...


class OneResult:
    """The result of an attempt: it comes once, and is taken once."""

    def __init__(self) -> None:
        self._result: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()
        self._taken = False

    def give(self, result: Result | None) -> None:
        """Raises ContractError where there is one already."""
        if self._result.done():
            raise ContractError("an attempt has one result, and this one has had it")
        self._result.set_result(result)

    def fail(self, error: Exception) -> None:
        """As `give`, of an attempt that failed."""
        if self._result.done():
            raise ContractError("an attempt has one result, and this one has had it")
        self._result.set_exception(error)

    async def wait(self) -> Result | None:
        """The result; raises how it failed, and ContractError where it was taken before."""
        if self._taken:
            raise ContractError("the result of an attempt is taken once")
        self._taken = True
        return await self._result


class Streamed:
    """Hosts run this (an `AgentHarness`). `grace_s`: seconds between asking an attempt to stop and ending it.

    Raises TypeError for what is no harness of this seam.
    """

    def __init__(
        self,
        harness: StreamHarness,
        *,
        traits: Traits | None = None,
        starts_itself: bool = False,
        grace_s: float = 5.0,
    ) -> None:
        missing = next((name for name in ("capabilities", "start") if not hasattr(harness, name)), None)
        if missing is not None or isinstance(harness, type):
            name = getattr(harness, "__name__", type(harness).__name__)
            raise TypeError(
                f"{name} has no `{missing}`" if missing else f"a harness is wanted, not its class: {name}(...)"
            )
        self.harness: Final = harness
        self.traits: Final = traits or Traits()
        self.starts_itself: Final = starts_itself
        self.grace_s: Final = grace_s

    @property
    def capabilities(self) -> Capabilities:
        return self.harness.capabilities

    async def start(self, spec: AttemptSpec, port: SessionPort) -> AgentSession:
        session = await self.harness.start(spec)
        missing = next((name for name in _SESSION if not hasattr(session, name)), None)
        if missing is not None:
            raise ContractError(f"its harness started {type(session).__name__}, which has no `{missing}`")
        port.started()
        return _Session(session, port)


class _Session:
    """An attempt of the smaller seam, reported to a host."""

    def __init__(self, session: StreamSession, port: SessionPort) -> None:
        self._session = session
        self._port = port
        self._busy = self._interrupting = self._stopping = False
        self._calls: set[str] = set()
        self._reading = asyncio.create_task(self._read(), name=f"events of {port.session_id}")

    @property
    def capabilities(self) -> Capabilities:
        return self._session.capabilities

    async def intervene(self, signal: Signal) -> None:
        match signal:
            case Wake(mail=mail):
                self._busy, self._interrupting = True, False
                remember_mail(self._port.conversation, mail)
            case MailArrived():
                return
            case Pause(interrupt=at_once):
                pause = self.capabilities.pause
                if pause is None or (at_once and not pause.interrupt):
                    raise CapabilityNotSupported("this attempt cannot be paused so")
            case Interrupt():
                if not self.capabilities.advertises(Primitive.INTERRUPT):
                    raise CapabilityNotSupported("this attempt cannot be interrupted")
                if not self._busy:
                    return  # it came too late, and must not end the turn after that
                self._interrupting = True
            case Stop():
                self._stopping = True
            case _:
                pass
        await self._session.intervene(signal)

    async def close(self) -> None:
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading
        await self._session.close()

    # --- what it tells

    async def _read(self) -> None:
        try:
            events = self._session.events
            if not hasattr(events, "__aiter__"):
                kind = type(events).__name__
                raise ContractError(f"`events` is {kind}, not an async iterator: make it a property that yields")
            async for told in events:
                self._report(told)
            result = await self._session.wait_result()
            self._over(result)
        except StaleTarget:
            return  # a newer attempt runs
        except Exception as error:
            _log.info("attempt of %s", self._port.session_id, exc_info=error)
            with suppress(StaleTarget):
                self._failed(error)

    def _report(self, told: object) -> None:
        port = self._port
        match told:
            case RequestModel():
                port.ask(told)
            case ResultEvent(result=result):
                self._turn_over(result)
            case LifecycleChanged(lifecycle=Lifecycle.PAUSED):
                port.paused()
            case LifecycleChanged(lifecycle=Lifecycle.RUNNING):
                port.resumed()
            case Delta():
                port.stream(told.item or "", told.of, told.text, call=told.call)
            case Event() if isinstance(told, (*_OF_THE_HOST, LifecycleChanged)):
                raise ContractError(f"an attempt does not tell of {told.kind}: its host does")
            case Progress(usage=Usage() as usage):
                port.usage(usage)
                if told.note is not None:
                    self._emit(told.model_copy(update={"usage": None}))
            case Event():
                self._emit(told)
            case _:
                raise ContractError(f"an attempt tells events and requests, not {type(told).__name__}")

    def _emit(self, event: Event) -> None:
        if isinstance(event, ToolCall):
            self._calls.add(event.call)
            self._port.begin(event.call, event.name)
        self._port.emit(event)
        if isinstance(event, ToolResult) and event.call in self._calls:
            self._calls.discard(event.call)
            self._port.end(event.call)
        if isinstance(event, Message):
            self._port.conversation.messages.append(ConversationMessage("assistant", event.text))

    def _turn_over(self, result: Result) -> None:
        if not self._busy:
            raise ContractError("a turn ends once, and none runs")
        self._busy = False
        if self._interrupting:
            self._interrupting = False
            self._port.interrupted()
        else:
            self._port.turn_ended(self._own(result))

    def _over(self, result: object) -> None:
        if result is not None and not isinstance(result, Result):
            raise ContractError(f"the result of an attempt is a Result, not {type(result).__name__}")
        own = self._own(result) if result is not None else None
        if self._stopping:
            self._port.stopped(own)
        elif own is None:
            raise ContractError("the attempt has ended without a result, and nobody has stopped it")
        else:
            self._port.completed(own)

    def _own(self, result: Result) -> Result:
        return result.model_copy(update={"session_id": self._port.session_id})

    def _failed(self, error: Exception) -> None:
        if self._stopping and isinstance(error, AgentError) and not isinstance(error, ContractError):
            # What breaks while it is being ended is its end.
            self._port.stopped()
        else:
            self._port.failed(one_line(error))
