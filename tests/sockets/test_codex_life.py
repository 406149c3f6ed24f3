"""How long a Codex thread is followed, and that a quiet server is heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from console.connectors.codex import connector
from tests.peers.codex_desk import desk
from tests.peers.codex_server import FakeCodex, fake_codex
from watchfloor.connector import Record
from watchfloor.foreign import Mirror


@pytest.fixture
async def server() -> AsyncIterator[FakeCodex]:
    async with fake_codex() as made:
        yield made


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "BEAT_S", 0.02)
    monkeypatch.setattr(connector, "LINGER_MS", 0)


async def called(server: FakeCodex, method: str, times: int = 1) -> None:
    async with asyncio.timeout(60):
        while [name for name, _ in server.calls].count(method) < times:
            server.calls_moved.clear()
            await server.calls_moved.wait()


async def test_an_idle_thread_that_nobody_looks_at_is_let_go_and_joined_again(server: FakeCodex) -> None:
    server.thread("t1")
    async with desk(server.url) as seen:
        await server.begin_turn("t1")
        await called(server, "thread/resume")
        await server.end_turn("t1")
        await called(server, "thread/unsubscribe")
        turn = await server.begin_turn("t1")
        await called(server, "thread/resume", 2)
        await seen.until(lambda: seen.summary("t1").turn == turn)


async def test_a_thread_that_somebody_looks_at_is_kept(server: FakeCodex) -> None:
    server.thread("t1")
    server.thread("t2")
    async with desk(server.url, record=Record.WATCHED) as seen:
        await seen.watch("t1")
        await seen.watch("t2")
        await called(server, "thread/resume", 2)
        await seen.unwatch("t2")
        await called(server, "thread/unsubscribe")
        assert [params for method, params in server.calls if method == "thread/unsubscribe"] == [{"threadId": "t2"}]


async def test_a_quiet_server_is_heard(server: FakeCodex, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = asyncio.Event()
    server.thread("t1")
    async with desk(server.url):
        monkeypatch.setattr(Mirror, "heard", lambda mirror: heard.set())
        await asyncio.wait_for(heard.wait(), 60)
        heard.clear()
        server.refuse["thread/loaded/list"] = {"code": -32600, "message": "not now"}
        await asyncio.wait_for(heard.wait(), 60)
