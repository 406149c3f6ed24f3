"""A stand-in for an aion server: HTTP and WebSocket on one loopback port.

    async with AionServer() as server:
        flow = server.world.flow("scripted")
        axes = flow.work()
        flow.say(axes, "hello")

Its 0.31 line is checked against the recordings of a real server (`tests/sockets/test_aion_stand_in.py`). The 0.10 line
(`modern=False`) is written from what its source says; no such server was ever asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

from websockets.frames import Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from tests.peers.aion_routes import JSON, NOT_FOUND, Faults, Routes
from tests.peers.aion_world import Flow, Json, World

ARMS: Final = ("per_workflow", "filtered", "firehose", "cluster", "transcript")
PATH: Final = "/events/stream"
LAGS_AT: Final = 64


@dataclass(eq=False)
class Subscriber:
    """One socket with its subscription. `sent` counts the frames that went out."""

    protocol: ServerProtocol
    writer: asyncio.StreamWriter
    arm: str = ""
    fields: Json = field(default_factory=dict)
    first: Any = None
    sent: int = 0
    pings: int = 0

    def send(self, body: Any) -> None:
        self.protocol.send_text(json.dumps(body).encode())
        self.sent += 1
        self.flush()

    def refuse(self, code: str, message: str | None = None, **more: Any) -> None:
        """The error frame and the close that follows it."""
        words = {"message": message} if message is not None else {}
        self.send({"error": {"code": code, **words, **more}})
        self.close(1011, code)

    def close(self, code: int, reason: str) -> None:
        self.arm = "closed"
        self.protocol.send_close(code, reason)
        self.flush()

    def flush(self) -> None:
        for data in self.protocol.data_to_send():
            if data:
                self.writer.write(data)

    def drop(self) -> None:
        self.writer.transport.abort()


class AionServer:
    """One server. `interventions` keeps the body of every intervention that it was asked for; `below` is the path that
    a proxy has put it under."""

    def __init__(
        self, *, modern: bool = True, token: str | None = None, port: int = 0, ack_s: float = 0.2, below: str = ""
    ) -> None:
        self.world = World()
        self.faults = Faults()
        self.routes = Routes(self.world, self.faults, modern=modern, token=token, ack_s=ack_s)
        self.modern, self.token, self.port, self.below = modern, token, port, below
        self.subscribers: list[Subscriber] = []
        self.first_frames: list[Any] = []
        self.subjects: set[str | None] = set()
        """Who callers said to be."""
        self.world.history_listeners.append(self._recorded)
        self.world.speech_listeners.append(self._spoken)
        self._moved = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"aion+http://127.0.0.1:{self.port}{self.below}"

    @property
    def interventions(self) -> list[Json]:
        return self.routes.interventions

    async def __aenter__(self) -> AionServer:
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
        for writer in list(self._writers):
            writer.transport.abort()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _move(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until the sockets that are open meet the condition."""
        async with asyncio.timeout(60):
            while not holds():
                await self._moved.wait()

    # --- the stream

    def of(self, arm: str) -> list[Subscriber]:
        return [subscriber for subscriber in self.subscribers if subscriber.arm == arm]

    def drop_sockets(self, arm: str = "") -> None:
        for subscriber in list(self.subscribers):
            if arm in ("", subscriber.arm):
                subscriber.drop()

    def lag(self, skipped: int = 705) -> None:
        """Every transcript is cut off as one whose reader is too slow."""
        for subscriber in self.of("transcript"):
            subscriber.refuse("transcript_lagged", skipped=skipped)

    def _recorded(self, flow: Flow, event: Json) -> None:
        body = {"namespace": flow.namespace, "request_id": None,
                "payload": {"content_type": JSON, "bytes": list(json.dumps(event).encode())}}  # fmt: skip
        for subscriber in list(self.subscribers):
            fields = subscriber.fields
            wanted = subscriber.arm == "firehose" or (
                subscriber.arm == "per_workflow" and fields["workflow_id"] == flow.id
            )
            if wanted and fields["namespace"] == flow.namespace and subscriber.arm not in self.faults.loses:
                subscriber.send({"namespace": flow.namespace, "event": body})

    def _spoken(self, flow: Flow, event: Json) -> None:
        self.send_raw(flow, event)

    def send_raw(self, flow: Flow, event: Json) -> None:
        """Send an event to whoever follows its transcript, whatever was sent before."""
        if "transcript" in self.faults.loses:
            return
        for subscriber in self.of("transcript"):
            fields = subscriber.fields
            same = (fields["activity_id"], fields["attempt"]) == (event["activity_id"], event["attempt"])
            if fields["workflow_id"] == flow.id and same and fields.get("run_id", event["run_id"]) == event["run_id"]:
                subscriber.send({"kind": "activity_event", "event": event})

    def _subscribe(self, subscriber: Subscriber, frame: str) -> None:
        try:
            first = json.loads(frame)
        except ValueError:
            self.first_frames.append(frame)
            why = "invalid websocket subscription JSON: expected ident at line 1 column 2"
            return subscriber.refuse("invalid_input", why)
        self.first_frames.append(first)
        chosen = first.get("subscription", first)
        arm = next((name for name in ARMS if name in chosen), None)
        if arm is None:
            named = "per_workflow, filtered, firehose, cluster, or transcript"
            return subscriber.refuse("invalid_input", f"websocket subscription must contain {named}")
        fields = chosen[arm]
        if self.token is not None and fields.get("namespace") != "default":
            words = f"subject not authorized for namespace {fields.get('namespace')}"
            return subscriber.refuse("namespace_denied", words)
        if arm == "transcript":
            for name in ("run_id", "activity_id") if self.modern else ():
                if name not in fields:
                    return subscriber.refuse("invalid_input", f"transcript subscription requires {name}")
        flow = self.world.flows.get(fields.get("workflow_id", ""))
        if arm in ("transcript", "per_workflow") and (flow is None or flow.namespace != fields["namespace"]):
            return subscriber.refuse("not_found", NOT_FOUND.format(fields["namespace"]))
        subscriber.arm, subscriber.fields = arm, fields
        if arm == "transcript" and flow is not None and arm not in self.faults.loses:
            after = fields.get("after_seq")
            for line in self.routes.lines(flow, fields)[0 if after is None else after + 1 :]:
                subscriber.send({"kind": "activity_event", "event": line})
        return None

    # --- connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._writers.add(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._serve(reader, writer)
        self._serving.discard(task)
        self._writers.discard(writer)
        writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            line, *rows = head.decode("latin-1").split("\r\n")
            method, target, _ = line.split(" ", 2)
            if not target.startswith(f"{self.below}/"):
                self._reply(writer, 404, "text/html", "<h1>not here</h1>")
                continue
            target = target.removeprefix(self.below)
            headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rows)}
            self.subjects.add(headers.get("x-aion-subject"))
            if headers.get("upgrade", "").lower() == "websocket":
                return await self._stream(reader, writer, head, headers)
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            if not self._may(headers, target):
                self._reply(writer, 401, None, "")
                return None
            status, kind, text = await self.routes.answer(method, target, body, headers.get("content-type", ""))
            self._reply(writer, status, kind, text)
            await writer.drain()

    def _may(self, headers: dict[str, str], target: str) -> bool:
        return (
            self.token is None
            or target.startswith("/health/")
            or headers.get("authorization") == f"Bearer {self.token}"
        )

    def _reply(self, writer: asyncio.StreamWriter, status: int, kind: str | None, text: str) -> None:
        body = text.encode()
        named = f"content-type: {kind}\r\n" if kind else ""
        writer.write(f"HTTP/1.1 {status} X\r\n{named}content-length: {len(body)}\r\n\r\n".encode() + body)

    async def _stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes, headers: dict[str, str]
    ) -> None:
        if not self._may(headers, ""):
            return self._reply(writer, 401, None, "")
        if self.faults.no_sockets:
            return self._reply(writer, 404, None, "")
        protocol = ServerProtocol(max_size=None)
        subscriber = Subscriber(protocol, writer)
        protocol.receive_data(head)
        try:
            while True:
                for event in protocol.events_received():
                    self._event(subscriber, event)
                subscriber.flush()
                data = await reader.read(65536)
                if not data:
                    return None
                protocol.receive_data(data)
        finally:
            if subscriber in self.subscribers:
                self.subscribers.remove(subscriber)
                self._move()

    def _event(self, subscriber: Subscriber, event: Any) -> None:
        if isinstance(event, Request):
            subscriber.protocol.send_response(subscriber.protocol.accept(event))
            self.subscribers.append(subscriber)
        elif event.opcode is Opcode.PING:
            subscriber.pings += 1
        elif event.opcode is Opcode.CLOSE:
            # Like the real one, which answers no close frame.
            subscriber.drop()
        elif event.opcode in (Opcode.TEXT, Opcode.BINARY) and not subscriber.arm:
            # Only the first frame of a socket counts.
            self._subscribe(subscriber, event.data.decode())
            self._move()
