"""Where a host listens, and whom it lets in, over real sockets."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.sockets.host_kit import Script, http
from tests.sockets.plain_client import PlainClient
from watchfloor.errors import AddressInUse, WatchfloorError
from watchfloor.host.principals import Principal
from watchfloor.host.serving.server import Host
from watchfloor.words import Role

TOKENS = {"s3cret": Principal("ada"), "eyes": Principal("olga", Role.OBSERVER)}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer s3cret"}, 101),
        ({"Authorization": "Bearer s3cret", "Origin": "https://evil.example"}, 403),
        ({"Authorization": "Bearer s3cret", "Host": "evil.example"}, 403),
        ({"Authorization": "Bearer s3cret", "Host": None}, 403),
        ({"Authorization": "Bearer s3cret", "Sec-WebSocket-Protocol": None}, 400),
        ({"Authorization": "Bearer s3cret", "Sec-WebSocket-Protocol": "chat"}, 400),
        ({"Authorization": "Bearer s3cret", "Upgrade": None, "Sec-WebSocket-Protocol": None}, 400),
    ],
)
async def test_the_door(headers: dict[str, str | None], status: int, capfd: pytest.CaptureFixture[str]) -> None:
    async with Host(tokens=TOKENS) as host:
        host.add(Script(), name="one")
        url = await host.serve()
        found, body = await http(url, headers)
        assert found == status, body
        if status != 101:
            assert body.count("\n") == 1
            assert "s3cret" not in body
    # A host must not write into the terminal of the program that it lives in.
    assert capfd.readouterr() == ("", "")


async def test_tokens_name_their_principals() -> None:
    async with Host(name="build", tokens=TOKENS) as host:
        url = await host.serve()
        client = PlainClient(url, name="whoever", token="eyes")
        await client.open()
        assert (client.welcome["principal"], client.welcome["role"]) == ("olga", "observer")
        assert client.welcome["host"]["name"] == "build"
        await client.ws.close()


async def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with Host() as host:
            with pytest.raises(AddressInUse) as caught:
                await host.serve(port=port)
            assert str(caught.value) == f"127.0.0.1:{port} is in use by another program"
            with pytest.raises(WatchfloorError, match="not serve yet"):
                _ = host.url
            assert await host.serve() == host.url


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])  # noqa: S104
async def test_only_this_machine_is_served(address: str) -> None:
    async with Host() as host:
        with pytest.raises(WatchfloorError, match="reached from other machines"):
            await host.serve(address)


@pytest.mark.parametrize(("address", "prefix"), [("localhost", "ws://127.0.0.1:"), ("::1", "ws://[::1]:")])
async def test_other_loopback_addresses(address: str, prefix: str) -> None:
    async with Host() as host:
        try:
            url = await host.serve(address)
        except WatchfloorError as error:
            pytest.skip(f"no such address here: {error}")
        assert url.startswith(prefix)
        client = PlainClient(url)
        await client.open()
        await client.ws.close()


async def test_a_host_serves_once() -> None:
    async with Host() as host:
        await host.serve()
        with pytest.raises(WatchfloorError, match="already"):
            await host.serve()


async def test_what_is_not_http_disturbs_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    async with Host() as host:
        url = await host.serve()
        client = PlainClient(url)
        await client.open()
        port = int(url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        await reader.read()
        writer.close()
        await writer.wait_closed()
        assert (await client.ask("query", what="anything"))["code"] == "unsupported"
        await client.ws.close()
    assert capfd.readouterr() == ("", "")
