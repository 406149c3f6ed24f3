"""The recipe of an agent: stateless, cheap to copy; everything that can be done with its sessions.

    agent = Agent.builder().instruction("You deploy.").tool(deploy).function(think).build()
    session = agent.open("release 12")
    await agent.run(session, "Deploy it")
    if session.pending:
        await agent.answer(session.id, "allow")
        await agent.resume(session)

A run ends when its turn is over, or when it asks something: what it asked is stored then (`Session.pending`), and it
goes on by `answer` and `resume`, in this process or a later one. On a host (`spawn`) the turn waits for its operators.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from watchfloor.agent.answers import AnswerOutcome, Response, answer
from watchfloor.agent.builder import AgentBuilder
from watchfloor.agent.live import hosted_answer, spawn
from watchfloor.agent.request import CancelToken, ExecuteRequest
from watchfloor.agent.runs import RunStream, cut
from watchfloor.agent.runtime import Runtime
from watchfloor.agent.session import Session
from watchfloor.agent.storage import Persistence, SessionAccess, Storage
from watchfloor.agent.tools import Tool
from watchfloor.agent.turn import Recipe
from watchfloor.errors import NotSuspended, SessionBusy, SessionNotFound, Unsupported
from watchfloor.harness.base import AgentHarness, ConversationMessage
from watchfloor.harness.calls import sound
from watchfloor.harness.function import FunctionHarness
from watchfloor.host.serving.live import LiveAgent
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import Event


def _nobody(_: Event) -> None:
    """Discards an event."""


@dataclass(frozen=True)
class Agent:
    """A role on a runtime. Made by `Agent.builder()`, or without a role of its own by `from_runtime`."""

    runtime: Runtime
    instruction: str | None = None
    model: str | None = None

    @staticmethod
    def builder() -> AgentBuilder:
        return AgentBuilder(lambda runtime, instruction, model: Agent(runtime, instruction, model))

    @classmethod
    def from_runtime(cls, runtime: Runtime) -> Agent:
        """An agent without instruction and model of its own: sessions keep theirs."""
        return cls(runtime)

    def with_role(self, *, instruction: str | None = None, model: str | None = None) -> Agent:
        """The same runtime in another role."""
        return replace(self, instruction=instruction, model=model)

    @property
    def storage(self) -> Storage:
        return self.runtime.storage

    @property
    def persistence(self) -> Persistence:
        return self.runtime.persistence

    @property
    def sessions(self) -> SessionAccess:
        return self.runtime.runs.sessions

    @property
    def tools(self) -> Mapping[str, Tool]:
        return self.runtime.tools

    # --- sessions

    def open(self, id: str | None = None, *, cwd: str | None = None) -> Session:
        """The session of this id, or a new one (None: of a new id). Raises StorageError."""
        id = id or f"session-{secrets.token_hex(8)}"
        session = self.runtime.runs.stored(id)
        if session is None:
            session = self.sessions.load_or_create(id, self.model)
            session.cwd = cwd
        return session

    def get_session(self, id: str) -> Session | None:
        """The session as it stands, None where none of this id is stored."""
        return self.runtime.runs.stored(id)

    def list_sessions(self) -> Sequence[Session]:
        """All stored sessions, the most recently updated first. Raises Unsupported where the storage cannot tell.

        All of them are read whole: where they are many, `await asyncio.to_thread(agent.list_sessions)`.
        """
        return [self.runtime.runs.standing(session) for session in self.storage.list()]

    def session_history(self, id: str) -> Sequence[ConversationMessage]:
        """What was said and called in the session. Raises SessionNotFound."""
        return tuple(self._stored(id).messages)

    def delete_session(self, id: str) -> bool:
        """Forget the session; False where there is none. Raises SessionBusy while it runs."""
        active = self.runtime.runs.active
        if id in active.running or active.host(id) is not None:
            raise SessionBusy(f"{id!r} runs: end it first")
        return self.runtime.runs.sessions.delete(id)

    def _stored(self, id: str) -> Session:
        session = self.runtime.runs.stored(id)
        if session is None:
            raise SessionNotFound(id)
        return session

    # --- runs

    async def run(self, session: Session, text: str, *, cancel: CancelToken | None = None) -> None:
        """Append a message and answer it. Returns when the turn is over or suspended; events are discarded.

        Raises RunFailed, Interrupted (cancelled), NotAnswered, SessionBusy; the session keeps what was done until then.
        """
        self._append(session, text)
        await self._go(session, ExecuteRequest(cancel=cancel), _nobody)

    async def run_session(self, session: Session, *, cancel: CancelToken | None = None) -> None:
        """As `run`, without a new message: the last one of the user drives. Raises NothingToRun where none waits."""
        self._apply(session)
        await self._go(session, ExecuteRequest(cancel=cancel), _nobody)

    async def resume(self, session: Session | str, *, cancel: CancelToken | None = None) -> None:
        """Go on with a turn that was suspended and is answered, that failed, was cancelled or cut.

        Raises as `run`, and NothingToRun where no message waits for an answer.
        """
        session = self._current(session)
        self._apply(session)
        await self._go(session, ExecuteRequest(cancel=cancel), _nobody)

    def run_stream(self, session: Session, text: str, *, cancel: CancelToken | None = None) -> RunStream:
        """As `run`, on a task of its own; returns its events as they happen, and the token that cancels it."""
        self._append(session, text)
        return self._stream(session, cancel)

    def run_stream_session(self, session: Session, *, cancel: CancelToken | None = None) -> RunStream:
        """As `run_session`, on a task of its own."""
        self._apply(session)
        return self._stream(session, cancel)

    def resume_stream(self, session: Session | str, *, cancel: CancelToken | None = None) -> RunStream:
        """As `resume`, on a task of its own."""
        session = self._current(session)
        self._apply(session)
        return self._stream(session, cancel)

    async def answer_and_resume_stream(
        self, session_id: str, response: Response | str, *, cancel: CancelToken | None = None
    ) -> RunStream:
        """As `answer`, and then `resume_stream`."""
        outcome = await self.answer(session_id, response)
        return self.resume_stream(outcome.session, cancel=cancel)

    async def execute(self, session: Session, request: ExecuteRequest) -> None:
        """Run with models, provider and skills of the request's; neither instruction nor model of the agent is set."""
        if not isinstance(request, ExecuteRequest):
            raise TypeError(f"an ExecuteRequest is executed, not {type(request).__name__}")
        self._renew(session)
        if request.input is not None:
            self.runtime.runs.check(session)
            session.add_user(sound(request.input))
        if request.model is not None:
            session.model = request.model
        await self._go(session, request, request.events or _nobody)

    def _append(self, session: Session, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a message is a text, not {type(text).__name__}")
        self._apply(session)
        session.add_user(sound(text))

    def _apply(self, session: Session) -> None:
        self._renew(session)
        self.runtime.runs.check(session)
        session.instruction = self.instruction if self.instruction is not None else session.instruction
        session.model = self.model if self.model is not None else session.model

    def _renew(self, session: object) -> None:
        """Others may have run the session since the caller got it: nothing of that is lost by what is stored now."""
        runs = self.runtime.runs
        if not isinstance(session, Session) or session.id in runs.active.running:
            return
        stored = runs.stored(session.id)
        if stored is not None and (stored.updated_at, stored.turns) > (session.updated_at, session.turns):
            session.take_over(runs.sessions.load_merged(session))
            cut(session)

    def _current(self, session: Session | str) -> Session:
        """What was answered since the caller got the session is in the storage, and in the caller's object from now."""
        if isinstance(session, str):
            return self._stored(session)
        stored = self.runtime.runs.stored(session.id)
        if stored is not None and stored is not session and stored.updated_at >= session.updated_at:
            session.take_over(stored)
        return session

    async def _go(self, session: Session, request: ExecuteRequest, tell: Callable[[Event], None]) -> None:
        await self.runtime.runs.run(session, self._harness(), request, tell)

    def _stream(self, session: Session, cancel: CancelToken | None) -> RunStream:
        token = cancel or CancelToken()
        return self.runtime.runs.begin(session, partial(self._go, session, ExecuteRequest(cancel=token)), token)

    def _harness(self) -> AgentHarness:
        runtime = self.runtime
        if runtime.harness is not None:
            return runtime.harness
        if runtime.function is None:
            raise Unsupported("the agent was built without a function and without a harness")
        recipe = Recipe(runtime.function, self.instruction, runtime.tools, runtime.permissions, runtime.keeper)
        return FunctionHarness(recipe, model=self.model, grace_s=runtime.grace_s)

    # --- answers

    async def answer(self, session_id: str, response: Response | str) -> AnswerOutcome:
        """Answer what a session has asked: by an option (its id or label), or in words where those are allowed.

        The answer, what it grants and the permission mode that it brings are stored at once; the run goes on with
        `resume`, and a call that was allowed is carried out then. A live session goes on by itself.

        Raises SessionNotFound, NotSuspended, InvalidResponse.
        """
        runs = self.runtime.runs
        if (host := runs.active.host(session_id)) is not None:
            return hosted_answer(host, self._stored(session_id), response)
        session = self._stored(session_id)
        if session_id in runs.active.running:
            raise NotSuspended(f"{session_id!r} still runs: it can be answered once its run is suspended")
        if session.pending is None:
            why = "it was answered, and goes on by `resume`" if session.answers else f"it is {session.state.value}"
            raise NotSuspended(f"{session_id!r} waits for no answer: {why}")
        outcome = answer(session, response, self.runtime.now())
        runs.sessions.save(session, outcome.grants)
        for grant in outcome.grants:
            self.runtime.permissions.grant(grant)
        runs.keep_secret(session)
        return outcome

    async def answer_child_approval(self, child: str, request: str, approved: bool) -> bool:
        """Decide an approval of a child on the agent's host, in this process or another: `Host.answer_child_approval`.

        False where there is no host.
        """
        host = self.runtime.host
        return await host.answer_child_approval(child, request, approved) if host is not None else False

    # --- live agents

    def spawn(self, session: Session | None = None, *, name: str | None = None, host: Host | None = None) -> LiveAgent:
        """Make a live agent of the session (None: of a new one) on a host, by default that of the builder.

        It begins with what the session remembers, and gets an id of its own, its handle. Raises Unsupported where
        there is no host.
        """
        where = host or self.runtime.host
        if where is None:
            raise Unsupported("a live agent needs a host: spawn(..., host=host), or build the agent with one")
        return spawn(self.runtime, where, self._harness(), session or self.open(), name)
