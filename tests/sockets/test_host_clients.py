"""Clients of a host over real sockets: resuming, deciding, being slow, being rude."""

from __future__ import annotations

import asyncio
import json

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from tests.sockets.host_kit import PATIENCE_S, Script, until
from tests.sockets.plain_client import PlainClient
from tests.unit.host.puppet import ALLOW, DENY
from watchfloor.host.principals import Principal
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import Message
from watchfloor.protocol.model import Action, RequestModel, Subject
from watchfloor.words import RequestKind, Role


async def opened(host: Host, name: str, token: str | None = None) -> PlainClient:
    client = PlainClient(host.url, name=name, token=token)
    await client.open()
    return client


async def running(host: Host, name: str = "worker") -> tuple[Script, str]:
    """A session with a turn under way."""
    script = Script()
    session = host.add(script, name=name, text="go")
    await until(lambda: script.attempts and script.attempts[0].told)
    return script, session


def ask(script: Script, id: str = "r1") -> None:
    port = script.attempts[0].port
    subject = Subject(
        session=port.session_id,
        attempt=port.attempt,
        id=id,
        kind=RequestKind.APPROVAL,
        actions=(Action(tool="shell", text="make"),),
        options=(ALLOW, DENY),
    )
    port.ask(RequestModel.ask(subject, asked_at=port.now()))


async def test_nothing_is_lost_or_doubled_when_a_client_comes_back() -> None:
    async with Host() as host:
        await host.serve()
        script, session = await running(host)
        port = script.attempts[0].port
        client = await opened(host, "ada")
        await client.watch(start="start")
        for number in range(300):
            port.emit(Message(at=0, text=str(number)))
            if number % 100 == 50:
                await client.until(lambda n=number: any(e.get("text") == str(n) for e in client.arrived))  # type: ignore[misc]
                seen = list(client.arrived)
                # Cut off, without a word.
                client.ws.transport.abort()
                await client.resume()
                client.arrived = seen + client.arrived
        await client.until(lambda: client.arrived and client.arrived[-1].get("text") == "299")
        seqs = [event["seq"] for event in client.arrived]
        assert seqs == list(range(1, len(seqs) + 1))
        assert client.sessions[session]["epoch"] == client.epochs[session]
        await client.ws.close()


async def test_a_long_past_arrives_whole() -> None:
    async with Host() as host:
        await host.serve()
        script, _ = await running(host)
        port = script.attempts[0].port
        for number in range(5_000):
            port.emit(Message(at=0, text=f"{number} " + "x" * 200))
        client = await opened(host, "ada")
        through = (await client.watch(start="start"))["through"]
        await client.until(lambda: client.pos >= through)
        assert [event["pos"] for event in client.arrived] == list(range(1, through + 1))
        await client.ws.close()


async def test_two_operators_and_one_request() -> None:
    async with Host() as host:
        await host.serve()
        script, session = await running(host)
        ada, bob = await opened(host, "ada"), await opened(host, "bob")
        ask(script)
        await ada.until(lambda: (session, "r1") in ada.requests)
        await bob.until(lambda: (session, "r1") in bob.requests)
        won = await ada.decide(session, "r1", "approve", option="yes")
        lost = await bob.decide(session, "r1", "approve", option="no")
        assert won["outcome"] == "applied"
        assert lost["outcome"] == "already_decided"
        assert (lost["decided"]["by"], lost["decided"]["option"]) == ("ada (unverified)", "yes")
        await bob.until(lambda: bob.requests[session, "r1"]["state"] == "resolved")
        assert bob.sessions[session]["lifecycle"] == "running"
        for client in (ada, bob):
            await client.ws.close()


async def test_a_command_is_executed_once_even_after_a_new_connection() -> None:
    async with Host() as host:
        await host.serve()
        script, session = await running(host)
        client = await opened(host, "ada")
        first = await client.command(session, "send", "k1", text="once")
        client.ws.transport.abort()
        await client.resume()
        assert (await client.recall("k1", "k2"))[0]["outcome"] == "applied"
        never = client.answers["k2"]
        assert (never["outcome"], never["instance"]) == ("undelivered", client.welcome["host"]["instance"])
        assert await client.command(session, "send", "k1", text="once") == first
        assert host.core.session(session).mailbox.view.refs == 2
        assert [type(signal).__name__ for signal in script.attempts[0].told].count("MailArrived") == 1
        await client.ws.close()


async def test_an_observer_sees_and_does_nothing() -> None:
    tokens = {"eyes": Principal("olga", Role.OBSERVER)}
    async with Host(tokens=tokens) as host:
        await host.serve()
        _, session = await running(host)
        client = await opened(host, "", token="eyes")
        await client.watch(start="start")
        outcome = await client.command(session, "stop")
        assert outcome["outcome"] == "not_permitted"
        assert host.core.session(session).lifecycle.value == "running"
        await client.ws.close()


