"""`watchfloor web`: who is let in, and the console that is drawn for them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from console.cli.parser import parse
from console.cli.web import Door, command
from tests.sockets.cli_kit import Program

pytest.importorskip("textual_serve", reason="the extra `web` is not installed")

PATIENCE_S = 90.0


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture
async def url(program: Program) -> AsyncIterator[str]:
    """The address that `watchfloor web --demo` prints, for as long as it serves."""
    async with program.running("web", "--demo") as process:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)).decode()
        found = re.search(r"open (http://127\.0\.0\.1:\d+/[\w-]{32}/) in a browser", line)
        assert found, line
        yield found[1]
        process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE_S)
        assert process.returncode == 0


def place(url: str) -> str:
    return url.split("/")[2]


async def get(url: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(url, headers=headers)


async def seen(socket: ClientConnection, text: str) -> None:
    """Wait until the console has drawn this."""
    drawn = b""
    async with asyncio.timeout(PATIENCE_S):
        while text.encode() not in re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", drawn):
            piece = await socket.recv()
            drawn += piece if isinstance(piece, bytes) else piece.encode()


async def press(socket: ClientConnection, keys: str) -> None:
    await socket.send(json.dumps(["stdin", keys]))


async def ends(socket: ClientConnection) -> None:
    """Agree to what is asked until the console has ended. Behind a text, and in the question's first moment, no key
    counts, so each gets a while."""
    async with asyncio.timeout(PATIENCE_S):
        with suppress(ConnectionClosed):
            while True:
                await press(socket, "y")
                with suppress(TimeoutError):
                    async with asyncio.timeout(2):
                        while True:
                            await socket.recv()


async def test_the_page_is_ours_and_asks_nobody_else_for_anything(url: str) -> None:
    page = await get(url)
    assert page.status_code == 200
    addresses = set(re.findall(r"(?:href|src|url)=?[\"(]([^\")]+)", page.text))
    assert {address for address in addresses if "//" in address} == {f"ws://{place(url)}/{url.split('/')[3]}/ws"}
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    for address in addresses:
        if address.startswith("/"):
            assert (await get(f"http://{place(url)}{address}")).status_code == 200


async def test_without_the_token_nothing_is_there(url: str) -> None:
    base = f"http://{place(url)}"
    for path in ("/", "/ws", "/static/js/textual.js", "/x" * 16 + "/", "/download/1"):
        assert (await get(base + path)).status_code == 404, path
    assert (await get(f"{url}download/1")).status_code == 404
    assert (await get(f"{url}static/../../../../etc/passwd")).status_code == 404


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "evil.example:80", ""])
async def test_another_host_is_refused(url: str, host: str) -> None:
    assert (await get(url, Host=host)).status_code in (400, 403)


async def test_another_origin_is_refused(url: str) -> None:
    for origin in ("http://evil.example", "null", f"https://{place(url)}", f"http://{place(url)}0"):
        assert (await get(url, Origin=origin)).status_code == 403, origin
    socket_url = f"{url.replace('http', 'ws', 1)}ws"
    for headers in ({"Origin": "http://evil.example"}, {}):
        with pytest.raises(InvalidStatus) as caught:
            async with connect(socket_url, additional_headers=headers, proxy=None):
                pass
        assert caught.value.response.status_code == 403


async def test_the_console_is_drawn_takes_keys_and_ends(url: str) -> None:
    socket_url = f"{url.replace('http', 'ws', 1)}ws?width=100&height=30"
    headers = {"Origin": f"http://{place(url)}"}
    async with connect(socket_url, additional_headers=headers, max_size=None, proxy=None) as socket:
        await seen(socket, "DEMO")
        await press(socket, "?")
        await seen(socket, "allow what is shown, this once")
        await press(socket, "q")
        await seen(socket, "DEMO")
        # An escape inside of a paste would end it where the toolkit looks for its end by itself.
        await press(socket, "\x1b[200~\x1b[201\x1bqy\x1b[201~")
        await socket.send(json.dumps(["resize", {"width": 60, "height": 20}]))
        await press(socket, "q")
        await seen(socket, "quit?")
        await ends(socket)


async def test_only_so_many_are_open_at_once(url: str) -> None:
    socket_url = f"{url.replace('http', 'ws', 1)}ws"
    headers = {"Origin": f"http://{place(url)}"}
    async with asyncio.TaskGroup() as group:

        async def hold(ready: asyncio.Event, done: asyncio.Event) -> None:
            async with connect(socket_url, additional_headers=headers, max_size=None, proxy=None):
                ready.set()
                await done.wait()

        done = asyncio.Event()
        held = [asyncio.Event() for _ in range(4)]
        for event in held:
            group.create_task(hold(event, done))
        for event in held:
            await asyncio.wait_for(event.wait(), PATIENCE_S)
        with pytest.raises(InvalidStatus) as caught:
            async with connect(socket_url, additional_headers=headers, proxy=None):
                pass
        done.set()
    assert caught.value.response.status_code == 503


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.168.1.7:0", "[::]:0", "example.com:80"])
async def test_it_listens_on_this_machine_alone(program: Program, address: str) -> None:
    done = await program("web", "--serve", address)
    assert done.code == 2
    assert "this machine only" in done.err


def test_a_door_tells_tokens_apart() -> None:
    door = Door("127.0.0.1:80", 80, "tök-en")
    assert door.refuses("127.0.0.1:80", None, "/tök-en/", upgrades=False) is None
    assert door.refuses("localhost:80", "http://localhost:80", "/tök-en/ws", upgrades=True) is None
    refused = door.refuses("127.0.0.1:80", "http://localhost:80", "/tök-en/ws", upgrades=True)
    assert refused is not None
    assert refused[0] == 403
    assert Door("127.0.0.1:80", 80).token != Door("127.0.0.1:80", 80).token


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (["web"], ["--browser"]),
        (["web", "--read-only", "--demo"], ["--browser", "--read-only", "demo"]),
        (["--read-only", "web", "ws://a", "farm"], ["--browser", "--read-only", "connect", "ws://a", "farm"]),
    ],
)
def test_the_consoles_are_started_as_was_asked(words: list[str], ends: list[str]) -> None:
    program = command(parse(words))
    assert program[-len(ends) :] == ends
    assert parse(program[3:]).browser
