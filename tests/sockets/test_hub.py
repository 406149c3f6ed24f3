"""The hub over real sockets: sources come and go, interventions leave a trail, the audit sees all of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from console.audit import Audit, verify
from console.fleet.changes import Changes
from console.fleet.facts import Intent, SessionKey
from console.hub import Hub
from console.intake import Intake
from tests.screens.live import Relay
from tests.sockets.cli_kit import ANN, hosting, observed, writes
from watchfloor.connector import Target
from watchfloor.host.principals import Principal
from watchfloor.host.serving.server import Host, wall_clock
from watchfloor.protocol.frames import Outcome
from watchfloor.words import Contact, EffectState, Lifecycle, OutcomeKind, Primitive

WAIT_S = 20.0


class Seen:
    """Collects what a hub tells of its changes."""

    def __init__(self) -> None:
        self.all = Changes()

    def __call__(self, changes: Changes) -> None:
        self.all.merge(changes)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with hosting() as host:
        host.add(writes(tmp_path), name="writer", text="hello")
        yield host


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    hub = _hub(tmp_path)
    yield hub
    await hub.close()


def _hub(folder: Path, **rest: Any) -> Hub:
    required = rest.pop("required", False)
    audit = Audit(folder / "audit", clock=wall_clock, required=required)
    return Hub(clock=wall_clock, audit=audit, by="ann", **rest)


def _target(host: Host, name: str = "local") -> Target:
    return Target(name=name, url=host.url, user="ann")


def _intent(primitive: Primitive, session: str = "writer", **rest: Any) -> Intent:
    return Intent(id=str(uuid4()), primitive=primitive, target=SessionKey("local", session), by="ann", **rest)


async def _shown(hub: Hub, session: str = "writer", lifecycle: Lifecycle | None = None) -> None:
    key = SessionKey("local", session)

    def met() -> bool:
        found = hub.fleet.sessions.get(key)
        return found is not None and not found.placeholder and lifecycle in (None, found.lifecycle)

    assert await hub.until(met, WAIT_S)


def _contact(hub: Hub) -> Contact:
    return hub.fleet.sources["local"].contact


def _lines(folder: Path) -> list[dict[str, Any]]:
    (file,) = (folder / "audit").glob("*.jsonl")
    assert verify(file).fault is None
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_importing_and_making_a_hub_loads_nothing_heavy(tmp_path: Path) -> None:
    probe = (
        "import sys, pathlib\n"
        "from console.audit import Audit\nfrom console.hub import Hub\nfrom watchfloor.connector import Target\n"
        f"hub = Hub(clock=lambda: 1, audit=Audit(pathlib.Path({str(tmp_path)!r}), clock=lambda: 1), by='ann')\n"
        "hub.expect([Target(name='a', url='ws://127.0.0.1:1')])\n"
        "assert hub.fleet.sources['a'].contact == 'connecting'\n"
        "heavy = {'websockets', 'httpx', 'pydantic', 'pydantic_core', 'sqlite3', 'textual'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


async def test_a_source_is_shown_before_it_is_heard_and_then_live(host: Host, tmp_path: Path) -> None:
    seen = Seen()
    hub = _hub(tmp_path, on_changes=seen)
    hub.expect([_target(host)])
    assert _contact(hub) is Contact.CONNECTING
    try:
        hub.start([_target(host)])
        await _shown(hub, lifecycle=Lifecycle.WAITING)
        assert _contact(hub) is Contact.LIVE
        assert "local" in seen.all.sources
        assert SessionKey("local", "writer") in seen.all.sessions
        assert seen.all.structure
    finally:
        await hub.close()


async def test_an_intervention_leaves_a_trail_in_fleet_and_audit(host: Host, hub: Hub, tmp_path: Path) -> None:
    hub.start([_target(host)])
    await _shown(hub, lifecycle=Lifecycle.WAITING)
    intent = _intent(Primitive.PAUSE, interrupt=True)
    trail = await hub.submit(intent)
    assert hub.fleet.trails[intent.id] is trail
    assert trail.sent_at is not None
    trail = await hub.settle(intent.id, WAIT_S)
    assert (trail.outcome, trail.effect) == (OutcomeKind.APPLIED, EffectState.SEEN)
    lines = _lines(tmp_path)
    assert [(line["what"], line["id"]) for line in lines] == [
        ("requested", intent.id),
        ("outcome", intent.id),
        ("effect", intent.id),
    ]
    assert lines[0]["by"] == "ann"
    assert lines[0]["interrupt"] is True
    assert lines[1]["outcome"] == "applied"
    assert lines[2]["effect"] == "seen"


async def test_what_a_live_source_does_not_answer_in_time_is_unknown(host: Host, tmp_path: Path) -> None:
    ahead = 0
    audit = Audit(tmp_path / "audit", clock=wall_clock)
    hub = Hub(clock=lambda: wall_clock() + ahead, audit=audit, by="ann")
    async with Relay(host.url) as relay:
        hub.start([replace(_target(host), url=relay.url)])
        try:
            await _shown(hub, lifecycle=Lifecycle.WAITING)
            relay.hold()
            trail = await hub.submit(_intent(Primitive.PAUSE, interrupt=True))
            assert not await hub.until(lambda: trail.outcome is not None, 1.2)
            ahead = 10_000
            assert await hub.until(lambda: trail.outcome is OutcomeKind.UNKNOWN, WAIT_S)
            assert trail.reason == "no word came back within 10 s"
            assert _contact(hub) is Contact.LIVE
            # What comes after all counts.
            relay.release()
            assert await hub.until(lambda: trail.outcome is OutcomeKind.APPLIED, WAIT_S)
        finally:
            await hub.close()


async def test_whoever_waits_longer_for_a_word_is_not_told_sooner_that_there_is_none(
    host: Host, tmp_path: Path
) -> None:
    ahead = 0
    audit = Audit(tmp_path / "audit", clock=wall_clock)
    hub = Hub(clock=lambda: wall_clock() + ahead, audit=audit, by="ann")
    async with Relay(host.url) as relay:
        hub.start([replace(_target(host), url=relay.url)])
        try:
            await _shown(hub, lifecycle=Lifecycle.WAITING)
            relay.hold()
            trail = await hub.submit(_intent(Primitive.PAUSE, interrupt=True))
            ahead = 10_000
            waited = asyncio.create_task(hub.answered(trail.id, WAIT_S))
            await asyncio.wait([waited], timeout=1.5)
            assert not waited.done()
            relay.release()
            assert (await waited).outcome is OutcomeKind.APPLIED
        finally:
            await hub.close()


async def test_the_same_intent_is_sent_once(host: Host, hub: Hub) -> None:
    hub.start([_target(host)])
    await _shown(hub, lifecycle=Lifecycle.WAITING)
    intent = _intent(Primitive.SEND, text="more")
    trails = await asyncio.gather(hub.submit(intent), hub.submit(intent), hub.submit(intent))
    await hub.settle(intent.id, 0.2)
    assert len({id(trail) for trail in trails}) == 1
    assert host.core.session("writer").summary()["mailbox"].queued == 1  # type: ignore[attr-defined]


async def test_what_the_gate_refuses_never_leaves_and_is_not_audited(host: Host, hub: Hub, tmp_path: Path) -> None:
    host.add(observed(), name="watched", text="go")
    hub.start([_target(host)])
    await _shown(hub, "watched")
    refused = await hub.submit(_intent(Primitive.PAUSE, "watched"))
    assert (refused.outcome, refused.sent_at) == (OutcomeKind.CAPABILITY_NOT_SUPPORTED, None)
    assert refused.id not in hub.fleet.trails
    nobody = await hub.submit(_intent(Primitive.PAUSE, "nobody"))
    assert nobody.outcome is OutcomeKind.STALE_TARGET
    await hub.close()
    assert list((tmp_path / "audit").iterdir()) == []


async def test_a_hub_that_only_watches_writes_and_sends_nothing(host: Host, tmp_path: Path) -> None:
    hub = _hub(tmp_path, read_only=True)
    hub.start([_target(host)])
    try:
        await _shown(hub)
        assert (await hub.submit(_intent(Primitive.PAUSE))).outcome is OutcomeKind.NOT_PERMITTED
        assert not (tmp_path / "audit").exists()
    finally:
        await hub.close()


async def test_an_audit_that_cannot_be_written_is_told_and_does_not_stop_interventions(
    host: Host, tmp_path: Path
) -> None:
    (tmp_path / "audit").touch()
    hub = _hub(tmp_path)
    hub.start([_target(host)])
    try:
        assert str(tmp_path) in (hub.audit_fault or "")
        await _shown(hub, lifecycle=Lifecycle.WAITING)
        intent = _intent(Primitive.PAUSE, interrupt=True)
        await hub.submit(intent)
        assert (await hub.settle(intent.id, WAIT_S)).effect is EffectState.SEEN
        (tmp_path / "audit").unlink()
        resumed = _intent(Primitive.RESUME)
        await hub.submit(resumed)
        await hub.settle(resumed.id, WAIT_S)
        assert hub.audit_fault is None
        assert _lines(tmp_path)[0]["lost"] == 3
    finally:
        await hub.close()


async def test_a_required_audit_blocks_instead(host: Host, tmp_path: Path) -> None:
    (tmp_path / "audit").touch()
    hub = _hub(tmp_path, required=True)
    hub.start([_target(host)])
    try:
        await _shown(hub, lifecycle=Lifecycle.WAITING)
        trail = await hub.submit(_intent(Primitive.PAUSE, interrupt=True))
        assert trail.outcome is OutcomeKind.UNDELIVERED
        assert 'audit = "required"' in trail.reason
        assert host.core.session("writer").lifecycle is Lifecycle.WAITING
    finally:
        await hub.close()


async def test_one_sick_source_does_not_disturb_another(host: Host, hub: Hub) -> None:
    sick = Target(name="sick", url="ws://127.0.0.1:1", user="ann")
    foreign = Target(name="foreign", url="gopher://127.0.0.1:1", user="ann")
    hub.start([sick, foreign, _target(host)])
    await _shown(hub)
    sources = hub.fleet.sources
    assert await hub.until(lambda: sources["sick"].contact is Contact.LOST, WAIT_S)
    assert await hub.until(lambda: sources["foreign"].contact is Contact.REFUSED, WAIT_S)
    assert "no connector speaks gopher://" in sources["foreign"].why
    assert sources["local"].contact is Contact.LIVE


async def test_a_name_is_taken_once(host: Host, hub: Hub) -> None:
    hub.start([_target(host)])
    with pytest.raises(ValueError, match="there is a source 'local' already"):
        hub.start([_target(host)])


async def test_a_source_that_ends_and_comes_back_is_found_again(tmp_path: Path, hub: Hub) -> None:
    async with hosting() as host:
        port = int(host.url.rpartition(":")[2])
        host.add(writes(tmp_path), name="writer", text="hello")
        hub.start([_target(host)])
        await _shown(hub, lifecycle=Lifecycle.WAITING)
    source = hub.fleet.sources["local"]
    assert await hub.until(lambda: source.contact is Contact.LOST, WAIT_S)
    assert hub.fleet.sessions[SessionKey("local", "writer")].lifecycle is not Lifecycle.STOPPED, "silence is no state"
    refused = await hub.submit(_intent(Primitive.PAUSE))
    assert refused.outcome is OutcomeKind.UNDELIVERED
    async with Host(name="test") as again:
        again.add(writes(tmp_path), name="writer", text="hello")
        await again.serve(port=port)
        hub.retry("local")
        assert await hub.until(lambda: source.contact is Contact.LIVE and source.listed, WAIT_S)
        await _shown(hub, lifecycle=Lifecycle.WAITING)


async def test_a_source_that_is_let_go_is_lost_for_good_until_another_takes_its_place(tmp_path: Path, hub: Hub) -> None:
    async with hosting() as host:
        host.add(writes(tmp_path), name="writer", text="hello")
        host.add(observed(), name="watched")
        hub.start([_target(host)])
        await _shown(hub, lifecycle=Lifecycle.WAITING)
        assert hub.has("local")
        assert hub.heard("local")
        hub.let_go("local", "the host has ended")
        assert (await hub.submit(_intent(Primitive.PAUSE, interrupt=True))).sent_at is not None, "it is still there"
    source = hub.fleet.sources["local"]
    assert await hub.until(lambda: source.given_up, WAIT_S)
    assert (source.why, source.retry_at, hub.heard("local")) == ("the host has ended", None, False)
    assert hub.fleet.sessions[SessionKey("local", "watched")].lifecycle is not Lifecycle.STOPPED
    async with hosting({ANN: Principal("ann")}) as other:
        other.add(writes(tmp_path), name="writer", text="hello")
        hub.replace(replace(_target(other), token=ANN))
        assert await hub.until(lambda: source.contact is Contact.LIVE and source.listed, WAIT_S)
        assert (source.host, len(hub.fleet.sources)) == ("test", 1)
        await _shown(hub, lifecycle=Lifecycle.WAITING)
        assert SessionKey("local", "watched") not in hub.fleet.sessions, "the new host does not have it"
        intent = _intent(Primitive.PAUSE, interrupt=True)
        await hub.submit(intent)
        assert (await hub.settle(intent.id, WAIT_S)).effect is EffectState.SEEN


async def test_what_was_on_its_way_to_a_host_that_was_replaced_is_unknown(host: Host, hub: Hub, tmp_path: Path) -> None:
    hub.start([_target(host)])
    await _shown(hub, lifecycle=Lifecycle.WAITING)
    intent = _intent(Primitive.SEND, text="more")
    trail = await hub.submit(intent)
    # The event loop was never left, so that no answer can have been read yet.
    hub.replace(replace(_target(host), url="ws://127.0.0.1:1"))
    assert (trail.outcome, _contact(hub)) == (OutcomeKind.UNKNOWN, Contact.LIVE)
    assert "another host has taken the place" in trail.reason
    assert _lines(tmp_path)[-1]["outcome"] == "unknown"
    assert await hub.until(lambda: _contact(hub) is Contact.LOST, WAIT_S)
    assert trail.outcome is OutcomeKind.UNKNOWN, "the old host is not heard any more"


async def test_what_was_on_its_way_to_a_host_that_ended_is_unknown(tmp_path: Path, hub: Hub) -> None:
    async with hosting() as host:
        host.add(writes(tmp_path), name="writer", text="hello")
        hub.start([_target(host)])
        await _shown(hub, lifecycle=Lifecycle.WAITING)
        hub.let_go("local", "the host has ended")
        # As if the host had taken the command and ended in the same moment.
        host.perform = lambda effects: None  # type: ignore[method-assign]
        trail = await hub.submit(_intent(Primitive.SEND, text="more"))
    assert await hub.until(lambda: trail.outcome is OutcomeKind.UNKNOWN, WAIT_S)
    assert trail.reason == "the host has ended"


async def test_a_word_that_does_not_come_back_is_unknown(host: Host, hub: Hub) -> None:
    hub.start([_target(host)])
    await _shown(hub, lifecycle=Lifecycle.WAITING)
    intent = _intent(Primitive.SEND, text="more")
    trail = await hub.submit(intent)
    # The event loop was never left, so that no answer can have been read yet.
    trail = await hub.answered(intent.id, 0)
    assert trail.outcome is OutcomeKind.UNKNOWN
    assert "no word came back within 0 s" in trail.reason
    assert await hub.until(lambda: trail.outcome is OutcomeKind.APPLIED, WAIT_S), "the word that came late counts"


async def test_what_cannot_be_taken_up_costs_itself_only(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrival = Intake.arrival

    def failing(self: Intake, item: Any) -> Any:
        frame = getattr(item, "frame", None)
        if isinstance(frame, Outcome) and frame.id == "first":
            raise OverflowError("too much")
        return arrival(self, item)

    def listening(source: str, items: Any) -> None:
        raise KeyError("whoever listens in fails")

    monkeypatch.setattr(Intake, "arrival", failing)
    hub = _hub(tmp_path, on_items=listening)
    hub.start([_target(host)])
    try:
        await _shown(hub, lifecycle=Lifecycle.WAITING)
        source = hub.fleet.sources["local"]
        before = source.fault_count
        assert before > 0, "that nobody could listen is counted"
        first = await hub.submit(replace(_intent(Primitive.SEND, text="one"), id="first"))
        second = await hub.submit(_intent(Primitive.PAUSE, interrupt=True))
        assert (await hub.settle(second.id, WAIT_S)).effect is EffectState.SEEN
        assert first.outcome is None
        assert any(fault.reason == "it could not be taken up: OverflowError: too much" for fault in source.faults)
        assert [line["what"] for line in _lines(tmp_path) if line["id"] == second.id] == [
            "requested",
            "outcome",
            "effect",
        ]
    finally:
        await hub.close()


async def test_a_command_that_was_begun_is_sent_once(host: Host, hub: Hub) -> None:
    hub.start([_target(host)])
    await _shown(hub, lifecycle=Lifecycle.WAITING)
    trail = hub.begin(_intent(Primitive.SEND, text="more"))
    assert (trail.sent_at, hub.fleet.trails[trail.id]) == (None, trail)
    await asyncio.gather(hub.dispatch(trail), hub.dispatch(trail), hub.submit(trail.intent))
    await hub.settle(trail.id, 0.2)
    assert trail.sent_at is not None
    assert host.core.session("writer").summary()["mailbox"].queued == 1  # type: ignore[attr-defined]
