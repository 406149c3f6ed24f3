"""A real host recorded by the program, and the recording played into a fleet as if it were the host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from console.audit import Audit
from console.fleet.facts import Intent, SessionKey
from console.fleet.views.facts import fact_rows
from console.hub import Hub
from console.recording.address import url_of
from console.recording.connector import lend
from console.recording.player import Player
from console.recording.tape import Recorder, Tape
from tests.sockets.cli_kit import Program, hosting
from watchfloor.connector import Target
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.host.serving.server import Host, wall_clock
from watchfloor.protocol.model import Action
from watchfloor.words import Contact, Continuity, Lifecycle, OutcomeKind, Primitive

WAIT_S = 30.0
TOKEN = "sk-" + "a1B2c3D4" * 5


async def asks(run: Run, mail: object) -> str:
    for number in range(20):
        await run.say(f"line {number}")
    await run.say(f"the key is {TOKEN}")
    decision = await run.approve(Action(tool="shell", text="make release"))
    return "released" if decision.allowed else "left"


@asynccontextmanager
async def asking() -> AsyncIterator[Host]:
    async with hosting() as host:
        host.add(FunctionHarness(asks), name="asker", id="asker", text="go")
        yield host


@asynccontextmanager
async def watching(url: str, folder: Path, name: str = "build") -> AsyncIterator[Hub]:
    hub = Hub(clock=wall_clock, audit=Audit(folder / "audit", clock=wall_clock), by="ann")
    hub.start([Target(name=name, url=url, user="ann")])
    try:
        yield hub
    finally:
        await hub.close()


async def recorded(host: Host, path: Path) -> Path:
    """Record it in this process, half a second between any two batches."""
    at = 1_700_000_000_000
    recorder = Recorder(path, "build", at)

    def take(source: str, items: object) -> None:
        nonlocal at
        at += 500
        recorder.take(items, at)  # type: ignore[arg-type]

    hub = Hub(clock=wall_clock, audit=Audit(path.parent / "audit", clock=wall_clock), by="ann", on_items=take)
    hub.start([Target(name="build", url=host.url, user="ann")])
    try:
        assert await hub.until(lambda: any(r.open and r.fact for r in hub.fleet.requests.values()), WAIT_S)
        assert await hub.until(lambda: said(hub) >= 21, WAIT_S)
    finally:
        await hub.close()
        recorder.close()
    return path


def said(hub: Hub) -> int:
    session = hub.fleet.sessions.get(SessionKey("build", "asker"))
    return 0 if session is None else sum(entry.fact.kind == "message" for entry in session.log.entries())


class Clock:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


async def test_the_program_records_a_host_with_its_past_and_without_its_secrets(
    program: Program, tmp_path: Path
) -> None:
    path = tmp_path / "build.rec"
    async with asking() as host:
        done = await asyncio.create_task(_run(program, "record", host.url, str(path), "--seconds", "1"))
        assert done[0] == 0, done
        assert "frames, secrets masked in" in done[1]
        again = await _run(program, "record", host.url, str(path))
        assert (again[0], "left as it is" in again[1]) == (2, True)
        raw = tmp_path / "raw.rec"
        assert (await _run(program, "record", host.url, str(raw), "--seconds", "1", "--raw"))[0] == 0
    assert TOKEN in raw.read_text()
    text = path.read_text()
    assert TOKEN not in text
    types = [frame["type"] for line in text.splitlines() if (frame := json.loads(line).get("frame"))]
    assert types[0] == "welcome"
    assert {"sessions", "request", "events"} <= set(types)


async def _run(program: Program, *words: str) -> tuple[int, str]:
    process = await program.start(*words)
    async with asyncio.timeout(60):
        _, err = await process.communicate()
    return process.returncode or 0, err.decode()


async def test_nothing_is_left_of_a_recording_that_never_began(program: Program, tmp_path: Path) -> None:
    code, err = await _run(program, "record", "ws://127.0.0.1:9", str(tmp_path / "none.rec"))
    assert code == 8
    assert "nothing listens" in err
    assert not (tmp_path / "none.rec").exists()


async def test_a_recording_is_played_as_what_it_was(tmp_path: Path) -> None:
    async with asking() as host:
        path = await recorded(host, tmp_path / "build.rec")
    tape, clock = Tape(path), Clock()
    player = Player(tape, clock)
    key = SessionKey("build", "asker")
    async with watching(lend(player), tmp_path) as hub:
        assert player.next_request()
        assert await hub.until(lambda: any(r.open and r.fact for r in hub.fleet.requests.values()), WAIT_S)
        (request,) = hub.fleet.requests.values()
        assert request.fact is not None
        assert request.fact.sound, "its digest holds"
        assert request.fact.actions[0].text == "make release"
        player.go_to(tape.ends)
        assert await hub.until(lambda: said(hub) == 21, WAIT_S)
        session = hub.fleet.sessions[key]
        assert (session.name, session.lifecycle) == ("asker", Lifecycle.WAITING)
        assert session.track.state(wall_clock()).word is Continuity.WHOLE
        source = hub.fleet.sources["build"]
        assert await hub.until(lambda: abs(wall_clock() + source.ahead_ms - tape.ends) < 60_000, WAIT_S)

        # Nothing that is sent goes anywhere.
        trail = await hub.submit(Intent(id=str(uuid4()), primitive=Primitive.INTERRUPT, target=key, by="ann"))
        assert trail.outcome is OutcomeKind.NOT_PERMITTED
        assert "this is a recording" in str(trail.reason)
        assert ("source", "build, a recording") in [(label, text) for label, text, *_ in fact_rows(hub.fleet, key, 0)]

        # What is no longer in memory is read from it.
        log = session.log.entries()
        last = session.log.entries()[-1].fact.seq
        page = await hub.older(key, (last or 0) - 3, wait_s=WAIT_S)
        assert [event.seq for event in page.events] == list(range(1, (last or 0) - 3))
        assert [event.text for event in page.events] == [str(entry.text) for entry in log][: len(page.events)]
        assert not page.more

        # Back to the start, and forth again: nothing is doubled.
        player.go_to(tape.begins)
        player.paused = True
        assert await hub.until(lambda: key not in hub.fleet.sessions, WAIT_S)
        assert not [r for r in hub.fleet.requests.values() if r.open]
        player.go_to(tape.ends)
        assert await hub.until(lambda: said(hub) == 21, WAIT_S)
        assert await hub.until(lambda: any(r.open for r in hub.fleet.requests.values()), WAIT_S)
        assert source.fault_count == 0
        page = await hub.older(key, 5, wait_s=WAIT_S)
        assert [event.seq for event in page.events] == [1, 2, 3, 4], "also in a later showing"
        assert hub.fleet.sessions[key].track.state(wall_clock()).word is Continuity.WHOLE
    tape.close()


async def test_a_recording_is_a_source_by_its_address_and_one_that_is_none_is_refused(tmp_path: Path) -> None:
    async with asking() as host:
        path = await recorded(host, tmp_path / "a name with spaces.rec")
    async with watching(url_of(path), tmp_path) as hub:
        assert await hub.until(lambda: hub.fleet.sources["build"].contact is Contact.LIVE, WAIT_S)
        assert await hub.until(lambda: hub.fleet.sources["build"].welcomed, WAIT_S)
    text = tmp_path / "text"
    text.write_text("dear diary")
    for bad, why in ((text, "is no recording"), (tmp_path / "nowhere", "No such file")):
        async with watching(url_of(bad), tmp_path) as hub:
            assert await hub.until(lambda: hub.fleet.sources["build"].contact is Contact.REFUSED, WAIT_S)
            assert why in str(hub.fleet.sources["build"].why)
