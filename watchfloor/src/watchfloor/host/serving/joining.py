"""The connections of processes that join a host, and of a host that has joined another: thin shells.

Who joins dials the path `/agent` of the other host and is then spoken to as a host is: it is greeted by `hello`.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from watchfloor.client import ClientCore
from watchfloor.connector import Received, Target
from watchfloor.dial_errors import check_target, handshake_failed, mute, show_url, split_url
from watchfloor.errors import ConnectionFailed, NotAHost, ProtocolError, Unreachable
from watchfloor.host.effects import Ask, Forward, Handled
from watchfloor.host.principals import Principal
from watchfloor.host.running.port import PortHost
from watchfloor.host.serving.joined import LOST, Joined, handled
from watchfloor.host.sessions.hosted import Forwarded
from watchfloor.host.sessions.mirror import MirrorSession
from watchfloor.protocol.codec import MAX_RECEIVE, decode_host, encode
from watchfloor.protocol.frames import Command, Do, Error, ErrorCode, Outcome, Reply, Welcome
from watchfloor.words import PROTOCOL, OutcomeKind

PATH: Final = "/agent"
DRAINING: Final = 1012
"""WebSocket close code of a host that ends."""
GREETING_S: Final = 10.0
CLOSE_S: Final = 5.0
ANSWER_S: Final = 30.0
"""Seconds that a process that has joined may take for a decision."""
FIRST_DELAY_S: Final = 0.2
LONGEST_DELAY_S: Final = 15.0


_URL: Final = "WATCHFLOOR_JOIN"
_TOKEN: Final = "WATCHFLOOR_JOIN_TOKEN"  # noqa: S105 - the name of a variable
_PARENT: Final = "WATCHFLOOR_PARENT"


def invitation(url: str, token: str, parent: str | None) -> dict[str, str]:
    """The environment of a process that is to join; see `invited`."""
    return {_URL: url, _TOKEN: token, **({_PARENT: parent} if parent is not None else {})}


def invited(environment: Mapping[str, str]) -> tuple[Target, str | None] | None:
    """Which host this process is to join, and the session whose child it is; None where it was not invited."""
    url = environment.get(_URL)
    if not url:
        return None
    target = Target(name="parent", url=url, token=environment.get(_TOKEN) or None)
    return target, environment.get(_PARENT) or None


class Joins:
    """The processes that have joined this host. `grace_s`: how long one may be away before it counts as gone."""

    def __init__(self, host: PortHost, grace_s: float) -> None:
        self._host = host
        self._grace_ms = int(grace_s * 1000)
        self._known: dict[str, tuple[Joined, ClientCore]] = {}
        self._connections: dict[str, Connection] = {}
        self._questions: dict[str, tuple[str, Ask]] = {}
        self._answers: dict[str, tuple[str, asyncio.Future[Outcome]]] = {}

    # --- being joined

    async def serve(self, ws: Connection, principal: Principal) -> None:
        """Speak with a process that has dialled in, until it is gone."""
        instance: str | None = None
        try:
            async with asyncio.timeout(GREETING_S):
                instance = await self._greet(ws, principal)
            joined, client = self._known[instance]
            while True:
                await self._take(ws, joined, client, await ws.recv(decode=False))
        except (ConnectionClosed, ProtocolError, TimeoutError):
            pass
        finally:
            if instance is not None and self._connections.get(instance) is ws:
                del self._connections[instance]
                self._unanswered(instance)
                self._host.perform(self._known[instance][0].lost(self._host.now()))
            await ws.close()

    def _unanswered(self, instance: str) -> None:
        for command, (asked, answer) in self._answers.items():
            if asked == instance and not answer.done():
                answer.set_result(Outcome(id=command, outcome=OutcomeKind.UNKNOWN, reason=LOST, info={}, at=0))
        for question, (of, asked_) in list(self._questions.items()):
            if of == instance:
                del self._questions[question]
                error = Error(code=ErrorCode.OTHER, message=LOST, about=asked_.query.id)
                self._host.perform(self._host.core.reply(asked_.conn, error))

    async def _greet(self, ws: Connection, principal: Principal) -> str:
        name = principal.name or "an agent"
        fresh = ClientCore(Target(name=name, url="", client="watchfloor host"))
        for raw in fresh.opened():
            await ws.send(raw, text=True)
        raw = await ws.recv(decode=False)
        frame = decode_host(raw).frame
        if not isinstance(frame, Welcome) or frame.protocol != PROTOCOL or not frame.host.instance:
            raise ProtocolError("whoever joins must speak as a host does")
        instance = frame.host.instance
        if instance not in self._known:
            self._known[instance] = Joined(self._host.core, frame.host.name, self._grace_ms), fresh
        joined, client = self._known[instance]
        # A new connection of one that we still hold takes the place of the old one.
        self._connections[instance] = ws
        if client is not fresh:
            client.opened()
        joined.begin()
        await self._take(ws, joined, client, raw)
        return instance

    async def _take(self, ws: Connection, joined: Joined, client: ClientCore, raw: bytes) -> None:
        for arrival in client.receive(raw):
            if isinstance(arrival, Received):
                if isinstance(arrival.frame, Outcome) and arrival.frame.id in self._answers:
                    _, answer = self._answers[arrival.frame.id]
                    if not answer.done():
                        answer.set_result(arrival.frame)
                if not (isinstance(arrival.frame, Reply | Error) and self._replied(arrival.frame)):
                    self._host.perform(joined.take(arrival.frame, self._host.now()))
        for out in client.to_send():
            await ws.send(out, text=True)
        # A process that says much must not keep everybody else waiting.
        await asyncio.sleep(0)

    # --- commands

    def forward(self, effect: Forward) -> bool:
        """Hand a command on to the process that has its session; False where none here has it."""
        found = self._of(effect.command.session)
        if found is None:
            return False
        self._send(found, effect.command.model_copy(update={"by": effect.by}))
        return True

    def _of(self, session: str) -> str | None:
        return next((instance for instance, (joined, _) in self._known.items() if session in joined.sessions), None)

    def _send(self, instance: str, command: Command) -> None:
        joined, client = self._known[instance]
        ws = self._connections.get(instance)
        if ws is None:
            undelivered = Handled(OutcomeKind.UNDELIVERED, reason=LOST)
            self._host.perform(self._host.core.answered(command.id, undelivered, self._host.now()))
            return
        joined.forwards(command)
        self._write(ws, client.command(command))

    def _write(self, ws: Connection, raw: bytes) -> None:
        task = asyncio.create_task(_sent(ws, raw))
        _writing.add(task)
        task.add_done_callback(_writing.discard)

    async def command(self, session: str, do: Do, by: str) -> Handled:
        """Have the process that has the session carry out a command; `unknown` where no word comes back in time."""
        instance = self._of(session)
        if instance is None or instance not in self._connections:
            return Handled(OutcomeKind.UNDELIVERED, reason=LOST)
        mirrored = self._host.core.mirrored(session)
        checked = mirrored.command(do, by, self._host.now())
        if not isinstance(checked, Forwarded):
            return checked
        command = Command(id=str(uuid.uuid4()), session=session, by=by, do=do)
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._answers[command.id] = instance, answer
        try:
            self._send(instance, command)
            async with asyncio.timeout(ANSWER_S):
                return handled(await answer)
        except TimeoutError:
            return Handled(OutcomeKind.UNKNOWN, reason="no word came back")
        finally:
            del self._answers[command.id]
            mirrored.answered(do)

    def ask(self, asked: Ask) -> bool:
        """Hand a question on to the process that has the session; False where none here has it."""
        session = asked.query.session
        found = self._of(session) if session is not None else None
        if found is None:
            return False
        ws = self._connections.get(found)
        if ws is None:
            error = Error(code=ErrorCode.OTHER, message=LOST, about=asked.query.id)
            self._host.perform(self._host.core.reply(asked.conn, error))
            return True
        id = str(uuid.uuid4())
        self._questions[id] = found, asked
        self._write(ws, encode(asked.query.model_copy(update={"id": id})))
        return True

    def _replied(self, frame: Reply | Error) -> bool:
        """Pass the answer to a question on to who asked it; False where it is none."""
        id = frame.id if isinstance(frame, Reply) else frame.about
        found = self._questions.pop(id, None) if id is not None else None
        if found is None:
            return False
        _, asked = found
        named = {"id": asked.query.id} if isinstance(frame, Reply) else {"about": asked.query.id, "fatal": False}
        self._host.perform(self._host.core.reply(asked.conn, frame.model_copy(update=named)))
        return True

    # --- time

    async def close(self) -> None:
        """The host ends: who has joined is told, and may come back to the next one."""
        for ws in list(self._connections.values()):
            await ws.close(DRAINING, "the host ends")

    def tick(self, now: int) -> None:
        for joined, _ in self._known.values():
            self._host.perform(joined.tick(now))

    def decidable(self, session: str) -> bool:
        """Can a decision be handed to whoever runs the session?"""
        entry = self._host.core.roster.get(session)
        if entry is None:
            return False
        return not isinstance(entry.core, MirrorSession) or self._of(session) in self._connections


_writing: Final[set[asyncio.Task[None]]] = set()


async def _sent(ws: Connection, raw: bytes) -> None:
    # What did not leave is known by the end of the connection.
    with suppress(ConnectionClosed):
        await ws.send(raw, text=True)


class Joining:
    """This host, joined to another one: dials, speaks as a host, and dials again when the connection is lost."""

    def __init__(
        self,
        target: Target,
        speak: Callable[[Connection], Awaitable[None]],
        moved: Callable[[], Target | None] | None = None,
    ) -> None:
        """`speak` has a connection served, until it ends. `moved`: where the other host is by now, None for nowhere."""
        self._moved = moved
        self._target = target
        self._speak = speak
        self._task: asyncio.Task[None] | None = None
        self._speaking = self._closing = False

    async def begin(self) -> None:
        """Raises ConnectionFailed where the other host cannot be joined; from then on it is dialled again."""
        ws = await dial_as_agent(self._target)
        self._task = asyncio.create_task(self._run(ws), name=f"joined to {self._target.name}")

    async def _run(self, ws: ClientConnection) -> None:
        tries = 0
        while not self._closing:
            self._speaking = True
            try:
                await self._speak(ws)
            finally:
                self._speaking = False
                await ws.close()
            while not self._closing:
                ceiling = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(tries, 16))
                await asyncio.sleep(random.uniform(ceiling / 2, ceiling))  # noqa: S311 - nobody gains by guessing it
                tries += 1
                if self._moved is not None:
                    found = self._moved()
                    if found is None:
                        continue
                    self._target = found
                try:
                    ws = await dial_as_agent(self._target)
                except ConnectionFailed as failure:
                    if not failure.retry and self._moved is None:
                        return
                    continue
                tries = 0
                break
        await ws.close()

    async def close(self) -> None:
        """The connection is being ended by us: wait for that, and do not dial again."""
        self._closing = True
        if self._task is not None:
            if self._speaking:
                await asyncio.wait({self._task}, timeout=CLOSE_S)
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task


async def dial_as_agent(target: Target) -> ClientConnection:
    """A connection over which this side speaks as a host. Raises ConnectionFailed."""
    check_target(target)
    parts = split_url(target.url)
    where = show_url(parts)
    try:
        return await connect(
            target.url.rstrip("/") + PATH,
            subprotocols=[Subprotocol(PROTOCOL)],
            compression=None,
            additional_headers=None if target.token is None else {"Authorization": f"Bearer {target.token}"},
            user_agent_header=f"{target.client}/{target.version}",
            max_size=MAX_RECEIVE,
            open_timeout=GREETING_S,
            proxy=None,
        )
    except TimeoutError:
        raise NotAHost(mute(where)) from None
    except ConnectionRefusedError:
        raise Unreachable(f"nothing listens at {where}: start the host, or check the port") from None
    except (WebSocketException, OSError, EOFError, ValueError) as error:
        raise handshake_failed(error, target, where) from None
