"""A WebSocket proxy between a client and a host that breaks things on purpose, by a seeded schedule.

It passes the handshake through (subprotocols, token, user agent, origin, and the host's refusals) and then
the frames, save for the faults that it was told to make:

    async with FaultProxy(host_url, Faults(cut_after=(20, 200), duplicate=0.1, reorder=0.2), seed=1) as proxy:
        await drive_a_client(proxy.url)
        proxy.faults = Faults()          # from here on it only passes on
        await wait_until_the_client_caught_up()
        assert proxy.tally.cuts >= 30

What a client has to show behind it: no event lost, no command done twice, every command with one outcome.
The greeting (the first frame of the host) always passes untouched. A cut is a TCP connection that ends
without a word on both sides; frames that were held back are lost with it. Behind a black hole or a half-open
connection there is no end at all: a client has to find out by the silence.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

Data: TypeAlias = str | bytes

PASSED_HEADERS: Final = ("Authorization", "User-Agent", "Origin")
CLOSE_TIMEOUT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Faults:
    """What to break. Probabilities are 0 to 1, drawn for each frame; the default breaks nothing."""

    cut_after: tuple[int, int] | None = None
    """Each connection is cut after so many frames of the host, drawn evenly from this range (both ends included)."""
    duplicate: float = 0.0
    """A frame of the host arrives twice."""
    reorder: float = 0.0
    """An `events` frame and those that follow it, up to `window`, arrive in any order; no other frame overtakes."""
    window: int = 4
    linger_s: float = 0.01
    """How long a frame is held back at most when nothing follows that it could change places with."""
    repeat_command: float = 0.0
    """A command reaches the host twice."""
    lose_command: float = 0.0
    """The connection is cut instead of passing a command on."""
    lose_outcome: float = 0.0
    """A command reaches the host, and the connection is cut before anything more of the host comes back."""
    delay_s: tuple[float, float] = (0.0, 0.0)
    """Each frame of the host waits so long before it is passed on, drawn evenly; their order stays."""
    black_hole_after: tuple[int, int] | None = None
    """After so many frames of the host nothing passes any more, in either direction, while both connections stand and
    pings are answered. It lasts until one of the two hangs up, or `cut`."""
    half_open_after: tuple[int, int] | None = None
    """After so many frames of the host its connection ends, and the client is not told: it sees one that stands."""
    frames_per_s: float | None = None
    """A slow reader: no more of the host's frames are read in a second, and what it sends beyond that piles up."""


@dataclass(slots=True)
class Tally:
    """What was done so far. `lost_commands` and `lost_outcomes` are among the cuts."""

    connections: int = 0
    cuts: int = 0
    duplicated: int = 0
    reordered: int = 0
    repeated_commands: int = 0
    lost_commands: int = 0
    lost_outcomes: int = 0
    delayed: int = 0
    black_holes: int = 0
    half_opened: int = 0


class FaultProxy:
    """Listens on a loopback port while it is entered; `url` is what clients dial instead of the host's URL.

    Each connection draws from random sources of its own, made of the seed and its number, one for each
    direction: what happens to a frame depends on its place in its connection, not on the clock.
    `faults` may be replaced at any time; when to cut is drawn at the beginning of a connection. `upstream`, the host's
    URL, may be replaced as well: the next connection goes there.
    """

    def __init__(self, upstream: str, faults: Faults | None = None, *, seed: int = 0) -> None:
        self.faults = faults or Faults()
        self.tally = Tally()
        self.upstream = upstream
        self._seed = seed
        self._server: Server | None = None
        self._waiting: dict[ServerConnection, ClientConnection] = {}
        self._pairs: set[_Pair] = set()

    @property
    def url(self) -> str:
        """Where to dial. Raises RuntimeError while the proxy is not entered."""
        if self._server is None:
            raise RuntimeError("the proxy does not listen")
        return f"ws://127.0.0.1:{next(iter(self._server.sockets)).getsockname()[1]}"

    def cut(self) -> None:
        """Cut every connection now."""
        for pair in list(self._pairs):
            pair.cut()

    async def __aenter__(self) -> Self:
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            0,
            process_request=self._shake_hands,
            select_subprotocol=self._select,
            compression=None,
            max_size=None,
            ping_interval=None,
            close_timeout=CLOSE_TIMEOUT_S,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        for pair in list(self._pairs):
            pair.abort()
        for upstream in self._waiting.values():
            upstream.transport.abort()
        if server is not None:
            server.close()
            await server.wait_closed()

    # --- handshake ---------------------------------------------------------------------------

    async def _shake_hands(self, client: ServerConnection, request: Request) -> Response | None:
        """Dial the host as the client dials us, and hand its refusal back as it came."""
        offered = ",".join(request.headers.get_all("Sec-WebSocket-Protocol")).split(",")
        headers = Headers()
        for name in PASSED_HEADERS:
            for value in request.headers.get_all(name):
                headers[name] = value
        try:
            self._waiting[client] = await connect(
                self.upstream.rstrip("/") + request.path,
                subprotocols=[Subprotocol(name.strip()) for name in offered if name.strip()] or None,
                additional_headers=headers,
                user_agent_header=None,
                compression=None,
                max_size=None,
                ping_interval=None,
                close_timeout=CLOSE_TIMEOUT_S,
                proxy=None,
            )
        except InvalidStatus as error:
            return _copy(error.response)
        except (OSError, InvalidHandshake) as error:
            return client.respond(502, f"the host behind the proxy does not answer: {error}\n")
        return None

    def _select(self, client: ServerConnection, offered: object) -> Subprotocol | None:
        return self._waiting[client].subprotocol

    async def _serve(self, client: ServerConnection) -> None:
        self.tally.connections += 1
        pair = _Pair(self, client, self._waiting.pop(client), f"{self._seed}/{self.tally.connections}")
        self._pairs.add(pair)
        try:
            await pair.run()
        finally:
            self._pairs.discard(pair)


