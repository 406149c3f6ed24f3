"""Dialling what is not there, what is no host, and what is: over real sockets on loopback."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from tests.sockets.kit import PATIENCE_S, SOON_S, TOKEN, attempt, greet, host, target, tcp, welcome
from watchfloor.errors import (
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    Denied,
    NoCommonProtocol,
    NotAHost,
    Unreachable,
)
from watchfloor.protocol.codec import encode
from watchfloor.protocol.frames import Error, ErrorCode
from watchfloor.text import clean_line
from watchfloor.words import PROTOCOL

CERTIFICATE = Path(__file__).parents[1] / "fixtures" / "loopback.pem"


async def fails(url: str, token: str | None = TOKEN, timeout_s: float = PATIENCE_S) -> ConnectionFailed:
    """The failure of a dial, which must be one clear line without the token, and stand alone in a traceback."""
    with pytest.raises(ConnectionFailed) as caught:
        await attempt(url, token, timeout_s)
    error = caught.value
    text = str(error)
    assert "\n" not in text
    assert text.isprintable()
    assert len(text) < 400
    assert TOKEN not in text
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    return error


# --- nobody, or somebody else ----------------------------------------------------------------------


async def test_a_port_where_nothing_listens_is_unreachable() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        error = await fails(f"ws://127.0.0.1:{sock.getsockname()[1]}")
    assert isinstance(error, Unreachable)
    assert "nothing listens at ws://127.0.0.1:" in str(error)
    assert (error.exit_code, error.retry) == (8, True)


@pytest.mark.parametrize("name", ["no-such-host.invalid", "ex\u202eample.invalid"])
async def test_a_name_that_is_not_known_is_unreachable(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def nowhere(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    error = await fails(f"ws://{name}:7340")
    assert isinstance(error, Unreachable)
    assert f"the name {clean_line(name)!r} is not known" in str(error)


@pytest.mark.parametrize("name", ["a..b", "x" * 70])
async def test_a_name_that_cannot_be_one_is_unreachable(name: str) -> None:
    assert isinstance(await fails(f"ws://{name}:7340"), Unreachable)


async def test_an_address_that_takes_no_connection_is_unreachable() -> None:
    with socket.socket() as sock, socket.socket() as first:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        first.connect(sock.getsockname())
        waiting = [socket.socket() for _ in range(4)]
        try:
            # Fill the queue of connections that nobody accepts, so that the next one gets no answer at all.
            for other in waiting:
                other.setblocking(False)
                other.connect_ex(sock.getsockname())
            error = await fails(f"ws://127.0.0.1:{sock.getsockname()[1]}", timeout_s=SOON_S)
        finally:
            for other in waiting:
                other.close()
    assert isinstance(error, Unreachable)
    assert f"does not answer within {SOON_S:g} s" in str(error)


async def test_a_server_that_says_nothing_is_no_host() -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with tcp(mute) as place:
        error = await fails(f"ws://{place}", timeout_s=SOON_S)
    assert isinstance(error, NotAHost)
    assert "accepts connections and says nothing" in str(error)
    assert error.exit_code == 8


async def test_a_host_that_says_nothing_after_the_handshake_is_no_host() -> None:
    async def mute(ws: ServerConnection) -> None:
        await ws.wait_closed()

    async with host(mute) as url:
        error = await fails(url, timeout_s=SOON_S)
    assert isinstance(error, NotAHost)
    assert "accepts connections and says nothing" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        b"220 mail.example ESMTP\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 200,
        b"\x00" * 100_000,
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: wrong\r\n\r\n",
    ],
)
async def test_a_server_that_talks_something_else_is_no_host(answer: bytes) -> None:
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        await reader.read(65536)

    async with tcp(garbage) as place:
        error = await fails(f"ws://{place}")
    assert isinstance(error, NotAHost)
    assert place in str(error)


@pytest.mark.parametrize("politely", [True, False])
async def test_a_server_that_hangs_up_is_no_host(politely: bool) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        if not politely:
            writer.transport.abort()

    async with tcp(hang_up) as place:
        error = await fails(f"ws://{place}")
    assert isinstance(error, NotAHost)
    assert "hung up during the handshake" in str(error)


def http_server(status: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello".encode())
        await writer.drain()

    return answer


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        ("200 OK", NotAHost, "is a web server"),
        ("404 Not Found", NotAHost, "(HTTP 404)"),
        ("302 Found\r\nLocation: ws://127.0.0.1:1/", NotAHost, "(HTTP 302)"),
        ("301 Moved Permanently\r\nLocation: https://elsewhere.example/", NotAHost, "(HTTP 301)"),
        ("501 Not Implemented", NotAHost, "(HTTP 501)"),
        ("400 Bad Request", NoCommonProtocol, PROTOCOL),
        ("401 Unauthorized", Denied, "refuses the token (401)"),
        ("403 Forbidden", Denied, "Origin or Host"),
        ("503 Service Unavailable", Unreachable, "does not take connections now"),
    ],
)
async def test_what_a_web_server_answers_decides(status: str, kind: type[ConnectionFailed], words: str) -> None:
    async with tcp(http_server(status)) as place:
        error = await fails(f"ws://{place}/some/path?key=sesame")
    assert type(error) is kind
    assert words in str(error)
    assert f"ws://{place}/some/path" in str(error)
    assert "sesame" not in str(error)
    assert (error.exit_code, error.retry) == ((7, False) if kind is Denied else (8, True))


async def test_a_host_that_wants_a_token_says_how_to_give_one() -> None:
    async with tcp(http_server("401 Unauthorized")) as place:
        error = await fails(f"ws://{place}", token=None)
    assert "wants a token (401): give it with --token-file" in str(error)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
async def test_tls_where_there_is_none(answer: bytes) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        await reader.read()

    async with tcp(plain) as place:
        error = await fails(f"wss://{place}", timeout_s=PATIENCE_S if answer else SOON_S)
    assert isinstance(error, NotAHost)
    assert "use ws://" in str(error)


def tls_server() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


async def test_a_certificate_that_is_not_trusted() -> None:
    async with host(greet, tls=tls_server()) as url:
        error = await fails(url)
    assert isinstance(error, NotAHost)
    assert f"the certificate of {url} is not trusted" in str(error)


async def test_a_certificate_that_was_made_trusted() -> None:
    trust = ssl.create_default_context(cafile=CERTIFICATE)
    async with host(greet, tls=tls_server()) as url:
        link = await attempt(url, tls=trust)
        await link.close()


async def test_no_tls_where_there_is() -> None:
    async with host(greet, tls=tls_server()) as url:
        error = await fails(url.replace("wss:", "ws:"))
    assert isinstance(error, NotAHost)


# --- WebSocket servers that are no hosts -----------------------------------------------------------


@pytest.mark.parametrize("subprotocols", [(), ("graphql-ws",)])
async def test_a_server_without_our_subprotocol(subprotocols: tuple[str, ...]) -> None:
    asked: list[str | None] = []

    def insist(ws: ServerConnection, request: Request) -> None:
        asked.append(request.headers.get("Sec-WebSocket-Protocol"))

    async with host(greet, subprotocols=subprotocols, answer=insist) as url:
        error = await fails(url)
    assert isinstance(error, NoCommonProtocol)
    assert f"does not offer {PROTOCOL}" in str(error)
    assert asked == [PROTOCOL]


@pytest.mark.parametrize(
    ("greeting", "kind", "words"),
    [
        (b'{"type":"beat","now":1,"pos":0}', NotAHost, "does not greet as a Watchfloor host"),
        (b'{"type":"ack"}', NotAHost, "does not greet as a Watchfloor host"),
        (b"hello", NotAHost, "unreadable (not JSON"),
        (welcome("watchfloor.v9"), NoCommonProtocol, "'watchfloor.v9'"),
        (encode(Error(code=ErrorCode.NOT_PERMITTED, message="go\x1b[2J away", fatal=True)), Denied, "refuses"),
        (encode(Error(code=ErrorCode.MALFORMED, message="x" * 9000, fatal=True)), NotAHost, "does not welcome"),
    ],
)
async def test_a_server_that_greets_otherwise(greeting: bytes, kind: type[ConnectionFailed], words: str) -> None:
    async def greet_badly(ws: ServerConnection) -> None:
        await ws.recv()
        await ws.send(greeting.decode())
        await ws.wait_closed()

    async with host(greet_badly) as url:
        error = await fails(url)
    assert type(error) is kind
    assert words in str(error)


async def test_a_host_that_ends_the_connection_before_its_welcome() -> None:
    async def drain(ws: ServerConnection) -> None:
        await ws.close(1012, "draining\x07")

    async with host(drain) as url:
        error = await fails(url)
    assert isinstance(error, ConnectionLost)
    assert error.code == 1012
    assert "it is shutting down (1012" in str(error)


# --- addresses and tokens --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["ws://", "ws:///x", "http://h", "h:1", "", "ws://h:99999", "ws://h:0", "ws://[::1", f"ws://u:{TOKEN}@h"]
)
async def test_an_address_that_cannot_be_used_is_not_dialled(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await attempt(url)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("token", ["", "two words", "two\nlines", "\x00", "g\u00e4nse", "a\r\nX-Evil: 1"])
async def test_a_token_that_cannot_be_sent_is_not_sent(token: str) -> None:
    with pytest.raises(ConfigError, match="the token for local") as caught:
        await attempt("ws://127.0.0.1:1", token)
    assert token == "" or token not in str(caught.value)


async def test_what_the_handshake_carries(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[Request] = []

    def look(ws: ServerConnection, request: Request) -> Response | None:
        seen.append(request)
        return ws.respond(HTTPStatus.UNAUTHORIZED, "no")

    async with host(greet, answer=look) as url:
        with pytest.raises(Denied):
            await attempt(url)
        with pytest.raises(Denied):
            await attempt(url, token=None)
    with_token, without = (request.headers for request in seen)
    assert with_token["Authorization"] == f"Bearer {TOKEN}"
    assert with_token["User-Agent"] == "console/1.2"
    assert "Authorization" not in without
    for headers in (with_token, without):
        assert "Origin" not in headers
        assert "Sec-WebSocket-Extensions" not in headers
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("websockets.server")]
    assert not any(TOKEN in text for text in ours)
    assert TOKEN not in repr(target(url))


async def test_a_dial_that_is_given_up_leaves_nothing_open() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def mute(ws: ServerConnection) -> None:
        begun.set()
        await ws.wait_closed()
        ended.set()

    async with host(mute) as url:
        task = asyncio.create_task(attempt(url))
        await asyncio.wait_for(begun.wait(), PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
