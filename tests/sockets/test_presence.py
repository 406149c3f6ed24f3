"""Presence over real sockets: it ends with the connection, begins anew with the next one, and goes over a bridge."""

from __future__ import annotations

from pathlib import Path

from console.audit import Audit
from console.fleet.facts import RequestKey
from console.fleet.state import Request
from console.hub import Hub
from tests.peers.codex_server import fake_codex
from tests.screens.live import Relay
from tests.sockets.cli_kit import ANN, BOB, hosting, writes
from tests.sockets.test_bridge import bridging
from watchfloor.connector import Target
from watchfloor.host.principals import Principal
from watchfloor.host.serving.server import wall_clock

WAIT_S = 20.0
TOKENS = {ANN: Principal("ann"), BOB: Principal("bob")}


def _hub(folder: Path, name: str, url: str, token: str | None = None) -> Hub:
    hub = Hub(clock=wall_clock, audit=Audit(folder / name, clock=wall_clock), by=name)
    hub.start([Target(name="local", url=url, user=name, token=token)])
    return hub


async def _asked(hub: Hub) -> Request:
    assert await hub.until(lambda: bool(hub.fleet.queue.requests), WAIT_S)
    return hub.fleet.queue.requests[0]


async def _looking(hub: Hub, key: RequestKey, *names: str) -> None:
    assert await hub.until(lambda: hub.fleet.requests[key].looking == names, WAIT_S), hub.fleet.requests[key].looking


async def test_it_ends_with_a_connection_and_is_told_anew_on_the_next(tmp_path: Path) -> None:
    async with hosting(TOKENS) as host, Relay(host.url) as relay:
        host.add(writes(tmp_path), name="writer", text="hello")
        ann = _hub(tmp_path, "ann", host.url, ANN)
        bob = _hub(tmp_path, "bob", relay.url, BOB)
        try:
            key = (await _asked(ann)).key
            await _asked(bob)
            ann.attend(key)
            bob.attend(key)
            await _looking(ann, key, "bob")
            await _looking(bob, key, "ann")
            ann.claim(key)
            assert await bob.until(lambda: bob.fleet.requests[key].claimed_by == "ann", WAIT_S)
            await relay.__aexit__()
            await _looking(ann, key)
            assert await bob.until(lambda: bob.fleet.requests[key].claimed_by is None, WAIT_S)
            assert bob.fleet.requests[key].looking == (), "who is there is not known any more"
            bob.replace(Target(name="local", url=host.url, user="bob", token=BOB))
            await _looking(ann, key, "bob")
            await _looking(bob, key, "ann")
            assert await bob.until(lambda: bob.fleet.requests[key].claimed_by == "ann", WAIT_S)
        finally:
            await bob.close()
            await ann.close()


async def test_the_consoles_of_a_bridge_see_each_other(tmp_path: Path) -> None:
    async with fake_codex() as server:
        server.thread("t1", info={"name": "worker"})
        await server.begin_turn("t1")
        await server.ask_command("t1")
        async with bridging(server.url) as bridge:
            await bridge.reached.wait()
            ann, eye = _hub(tmp_path, "ann", bridge.url, "ann-s"), _hub(tmp_path, "eye", bridge.url, "eye-s")
            try:
                assert await eye.until(lambda: bool(eye.fleet.sessions), WAIT_S)
                ann.look(next(iter(eye.fleet.sessions)), opened=True)
                key = (await _asked(ann)).key
                await _asked(eye)
                eye.attend(key)
                await _looking(ann, key, "eye")
                ann.claim(key)
                assert await eye.until(lambda: eye.fleet.requests[key].claimed_by == "ann", WAIT_S)
            finally:
                await eye.close()
                await ann.close()