class _Pair:
    """One client's connection and the one to the host that belongs to it."""

    def __init__(self, proxy: FaultProxy, client: ServerConnection, host: ClientConnection, seed: str) -> None:
        self._proxy = proxy
        self._client = client
        self._host = host
        self._down = random.Random(f"{seed}/down")  # noqa: S311 - a schedule, not a secret
        self._up = random.Random(f"{seed}/up")  # noqa: S311
        self._left = self._draw(proxy.faults.cut_after)
        self._until_hole = self._draw(proxy.faults.black_hole_after)
        self._until_half = self._draw(proxy.faults.half_open_after)
        self._held: list[Data] = []
        self._deaf = False
        """Nothing of the host reaches the client any more."""
        self._mute = False
        """Nothing of the client reaches the host any more."""

    def _draw(self, span: tuple[int, int] | None) -> int | None:
        return None if span is None else self._down.randint(*span)

    async def run(self) -> None:
        pumps = [asyncio.create_task(self._from_host()), asyncio.create_task(self._from_client())]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self.abort()

    def cut(self) -> None:
        self._proxy.tally.cuts += 1
        self.abort()

    def abort(self) -> None:
        self._client.transport.abort()
        self._host.transport.abort()

    # --- from the host to the client ---------------------------------------------------------

    async def _from_host(self) -> None:
        try:
            await self._client.send(await self._host.recv())
            while await self._pass_on():
                pass
        except ConnectionClosed:
            await _end_like(self._host, self._client)

    async def _pass_on(self) -> bool:
        """Take the next frame of the host; False once the connection was cut."""
        try:
            async with asyncio.timeout(self._proxy.faults.linger_s if self._held else None):
                data = await self._host.recv()
        except TimeoutError:
            return await self._release()
        except ConnectionClosed:
            await self._release()
            raise
        faults = self._proxy.faults
        if faults.frames_per_s is not None:
            await asyncio.sleep(1 / faults.frames_per_s)
        if faults.delay_s[1] > 0:
            self._proxy.tally.delayed += 1
            await asyncio.sleep(self._down.uniform(*faults.delay_s))
        if _type(data) == "events" and (self._held or self._down.random() < faults.reorder):
            self._held.append(data)
            return len(self._held) < faults.window or await self._release()
        return await self._release() and await self._deliver(data)

    async def _release(self) -> bool:
        """Deliver what was held back, in any order."""
        held, self._held = self._held, []
        if len(held) > 1:
            self._down.shuffle(held)
            self._proxy.tally.reordered += len(held)
        for data in held:
            if not await self._deliver(data):
                return False
        return True

    async def _deliver(self, data: Data) -> bool:
        if self._deaf:
            return True
        await self._client.send(data)
        if self._down.random() < self._proxy.faults.duplicate:
            self._proxy.tally.duplicated += 1
            await self._client.send(data)
        await self._swallow()
        if self._proxy.faults.cut_after is None or self._left is None:
            return True
        self._left -= 1
        if self._left > 0:
            return True
        self.cut()
        return False

    async def _swallow(self) -> None:
        """Let nothing pass from now on, if it is time for that."""
        faults, tally = self._proxy.faults, self._proxy.tally
        if faults.black_hole_after is not None and self._until_hole is not None:
            self._until_hole -= 1
            if self._until_hole == 0:
                tally.black_holes += 1
                self._deaf = self._mute = True
        if faults.half_open_after is not None and self._until_half is not None:
            self._until_half -= 1
            if self._until_half == 0:
                tally.half_opened += 1
                self._deaf = self._mute = True
                self._host.transport.abort()
                # The client has to hang up by itself.
                await self._client.wait_closed()

    # --- from the client to the host ---------------------------------------------------------

    async def _from_client(self) -> None:
        try:
            while await self._take(await self._client.recv()):
                pass
        except ConnectionClosed:
            await _end_like(self._client, self._host)

    async def _take(self, data: Data) -> bool:
        if self._mute:
            return True
        if _type(data) != "command":
            await self._host.send(data)
            return True
        faults, tally, chance = self._proxy.faults, self._proxy.tally, self._up.random()
        if chance < faults.lose_command:
            tally.lost_commands += 1
            self.cut()
            return False
        if chance < faults.lose_command + faults.lose_outcome:
            tally.lost_outcomes += 1
            self._deaf = True
            await self._host.send(data)
            # The close frame stands behind the command: the host reads the command before it lets go.
            await self._host.close()
            self.cut()
            return False
        await self._host.send(data)
        if self._up.random() < faults.repeat_command:
            tally.repeated_commands += 1
            await self._host.send(data)
        return True


async def _end_like(ended: Connection, other: Connection) -> None:
    """End the other connection as this one ended."""
    code = ended.close_code
    if code is None or code in (1005, 1006, 1015):
        other.transport.abort()
        return
    with contextlib.suppress(ConnectionClosed):
        await other.close(code, ended.close_reason or "")


def _type(data: Data) -> str | None:
    try:
        frame: Any = json.loads(data)
    except ValueError:
        return None
    kind = frame.get("type") if isinstance(frame, dict) else None
    return kind if isinstance(kind, str) else None


def _copy(response: Response) -> Response:
    headers = Headers()
    for name, value in response.headers.raw_items():
        if name.lower() not in ("content-length", "transfer-encoding", "connection"):
            headers[name] = value
    body = response.body or b""
    headers["Content-Length"] = str(len(body))
    headers["Connection"] = "close"
    return Response(response.status_code, response.reason_phrase, headers, body)
