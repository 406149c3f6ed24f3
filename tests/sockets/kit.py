"""Servers on loopback that behave, and that do not."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from watchfloor.client import ClientCore
from watchfloor.connector import Target
from watchfloor.dial import WebSocketLink, dial
from watchfloor.protocol.codec import encode
from watchfloor.protocol.frames import HostInfo, Welcome
from watchfloor.words import PROTOCOL, Role

TOKEN = "tok-3141592653589793"
PATIENCE_S = 60.0
SOON_S = 0.5
"""For servers that never answer: the test waits this long for nothing."""


def welcome(protocol: str = PROTOCOL) -> bytes:
    info = HostInfo(name="h", version="1", instance="one")
    return encode(
        Welcome(protocol=protocol, host=info, principal="p", role=Role.OPERATOR, pos=0, heartbeat_s=15, now=1)
    )


def target(url: str, token: str | None = TOKEN) -> Target:
    return Target("local", url, token=token, client="console", version="1.2", user="ann")


async def attempt(
    url: str, token: str | None = TOKEN, timeout_s: float = PATIENCE_S, tls: ssl.SSLContext | None = None
) -> WebSocketLink:
    to = target(url, token)
    return await dial(to, ClientCore(to), timeout_s=timeout_s, tls=tls)


@asynccontextmanager
async def tcp(
    serve_one: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """A TCP server; yields HOST:PORT."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve_one(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def host(
    handler: Callable[[ServerConnection], Awaitable[None]],
    *,
    subprotocols: tuple[str, ...] = (PROTOCOL,),
    answer: Callable[[ServerConnection, Request], Response | None] | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:
    """A WebSocket server; yields its URL."""
    async with serve(
        handler,
        "127.0.0.1",
        0,
        subprotocols=[Subprotocol(name) for name in subprotocols] or None,
        process_request=answer,
        compression=None,
        max_size=None,
        close_timeout=1,
        ssl=tls,
    ) as server:
        yield f"{'ws' if tls is None else 'wss'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def greet(ws: ServerConnection) -> None:
    await ws.recv()
    await ws.send(welcome().decode())
