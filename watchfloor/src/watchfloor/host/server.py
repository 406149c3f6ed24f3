"""The host on a real event loop: a thin shell of asyncio and websockets around `HostCore`."""

from __future__ import annotations

import asyncio
import errno
import logging
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from weakref import WeakKeyDictionary

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from watchfloor import runtime
from watchfloor.errors import AddressInUse, Deadlock, StaleTarget, WatchfloorError
from watchfloor.harness.base import AgentHarness, AttemptSpec, ConversationMessage, Rest
from watchfloor.host.asking import Answers, Asking
from watchfloor.host.between import cyclic_wait
from watchfloor.host.core import HEARTBEAT_S, HELLO_S, HostCore
from watchfloor.host.effects import (
    Ask,
    Close,
    CompactNow,
    EndAttempt,
    Forget,
    ForkSession,
    Handled,
    HostEffect,
    SendFrame,
    StartAttempt,
    Tell,
)
from watchfloor.host.handshake import Door, Refusal, is_loopback
from watchfloor.host.log import EventLog, MemoryLog
from watchfloor.host.outbox import MAX_BYTES, MIN_BYTES, Outbox
from watchfloor.host.principals import Principal, Principals
from watchfloor.host.runner import Runner
from watchfloor.host.session import SessionCore
from watchfloor.logs import logger
from watchfloor.protocol.events import Child
from watchfloor.protocol.frames import Do, DoFork, HostInfo
from watchfloor.protocol.model import Capabilities
from watchfloor.words import PROTOCOL

MAX_FRAME: Final = 1024 * 1024
"""Bytes of one frame that are accepted from a client."""
FLUSH_S: Final = 0.01
"""Events are gathered this long into one frame."""
TICK_S: Final = 0.1
PING_TIMEOUT_S: Final = 60.0
"""A client that reads nothing for a while is slow, not dead; its queue says when that is too much."""
DRAINING: Final = 1012
"""WebSocket close code of a host that ends."""

