"""A foreign system served natively: clients of our own protocol see it and act on it through the bridge."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from console.connectors.codex import connector
from console.connectors.codex.connector import CodexFactory
from console.connectors.registry import connector_for
from tests.peers.codex_desk import Desk
from tests.peers.codex_server import FakeCodex, fake_codex
from tests.sockets.cli_kit import Program
from watchfloor.bridge import Bridge
from watchfloor.connector import Record, Target
from watchfloor.errors import ConnectionLost, Denied, Unreachable
from watchfloor.foreign import ForeignConnector
from watchfloor.host.principals import Principal
from watchfloor.protocol.events import Message
from watchfloor.protocol.frames import DoApprove, History
from watchfloor.words import Lifecycle, OutcomeKind, Role

TOKENS = {"ann-s": Principal("ann"), "eye-s": Principal("eye", Role.OBSERVER)}


@pytest.fixture
async def server() -> AsyncIterator[FakeCodex]:
    async with fake_codex() as made:
        yield made


async def at_once(seconds: float) -> None:
    await asyncio.sleep(0.01)


@asynccontextmanager
async def bridging(url: str, told: list[str] | None = None, record: Record = Record.ALL) -> AsyncIterator[Bridge]:
    made = CodexFactory()(Target("codex", url, user="bridge", record=record))
    assert isinstance(made, ForeignConnector)
    lines = told if told is not None else []
    async with Bridge(made, told=lines.append, sleep=at_once, tokens=TOKENS) as bridge:
        await bridge.serve(announce=False)
        running = asyncio.create_task(bridge.run())
        try:
            yield bridge
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def desk(bridge: Bridge, who: str = "ann-s", record: Record = Record.ALL) -> AsyncIterator[Desk]:
    made = Desk(connector_for(Target("bridge", bridge.url, token=who, record=record)))
    await made.read()
    try:
        await made.until(lambda: made.listed)
        yield made
    finally:
        await made.close()


async def test_a_request_is_decided_through_the_bridge(server: FakeCodex) -> None:
    server.thread("t1", info={"name": "worker"})
    await server.begin_turn("t1")
    number = await server.ask_command("t1")
    async with bridging(server.url) as bridge:
        await bridge.reached.wait()
        async with desk(bridge) as seen, desk(bridge, "eye-s") as watcher:
            assert seen.welcome is not None
            assert (seen.welcome.host.name, seen.welcome.host.version) == ("codex app-server", "0.171.0")
            request, subject = await seen.asked("t1")
            decision = DoApprove(request=subject.id, option="accept", digest=request.digest)
            refused = await watcher.do("t1", decision)
            assert refused.outcome is OutcomeKind.NOT_PERMITTED
            id = await seen.send("t1", decision)
            assert await server.answered(number) == {"decision": "accept"}
            await server.end_command("t1", "completed")
            await server.end_turn("t1")
            await seen.until(lambda: id in seen.outcomes)
            assert seen.outcomes[id].outcome is OutcomeKind.APPLIED
            await watcher.until(lambda: not watcher.open("t1"))
            ended = watcher.requests[subject.id].decision
            assert ended is not None
            assert (ended.option, ended.by) == ("accept", "ann")


async def test_who_looks_at_a_session_has_it_fetched(server: FakeCodex) -> None:
    thread = server.thread("t1", status={"type": "notLoaded"})
    thread.past.append({"turnId": "u", "item": {"type": "agentMessage", "id": "m", "text": "said"}})
    async with bridging(server.url, record=Record.NONE) as bridge:
        await bridge.reached.wait()
        async with desk(bridge, record=Record.NONE) as seen:
            await seen.watch("t1")
            await seen.until(lambda: [message.text for message in seen.of("t1", Message)] == ["said"])


async def test_the_first_page_of_history_waits_for_what_is_in_it(server: FakeCodex) -> None:
    thread = server.thread("t1", status={"type": "notLoaded"})
    thread.past.append({"turnId": "u", "item": {"type": "agentMessage", "id": "m", "text": "said"}})
    server.slow["thread/items/list"] = asyncio.Event()
    async with bridging(server.url, record=Record.NONE) as bridge:
        await bridge.reached.wait()
        async with desk(bridge, record=Record.NONE) as seen:
            await seen.link.send(History(id="h", session="t1", epoch=str(seen.sessions["t1"]["epoch"]), limit=10))
            await asyncio.wait_for(server.called("thread/items/list"), 60)
            assert not seen.pages
            server.slow["thread/items/list"].set()
            await seen.until(lambda: seen.pages)
            assert [event.text for event in seen.pages[0].events if isinstance(event, Message)] == ["said"]
            # What comes later needs no waiting.
            await seen.link.send(History(id="h", session="t1", epoch=str(seen.sessions["t1"]["epoch"]), limit=10))
            await seen.until(lambda: len(seen.pages) == 2)


async def test_a_page_of_history_for_who_has_left_is_not_sent(server: FakeCodex) -> None:
    server.thread("t1", status={"type": "notLoaded"})
    server.slow["thread/items/list"] = asyncio.Event()
    async with bridging(server.url, record=Record.NONE) as bridge:
        await bridge.reached.wait()
        async with desk(bridge, record=Record.NONE) as seen:
            await seen.link.send(History(id="h", session="t1", epoch=str(seen.sessions["t1"]["epoch"]), limit=10))
            await asyncio.wait_for(server.called("thread/items/list"), 60)
        server.slow["thread/items/list"].set()
        async with desk(bridge, record=Record.NONE) as seen:
            await seen.link.send(History(id="h", session="t1", epoch=str(seen.sessions["t1"]["epoch"]), limit=10))
            await seen.until(lambda: seen.pages)


async def test_a_session_that_nobody_looks_at_any_more_is_let_go(
    server: FakeCodex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "BEAT_S", 0.02)
    monkeypatch.setattr(connector, "LINGER_MS", 0)
    for id in ("t1", "t2", "t3"):
        server.thread(id)
    async with bridging(server.url, record=Record.NONE) as bridge:
        await bridge.reached.wait()
        async with desk(bridge, record=Record.NONE) as stays:
            async with desk(bridge, record=Record.NONE) as leaves:
                for seen, ids in ((stays, ("t1", "t2")), (leaves, ("t1", "t3"))):
                    for id in ids:
                        await seen.watch(id)
                        await asyncio.wait_for(server.joined(id), 60)
                await stays.unwatch("t2")
                await asyncio.wait_for(server.called("thread/unsubscribe"), 60)
            async with asyncio.timeout(60):
                while [method for method, _ in server.calls].count("thread/unsubscribe") < 2:
                    server.calls_moved.clear()
                    await server.calls_moved.wait()
            left = [params["threadId"] for method, params in server.calls if method == "thread/unsubscribe"]
            assert left == ["t2", "t3"]


async def test_a_lost_system_is_not_there_until_it_is_reached_again(server: FakeCodex) -> None:
    server.thread("t1")
    told: list[str] = []
    async with bridging(server.url, told) as bridge:
        await bridge.reached.wait()
        async with desk(bridge) as seen:
            await server.stop()
            await seen.until(lambda: seen.ended)
            assert isinstance(seen.fault, ConnectionLost) or seen.fault is None
            with pytest.raises(Unreachable, match="503"):
                async with desk(bridge):
                    pass
            await server.start()
            await asyncio.wait_for(bridge.reached.wait(), 60)
            await seen.close()
            await seen.read()
            await server.begin_turn("t1")
            await seen.until(lambda: seen.summary("t1").lifecycle is Lifecycle.RUNNING)
    assert told[0] == told[-1] == "codex is reached"
    assert any("lost" in line or "cannot be reached" in line for line in told)
    assert all(line != after for line, after in pairwise(told))


async def test_a_system_that_is_not_there_is_told_of_once_however_often_it_is_tried() -> None:
    tried = asyncio.Event()
    told: list[str] = []
    tries = 0

    async def count(seconds: float) -> None:
        nonlocal tries
        tries += 1
        if tries == 5:
            tried.set()
        await asyncio.sleep(0)

    made = CodexFactory()(Target("codex", "codex+ws://127.0.0.1:1", user="bridge"))
    assert isinstance(made, ForeignConnector)
    async with Bridge(made, told=told.append, sleep=count, tokens=TOKENS) as bridge:
        running = asyncio.create_task(bridge.run())
        await asyncio.wait_for(tried.wait(), 60)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    [line] = told
    assert "cannot be reached" in line


async def test_a_system_that_refuses_the_token_ends_the_bridge() -> None:
    async with fake_codex(token="right") as server:
        made = CodexFactory()(Target("codex", server.url, token="wrong"))
        assert isinstance(made, ForeignConnector)
        async with Bridge(made, sleep=at_once) as bridge:
            with pytest.raises(Denied, match="invalid websocket bearer token"):
                await bridge.run()


async def test_the_verb_serves_until_it_is_asked_to_end(server: FakeCodex, tmp_path: Path) -> None:
    server.thread("t1", info={"name": "worker"})
    program = Program(tmp_path)
    async with program.running("bridge", server.url) as process:
        assert process.stderr is not None
        lines = [(await process.stderr.readline()).decode() for _ in range(2)]
        found = re.search(r"listening on (ws://\S+)", lines[0])
        assert found, lines
        assert "is reached" in lines[1]
        # The token is in the runtime file, so that the consoles of this user need not be told it.
        sessions = (await program.process("sessions", found[1], "--json")).records
        assert [(one["session"], one["name"]) for one in sessions] == [("t1", "worker")]
        process.terminate()
        await process.communicate()
        assert process.returncode == 128 + 15
    assert not list((tmp_path / "run").glob("*.json"))


async def test_what_cannot_be_bridged_is_said_in_one_line(tmp_path: Path) -> None:
    program = Program(tmp_path)
    native = await program("bridge", "ws://127.0.0.1:9")
    assert (native.code, "served by a host already" in native.err) == (2, True)
    async with fake_codex(token="right") as server:
        refused = await program.process("bridge", server.url)
        assert refused.code == 7
        assert "missing websocket bearer token" in refused.err
