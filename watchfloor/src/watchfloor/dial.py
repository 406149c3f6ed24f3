"""The WebSocket shell around the client core: dial a host, read it in time slices, say plainly what went wrong.

Every failure is one of `watchfloor.errors.ConnectionFailed`, with one line that says what happened and what
to do about it (`watchfloor.dial_errors`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Sequence
from time import monotonic
from typing import Final
from urllib.parse import SplitResult

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, WebSocketException
from websockets.protocol import State
from websockets.typing import Subprotocol

from watchfloor.client import ClientCore
from watchfloor.connector import Arrival, Target
from watchfloor.dial_errors import (
    PORTS,
    check_greeting,
    check_target,
    handshake_failed,
    lost,
    mute,
    os_words,
    other_protocol,
    show_url,
    split_url,
)
from watchfloor.errors import ConnectionLost, NoCommonProtocol, NotAHost, Unreachable
from watchfloor.logs import logger
from watchfloor.protocol.codec import MAX_RECEIVE
from watchfloor.protocol.frames import ClientFrame, Command
from watchfloor.text import clean_line
from watchfloor.words import PROTOCOL

ANSWER_TIMEOUT_S: Final = 10.0
"""How long each step may take: to be reached, to answer the handshake, to send the welcome."""
SLICE_S: Final = 0.004
REST_S: Final = 0.001
TURNS: Final = 24
"""After a slice of work comes a rest: a full queue never yields. It lasts a moment, in which other threads work, and
then so many turns of the event loop: a key takes a dozen of them until it is painted, and one at a time between two
slices would starve it. Where nobody has anything to do a turn takes next to nothing."""
FETCH: Final = 256
"""Frames that are read ahead of being decoded."""
CLOSE_TIMEOUT_S: Final = 1.0

# The library logs every header of the handshake when it debugs, the token among them.
_WIRE: Final = logger("watchfloor.dial.wire")
_WIRE.setLevel(logging.WARNING)


async def dial(
    target: Target,
    core: ClientCore,
    *,
    timeout_s: float = ANSWER_TIMEOUT_S,
    tls: ssl.SSLContext | None = None,
) -> WebSocketLink:
    """Connect, greet and wait for the welcome; `tls` replaces the system's trust for wss.

    Raises ConnectionFailed in one of its kinds, and ConfigError for an address or token that cannot be used.
    """
    check_target(target)
    parts = split_url(target.url)
    where = show_url(parts)
    sock = await _reach(parts, where, timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            ws = await _shake_hands(target, sock, tls)
    except TimeoutError:
        raise NotAHost(mute(where)) from None
    except (WebSocketException, OSError, EOFError, ValueError) as error:
        raise handshake_failed(error, target, where) from None
    link = WebSocketLink(ws, core, where)
    try:
        async with asyncio.timeout(timeout_s):
            await link.greet()
    except BaseException as error:
        ws.transport.abort()
        core.closed()
        if isinstance(error, TimeoutError):
            raise NotAHost(mute(where)) from None
        raise
    return link


class WebSocketLink:
    """One living connection to a native host (a `watchfloor.connector.Link`)."""

    def __init__(self, ws: ClientConnection, core: ClientCore, where: str) -> None:
        self._ws = ws
        self._core = core
        self._where = where
        self._early: list[Arrival] = []
        self._raws: deque[bytes] = deque()
        """What was read and not yet decoded."""

    async def greet(self) -> None:
        """Say hello and take the welcome; anything else raises ConnectionFailed."""
        if self._ws.subprotocol != PROTOCOL:
            raise NoCommonProtocol(other_protocol(self._where))
        try:
            for raw in self._core.opened():
                await self._ws.send(raw, text=True)
            self._early = self._core.receive(await self._ws.recv(decode=False))
        except ConnectionClosed as error:
            raise lost(error, self._where) from None
        check_greeting(self._early[0], self._where)

    async def batches(self) -> AsyncIterator[Sequence[Arrival]]:
        """What arrives, in order. Reads for about 4 ms at most, then rests before it reads on.

        What the core has counted as received is yielded before anything is awaited, so that a reader which is
        cancelled loses only what the next connection will bring again.
        """
        early, self._early = self._early, []
        if early:
            yield early
        await self._answer()
        busy_since = monotonic()
        while True:
            if not self._raws:
                asked = monotonic()
                try:
                    self._raws.append(await self._ws.recv(decode=False))
                except ConnectionClosed as error:
                    self._core.closed()
                    if isinstance(error, ConnectionClosedOK):
                        return
                    raise lost(error, self._where) from None
                if monotonic() - asked >= REST_S:
                    busy_since = monotonic()
            await self._fetch()
            yield self._decode(busy_since + SLICE_S)
            await self._answer()
            # What the receiver of the batch did with it counts as work, too.
            if monotonic() - busy_since >= SLICE_S:
                await _rest()
                busy_since = monotonic()

    async def _fetch(self) -> None:
        """Take what has already arrived."""
        try:
            # A read that would wait is ended at once; one that finds a frame never gets to the timeout.
            async with asyncio.timeout(0):
                while len(self._raws) < FETCH:
                    self._raws.append(await self._ws.recv(decode=False))
        except (TimeoutError, ConnectionClosed):
            # A closed connection says so again at the next read.
            return

    def _decode(self, until: float) -> list[Arrival]:
        batch = self._core.receive(self._raws.popleft())
        while self._raws and monotonic() < until:
            batch += self._core.receive(self._raws.popleft())
        return batch

    async def _answer(self) -> None:
        try:
            for raw in self._core.to_send():
                await self._ws.send(raw, text=True)
        except ConnectionClosed:
            # Found, and told, by the next read.
            return

    async def send(self, frame: ClientFrame) -> None:
        """Hand the frame to the host. Raises ConnectionLost when it certainly did not leave.

        A command that was being written when the connection broke counts as in flight: the next connection asks
        what became of it. Raises ProtocolError for a frame that cannot be written.
        """
        if self._ws.state is not State.OPEN:
            raise ConnectionLost(f"not sent: the connection to {self._where} has ended")
        raw = self._core.outgoing(frame)
        try:
            await self._ws.send(raw, text=True)
        except ConnectionClosed as error:
            if not isinstance(frame, Command):
                raise lost(error, self._where) from None

    async def close(self) -> None:
        """End the connection; waits at most about a second for the host to agree."""
        await self._ws.close()
        self._core.closed()


async def _rest() -> None:
    await asyncio.sleep(REST_S)
    for _ in range(TURNS):
        await asyncio.sleep(0)


# --- the steps of dialling ---------------------------------------------------------------------


async def _reach(parts: SplitResult, where: str, timeout_s: float) -> socket.socket:
    """A connected TCP socket. A step of its own, so that "nobody answers" and "says nothing" stay apart."""
    loop = asyncio.get_running_loop()
    port = parts.port or PORTS[parts.scheme]
    try:
        async with asyncio.timeout(timeout_s):
            try:
                found = await loop.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
            except (socket.gaierror, UnicodeError):
                raise Unreachable(
                    f"the name {clean_line(parts.hostname or '')!r} is not known: check the address"
                ) from None
            failure: OSError | None = None
            for family, kind, protocol, _, address in found:
                try:
                    return await _connected(loop, socket.socket(family, kind, protocol), address)
                except OSError as error:
                    failure = error
    except TimeoutError:
        raise Unreachable(
            f"{where} does not answer within {timeout_s:g} s: check the address and the network"
        ) from None
    if isinstance(failure, ConnectionRefusedError):
        raise Unreachable(f"nothing listens at {where}: start the host, or check the port")
    raise Unreachable(f"{where} cannot be reached ({os_words(failure)}): check the address and the network")


async def _connected(loop: asyncio.AbstractEventLoop, sock: socket.socket, address: object) -> socket.socket:
    sock.setblocking(False)
    try:
        await loop.sock_connect(sock, address)  # type: ignore[arg-type]
    except BaseException:
        sock.close()
        raise
    return sock


async def _shake_hands(target: Target, sock: socket.socket, tls: ssl.SSLContext | None) -> ClientConnection:
    return await connect(
        target.url,
        sock=sock,
        subprotocols=[Subprotocol(PROTOCOL)],
        compression=None,
        additional_headers=None if target.token is None else {"Authorization": f"Bearer {target.token}"},
        user_agent_header=f"{target.client}/{target.version}",
        proxy=None,
        open_timeout=None,
        # Beats tell whether the host lives; a host that answers pings and sends none must not pass for alive.
        ping_interval=None,
        close_timeout=CLOSE_TIMEOUT_S,
        max_size=MAX_RECEIVE,
        logger=_WIRE,
        ssl=tls if tls is not None or not target.url.lower().startswith("wss:") else True,
    )
