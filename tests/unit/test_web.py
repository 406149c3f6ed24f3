"""How connectors of foreign systems speak HTTP: what each answer and each failure becomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest

from console.connectors.web import http
from console.connectors.web.address import Address, address_of
from console.connectors.web.http import Http
from console.connectors.web.sse import SseEvent
from watchfloor.connector import Target
from watchfloor.errors import ConfigError, ConnectionLost, Denied, NotAHost, Unreachable, WatchfloorError

SCHEMES = {"acme+http": "http", "acme+https": "https"}
ADDRESS = Address("http://acme.test/api", "acme+http://acme.test/api")


def client(handle: Callable[[httpx.Request], httpx.Response]) -> Http:
    return Http(ADDRESS, headers={"authorization": "Bearer s3cret"}, transport=httpx.MockTransport(handle))


@pytest.mark.parametrize(
    ("url", "base", "ws"),
    [
        ("acme+http://farm:8080/", "http://farm:8080", "ws://farm:8080/x"),
        ("acme+https://farm/sub/path/", "https://farm/sub/path", "wss://farm/sub/path/x"),
        ("acme+http://[::1]:80", "http://[::1]:80", "ws://[::1]:80/x"),
    ],
)
def test_addresses(url: str, base: str, ws: str) -> None:
    address = address_of(Target("a", url), SCHEMES)
    assert (address.base, address.ws("/x")) == (base, ws)


@pytest.mark.parametrize(
    "url",
    [
        "acme+http://",
        "acme+http://user:pw@farm",
        "acme+http://farm:99999",
        "acme+http://farm:0",
        "acme+http://farm/?token=s3cret",
        "acme+http://farm/#x",
        "acme+http://[::1",
        "acme+http://fa rm",
        "other://farm",
    ],
)
def test_addresses_that_cannot_be_used(url: str) -> None:
    with pytest.raises(ConfigError) as raised:
        address_of(Target("a", url), SCHEMES)
    assert "s3cret" not in str(raised.value)
    assert "pw" not in str(raised.value)


@pytest.mark.parametrize("token", ["", "a b", "ä", "a\nb"])
def test_tokens_that_no_header_can_carry(token: str) -> None:
    with pytest.raises(ConfigError, match="token"):
        address_of(Target("a", "acme+http://farm", token=token), SCHEMES)


async def test_an_answer_of_any_status_is_an_answer() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer s3cret"
        assert str(request.url) == "http://acme.test/api/runs?page=2"
        return httpx.Response(409, json={"error": "busy"})

    answer = await client(handle).get("/runs", params={"page": 2})
    assert (answer.status, answer.ok, answer.json()) == (409, False, {"error": "busy"})


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, html="<h1>Sign in</h1>"),
        httpx.Response(200, text="{}"),
        httpx.Response(200, headers={"content-type": "application/json"}, content=b"{"),
        httpx.Response(200, headers={"content-type": "application/json"}, content=b"[" * 100_000),
    ],
    ids=["page", "text", "broken", "deep"],
)
async def test_what_is_no_json_says_so(response: httpx.Response) -> None:
    answer = await client(lambda request: response).get("/")
    with pytest.raises(NotAHost, match=r"acme\.test"):
        answer.json()


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx.ConnectError("refused"), Unreachable),
        (httpx.ConnectTimeout("slow"), Unreachable),
        (httpx.ReadTimeout("slow"), ConnectionLost),
        (httpx.RemoteProtocolError("cut"), ConnectionLost),
        (httpx.WriteError("cut"), ConnectionLost),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_what_did_not_arrive_and_what_may_have(raised: Exception, kind: type[WatchfloorError]) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        raise raised

    with pytest.raises(kind) as told:
        await client(handle).post("/runs", {"go": True})
    assert type(told.value) is kind


async def test_an_endless_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.connectors.web.http.LARGEST", 1024)
    with pytest.raises(NotAHost, match="more than"):
        await client(lambda request: httpx.Response(200, content=b"x" * 5000)).get("/")


async def test_a_stream_of_events() -> None:
    stream = httpx.Response(
        200, headers={"content-type": "text/event-stream; charset=utf-8"}, content=b"data: 1\n\n:\n"
    )
    async with client(lambda request: stream).events("/feed") as feed:
        assert [event async for event in feed] == [SseEvent("1")]


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (httpx.Response(401, json={"error": "no"}), Denied),
        (httpx.Response(503), Unreachable),
        (httpx.Response(404, text="what?"), NotAHost),
        (httpx.Response(200, html="<h1>Sign in</h1>"), NotAHost),
    ],
    ids=["401", "503", "404", "page"],
)
async def test_an_answer_that_is_no_stream(response: httpx.Response, kind: type[WatchfloorError]) -> None:
    with pytest.raises(kind) as raised:
        async with client(lambda request: response).events("/feed"):
            raise AssertionError("never entered")
    assert "Sign in" not in str(raised.value)


async def test_a_stream_that_breaks_is_lost() -> None:
    class Broken(httpx.AsyncByteStream):
        async def __aiter__(self):  # type: ignore[no-untyped-def]
            yield b"data: 1\n\n"
            raise httpx.ReadError("cut\x1b[31m")

    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Broken())
    seen: list[SseEvent | None] = []

    async def read() -> None:
        async with client(lambda request: response).events("/feed") as feed:
            async for event in feed:
                seen.append(event)

    with pytest.raises(ConnectionLost) as raised:
        await read()
    assert seen == [SseEvent("1")]
    assert "\x1b" not in str(raised.value)


async def test_an_idle_connection_is_not_kept_until_its_server_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "KEPT_S", 0.05)
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except asyncio.IncompleteReadError:
            writer.close()

    async with await asyncio.start_server(end, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        asking = Http(Address(f"http://127.0.0.1:{port}", "acme"))
        try:
            assert (await asking.get("/")).ok
            await asyncio.sleep(0.2)
            assert (await asking.get("/")).ok
            assert connections == 2
        finally:
            await asking.close()
