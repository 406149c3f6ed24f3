"""The host on a real event loop: a thin shell of asyncio and websockets around `HostCore`."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from watchfloor import runtime
from watchfloor.connector import Target
from watchfloor.errors import StaleTarget, WatchfloorError
from watchfloor.harness.base import AgentHarness, AttemptSpec, ConversationMessage, Rest
from watchfloor.host.core import HEARTBEAT_S, HELLO_S, HostCore
from watchfloor.host.effects import (
    Ask,
    Close,
    CompactNow,
    EndAttempt,
    Forget,
    ForkSession,
    Forward,
    Handled,
    HostEffect,
    SendFrame,
    StartAttempt,
    Tell,
)
from watchfloor.host.log.events import EventLog, MemoryLog
from watchfloor.host.principals import Principal, Principals
from watchfloor.host.running.program_queries import Answers, ProgramQueries
from watchfloor.host.running.runner import Runner
from watchfloor.host.serving.connections import Serving
from watchfloor.host.serving.handshake import Door
from watchfloor.host.serving.joining import Joining, Joins, invitation
from watchfloor.host.serving.live import LiveAgent
from watchfloor.host.serving.outbox import MAX_BYTES, MIN_BYTES
from watchfloor.host.serving.waiting import Waiting
from watchfloor.host.sessions.mailbox import Letter, number_of
from watchfloor.host.sessions.mirror import MirrorSession
from watchfloor.host.sessions.requests import narrowest
from watchfloor.host.sessions.session import SessionCore
from watchfloor.protocol.events import Child
from watchfloor.protocol.frames import Do, DoApprove, DoFork, HostInfo
from watchfloor.protocol.model import Capabilities
from watchfloor.words import Delivery, Role

FLUSH_S: Final = 0.01
"""Events are gathered this long into one frame."""
TICK_S: Final = 0.1
LOST_AFTER_S: Final = 5.0
"""Seconds after which a process that had joined, and is lost, counts as gone."""


def wall_clock() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


class Host:
    """Runs agents and serves them to operators.

    Without `tokens` everybody on this machine, its other users included, may connect and intervene, under the
    name that their client gives; nothing is printed about that. `origins`: browser origins that are welcome;
    `hosts`: further names that clients may call this host by. `log` keeps the events (default: in memory; a
    `SqliteLog` keeps them in a file) and is closed with the host. `hello_s`: how long a client may say nothing
    after it has connected. `queue_bytes`: what may wait for one client before it is closed as too slow, at least
    2 MiB. `queries`: further questions that clients may ask, by their names, each with the async function that
    answers it; one of a name that the host answers by itself takes its place. `lost_after_s`: how long a process that
    had joined may be lost before what it asked is withdrawn.

        async with Host(name="build") as host:
            host.add(harness, name="deploy", text="Deploy the site")
            print(await host.serve())
    """

    def __init__(
        self,
        *,
        name: str = "watchfloor",
        clock: Callable[[], int] = wall_clock,
        log: EventLog | None = None,
        tokens: Mapping[str, Principal] | None = None,
        origins: Collection[str] = (),
        hosts: Collection[str] = (),
        heartbeat_s: float = HEARTBEAT_S,
        hello_s: float = HELLO_S,
        queue_bytes: int = MAX_BYTES,
        queries: Mapping[str, Answers] | None = None,
        lost_after_s: float = LOST_AFTER_S,
    ) -> None:
        if queue_bytes < MIN_BYTES:
            raise ValueError(f"queue_bytes must be at least {MIN_BYTES}: the past is sent in slices")
        info = HostInfo(name=name, version=_version(), instance=secrets.token_hex(8))
        log = log or MemoryLog(lambda: secrets.token_hex(4))
        queries = queries or {}
        self._core = HostCore(info, log, heartbeat_s=heartbeat_s, hello_s=hello_s, queries=queries)
        self._asking = ProgramQueries(self, queries)
        self._clock = clock
        self._principals = Principals(tokens)
        door = Door(self._principals, origins, hosts)
        self._only_token = self._principals.only_token
        self._serving = Serving(self, door, queue_bytes)
        self._runner = Runner(self)
        self._joins = Joins(self, lost_after_s)
        self._core.queries.asks_mirrored = True
        self._joined: list[Joining] = []
        self._url: str | None = None
        self._announced: Path | None = None
        self._announce_fault: str | None = None
        self._waiting = Waiting(self)
        self._flush: asyncio.TimerHandle | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._closed = False

    # --- what its owner does

    @property
    def core(self) -> HostCore:
        return self._core

    @property
    def url(self) -> str:
        """Where it serves. Raises WatchfloorError before `serve`."""
        if self._url is None:
            raise WatchfloorError("the host does not serve yet")
        return self._url

    @property
    def announce_fault(self) -> str | None:
        """Why the consoles of this machine cannot find the host by themselves; None where they can, or should not."""
        return self._announce_fault

    @property
    def log_fault(self) -> str | None:
        """Why what happens cannot be logged, and so is told to nobody; None while it can."""
        return self._core.news.fault

    def now(self) -> int:
        """Milliseconds since 1970 UTC by the host's clock."""
        return self._clock()

    async def __aenter__(self) -> Self:
        self._ticker = asyncio.create_task(self._tick(), name="watchfloor host ticker")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def add(
        self,
        harness: AgentHarness,
        *,
        name: str,
        id: str | None = None,
        parent: str | None = None,
        labels: Mapping[str, str] | None = None,
        cwd: str | None = None,
        demo: bool = False,
        owned: bool = False,
        text: str | None = None,
        messages: Sequence[ConversationMessage] = (),
        model: str | None = None,
        start: bool = True,
    ) -> str:
        """Add a session and return its id. It runs at once where `text` is given, or where the harness starts itself
        (unless `start` is False). `messages` and `model` are what it remembers from the beginning.

        A session that the log knows by its id comes back as it was, and nothing is sent or started: a turn that ran
        when the host ended is suspended, until `resume` takes it up with the same mail.

        Raises ValueError where the id is taken.
        """
        session = id if id is not None else self._core.roster.free_id(name)
        fixed: dict[str, object] = {"name": name, "parent": parent, "labels": dict(labels or {}), "cwd": cwd}
        core = self._core.add(
            session,
            capabilities=harness.capabilities,
            traits=harness.traits,
            now=self.now(),
            starts_itself=harness.starts_itself,
            grace_s=harness.grace_s,
            fixed={**fixed, "demo": demo, "owned": owned},
        )
        spec = AttemptSpec(session_id=session, attempt=1, name=name, cwd=cwd, labels=dict(labels or {}))
        self._runner.add(harness, spec)
        back = self._core.come_back(session, self.now())
        if back is not None:
            self.perform(back)
            return session
        core.conversation.messages.extend(messages)
        # A message that is sent now must not pass for one of those.
        core.mailbox.number_on(max((number_of(m.ref) or 0 for m in messages if m.ref is not None), default=0))
        core.conversation.model = model
        effects = core.start(self.now()) if text is None and harness.starts_itself and start else []
        if text is not None:
            effects = core.send(text, self._core.info.name, self.now()).effects
        self.perform(self._core.apply(effects))
        return session

    def add_child(self, parent: str, harness: AgentHarness, name: str, text: str | None) -> str:
        """A session that another one started; the parent's folder and marks are its own too."""
        entry = self._core.roster.get(parent)
        fixed = entry.fixed if entry is not None else {}
        session = self.add(
            harness,
            name=name,
            parent=parent,
            cwd=self._runner[parent].spec.cwd,
            demo=bool(fixed.get("demo")),
            owned=bool(fixed.get("owned")),
            text=text,
        )
        child = Child(at=self.now(), session=session, name=name)
        self.perform(self._core.apply(self._core.session(parent).emit(child, self.now())))
        return session

    def send(self, session: str, text: str, *, by: str | None = None) -> str:
        """Send a session a message, whatever it advertises, in the host's own name or `by` somebody; returns its ref.

        Raises KeyError where there is no such session.
        """
        handled = self._core.session(session).send(text, by or self._core.info.name, self.now())
        self.perform(self._core.apply(handled.effects))
        return str(handled.info["ref"])

    def stop(self, session: str, *, kill: bool = False, reason: str | None = None, by: str | None = None) -> None:
        """Stop a session, whatever it advertises, in the host's own name or `by` somebody.

        Raises KeyError where there is no such session.
        """
        core = self._core.session(session)
        handled = core.stop(by or self._core.info.name, self.now(), kill=kill, reason=reason)
        self.perform(self._core.apply(handled.effects))

    def command(self, session: str, do: Do, *, by: str | None = None) -> Handled:
        """Carry out a command, whatever the session advertises, in the host's own name or `by` somebody; says what
        became of it. `info` carries what an outcome's does: the ref of a message, the id of a fork.

        Raises KeyError where there is no such session.
        """
        handled = self._core.carry_out(session, do, by or self._core.info.name, self.now())
        self.perform(self._core.apply(handled.effects))
        return handled

    def fork(self, session: str, *, name: str | None = None, by: str | None = None) -> str:
        """A new session that begins with what this one remembers; returns its id. Raises KeyError."""
        return str(self.command(session, DoFork(name=name), by=by).info["session"])

    def remove(self, session: str) -> None:
        """Forget a session. Raises KeyError where there is none, WatchfloorError while an attempt of it runs."""
        if self._core.session(session).alive:
            raise WatchfloorError(f"an attempt of {session!r} runs: stop it first")
        self._forget(session)
        self.perform([])

    def _forget(self, session: str) -> None:
        self._core.remove(session)
        self._runner.forget(session)

    async def wait(self, session: str) -> SessionCore:
        """Until nothing of the session runs or waits (it is idle or has ended); returns its state.

        Raises KeyError where there is none. A paused session blocks until somebody resumes, stops or removes it.
        """
        core = self._core.session(session)
        await self._waiting.until(lambda: core.settled or session not in self._core.roster)
        return core

    def message(self, session: str, ref: str) -> Letter:
        """A message of a session by its ref, "#3" or "3", and what became of it so far.

        Raises KeyError where there is no such session, NoSuchRef (a KeyError) where it has no such message.
        """
        return self._core.session(session).mailbox.letter(ref)

    async def delivery(self, session: str, ref: str) -> Delivery:
        """How a message reached its session, once that is certain: at once where it waits, else when it is consumed.

        Raises as `message` does, and NotDelivered where it ended before it was consumed.
        """
        return await self._waiting.delivery(session, ref)

    async def response(self, session: str, ref: str) -> str:
        """What the session answered to a message: the first of an explicit reply and the last words of the turn that
        consumed it. May be asked for again and again.

        Raises as `message` does, and NotDelivered where no answer comes: for ever where the message ended with an
        error, for now where it waits in a session that failed.
        """
        return await self._waiting.response(session, ref)

    async def wait_from(self, waiter: str, session: str) -> Rest:
        """As `wait`, on behalf of an agent in its turn. Raises Deadlock, or StaleTarget where there is no session."""
        if session not in self._core.roster:
            raise StaleTarget(f"this host has no session {session!r}")
        async with self._waiting.for_other(waiter, session):
            try:
                core = await self.wait(session)
            except KeyError:
                raise StaleTarget(f"another process runs {session!r}: it cannot be waited for here") from None
        return Rest(core.lifecycle, core.last_words(), core.error)

    @asynccontextmanager
    async def waits_for(self, waiter: str, session: str) -> AsyncIterator[None]:
        """While an agent waits for another one in its turn. Raises Deadlock where that would never end."""
        async with self._waiting.for_other(waiter, session):
            yield

    def live(self, session: str, *, by: str | None = None) -> LiveAgent:
        """A session as its owner handles it, in the host's own name or `by` somebody. Raises StaleTarget."""
        if session not in self._core.roster:
            raise StaleTarget(f"this host runs no session {session!r}")
        return LiveAgent(self, session, by)

    def unsafe(self, address: str, *, tls: bool = False, insecure: bool = False) -> str | None:
        """Why `serve` would refuse to listen there, in words; None where it would not."""
        return self._serving.unsafe(address, tls=tls, insecure=insecure)

    async def serve(
        self,
        address: str = "127.0.0.1",
        port: int = 0,
        *,
        announce: bool = True,
        stands: bool = False,
        tls: ssl.SSLContext | None = None,
        insecure: bool = False,
    ) -> str:
        """Listen, and return the URL. Port 0 takes a free one. `tls`: what the host proves itself with, for wss.

        An address that other machines reach is refused without tokens or without TLS, unless it is to be `insecure`.

        With `announce` the consoles of this user find the host by themselves until it is closed: by a runtime file
        that only this user can read, with its name, its URL and, where there is one token alone and it is an
        operator's, that token; with `stands`, so does `watchfloor run`, which joins it then. A file that cannot be
        written is no error; `announce_fault` says why.

        Raises AddressInUse, or WatchfloorError for an address at which it is not safe, or not possible, to listen.
        """
        self._url = await self._serving.listen(address, port, tls, insecure=insecure)
        if announce:
            try:
                self._announced = runtime.publish(self._url, self._only_token, self._core.info.name, stands=stands)
            except runtime.RuntimeFolderError as fault:
                self._announce_fault = str(fault)
        return self._url

    @property
    def joins(self) -> Joins:
        """The processes that have joined this host."""
        return self._joins

    def invite(self, parent: str | None = None, *, name: str = "child") -> dict[str, str]:
        """The environment by which a process of this machine joins this host with its agents, as children of `parent`.

        Its token admits agents alone. `watchfloor.host.serving.joining.invited` reads it there. Raises WatchfloorError
        before `serve`.
        """
        token = self._principals.mint(Principal(name, Role.AGENT))
        return invitation(self.url, token, parent)

    async def join(self, target: Target, *, moved: Callable[[], Target | None] | None = None) -> None:
        """Have the sessions of this host be sessions of another one as well: operators there watch and steer them.

        Where the connection is lost it is dialled again, until this host is closed: where `moved` says that the other
        one is by now, or where it was. Raises ConnectionFailed.
        """
        whom = Principal(role=Role.OPERATOR, name=target.name, vouches=True)
        joining = Joining(target, lambda ws: self._serving.speak(ws, whom), moved)
        await joining.begin()
        self._joined.append(joining)

    async def answer_child_approval(
        self, child: str, request: str, approved: bool, *, by: str | None = None, note: str | None = None
    ) -> bool:
        """Decide an approval of a child, wherever it runs: by the option that allows it once, or one that denies it.

        True only where the decision was delivered to a request that was open; False, and never an exception, for a
        request that is not there, was decided, has expired or has no such option, and for a child that cannot be told.
        """
        entry = self._core.roster.get(child)
        found = entry.core.requests.open() if entry is not None else []
        asked = next((one for one in found if one.subject.get("id") == request), None)
        option = narrowest(asked.read(), approved=approved) if asked is not None else None
        if entry is None or asked is None or option is None:
            return False
        do = DoApprove(request=request, option=option.id, digest=asked.digest, note=note)
        who = by or self._core.info.name
        if isinstance(entry.core, MirrorSession):
            return (await self._joins.command(child, do, who)).applied
        return self.command(child, do, by=who).applied

    async def close(self) -> None:
        """End all attempts and connections. Clients are told that the host drains (1012)."""
        if self._announced is not None:
            runtime.withdraw(self._announced)
            self._announced = None
        self._serving.refuse_new()
        if self._ticker is not None:
            self._ticker.cancel()
            with suppress(asyncio.CancelledError):
                await self._ticker
        self._asking.close()
        await self._runner.close()
        self._flush_now()
        self._closed = True
        if self._flush is not None:
            self._flush.cancel()
        await self._joins.close()
        await self._serving.close()
        for joining in self._joined:
            await joining.close()
        self._core.log.close()

    def unready(self) -> str | None:
        """Why nobody is let in at this moment; None where everybody may come who is admitted."""
        return None

    # --- effects

    def perform(self, effects: list[HostEffect]) -> None:
        """Carry out what the core decided."""
        for effect in effects:
            match effect:
                case Forward():
                    self._joins.forward(effect)
                case SendFrame() | Close():
                    self._serving.perform(effect)
                case Tell() | StartAttempt() | EndAttempt() | CompactNow():
                    self._runner.perform(effect)
                case ForkSession():
                    self._fork(effect)
                case Forget(session=session):
                    self._forget(session)
                case Ask():
                    if not self._joins.ask(effect):
                        self._asking.ask(effect)
        self._waiting.look()
        if self._flush is None and self._core.wants_flush and not self._closed:
            self._flush = asyncio.get_running_loop().call_later(FLUSH_S, self._flush_now)

    def _fork(self, fork: ForkSession) -> None:
        hosted = self._runner[fork.session]
        fixed = self._core.roster.fixed(fork.session)
        parent = fixed.get("parent")
        self.add(
            hosted.harness,
            name=fork.name,
            id=fork.id,
            parent=parent if isinstance(parent, str) else None,
            labels={**hosted.spec.labels, "forked_from": fork.session},
            cwd=hosted.spec.cwd,
            demo=bool(fixed.get("demo")),
            owned=bool(fixed.get("owned")),
            messages=fork.messages,
            model=fork.model,
            start=False,
        )

    def flush(self) -> None:
        """Log and tell what has happened so far, instead of in a moment."""
        if self._flush is not None:
            self._flush.cancel()
        self._flush_now()

    def _flush_now(self) -> None:
        self._flush = None
        if self._closed:
            return
        self.perform(self._core.flush(self.now()))

    def advertise(self, session: str, capabilities: Capabilities) -> None:
        """The session's attempt has said what it offers."""
        if session in self._core.roster:
            self.perform(self._core.advertise(session, capabilities, self.now()))

    async def _tick(self) -> None:
        while True:
            due = self._core.next_due()
            if due is None or due <= self.now():
                self.perform(self._core.tick(self.now()))
            self._joins.tick(self.now())
            await asyncio.sleep(TICK_S)


def _version() -> str:
    try:
        return version("watchfloor")
    except PackageNotFoundError:
        return "0"