async def test_a_slow_client_is_told_what_it_was_not_sent_and_nobody_else_notices() -> None:
    async with Host(queue_bytes=2 * 1024 * 1024) as host:
        await host.serve()
        script, session = await running(host)
        port = script.attempts[0].port
        slow, quick = await opened(host, "slow"), await opened(host, "quick")
        await slow.watch()
        await quick.watch()
        # Far more than all the buffers between the two take.
        for number in range(80):
            port.emit(Message(at=0, text=f"{number} " + "x" * 250_000))
            await quick.until(lambda n=number: any(e.get("text", "").startswith(f"{n} ") for e in quick.arrived))  # type: ignore[misc]
            quick.arrived.clear()
        await slow.until(lambda: slow.others.get("lagged"))
        (lagged,) = slow.others["lagged"]
        last = host.core.log.head(session)
        assert (lagged["session"], lagged["to_seq"]) == (session, last)
        port.emit(Message(at=0, text="and on"))
        await slow.until(lambda: slow.arrived[-1].get("text") == "and on")
        got = [event["seq"] for event in slow.arrived]
        assert got == [*range(got[0], lagged["from_seq"] + 1), last + 1]
        # What it missed is still there.
        page = await slow.history(session, after=lagged["from_seq"], limit=5000)
        assert page["events"][0]["seq"] == lagged["from_seq"] + 1
        for client in (slow, quick):
            await client.ws.close()


async def test_a_client_that_never_reads_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchfloor.host.serving.outbox.CLOSE_S", 0.2)
    monkeypatch.setattr("watchfloor.host.core.LAG_MS", 300)
    async with Host(queue_bytes=2 * 1024 * 1024) as host:
        await host.serve()
        script, _ = await running(host)
        dead = await opened(host, "dead")
        await dead.watch()
        conn = next(iter(host.core.connections()))
        for _ in range(80):
            script.attempts[0].port.emit(Message(at=0, text="x" * 250_000))
            host.perform(host.core.flush(host.now()))
            # So that the host comes to write, and to hang in it.
            await asyncio.sleep(0)
        await until(lambda: conn not in host.core.connections())
        dead.ws.transport.abort()


async def test_a_frame_that_is_too_large_ends_its_own_connection_only() -> None:
    async with Host() as host:
        await host.serve()
        _, session = await running(host)
        rude, other = await opened(host, "rude"), await opened(host, "other")
        with pytest.raises(ConnectionClosed) as caught:
            await rude.command(session, "send", text="x" * (1024 * 1024 + 1))
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1009
        assert (await other.command(session, "send", text="still here"))["outcome"] == "applied"
        await other.ws.close()


async def test_a_bad_frame_is_answered_and_forgiven() -> None:
    async with Host() as host:
        await host.serve()
        _, session = await running(host)
        client = await opened(host, "ada")
        for raw in ('{"type": "command"', json.dumps({"type": "command", "id": "k"}), b"\x00\xff"):
            await client.ws.send(raw)
        await client.until(lambda: len(client.others.get("error", ())) == 3)
        told = [(error["code"], error.get("about")) for error in client.others["error"]]
        assert told == [("malformed", None), ("malformed", "k"), ("malformed", None)]
        assert (await client.command(session, "send", text="hello"))["outcome"] == "applied"
        await client.ws.close()


async def test_who_does_not_say_hello_is_told_so() -> None:
    async with Host() as host:
        await host.serve()
        for raw in (json.dumps({"type": "watch", "session": "*"}), '{"type": "hello"}', "hello", b"\xff"):
            async with connect(host.url, subprotocols=[Subprotocol("watchfloor.v1")], proxy=None) as ws:
                await ws.send(raw)
                await told_off(ws)


async def test_who_says_nothing_is_let_go_and_who_has_said_hello_may_be_silent() -> None:
    async with Host(hello_s=0.2) as host:
        await host.serve()
        client = await opened(host, "ada")
        async with connect(host.url, subprotocols=[Subprotocol("watchfloor.v1")], proxy=None) as ws:
            assert (await told_off(ws))["message"] == "no hello within 0.2 s"
        await until(lambda: len(host.core.connections()) == 1)
        assert (await client.ask("query", what="anything"))["code"] == "unsupported"
        await client.ws.close()


async def told_off(ws: ClientConnection) -> dict[str, object]:
    """Read the one frame that such a client gets, and the end of the connection after it."""
    async with asyncio.timeout(PATIENCE_S):
        error: dict[str, object] = json.loads(await ws.recv())
        assert (error["type"], error["fatal"]) == ("error", True)
        with pytest.raises(ConnectionClosed) as caught:
            await ws.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1008
    return error


async def test_a_host_that_ends_says_that_it_drains() -> None:
    async with Host() as host:
        await host.serve()
        script, _ = await running(host)
        client = await opened(host, "ada")
    with pytest.raises(ConnectionClosed) as caught:
        await client.until(lambda: False)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1012
    assert script.attempts[0].closed == 1


async def test_a_client_that_never_reads_does_not_keep_a_host_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchfloor.host.serving.outbox.CLOSE_S", 0.2)
    host = Host()
    async with host:
        await host.serve()
        script, _ = await running(host)
        dead = await opened(host, "dead")
        await dead.watch()
        for _ in range(40):
            script.attempts[0].port.emit(Message(at=0, text="x" * 250_000))
            host.perform(host.core.flush(host.now()))
            # So that the host comes to write, and to hang in it.
            await asyncio.sleep(0)
        try:
            # The pings end such a connection as well, but only after most of a minute.
            async with asyncio.timeout(25):
                await host.close()
        finally:
            dead.ws.transport.abort()


async def test_beats_come_by_themselves() -> None:
    async with Host(heartbeat_s=0.2) as host:
        await host.serve()
        client = await opened(host, "ada")
        assert client.welcome["heartbeat_s"] == 0.2
        await client.until(lambda: len(client.others.get("beat", ())) >= 3)
        beats = client.others["beat"]
        assert [beat["now"] for beat in beats] == sorted({beat["now"] for beat in beats})
        await client.ws.close()
