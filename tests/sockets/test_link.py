"""A living connection to a host: reading in slices, sending, ending."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosedOK
from websockets.frames import Close

from tests.sockets.kit import PATIENCE_S, attempt, greet, host, target, welcome
from watchfloor.client import ClientCore
from watchfloor.connector import Arrival, Received
from watchfloor.dial import WebSocketLink, dial
from watchfloor.errors import ConnectionLost, ProtocolError
from watchfloor.protocol.codec import encode
from watchfloor.protocol.events import Message
from watchfloor.protocol.frames import Command, DoPause, DoSend, Events, Watch, Welcome
from watchfloor.words import PROTOCOL


def batch(first: int, count: int, text: str = "x") -> str:
    events: list[Any] = [Message(seq=seq, pos=seq, at=1, text=text) for seq in range(first, first + count)]
    return encode(Events(session="s", epoch="e", events=events)).decode()


def positions(arrivals: list[Arrival]) -> list[int | None]:
    return [
        event.pos
        for arrival in arrivals
        if isinstance(arrival, Received) and isinstance(arrival.frame, Events)
        for event in arrival.frame.events
    ]


async def drain(link: WebSocketLink, into: list[Arrival]) -> None:
    async for some in link.batches():
        into.extend(some)


async def read_to_the_end(link: WebSocketLink, into: list[Arrival]) -> ConnectionLost:
    """Read until the connection is lost; returns how."""
    with pytest.raises(ConnectionLost) as caught:
        await drain(link, into)
    return caught.value


async def test_everything_arrives_in_order_and_the_watch_is_asked_for() -> None:
    heard: list[str] = []

    async def serve_events(ws: ServerConnection) -> None:
        heard.append(str(await ws.recv()))
        await ws.send(welcome().decode())
        heard.append(str(await ws.recv()))
        for n in range(200):
            await ws.send(batch(1 + n * 10, 10))
        await ws.send("not a frame")
        await ws.close(1000)

    arrivals: list[Arrival] = []
    async with host(serve_events) as url:
        link = await attempt(url)
        async for some in link.batches():
            arrivals += some
        await link.close()
    assert isinstance(arrivals[0], Received)
    assert isinstance(arrivals[0].frame, Welcome)
    assert positions(arrivals) == list(range(1, 2001))
    assert not isinstance(arrivals[-1], Received)
    assert '"hello"' in heard[0]
    assert '"watch"' in heard[1]


class FullQueue:
    """A connection on which there is always something more to read, until there is nothing.

    Reading returns without handing control to the event loop, as from a full queue of websockets; with `every`,
    each so many reads it does once.
    """

    def __init__(self, frames: list[bytes], every: int | None = None) -> None:
        self._frames = iter([welcome(), *frames])
        self._every = every
        self._reads = 0
        self.subprotocol = PROTOCOL

    async def recv(self, decode: bool) -> bytes:
        self._reads += 1
        if self._every is not None and self._reads % self._every == 0:
            await asyncio.sleep(0)
        frame = next(self._frames, None)
        if frame is None:
            end = Close(1000, "")
            raise ConnectionClosedOK(end, end, True)
        return frame

    async def send(self, raw: bytes, text: bool) -> None:
        await asyncio.sleep(0)


async def test_a_queue_that_is_always_full_does_not_starve_others() -> None:
    total, turns, ended = 300, 0, False
    queue: Any = FullQueue([batch(1 + n * 100, 100).encode() for n in range(total)])
    link = WebSocketLink(queue, ClientCore(target("ws://h")), "ws://h")
    await link.greet()

    async def others() -> None:
        nonlocal turns
        while not ended:
            turns += 1
            await asyncio.sleep(0)

    watch = asyncio.create_task(others())
    sizes = [len(some) async for some in link.batches()]
    ended = True
    await watch
    assert sum(sizes) == total + 1
    assert len(sizes) > 5, "decoding is cut into slices"
    assert max(sizes) < total / 2
    # A rest is as long as a slice. A mere yield between slices would be one turn for the others.
    assert turns > 5 * len(sizes)


async def test_a_reader_that_is_cancelled_has_been_given_all_that_counts_as_received() -> None:
    """Wherever the reading is cancelled, the cursor has not passed what was not handed over."""
    for moment in range(60):
        to = target("ws://h")
        core = ClientCore(to)
        queue: Any = FullQueue([batch(n, 1).encode() for n in range(1, 30)], every=3)
        link = WebSocketLink(queue, core, "ws://h")
        await link.greet()
        got: list[Arrival] = []
        reader = asyncio.create_task(drain(link, got))
        for _ in range(moment):
            await asyncio.sleep(0)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        assert positions(got) == list(range(1, (core.pos or 0) + 1))


@pytest.mark.parametrize(
    ("code", "words"),
    [(1011, "it failed (1011"), (1012, "it is shutting down (1012"), (1013, "too slow"), (4000, "(4000")],
)
async def test_a_close_code_ends_the_batches_with_what_it_means(code: int, words: str) -> None:
    async def close(ws: ServerConnection) -> None:
        await greet(ws)
        await ws.send(batch(1, 3))
        await ws.close(code, "because")

    arrivals: list[Arrival] = []
    async with host(close) as url:
        link = await attempt(url)
        lost = await read_to_the_end(link, arrivals)
    assert positions(arrivals) == [1, 2, 3]
    assert lost.code == code
    assert words in str(lost)
    assert "because" in str(lost)


async def test_a_connection_that_breaks_is_lost_with_1006() -> None:
    async def break_off(ws: ServerConnection) -> None:
        await greet(ws)
        await ws.recv()
        ws.transport.abort()

    async with host(break_off) as url:
        link = await attempt(url)
        lost = await read_to_the_end(link, [])
        assert lost.code == 1006
        assert "the connection broke" in str(lost)
        with pytest.raises(ConnectionLost, match="not sent"):
            await link.send(Command(id="1", session="s", do=DoPause()))
        await link.close()


async def test_a_frame_that_is_too_large_ends_the_connection_and_says_so() -> None:
    async def huge(ws: ServerConnection) -> None:
        await greet(ws)
        await ws.send("x" * (16 * 1024 * 1024 + 1))

    async with host(huge) as url:
        link = await attempt(url)
        lost = await read_to_the_end(link, [])
    assert lost.code == 1009
    assert str(lost).startswith("we ended the connection")
    assert "a frame was larger than 16 MiB" in str(lost)


async def test_a_large_frame_that_is_allowed_arrives() -> None:
    async def large(ws: ServerConnection) -> None:
        await greet(ws)
        await ws.send(batch(1, 1, "x" * (15 * 1024 * 1024)))
        await ws.close()

    arrivals: list[Arrival] = []
    async with host(large) as url:
        link = await attempt(url)
        async for some in link.batches():
            arrivals += some
    assert positions(arrivals) == [1]


async def test_commands_leave_and_stay_in_flight_until_their_outcome() -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def listen(ws: ServerConnection) -> None:
        await greet(ws)
        async for frame in ws:
            heard.put_nowait(str(frame))

    async with host(listen) as url:
        to = target(url)
        core = ClientCore(to)
        link = await dial(to, core, timeout_s=PATIENCE_S)
        reader = asyncio.create_task(drain(link, []))
        assert '"watch"' in await heard.get()
        command = Command(id="1", session="s", do=DoPause())
        await link.send(command)
        await link.send(Watch(session="s"))
        assert await heard.get() == encode(command).decode()
        assert '"watch"' in await heard.get()
        assert core.pending() == (command,)
        with pytest.raises(ProtocolError):
            await link.send(Command(id="2", session="s", do=DoSend(text="\ud800")))
        await link.close()
        with pytest.raises(ConnectionLost, match="not sent"):
            await link.send(Command(id="3", session="s", do=DoPause()))
        await reader
        assert core.pending() == (command,)


async def test_closing_ends_the_batches_in_good_order() -> None:
    codes: list[int | None] = []

    async def listen(ws: ServerConnection) -> None:
        await greet(ws)
        await ws.wait_closed()
        codes.append(ws.close_code)

    async with host(listen) as url:
        link = await attempt(url)
        seen = 0
        async for _ in link.batches():
            seen += 1
            await link.close()
    assert seen == 1
    assert codes == [1000]
