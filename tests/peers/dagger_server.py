"""A stand-in for a Dagger engine's session: its schema over HTTP, its telemetry over server-sent events.

async with DaggerServer(beta=21) as server:
    agent = server.engine.spawn("triage")
    ...  # POST http://127.0.0.1:{server.port}/query with the basic authorization of server.token
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import h11
from graphql import (
    DocumentNode,
    ExecutionResult,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    Node,
    build_schema,
    execute,
    parse,
    validate,
)

from tests.peers.dagger_engine import Engine
from tests.peers.dagger_graph import Query, resolve, settled, type_of
from tests.peers.dagger_telemetry import Rows

FIXTURES: Final = Path(__file__).resolve().parents[1] / "fixtures/dagger"
TOKEN: Final = "token-of-a-test"


@cache
def schema_of(beta: int, *, without: tuple[str, ...] = ()) -> GraphQLSchema:
    """The schema of a version, without some types, fields, as `Agent.reseed`, or arguments, as `Agent.stop.kill`."""
    schema = build_schema((FIXTURES / f"schema_beta{beta}.graphql").read_text(encoding="utf-8"))
    for name in without:
        if name in schema.type_map:
            del schema.type_map[name]
            continue
        type_name, field, *argument = name.split(".")
        fields = getattr(schema.type_map[type_name], "fields")  # noqa: B009 - not every type has fields
        if argument:
            del fields[field].args[argument[0]]
        else:
            del fields[field]
    return schema


@dataclass
class Faults:
    """What goes wrong: each entry once, then it is used up.

    `lose`: the verb is carried out and its answer is lost. `swallow`: the request is lost before it is carried out.
    """

    lose: list[str] = field(default_factory=list)
    swallow: list[str] = field(default_factory=list)
    hold: dict[str, asyncio.Event] = field(default_factory=dict)
    """By the name of a query: its next answer is held back until the event is set."""
    falls: bool = False
    """With the next answer that gets lost the engine is down."""
    down: bool = False
    """Every query is answered as a proxy does whose engine is gone."""


class DaggerServer:
    """One session on a loopback port. `wire` keeps every query with its answer."""

    def __init__(self, beta: int = 21, *, without: tuple[str, ...] = (), token: str = TOKEN, port: int = 0) -> None:
        self.engine = Engine(beta)
        self.schema = schema_of(beta, without=without)
        self.token = token
        self.port = port
        self.faults = Faults()
        self.no_telemetry = False
        self.mute = False
        """Its telemetry takes connections and says nothing."""
        self._read = lru_cache(partial(_checked, self.schema))
        self.held: set[str] = set()
        """Queries whose answer is, or was, held back."""
        self._moved = asyncio.Event()
        self.wire: list[dict[str, Any]] = []
        self.resumed: list[tuple[str, int]] = []
        """The streams that were opened, each with the cursor that it began after."""
        self._serving: dict[asyncio.Task[None], str] = {}
        self._writers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"dagger+http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> DaggerServer:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """The process is gone: nobody listens any more, every connection breaks."""
        if self._server is not None:
            self._server.close()
        self.drop()
        tasks = list(self._serving)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for agent in self.engine.agents.values():
            agent.end()

    async def end_session(self) -> None:
        """The session's main client goes: all agents stop, the streams end in good order, nobody listens."""
        assert self._server is not None
        self._server.close()
        self.engine.end()
        streams = [task for task, path in self._serving.items() if path.startswith("/v1/")]
        await asyncio.gather(*streams, return_exceptions=True)
        await self.close()

    def _move(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until what was asked meets the condition."""
        async with asyncio.timeout(60):
            while not holds():
                await self._moved.wait()

    def drop(self, path: str = "") -> None:
        """Break the connections that serve this path, or all."""
        for task, serves in self._serving.items():
            if serves.startswith(path):
                self._writers[task].transport.abort()

    # --- connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving[task], self._writers[task] = "", writer
        try:
            await _Connection(self, reader, writer).serve()
        except (ConnectionError, asyncio.CancelledError, h11.RemoteProtocolError):
            pass
        finally:
            del self._serving[task], self._writers[task]
            writer.close()

    def serves(self, path: str) -> None:
        """The connection of the running task serves this path now."""
        task = asyncio.current_task()
        assert task is not None
        self._serving[task] = path

    def allows(self, headers: dict[str, str]) -> bool:
        wanted = base64.b64encode(f"{self.token}:".encode()).decode()
        return headers.get("authorization") == f"Basic {wanted}"

    async def answer(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Status and body for a query. Raises ConnectionAbortedError where the answer gets lost."""
        asked, known = json.loads(body), self.schema.type_map
        document, errors = self._read(asked["query"])
        if document is None:
            return 422, {"errors": errors, "data": None}
        if missing := [name for name in re.findall(r'__type\(name: "(\w+)"\)', asked["query"]) if name not in known]:
            return 200, {"errors": [{"message": f'unknown type: "{missing[0]}"', "path": [missing[0]]}], "data": None}
        asks_for = set(_fields(document))
        if _hit(self.faults.swallow, asks_for):
            raise ConnectionAbortedError
        result = await settled(
            execute(
                self.schema,
                document,
                Query(self.engine),
                variable_values=asked.get("variables"),
                operation_name=asked.get("operationName"),
                field_resolver=resolve,
                type_resolver=type_of,
            )
        )
        assert isinstance(result, ExecutionResult)
        answer: dict[str, Any] = {"data": result.data}
        if result.errors:
            # One part that fails takes all along, and its path is that of the object's making, without any alias.
            answer = {"data": None, "errors": [_as_the_engine_says(error) for error in result.errors]}
        self.wire.append({"request": asked, "response": answer})
        self._move()
        name = asked["query"].split()[1].partition("(")[0] if asked["query"].startswith("query ") else ""
        if (held := self.faults.hold.pop(name, None)) is not None:
            self.held.add(name)
            self._move()
            await held.wait()
        if _hit(self.faults.lose, asks_for):
            self.faults.down = self.faults.falls
            raise ConnectionAbortedError
        return 200, answer


def _checked(schema: GraphQLSchema, query: str) -> tuple[DocumentNode | None, list[Any]]:
    """The document, or else what is wrong with it."""
    try:
        document = parse(query)
    except GraphQLError as error:
        return None, [error.formatted]
    errors = validate(schema, document)
    return (None, [error.formatted for error in errors]) if errors else (document, [])


def _as_the_engine_says(error: GraphQLError) -> dict[str, Any]:
    last = error.path[-1] if error.path else ""
    return {"message": f"{error.message} [traceparent:{'0f' * 16}-{'0e' * 8}]", "path": ["llm", "agent", last]}


def _fields(node: Node) -> Iterator[str]:
    """The names of all fields that a document asks for."""
    if isinstance(node, FieldNode):
        yield node.name.value
    for key in node.keys:
        inside = getattr(node, key, None)
        for one in inside if isinstance(inside, list | tuple) else (inside,):
            if isinstance(one, Node):
                yield from _fields(one)


def _hit(faults: list[str], asks_for: set[str]) -> bool:
    for verb in faults:
        if verb in asks_for:
            faults.remove(verb)
            return True
    return False


class _Connection:
    """One connection of HTTP/1.1, a request at a time."""

    def __init__(self, server: DaggerServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server, self._reader, self._writer = server, reader, writer
        self._http = h11.Connection(h11.SERVER)

    async def serve(self) -> None:
        while (request := await self._request()) is not None:
            method, path, headers, body = request
            self._server.serves(path)
            work = asyncio.get_running_loop().create_task(self._handle(method, path, headers, body))
            gone = asyncio.get_running_loop().create_task(self._hung_up())
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            try:
                with contextlib.suppress(asyncio.CancelledError):
                    await work
            except ConnectionAbortedError:
                self._writer.transport.abort()
                return
            if self._http.our_state is not h11.DONE:
                return
            self._http.start_next_cycle()
            self._server.serves("")

    async def _request(self) -> tuple[str, str, dict[str, str], bytes] | None:
        request: h11.Request | None = None
        body = b""
        while True:
            event = self._http.next_event()
            match event:
                case h11.NEED_DATA:
                    self._http.receive_data(await self._reader.read(1 << 16))
                case h11.Request():
                    request = event
                case h11.Data():
                    body += event.data
                case h11.EndOfMessage():
                    assert request is not None
                    headers = {name.decode(): value.decode() for name, value in request.headers}
                    return request.method.decode(), request.target.decode(), headers, body
                case _:
                    return None

    async def _hung_up(self) -> None:
        if data := await self._reader.read(1 << 16):
            self._http.receive_data(data)
            await asyncio.get_running_loop().create_future()

    async def _handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        server = self._server
        if not server.allows(headers):
            await self._reply(401, b"", [("www-authenticate", 'Basic realm="dagger"')])
        elif server.faults.down:
            await self._reply(502, b"engine is gone", [("content-type", "text/plain")])
        elif (method, path) == ("POST", "/query"):
            status, answer = await server.answer(body)
            await self._reply(status, json.dumps(answer).encode(), [("content-type", "application/json")])
        elif method == "GET" and path in ("/v1/traces", "/v1/logs", "/v1/metrics") and not server.no_telemetry:
            telemetry = server.engine.telemetry
            rows = {"/v1/traces": telemetry.traces, "/v1/logs": telemetry.logs}.get(path, Rows("metrics"))
            after = int(headers.get("last-event-id") or headers.get("x-last-event-id") or 0)
            server.resumed.append((path, after))
            await self._stream(rows, after)
        else:
            await self._reply(404, b"404 page not found", [("content-type", "text/plain")])

    async def _reply(self, status: int, body: bytes, headers: list[tuple[str, str]]) -> None:
        self._send(h11.Response(status_code=status, headers=[*headers, ("content-length", str(len(body)))]))
        self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())
        await self._writer.drain()

    async def _stream(self, rows: Rows, after: int) -> None:
        if self._server.mute:
            await asyncio.get_running_loop().create_future()
        self._send(
            h11.Response(status_code=200, headers=[("content-type", "text/event-stream"), ("connection", "close")])
        )
        self._send(h11.Data(data=b"id: \nevent: subscribed\ndata\n\n"))
        sent = after
        while True:
            more = rows.more
            for cursor, row in rows.rows:
                if cursor > sent:
                    self._send(h11.Data(data=f"id: {cursor}\nevent: {rows.kind}\ndata: {row}\n\n".encode()))
                    sent = cursor
            await self._writer.drain()
            if rows.closed:
                break
            await more.wait()
        self._send(h11.EndOfMessage())
        await self._writer.drain()

    def _send(self, event: h11.Event) -> None:
        self._writer.write(self._http.send(event) or b"")
