"""An app-server as our connector meets it: it does what the real one was seen to do, as the test says.

Threads have no model: a test says what happens in them (`begin_turn`, `ask`, `item`, …). Every client hears of all
threads; the rest comes to those who resumed one. The first answer to a request counts, whoever gave it, and a late one
is dropped without a word. `refuse` and `silent` make single methods fail or never answer, `slow` has them wait for an
event; `kinds` are the only kinds of threads that it knows.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from typing import Any, Final

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

Frame = dict[str, Any]
NOW: Final = 1_796_000_000_000
METHODS: Final = (
    "initialize",
    "thread/list",
    "thread/loaded/list",
    "thread/read",
    "thread/resume",
    "thread/unsubscribe",
    "thread/items/list",
    "thread/turns/list",
    "thread/goal/get",
    "thread/goal/set",
    "thread/goal/clear",
    "thread/queue/add",
    "thread/queue/list",
    "thread/queue/delete",
    "thread/backgroundTerminals/list",
    "thread/backgroundTerminals/clean",
    "thread/compact/start",
    "thread/fork",
    "thread/revert",
    "thread/delete",
    "thread/archive",
    "thread/unarchive",
    "thread/name/set",
    "thread/settings/update",
    "turn/start",
    "turn/steer",
    "turn/interrupt",
)


@dataclass
class FakeThread:
    id: str
    status: Frame = field(default_factory=lambda: {"type": "idle"})
    archived: bool = False
    turn: str | None = None
    past: list[Frame] = field(default_factory=list)
    turns: list[Frame] = field(default_factory=list)
    running: list[Frame] = field(default_factory=list)
    pending: dict[int, Frame] = field(default_factory=dict)
    info: Frame = field(default_factory=dict)

    def json(self) -> Frame:
        return {"id": self.id, "preview": "", "cwd": "/srv", "status": self.status, "source": "cli", **self.info}


class FakeCodex:
    """`calls` keeps every call of a client; `answers` every answer that counted, by the request's number; `late` those
    that came after it."""

    def __init__(self, *, token: str | None = None, agent: str = "watchfloor/0.171.0 (Test)") -> None:
        self.threads: dict[str, FakeThread] = {}
        self.calls: list[tuple[str, Frame]] = []
        self.answers: dict[int, Frame] = {}
        self.late: list[Frame] = []
        self.refuse: dict[str, Frame] = {}
        self.silent: set[str] = set()
        self.slow: dict[str, asyncio.Event] = {}
        self.kinds: set[str] | None = None
        self.methods = list(METHODS)
        self.page = 1000
        self.port = 0
        self._token, self._agent = token, agent
        self._requests = count(0)
        self._turns = count(1)
        self._clients: dict[ServerConnection, set[str]] = {}
        self._server: Server | None = None
        self.calls_moved = asyncio.Event()
        self._waiting: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"codex+ws://127.0.0.1:{self.port}"

    # --- what happens

    def thread(self, id: str, **fields: Any) -> FakeThread:
        made = self.threads[id] = FakeThread(id, **fields)
        return made

    async def tell(self, thread: str, method: str, **params: Any) -> None:
        """To those who resumed the thread."""
        frame = {"method": method, "params": {"threadId": thread, **params}, "emittedAtMs": NOW}
        for client, joined in list(self._clients.items()):
            if thread in joined:
                await self._send(client, frame)

    async def tell_all(self, method: str, **params: Any) -> None:
        for client in list(self._clients):
            await self._send(client, {"method": method, "params": params, "emittedAtMs": NOW})

    async def status(self, thread: str, kind: str, *flags: str) -> None:
        status = {"type": kind, **({"activeFlags": list(flags)} if kind == "active" else {})}
        self.threads[thread].status = status
        await self.tell_all("thread/status/changed", threadId=thread, status=status)

    async def begin_turn(self, thread: str) -> str:
        turn = self.threads[thread].turn = f"turn-{next(self._turns)}"
        self.threads[thread].turns.append({"id": turn, "status": "inProgress", "error": None})
        await self.status(thread, "active")
        await self.tell(thread, "turn/started", turn={"id": turn, "status": "inProgress"})
        return turn

    async def end_turn(self, thread: str, status: str = "completed") -> None:
        of = self.threads[thread]
        turn, of.turn = {"id": of.turn, "status": status, "error": None, "completedAt": NOW // 1000}, None
        of.turns[-1] = turn
        await self.status(thread, "idle")
        await self.tell(thread, "turn/completed", turn=turn)
        for number in list(of.pending):
            del of.pending[number]
            await self.tell(thread, "serverRequest/resolved", requestId=number)

    async def item(self, thread: str, item: Frame, *, ended: bool) -> None:
        of = self.threads[thread]
        params = {"item": item, "turnId": of.turn, "startedAtMs": NOW, "completedAtMs": NOW}
        if ended:
            of.past.append({"turnId": of.turn, "item": {**item, "startedAtMs": NOW, "completedAtMs": NOW}})
        await self.tell(thread, "item/completed" if ended else "item/started", **params)

    async def ask(self, thread: str, method: str, **params: Any) -> int:
        """Ask those who resumed the thread, and who will; returns the request's number."""
        of = self.threads[thread]
        number = next(self._requests)
        frame = {"method": method, "id": number, "params": {"threadId": thread, "turnId": of.turn, **params}}
        of.pending[number] = frame
        flag = "waitingOnUserInput" if method.endswith("requestUserInput") else "waitingOnApproval"
        await self.status(thread, "active", flag)
        for client, joined in list(self._clients.items()):
            if thread in joined:
                await self._send(client, frame)
        return number

    async def ask_command(self, thread: str, item: str = "call-1", **params: Any) -> int:
        """A command that has begun, and waits."""
        command = {"type": "commandExecution", "id": item, "command": "make", "cwd": "/srv", "status": "inProgress"}
        await self.item(thread, command, ended=False)
        decisions = ["accept", "cancel"]
        asked = {"itemId": item, "command": "make", "cwd": "/srv", "startedAtMs": NOW, "availableDecisions": decisions}
        return await self.ask(thread, "item/commandExecution/requestApproval", **{**asked, **params})

    async def end_command(self, thread: str, status: str, item: str = "call-1") -> None:
        command = {"type": "commandExecution", "id": item, "command": "make", "cwd": "/srv", "status": status}
        await self.item(thread, command, ended=True)

    async def delete(self, thread: str) -> None:
        del self.threads[thread]
        await self.tell_all("thread/deleted", threadId=thread)

    async def drop(self) -> None:
        """Lose the connections to all clients, and go on."""
        for client in list(self._clients):
            client.transport.abort()
        self._clients.clear()

    async def flood(self, thread: str, raw: list[str]) -> None:
        """Frames to those who resumed the thread, as fast as they go."""
        for client, joined in list(self._clients.items()):
            if thread in joined:
                for frame in raw:
                    await client.send(frame)

    async def joined(self, thread: str) -> None:
        """Wait until a client that is connected has resumed the thread."""
        while all(thread not in joined for joined in self._clients.values()):
            self.calls_moved.clear()
            await self.calls_moved.wait()

    async def called(self, method: str) -> None:
        """Wait until a client has called the method."""
        while method not in [name for name, _ in self.calls]:
            self.calls_moved.clear()
            await self.calls_moved.wait()

    async def answered(self, number: int) -> Frame:
        """The answer to a request, once there is one."""
        while number not in self.answers:
            self.calls_moved.clear()
            await self.calls_moved.wait()
        return self.answers[number]

    async def dropped(self) -> None:
        """Wait until an answer has come too late."""
        while not self.late:
            self.calls_moved.clear()
            await self.calls_moved.wait()

    async def answer_for_another(self, thread: str, number: int, result: Frame) -> None:
        """Another client has answered: the number is free, and nobody was told yet."""
        self.threads[thread].pending.pop(number)
        self.answers[number] = result

    # --- serving

    async def start(self) -> None:
        self._server = await serve(self._serve, "127.0.0.1", self.port, process_request=self._admit)
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        """End like a process: without a close frame."""
        for client in list(self._clients):
            client.transport.abort()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def restart(self) -> None:
        """A new process over the same folder: nothing is loaded, and requests are counted anew."""
        await self.stop()
        self._requests = count(0)
        for of in self.threads.values():
            of.status, of.turn, of.pending = {"type": "notLoaded"}, None, {}
            for turn in of.turns:
                if turn["status"] == "inProgress":
                    turn["status"] = "interrupted"
        await self.start()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        given = request.headers.get("authorization")
        if "origin" in request.headers:
            return connection.respond(HTTPStatus.FORBIDDEN, "")
        if self._token is not None and given != f"Bearer {self._token}":
            word = "missing" if given is None else "invalid"
            return connection.respond(HTTPStatus.UNAUTHORIZED, f"{word} websocket bearer token")
        return None

    async def _serve(self, client: ServerConnection) -> None:
        self._clients[client] = set()
        try:
            async for raw in client:
                await self._take(client, json.loads(raw))
        except ConnectionClosed:
            pass
        finally:
            self._clients.pop(client, None)

    async def _send(self, client: ServerConnection, frame: Frame) -> None:
        with suppress(ConnectionClosed):
            await client.send(json.dumps(frame))

    async def _take(self, client: ServerConnection, frame: Frame) -> None:
        method, params, id = frame.get("method"), frame.get("params") or {}, frame.get("id")
        if method is None:
            await self._answered(frame)
            return
        if id is None:
            return
        self.calls.append((method, params))
        self.calls_moved.set()
        if method in self.silent:
            return
        if method not in self.methods:
            known = ", ".join(f"`{name}`" for name in self.methods)
            words = f"Invalid request: unknown variant `{method}`, expected one of {known}"
            await self._send(client, {"id": id, "error": {"code": -32600, "message": words}})
        elif self.kinds is not None and (new := set(params.get("sourceKinds", ())) - self.kinds):
            known = ", ".join(f"`{kind}`" for kind in sorted(self.kinds))
            words = f"Invalid request: unknown variant `{min(new)}`, expected one of {known}"
            await self._send(client, {"id": id, "error": {"code": -32600, "message": words}})
        elif method in self.slow and not self.slow[method].is_set():
            self._waiting.add(task := asyncio.create_task(self._later(client, method, params, id)))
            task.add_done_callback(self._waiting.discard)
        elif method in self.refuse:
            await self._send(client, {"id": id, "error": self.refuse[method]})
        else:
            result, after = self._result(client, method, params)
            await self._send(client, {"id": id, "result": result})
            for late in after:
                await self._send(client, late)

    async def _later(self, client: ServerConnection, method: str, params: Frame, id: object) -> None:
        await self.slow[method].wait()
        result, after = self._result(client, method, params)
        for frame in ({"id": id, "result": result}, *after):
            await self._send(client, frame)

    async def _answered(self, frame: Frame) -> None:
        if all(frame["id"] not in of.pending for of in self.threads.values()):
            self.late.append(frame)
            self.calls_moved.set()
        for of in self.threads.values():
            if frame["id"] in of.pending:
                del of.pending[frame["id"]]
                self.answers[frame["id"]] = frame.get("result", {})
                self.calls_moved.set()
                await self.tell(of.id, "serverRequest/resolved", requestId=frame["id"])

    def _result(self, client: ServerConnection, method: str, params: Frame) -> tuple[Frame, list[Frame]]:
        of = self.threads.get(params.get("threadId", ""))
        match method:
            case "initialize":
                return {"userAgent": self._agent, "codexHome": "/srv", "platformOs": "linux"}, []
            case "thread/list":
                found = [thread.json() for thread in self.threads.values() if thread.archived is params["archived"]]
                return self._paged(found, params), []
            case "thread/loaded/list":
                loaded = [thread.id for thread in self.threads.values() if thread.status["type"] != "notLoaded"]
                return {"data": loaded, "nextCursor": None}, []
            case "thread/read" if of is not None:
                return {"thread": of.json()}, []
            case "thread/resume" if of is not None:
                self._clients[client].add(of.id)
                self.calls_moved.set()
                if of.status["type"] == "notLoaded":
                    of.status = {"type": "idle"}
                again = list(of.pending.values())
                return {"thread": of.json(), "model": "m"}, again
            case "thread/unsubscribe" if of is not None:
                self._clients[client].discard(of.id)
                return {"status": "unsubscribed"}, []
            case "thread/items/list" if of is not None:
                return self._paged(of.past[::-1], params), []
            case "thread/turns/list" if of is not None:
                return self._paged(of.turns[::-1], params), []
            case "thread/backgroundTerminals/list" if of is not None:
                return {"data": of.running, "nextCursor": None}, []
            case "turn/start" | "turn/steer" if of is not None:
                turn = of.turn or f"turn-{next(self._turns)}"
                return {"turn": {"id": turn}, "turnId": turn}, []
            case "thread/goal/get":
                return {"goal": None}, []
            case "thread/fork":
                return {"thread": {"id": "forked"}}, []
            case _:
                return {"data": [], "nextCursor": None}, []

    def _paged(self, found: list[Frame], params: Frame) -> Frame:
        start = int(params.get("cursor") or 0)
        end = start + min(self.page, params.get("limit", self.page))
        return {"data": found[start:end], "nextCursor": str(end) if end < len(found) else None}


@asynccontextmanager
async def fake_codex(**options: Any) -> AsyncIterator[FakeCodex]:
    """A running server."""
    server = FakeCodex(**options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