# The library logs every refused handshake with a traceback; a host must not write into its program's terminal.
_quiet = logger("watchfloor.host.websocket")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


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
    answers it; one of a name that the host answers by itself takes its place.

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
    ) -> None:
        if queue_bytes < MIN_BYTES:
            raise ValueError(f"queue_bytes must be at least {MIN_BYTES}: the past is sent in slices")
        info = HostInfo(name=name, version=_version(), instance=secrets.token_hex(8))
        log = log or MemoryLog(lambda: secrets.token_hex(4))
        queries = queries or {}
        self._core = HostCore(info, log, heartbeat_s=heartbeat_s, hello_s=hello_s, queries=queries)
        self._asking = Asking(self, queries)
        self._clock = clock
        self._door = Door(Principals(tokens), origins, hosts)
        self._queue_bytes = queue_bytes
        self._runner = Runner(self)
        self._admitted: WeakKeyDictionary[ServerConnection, Principal] = WeakKeyDictionary()
        self._outboxes: dict[str, Outbox] = {}
        self._connections = 0
        self._server: Server | None = None
        self._url: str | None = None
        self._announced: Path | None = None
        self._announce_fault: str | None = None
        self._waits: dict[str, list[str]] = {}
        self._waiters: dict[str, list[asyncio.Future[None]]] = {}
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
        while not core.settled and session in self._core.roster:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.setdefault(session, []).append(waiter)
            await waiter
        return core

    async def wait_from(self, waiter: str, session: str) -> Rest:
        """As `wait`, on behalf of an agent in its turn. Raises Deadlock, or StaleTarget where there is no session."""
        if session not in self._core.roster:
            raise StaleTarget(f"this host has no session {session!r}")
        circle = cyclic_wait(self._waits, waiter, session)
        if circle is not None:
            raise Deadlock(f"waiting would never end: {' waits for '.join(circle)}")
        waits = self._waits.setdefault(waiter, [])
        waits.append(session)
        try:
            core = await self.wait(session)
        finally:
            waits.remove(session)
        return Rest(core.lifecycle, core.last_words(), core.error)

    async def serve(self, address: str = "127.0.0.1", port: int = 0, *, announce: bool = True) -> str:
        """Listen, and return the URL. Port 0 takes a free one.

        With `announce` the consoles of this user find the host by themselves until it is closed: by a runtime file
        that only this user can read, with its name, its URL and, where there is one token alone and it is an
        operator's, that token. A file that cannot be written is no error; `announce_fault` says why.

        Raises AddressInUse, or WatchfloorError for an address that is not of this machine alone.
        """
        if self._server is not None:
            raise WatchfloorError(f"the host serves at {self.url} already")
        if not is_loopback(address):
            raise WatchfloorError(f"{address} is not a loopback address: this host serves this machine only")
        # "localhost" may be two addresses, which would get two different free ports.
        address = "127.0.0.1" if address == "localhost" else address
        try:
            self._server = await serve(
                self._client,
                address,
                port,
                subprotocols=[Subprotocol(PROTOCOL)],
                process_request=self._admit,
                compression=None,
                ping_timeout=PING_TIMEOUT_S,
                max_size=MAX_FRAME,
                logger=_quiet,
                server_header=None,
            )
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise AddressInUse(f"{address}:{port} is in use by another program") from None
            raise WatchfloorError(f"cannot listen at {address}:{port}: {error.strerror or error}") from None
        bound = next(iter(self._server.sockets)).getsockname()
        self._url = f"ws://[{bound[0]}]:{bound[1]}" if ":" in bound[0] else f"ws://{bound[0]}:{bound[1]}"
        if announce:
            try:
                self._announced = runtime.publish(self._url, self._door.principals.only_token, self._core.info.name)
            except runtime.RuntimeFolderError as fault:
                self._announce_fault = str(fault)
        return self._url

    async def close(self) -> None:
        """End all attempts and connections. Clients are told that the host drains (1012)."""
        if self._announced is not None:
            runtime.withdraw(self._announced)
            self._announced = None
        if self._server is not None:
            self._server.close(close_connections=False)
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
        for outbox in self._outboxes.values():
            outbox.close(DRAINING, "the host ends")
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None
        self._core.log.close()

    # --- effects

    def perform(self, effects: list[HostEffect]) -> None:
        """Carry out what the core decided."""
        for effect in effects:
            match effect:
                case SendFrame(conn=conn, wire=data):
                    outbox = self._outboxes.get(conn)
                    if outbox is not None:
                        outbox.put(data)
                        if outbox.crowded:
                            self._core.lagging(conn, self.now())
                case Tell() | StartAttempt() | EndAttempt() | CompactNow():
                    self._runner.perform(effect)
                case ForkSession():
                    self._fork(effect)
                case Forget(session=session):
                    self._forget(session)
                case Ask():
                    self._asking.ask(effect)
                case Close(conn=conn, code=code, why=why, drop=drop):
                    outbox = self._outboxes.get(conn)
                    if outbox is not None:
                        outbox.close(code, why, drop=drop)
        for session in list(self._waiters):
            if session not in self._core.roster or self._core.session(session).settled:
                for waiter in self._waiters.pop(session):
                    if not waiter.done():
                        waiter.set_result(None)
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
            await asyncio.sleep(TICK_S)

    # --- connections

    def _admit(self, ws: ServerConnection, request: Request) -> Response | None:
        admitted = self._door.admit(request.headers.raw_items())
        if isinstance(admitted, Refusal):
            response = ws.respond(admitted.status, admitted.text)
            if admitted.status == 401:
                response.headers["WWW-Authenticate"] = "Bearer"
            return response
        self._admitted[ws] = admitted
        return None

    async def _client(self, ws: ServerConnection) -> None:
        self._connections += 1
        conn = f"c{self._connections}"
        outbox = Outbox(ws, lambda: self._more(conn), max_bytes=self._queue_bytes)
        self._core.connect(conn, self._admitted.pop(ws), self.now())
        self._outboxes[conn] = outbox
        writer = asyncio.create_task(outbox.run(), name=f"writer of {conn}")
        try:
            while True:
                raw = await ws.recv(decode=False)
                self.perform(self._core.receive(conn, raw, self.now()))
        except ConnectionClosed:
            pass
        finally:
            self._core.disconnect(conn)
            del self._outboxes[conn]
            writer.cancel()
            with suppress(asyncio.CancelledError):
                await writer

    def _more(self, conn: str) -> bool:
        if not self._core.behind(conn):
            return False
        self.perform(self._core.pull(conn, self.now()))
        return True


def _version() -> str:
    try:
        return version("watchfloor")
    except PackageNotFoundError:
        return "0"
