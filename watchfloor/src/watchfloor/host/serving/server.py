"""The host on a real event loop: a thin shell of asyncio and websockets around `HostCore`."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from watchfloor import runtime
from watchfloor.connector import Target
from watchfloor.errors import StaleTarget, WatchfloorError
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
from watchfloor.host.serving.adding import Adding
from watchfloor.host.serving.connections import Serving
from watchfloor.host.serving.handshake import Door
from watchfloor.host.serving.joining import Joining, Joins, invitation
from watchfloor.host.serving.live import LiveAgent
from watchfloor.host.serving.outbox import MAX_BYTES, MIN_BYTES
from watchfloor.host.serving.waiting import Waiting
from watchfloor.host.serving.waits import Waits
from watchfloor.host.sessions.mirror import MirrorSession
from watchfloor.host.sessions.requests import narrowest
from watchfloor.protocol.frames import Do, DoApprove, DoFork, HostInfo
from watchfloor.protocol.model import Capabilities
from watchfloor.words import Role

FLUSH_S: Final = 0.01
"""Events are gathered this long into one frame."""
TICK_S: Final = 0.1
LOST_AFTER_S: Final = 5.0
"""Seconds after which a process that had joined, and is lost, counts as gone."""


def wall_clock() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


class Host(Adding, Waits):
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

    def send(self, session: str, text: str, *, by: str | None = None) -> str:
        """Send a session a message, whatever it advertises, in the host's own name or `by` somebody; returns its ref.

        Raises KeyError where there is no such session, TypeError for what is no text.
        """
        if not isinstance(text, str):
            raise TypeError(f"a message is a text, not {type(text).__name__}")
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

    async def intervene(self, session: str, do: Do, *, by: str | None = None) -> Handled:
        """As `command`, for any session of this host: the process of one that has joined is told, and says what became
        of it; `unknown` where no word comes back, `undelivered` where it is lost.

        Raises KeyError where there is no such session.
        """
        if isinstance(self._core.roster.entry(session).core, MirrorSession):
            return await self._joins.command(session, do, by or self._core.info.name)
        return self.command(session, do, by=by)

    def fork(self, session: str, *, name: str | None = None, by: str | None = None) -> str:
        """A new session that begins with what this one remembers; returns its id. Raises KeyError."""
        return str(self.command(session, DoFork(name=name), by=by).info["session"])

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
                    self._forget(session, erase=True)
                case Ask():
                    if not self._joins.ask(effect):
                        self._asking.ask(effect)
        self._waiting.look()
        if self._flush is None and self._core.wants_flush and not self._closed:
            self._flush = asyncio.get_running_loop().call_later(FLUSH_S, self._flush_now)

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
