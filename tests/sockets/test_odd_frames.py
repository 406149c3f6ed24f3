"""What no host should send, over a real connection: it is counted and kept, says why, and costs nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from websockets.asyncio.server import ServerConnection

import console.connectors.supervisor as supervising
from console.audit import Audit
from console.connectors.native import NativeConnector
from console.connectors.supervisor import ContactChange, Item, Supervisor, Timings
from console.fleet.facts import SessionKey
from console.fleet.state import KEEP_FAULTS, Source
from console.fleet.views.sources import fault_lines, source_lines
from console.hub import Hub
from console.journal.journal import Journal
from tests.fixtures.odd import ODD, UNREADABLE, batch, message, sessions, summary
from tests.sockets.kit import greet, host
from watchfloor.connector import Target
from watchfloor.host.serving.server import wall_clock
from watchfloor.protocol.codec import MAX_RECEIVE
from watchfloor.words import Contact

WAIT_S: Final = 30.0
QUICK: Final = Timings(first_delay_s=0.01, longest_delay_s=0.04, silent_after_s=0.4, lost_after_s=0.6)
"""The proportions of the real ones: what is tried again and again is tried within a test."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "Timings", lambda: QUICK)


class Scripted:
    """Greets, sends what it is given as text or as binary frames, and stays."""

    def __init__(self, *frames: bytes, binary: bool = False, before: Sequence[bytes] = ()) -> None:
        self.frames = frames
        self.before = before
        self.binary = binary
        self.connections = 0

    async def __call__(self, ws: ServerConnection) -> None:
        self.connections += 1
        await greet(ws)
        for raw in self.before:
            await ws.send(raw, text=True)
        for raw in self.frames:
            # The library itself ends a connection whose text is not UTF-8 where it is asked for text.
            await ws.send(raw, text=not self.binary)
        await ws.wait_closed()


@asynccontextmanager
async def watching(url: str, folder: Path) -> AsyncIterator[Hub]:
    journal = Journal(folder / "journal.db", clock=wall_clock)
    hub = Hub(clock=wall_clock, audit=Audit(folder / "audit", clock=wall_clock), by="ann", journal=journal)
    hub.start([Target(name="odd", url=url, user="ann")])
    try:
        yield hub
    finally:
        await hub.close()


def source(hub: Hub) -> Source:
    return hub.fleet.sources["odd"]


def known(hub: Hub, session: str) -> bool:
    found = hub.fleet.sessions.get(SessionKey("odd", session))
    return found is not None and not found.placeholder


LAST: Final = sessions(summary("last"))


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
async def test_whatever_is_odd_is_counted_and_kept_and_costs_nothing_else(tmp_path: Path, binary: bool) -> None:
    """All of it on one connection, each followed by what can be read."""
    frames: list[bytes] = [sessions(summary("s1"))]
    names = [*UNREADABLE, *ODD]
    for number, raw in enumerate((*UNREADABLE.values(), *ODD.values())):
        frames += [raw, batch(message(100 + number, text=f"after {number}"))]
    scripted = Scripted(*frames, LAST, binary=binary)
    async with host(scripted) as url, watching(url, tmp_path) as hub:
        assert await hub.until(lambda: known(hub, "last"), WAIT_S)
        here = source(hub)
        assert (here.contact, scripted.connections) == (Contact.LIVE, 1)
        # What is long is looked through beside all else.
        assert await hub.until(lambda: here.fault_count >= len(UNREADABLE), WAIT_S)
        assert here.fault_count == len(UNREADABLE)
        texts = {entry.text for entry in hub.fleet.sessions[SessionKey("odd", "s1")].log.entries()}
        assert {f"after {number}" for number in range(len(names))} <= texts
        assert len(here.faults) <= KEEP_FAULTS
        for fault in here.faults:
            assert fault.reason
            assert len(fault.raw) <= 4_200
            assert len(fault.reason) <= 300
            assert fault_lines(fault)


