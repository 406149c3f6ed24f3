"""How clients reach a host: listening, admitting, reading and writing connections."""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
from contextlib import suppress
from http import HTTPStatus
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from websockets.asyncio.connection import Connection
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from watchfloor.errors import AddressInUse, WatchfloorError
from watchfloor.host.effects import Close, SendFrame
from watchfloor.host.principals import Principal
from watchfloor.host.running.port import PortHost
from watchfloor.host.serving.handshake import Door, Refusal, is_loopback
from watchfloor.host.serving.joining import PATH, Joins
from watchfloor.host.serving.outbox import Outbox
from watchfloor.logs import logger
from watchfloor.protocol.codec import MAX_RECEIVE
from watchfloor.protocol.frames import Events
from watchfloor.words import PROTOCOL

MAX_FRAME: Final = 1024 * 1024
"""Bytes of one frame that are accepted from a client."""
PING_TIMEOUT_S: Final = 60.0
"""A client that reads nothing for a while is slow, not dead; its queue says when that is too much."""
DRAINING: Final = 1012
"""WebSocket close code of a host that ends."""

# The library logs every refused handshake with a traceback; a host must not write into its program's terminal.
_quiet = logger("watchfloor.host.websocket")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


class ServingHost(PortHost, Protocol):
    """What the connections need of their host."""

    @property
    def joins(self) -> Joins: ...

    def unready(self) -> str | None: ...


class Serving:
    """The connections of one host. `queue_bytes`: what may wait for one client."""

    def __init__(self, host: ServingHost, door: Door, queue_bytes: int) -> None:
        self._host = host
        self._door = door
        self._queue_bytes = queue_bytes
        self._admitted: WeakKeyDictionary[ServerConnection, Principal] = WeakKeyDictionary()
        self._outboxes: dict[str, Outbox] = {}
        self._connections = 0
        self._server: Server | None = None

    def unsafe(self, address: str, *, tls: bool, insecure: bool) -> str | None:
        """Why the host is not to be served there like this; None where it may be."""
        if is_loopback(address) or insecure:
            return None
        if self._door.principals.open:
            return f"{address} is reached from other machines: give the host tokens, so that not everybody operates it"
        if not tls:
            return f"{address} is reached from other machines: give the host a certificate and a key for TLS"
        return None

    async def listen(self, address: str, port: int, tls: ssl.SSLContext | None, *, insecure: bool) -> str:
        """Listen, and return the URL. Raises AddressInUse or WatchfloorError."""
        if self._server is not None:
            raise WatchfloorError("the host serves already")
        if why := self.unsafe(address, tls=tls is not None, insecure=insecure):
            raise WatchfloorError(f"{why}, or say that it is to be insecure")
        self._door.beyond = not is_loopback(address)
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
                ssl=tls,
            )
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise AddressInUse(f"{address}:{port} is in use by another program") from None
            raise WatchfloorError(f"cannot listen at {address}:{port}: {error.strerror or error}") from None
        bound = next(iter(self._server.sockets)).getsockname()
        name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        return f"{'ws' if tls is None else 'wss'}://{name}:{bound[1]}"

    def refuse_new(self) -> None:
        """Nobody connects any more; who is connected stays."""
        if self._server is not None:
            self._server.close(close_connections=False)

    async def close(self) -> None:
        """End all connections: clients are told that the host drains."""
        for outbox in self._outboxes.values():
            outbox.close(DRAINING, "the host ends")
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    def perform(self, effect: SendFrame | Close) -> None:
        """Write to a connection, or end it."""
        outbox = self._outboxes.get(effect.conn)
        if outbox is None:
            return
        if isinstance(effect, Close):
            outbox.close(effect.code, effect.why, drop=effect.drop)
            return
        now = self._host.now()
        if outbox.tight and isinstance(effect.frame, Events):
            # The history has them.
            self._host.core.left_out(effect.conn, effect.frame, now)
            return
        outbox.put(effect.wire)
        if outbox.crowded:
            self._host.core.lagging(effect.conn, now)

    def _admit(self, ws: ServerConnection, request: Request) -> Response | None:
        admitted = self._door.admit(request.headers.raw_items(), joins=_joins(request))
        if isinstance(admitted, Refusal):
            response = ws.respond(admitted.status, admitted.text)
            if admitted.status == 401:
                response.headers["WWW-Authenticate"] = "Bearer"
            return response
        if (why := self._host.unready()) is not None:
            return ws.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"{why}\n")
        self._admitted[ws] = admitted
        return None

    async def _client(self, ws: ServerConnection) -> None:
        principal = self._admitted.pop(ws)
        if ws.request is not None and _joins(ws.request):
            # It is the host of this connection, and sends what hosts send.
            ws.protocol.max_message_size = MAX_RECEIVE
            await self._host.joins.serve(ws, principal)
        else:
            await self.speak(ws, principal)

    async def speak(self, ws: Connection, principal: Principal) -> None:
        """Be the host of a connection until it ends."""
        self._connections += 1
        conn = f"c{self._connections}"
        outbox = Outbox(ws, lambda: self._more(conn), max_bytes=self._queue_bytes)
        self._host.core.connect(conn, principal, self._host.now())
        self._outboxes[conn] = outbox
        writer = asyncio.create_task(outbox.run(), name=f"writer of {conn}")
        try:
            while True:
                raw = await ws.recv(decode=False)
                self._host.perform(self._host.core.receive(conn, raw, self._host.now()))
        except ConnectionClosed:
            pass
        finally:
            self._host.core.disconnect(conn)
            del self._outboxes[conn]
            writer.cancel()
            with suppress(asyncio.CancelledError):
                await writer

    def _more(self, conn: str) -> bool:
        if not self._host.core.behind(conn):
            return False
        self._host.perform(self._host.core.pull(conn, self._host.now()))
        return True


def _joins(request: Request) -> bool:
    """Is it a process that dials in with its agents?"""
    return request.path.partition("?")[0].endswith(PATH)
