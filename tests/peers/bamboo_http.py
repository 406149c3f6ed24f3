"""HTTP/1.1 and WebSockets on one loopback port, as small as a stand-in of a server needs them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One request. `body` is its JSON, None where it has none that can be read."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes
    body: Any


@dataclass
class Reply:
    """An answer. `body` of a text goes as it is, everything else as JSON; `stream` yields lines of an event stream.

    `lost`: the connection ends instead of the answer.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    stream: AsyncIterator[str] | None = None
    lost: bool = False


class WebSocket:
    """The server's end of a socket."""

    def __init__(self, writer: asyncio.StreamWriter, protocol: ServerProtocol) -> None:
        self._writer = writer
        self._protocol = protocol
        self.asked: Asked | None = None
        self.open = True

    def send(self, frame: Json) -> None:
        if self.open:
            self._protocol.send_text(json.dumps(frame).encode())
            self.flush()

    def flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._writer.write(data)

    def drop(self) -> None:
        """End it without a close frame."""
        self.open = False
        self._writer.transport.abort()

    def close(self) -> None:
        """End it with a close frame that says no reason."""
        if self.open:
            self.open = False
            self._protocol.send_close()
            self.flush()


def _chosen(_: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    return Subprotocol("bamboo.v2") if "bamboo.v2" in offered else None


Answering = Callable[[Asked], Awaitable[Reply]]
Talking = Callable[[WebSocket, Json | None], None]
"""Called with each frame of a socket, and with None at its end."""


class LoopbackServer:
    """`idle_s`: after so many seconds without a request a connection is ended."""

    def __init__(self, answer: Answering, talk: Talking, *, idle_s: float = 5.0) -> None:
        self._answer = answer
        self._talk = talk
        self.idle_s = idle_s
        self.sockets: list[WebSocket] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            while await self._request(reader, writer):
                pass
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._serving.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        async with asyncio.timeout(self.idle_s):
            head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        parts = urlsplit(target)
        body: Any = None
        with suppress(ValueError):
            body = json.loads(raw)
        asked = Asked(method, unquote(parts.path), dict(parse_qsl(parts.query)), headers, raw, body)
        reply = await self._answer(asked)
        if reply.lost:
            writer.transport.abort()
            return False
        if reply.status == 101:
            await self._socket(head, asked, reader, writer)
            return False
        if reply.stream is not None:
            await self._stream(reply, writer)
            return False
        data = reply.body.encode() if isinstance(reply.body, str) else json.dumps(reply.body).encode()
        kind = "text/plain" if isinstance(reply.body, str) else "application/json"
        given = {"content-type": kind, "content-length": str(len(data)), **reply.headers}
        told = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        writer.write(f"HTTP/1.1 {reply.status} X\r\n{told}\r\n".encode() + data)
        await writer.drain()
        return True

    async def _stream(self, reply: Reply, writer: asyncio.StreamWriter) -> None:
        assert reply.stream is not None
        writer.write(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        async for line in reply.stream:
            writer.write(line.encode())
            await writer.drain()

    async def _socket(
        self, head: bytes, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        protocol = ServerProtocol(select_subprotocol=_chosen, max_size=None)
        protocol.receive_data(head)
        (handshake,) = protocol.events_received()
        assert isinstance(handshake, Handshake)
        protocol.send_response(protocol.accept(handshake))
        socket = WebSocket(writer, protocol)
        socket.asked = asked
        socket.flush()
        self.sockets.append(socket)
        try:
            while data := await reader.read(1 << 16):
                protocol.receive_data(data)
                for event in protocol.events_received():
                    if isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                        self._talk(socket, json.loads(bytes(event.data)))
                socket.flush()
                if protocol.close_expected():
                    break
        finally:
            socket.open = False
            self.sockets.remove(socket)
            self._talk(socket, None)
