"""Runs of stored sessions: a turn on a harness, from the message that drives it to how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from watchfloor.agent.permissions import PermissionChecker
from watchfloor.agent.port import End, Ended, RunPort
from watchfloor.agent.request import CancelToken, ExecuteRequest
from watchfloor.agent.session import RunState, Session
from watchfloor.agent.storage import Sessions
from watchfloor.errors import (
    AgentError,
    Interrupted,
    LimitReached,
    NotAnswered,
    NothingToRun,
    RunFailed,
    SessionBusy,
    one_line,
)
from watchfloor.harness.base import AgentHarness, AgentSession, AttemptSpec, Interrupt, MailItem, Pause, Stop, Wake
from watchfloor.host.serving.server import Host
from watchfloor.host.sessions.kept import KeptAnswer
from watchfloor.logs import logger
from watchfloor.protocol.events import Event

_log = logger(__name__)

Tell = Callable[[Event], None]
"""Takes an event of a run, as it happens."""


@dataclass(slots=True)
class Active:
    """The sessions that are held at this moment: by runs of stored sessions, and by hosts."""

    running: dict[str, Session] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)

    def host(self, id: str) -> Host | None:
        """The host on which the session lives."""
        host = self.hosts.get(id)
        if host is not None and id not in host.core.roster:
            del self.hosts[id]
            return None
        return host


class Runs:
    """The runs of one runtime."""

    def __init__(self, sessions: Sessions, permissions: PermissionChecker, now: Callable[[], int]) -> None:
        self.sessions = sessions
        self.active = Active()
        self._permissions = permissions
        self._now = now
        self._tasks: set[asyncio.Task[None]] = set()
        self._secret: dict[str, list[KeptAnswer]] = {}

    def keep_secret(self, session: Session) -> None:
        """Answers with secrets are not stored: they are here until the run that takes them."""
        if secret := [answer for answer in session.answers if answer.secret]:
            self._secret[session.id] = secret

    def stored(self, id: str) -> Session | None:
        """The session as it stands; one whose process ended while it ran has been cut."""
        if (running := self.active.running.get(id)) is not None:
            return running
        session = self.sessions.load(id)
        return self.standing(session) if session is not None else None

    def standing(self, session: Session) -> Session:
        """As `stored`, of one that was just loaded."""
        if (running := self.active.running.get(session.id)) is not None:
            return running
        if session.state is RunState.RUNNING:
            # Whoever loads in a thread may have done that before its run ended.
            session = self.sessions.load(session.id) or session
        if (host := self.active.host(session.id)) is not None:
            conversation = host.core.session(session.id).conversation
            session.messages, session.model = list(conversation.messages), conversation.model
        cut(session)
        return session

    def check(self, session: Session, *, resume: bool = False) -> None:
        """Raises what keeps the session from being run."""
        if not isinstance(session, Session):
            raise TypeError(f"a Session is run, not {type(session).__name__}: `agent.open(id)` opens one")
        if self.active.host(session.id) is not None:
            raise SessionBusy(f"{session.id!r} is live: send to it instead")
        if session.id in self.active.running:
            raise SessionBusy(f"{session.id!r} runs: wait for the end of its run, or cancel it")
        if session.pending is not None:
            raise NotAnswered(f"{session.id!r} waits for an answer to {session.pending.read().id!r}: answer it first")

    async def run(
        self,
        session: Session,
        harness: AgentHarness,
        request: ExecuteRequest,
        tell: Tell,
    ) -> None:
        """Run until the turn is over or suspended. Raises an AgentError, where it did not go well."""
        self.check(session)
        cut(session)
        driven = session.to_answer()
        if driven is None:
            raise NothingToRun(f"no message of {session.id!r} waits for an answer")
        if request.cancel is not None and request.cancel.cancelled:
            raise Interrupted("the run was cancelled before it began")
        self.active.running[session.id] = session
        known = {id(answer) for answer in session.answers}
        session.answers += [one for one in self._secret.pop(session.id, []) if id(one) not in known]
        try:
            await self._drive(session, harness, request, tell, str(driven.ref))
        finally:
            del self.active.running[session.id]
            self.keep_secret(session)
            self.sessions.release(session.id)

    async def _drive(
        self,
        session: Session,
        harness: AgentHarness,
        request: ExecuteRequest,
        tell: Tell,
        ref: str,
    ) -> None:
        for grant in session.grants:
            self._permissions.grant(grant)
        session.state, session.error = RunState.RUNNING, None
        session.turns += 1
        mail = mail_of(session)
        self.sessions.save_and_cache(session)
        port = RunPort(session, self.sessions, self._now, tell, request)
        try:
            end = await self._attempt(session, harness, request, port, mail)
        except asyncio.CancelledError:
            session.state = RunState.CANCELLED
            self.sessions.save(session)
            raise
        except Exception as error:
            _log.info("run of %s", session.id, exc_info=error)
            end = Ended(End.FAILED, one_line(error))
        self._ended(session, end, ref)

    async def _attempt(
        self,
        session: Session,
        harness: AgentHarness,
        request: ExecuteRequest,
        port: RunPort,
        mail: tuple[MailItem, ...],
    ) -> Ended:
        spec = AttemptSpec(session.id, session.attempt, session.name or session.id, session.cwd, dict(session.labels))
        attempt = await harness.start(spec, port)
        told = _Told(attempt, port)
        end_telling = request.cancel.tell(told.cancel) if request.cancel is not None else (lambda: None)
        try:
            await attempt.intervene(Wake(port.turn, mail))
            return await asyncio.shield(port.end_of_run)
        finally:
            end_telling()
            told.close()
            if not port.end_of_run.done():
                port.interrupted()
            await attempt.close()

    def _ended(self, session: Session, end: Ended, ref: str) -> None:
        match end.how:
            case End.SUSPENDED:
                session.state = RunState.SUSPENDED
            case End.DONE:
                session.state, session.answered = RunState.IDLE, ref
            case End.CANCELLED:
                session.state = RunState.CANCELLED
            case _:
                session.state, session.error = RunState.FAILED, end.text
        if end.how is not End.SUSPENDED:
            session.answers.clear()
            session.calls.clear()
        self.sessions.save(session)
        if end.how is End.CANCELLED:
            raise Interrupted("the run was cancelled")
        if end.how is End.FAILED:
            raise RunFailed(end.text or "the run failed")
        if end.how is End.LIMITED:
            raise LimitReached(end.text or "the budget is used up")

    def begin(self, session: Session, run: Callable[[Tell], Awaitable[None]], token: CancelToken) -> RunStream:
        """The run on a task of its own; what it tells goes into the stream that is returned."""
        stream = RunStream(session, token)

        async def work() -> None:
            error: BaseException | None = None
            try:
                await run(stream._tell)
            except AgentError as raised:
                error = raised
            except BaseException as raised:
                error = raised
                raise
            finally:
                stream._end(error)

        task = asyncio.create_task(work(), name=f"run of {session.id}")
        # Dropping the stream does not end the run: somebody has to hold its task.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return stream


class _Told:
    """Hands an attempt what it has to be told, one after the other."""

    def __init__(self, attempt: AgentSession, port: RunPort) -> None:
        self._attempt = attempt
        self._port = port
        self._tasks: set[asyncio.Task[None]] = set()
        port.suspend = self._suspend
        port.answer = self._answer

    def cancel(self, now: bool) -> None:
        self._port.stop_at_boundary()
        self._later(self._attempt.intervene(Interrupt() if now else Stop()))

    def _suspend(self) -> None:
        pause = self._attempt.capabilities.pause
        self._later(self._cut(by_pause=pause is not None and pause.interrupt))

    async def _cut(self, *, by_pause: bool) -> None:
        if by_pause:
            await self._attempt.intervene(Pause(interrupt=True))
        else:
            await self._attempt.close()
            self._port.paused()

    def _answer(self, answer: KeptAnswer, request: str) -> None:
        self._later(self._attempt.intervene(answer.decided(request)))

    def _later(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._port.failed(one_line(error))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


class RunStream:
    """What a run tells, as it happens. Iterating ends with the run, and raises how it failed.

    The run goes on whether anybody reads or not; `cancel` ends it.
    """

    def __init__(self, session: Session, cancel: CancelToken) -> None:
        self.session = session
        self.cancel = cancel
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Whoever does not care how the run ends is not told of it by the event loop.
        self._over.add_done_callback(lambda over: over.exception())

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await self._events.get()
        if event is None:
            self._events.put_nowait(None)
            await self._over
            raise StopAsyncIteration
        return event

    async def wait(self) -> None:
        """Until the run is over. Raises how it failed."""
        await asyncio.shield(self._over)

    def _tell(self, event: Event) -> None:
        self._events.put_nowait(event)

    def _end(self, error: BaseException | None) -> None:
        if isinstance(error, AgentError):
            self._over.set_exception(error)
        elif error is not None:
            self._over.set_exception(RunFailed(one_line(error)))
        else:
            self._over.set_result(None)
        self._events.put_nowait(None)


def mail_of(session: Session) -> tuple[MailItem, ...]:
    """The messages of the user that no turn has answered, in their order."""
    mail: list[MailItem] = []
    for message in reversed(session.messages):
        if message.role == "user":
            if message.ref is None or message.ref == session.answered:
                break
            mail.append(MailItem(message.ref, message.text, "user"))
    return tuple(reversed(mail))


def cut(session: Session) -> None:
    """Nobody runs it: where it is stored as running, its process ended."""
    if session.state is not RunState.RUNNING:
        return
    session.state = RunState.CUT
    session.error = "its process ended while it ran"
    # What had begun stands in the conversation as being carried out, and is asked for anew.
    for call, begun in list(session.calls.items()):
        if begun:
            session.answers = [answer for answer in session.answers if call not in answer.calls]
    session.calls.clear()
