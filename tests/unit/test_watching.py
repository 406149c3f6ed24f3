"""What the operator stays with is watched in detail, and no more than that: by the policy, and by the hub's frames."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from console.audit import Audit
from console.fleet.facts import SessionKey
from console.hub import Hub
from console.hub.watching import AGAIN_MS, LEFT_MS, MOST, RESTS_MS, Order, Watches
from tests.unit.test_supervisor import FakeConnector
from watchfloor.connector import Received, Target
from watchfloor.errors import ConnectionLost
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.words import Lifecycle, Role


def key(name: str) -> SessionKey:
    return SessionKey("here", name)


def everywhere(_: SessionKey) -> bool:
    return True


def nowhere(_: SessionKey) -> bool:
    return False


def test_running_over_the_roster_watches_nothing() -> None:
    watches = Watches()
    for at in range(20):
        watches.look(key(str(at)), at * (RESTS_MS - 1))
        assert watches.due(at * (RESTS_MS - 1), everywhere) == []


def test_a_selection_that_rests_is_watched_once() -> None:
    watches = Watches()
    watches.look(key("a"), 0)
    assert watches.due(RESTS_MS - 1, everywhere) == []
    assert watches.due(RESTS_MS, everywhere) == [Order(key("a"), watch=True)]
    watches.look(key("a"), RESTS_MS + 50)
    assert watches.due(RESTS_MS + 100, everywhere) == []


def test_an_opened_session_is_watched_at_once() -> None:
    watches = Watches()
    watches.look(key("a"), 0, opened=True)
    assert watches.due(0, everywhere) == [Order(key("a"), watch=True)]


def test_what_was_left_for_a_while_is_watched_no_more() -> None:
    watches = Watches()
    watches.look(key("a"), 0, opened=True)
    watches.due(0, everywhere)
    watches.look(None, 10)
    assert watches.due(10 + LEFT_MS - 1, everywhere) == []
    assert watches.due(10 + LEFT_MS, everywhere) == [Order(key("a"), watch=False)]
    assert watches.due(10 + 2 * LEFT_MS, everywhere) == []


def test_who_comes_back_in_time_finds_it_watched_still() -> None:
    watches = Watches()
    watches.look(key("a"), 0, opened=True)
    watches.due(0, everywhere)
    watches.look(key("b"), 10)
    watches.look(key("a"), 20)
    assert watches.due(20 + RESTS_MS, everywhere) == []
    assert watches.due(20 + 3 * LEFT_MS, everywhere) == []


def test_a_few_are_watched_at_once_and_the_one_left_longest_goes() -> None:
    watches = Watches()
    orders: list[Order] = []
    for at in range(MOST + 2):
        watches.look(key(str(at)), at, opened=True)
        orders += watches.due(at, everywhere)
    assert len(watches.watched) == MOST
    assert [order.key for order in orders if not order.watch] == [key("0"), key("1")]


def test_an_order_waits_for_the_source_and_is_given_again_after_a_cut() -> None:
    watches = Watches()
    watches.look(key("a"), 0, opened=True)
    assert watches.due(0, nowhere) == []
    assert watches.due(1, everywhere) == [Order(key("a"), watch=True)]
    watches.parted("elsewhere")
    assert watches.due(2, everywhere) == []
    watches.parted("here")
    assert watches.due(3, nowhere) == []
    assert watches.due(4, everywhere) == [Order(key("a"), watch=True)]


def test_an_order_that_did_not_leave_is_not_hammered() -> None:
    watches = Watches()
    watches.look(key("a"), 0, opened=True)
    watches.due(0, everywhere)
    watches.failed(key("a"), 0)
    assert watches.due(AGAIN_MS - 1, everywhere) == []
    assert watches.due(AGAIN_MS, everywhere) == [Order(key("a"), watch=True)]


# --- the hub, on a scripted link -----------------------------------------------------------


class Scene:
    """A hub on one scripted source; `sent` is what it was told of watches."""

    def __init__(self, hub: Hub, connector: FakeConnector) -> None:
        self.hub = hub
        self.connector = connector
        self.now = 1_000

    def sent(self, link: int = -1) -> list[tuple[str, str]]:
        frames = self.connector.links[link].sent
        return [(frame.type, frame.session) for frame in frames if isinstance(frame, f.Watch | f.Unwatch)]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110 - a frame that was sent tells nobody
                await asyncio.sleep(0.005)

    async def greet(self, *names: str) -> None:
        """The source names its sessions on its newest connection."""
        link = self.connector.links[-1]
        welcome = f.Welcome(
            protocol="watchfloor.v1",
            host=f.HostInfo(name="fake", version="1"),
            principal="ann",
            role=Role.OPERATOR,
            pos=0,
            heartbeat_s=15,
            now=1,
        )
        rows = [
            m.Summary(id=name, epoch="e", lifecycle=Lifecycle.IDLE, blocked={}, controls={}, labels={})
            for name in names
        ]
        link.incoming.put_nowait([Received(welcome), Received(f.Sessions(sessions=tuple(rows), listed=True))])
        await self.until(lambda: all(key(name) in self.hub.fleet.sessions for name in names) and self.hub.heard("here"))


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    target = Target("here", "fake://here")
    connector = FakeConnector(target)
    monkeypatch.setattr("console.connectors.registry.connector_for", lambda _: connector)
    clock: list[Scene] = []

    def steady() -> int:
        return clock[0].now if clock else 0

    hub = Hub(clock=steady, audit=Audit(tmp_path, clock=steady), by="ann", steady=steady)
    scene = Scene(hub, connector)
    clock.append(scene)
    hub.start([target])
    await scene.until(lambda: bool(connector.links))
    yield scene
    await hub.close()


async def test_the_source_is_told_what_is_looked_at(scene: Scene) -> None:
    await scene.greet("a", "b")
    scene.hub.look(key("a"))
    assert scene.sent() == []
    scene.now += RESTS_MS
    scene.hub.look(key("a"))
    await scene.until(lambda: scene.sent() == [("watch", "a")])
    scene.hub.look(key("b"), opened=True)
    await scene.until(lambda: scene.sent() == [("watch", "a"), ("watch", "b")])
    scene.now += LEFT_MS
    # Nobody has to look for it to be given up.
    await scene.until(lambda: scene.sent() == [("watch", "a"), ("watch", "b"), ("unwatch", "a")])


async def test_a_session_that_its_source_has_not_named_is_not_watched(scene: Scene) -> None:
    await scene.greet("a")
    scene.hub.look(key("stranger"), opened=True)
    scene.hub.look(key("a"), opened=True)
    await scene.until(lambda: scene.sent() == [("watch", "a")])


async def test_a_new_connection_is_told_once_more(scene: Scene) -> None:
    await scene.greet("a")
    scene.hub.look(key("a"), opened=True)
    await scene.until(lambda: scene.sent() == [("watch", "a")])
    scene.connector.links[-1].incoming.put_nowait(ConnectionLost("cut"))
    await scene.until(lambda: not scene.hub.heard("here"))
    scene.hub.retry("here")
    await scene.until(lambda: len(scene.connector.links) == 2)
    await scene.until(lambda: scene.sent(1) == [("watch", "a")])


async def test_an_order_that_did_not_leave_is_given_again(scene: Scene) -> None:
    await scene.greet("a")
    link = scene.connector.links[-1]
    link.fails_to_send = ConnectionLost("not now")
    scene.hub.look(key("a"), opened=True)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    link.fails_to_send = None
    scene.hub.look(key("a"))
    assert scene.sent() == []
    scene.now += AGAIN_MS
    scene.hub.look(key("a"))
    await scene.until(lambda: scene.sent() == [("watch", "a")])