@pytest.mark.parametrize("name", [*UNREADABLE, *ODD])
async def test_each_of_it_alone_has_a_reason_of_its_own(tmp_path: Path, name: str) -> None:
    raw = UNREADABLE.get(name, ODD.get(name, b""))
    scripted = Scripted(sessions(summary("s1")), raw, LAST)
    async with host(scripted) as url, watching(url, tmp_path) as hub:
        assert await hub.until(lambda: known(hub, "last"), WAIT_S)
        here = source(hub)
        assert (here.contact, scripted.connections) == (Contact.LIVE, 1)
        assert await hub.until(lambda: here.fault_count >= (name in UNREADABLE), WAIT_S)
        assert here.fault_count == (name in UNREADABLE)
        said = [text for label, text, _ in source_lines(hub.fleet, "odd", wall_clock(), None) if label == "unreadable"]
        assert said == (["1"] if name in UNREADABLE else [])
        if name == "a request whose members stand twice":
            [request] = hub.fleet.requests.values()
            assert request.fact is not None
            assert request.fact.fault == "text stands in it twice"


async def test_a_frame_that_is_too_large_ends_its_connection_with_a_reason_and_is_not_asked_for_at_once(
    tmp_path: Path, quick: None
) -> None:
    scripted = Scripted(b'{"type":"reply","id":"1","data":"' + b"x" * MAX_RECEIVE + b'"}')
    scripted.before = [sessions(summary("s1"))]
    async with host(scripted) as url, watching(url, tmp_path) as hub:
        assert await hub.until(lambda: source(hub).contact is Contact.LOST, WAIT_S)
        here = source(hub)
        assert (here.retry_at or 0) > wall_clock() + 50_000, "it would come again each time"
        assert "a frame was larger than 16 MiB" in source(hub).why
        assert source(hub).tries == scripted.connections
        assert known(hub, "s1"), "what it said before stays"


async def test_a_host_that_answers_pings_and_says_nothing_is_silent_and_then_lost(tmp_path: Path, quick: None) -> None:
    """Its network stack lives, and says so; whoever asked that would hold it for alive for ever."""
    scripted = Scripted(sessions(summary("s1")))
    async with host(scripted) as url, watching(url, tmp_path) as hub:
        seen: set[Contact] = set()

        def lost() -> bool:
            seen.add(source(hub).contact)
            return source(hub).lost_since is not None

        assert await hub.until(lost, WAIT_S)
        assert Contact.SILENT in seen
        assert "nothing was heard for 0.6 s" in source(hub).why
        session = hub.fleet.sessions[SessionKey("odd", "s1")]
        assert session.lifecycle.value == "running", "its last known state, never stopped"


async def test_a_server_that_accepts_and_never_speaks_is_no_host_and_is_tried_ever_more_slowly() -> None:
    accepted: list[asyncio.StreamWriter] = []

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    told: list[ContactChange] = []
    enough = asyncio.Event()

    def take(items: Sequence[Item]) -> None:
        told.extend(item for item in items if isinstance(item, ContactChange) and item.contact is Contact.LOST)
        if len(told) >= 4:
            enough.set()

    supervisor = Supervisor(
        lambda to: NativeConnector(to, timeout_s=0.2), Target("odd", url), take, wall_clock, random.Random(3),
        timings=QUICK,
    )  # fmt: skip
    running = asyncio.create_task(supervisor.run())
    try:
        await asyncio.wait_for(enough.wait(), WAIT_S)
        assert [change.tries for change in told[:4]] == [1, 2, 3, 4]
        assert len(accepted) == len(told), "one connection a try"
        assert all("accepts connections and says nothing" in change.why for change in told)
    finally:
        await supervisor.close()
        await running
        for writer in accepted:
            writer.close()
        server.close()


MANY: Final = 100_000 if "WATCHFLOOR_TORTURE" in os.environ else 20_000


async def test_as_many_sessions_as_nobody_has_in_the_first_frames_are_all_there(tmp_path: Path) -> None:
    frames = [sessions(*(summary(f"s{number}") for number in range(at, at + 1_000))) for at in range(0, MANY, 1_000)]
    done = json.dumps({"type": "sessions", "sessions": [], "listed": True}).encode()
    async with host(Scripted(*frames, done, LAST)) as url, watching(url, tmp_path) as hub:
        assert await hub.until(lambda: known(hub, "last"), 120.0)
        assert sum(not session.placeholder for session in hub.fleet.sessions.values()) == MANY + 1
        assert (source(hub).contact, source(hub).fault_count) == (Contact.LIVE, 0)
