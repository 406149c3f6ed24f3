"""Policies over real sockets: the agent really goes on or is refused, once, and the audit says by which policy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from console.audit import Audit
from console.auditing import Entry, check, entries, figures
from console.fleet.facts import Intent, Refusal, RequestKey, Seen, SessionKey
from console.fleet.gate import Gated
from console.hub import Hub
from console.policies.rules import Does, Policy
from tests.sockets.cli_kit import appears, hosting, writes
from watchfloor.connector import Target
from watchfloor.host.serving.server import Host, wall_clock
from watchfloor.words import EffectState, OptionKind, OutcomeKind, Primitive, RequestState

WAIT_S = 20.0


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with hosting() as host:
        yield host


def _hub(folder: Path, *policies: Policy, read_only: bool = False) -> Hub:
    audit = Audit(folder / "audit", clock=wall_clock)
    return Hub(clock=wall_clock, audit=audit, by="ann", policies=policies, read_only=read_only)


def _start(hub: Hub, host: Host) -> None:
    hub.start([Target(name="local", url=host.url, user="ann")])


async def _request(hub: Hub) -> RequestKey:
    def told() -> bool:
        return any(request.fact is not None for request in hub.fleet.requests.values())

    assert await hub.until(told, WAIT_S)
    return next(key for key, request in hub.fleet.requests.items() if request.fact is not None)


async def _listed(hub: Hub) -> bool:
    return await hub.until(lambda: hub.fleet.sources["local"].listed, WAIT_S)


async def _ended(hub: Hub, key: RequestKey) -> None:
    assert await hub.until(lambda: hub.fleet.requests[key].state is RequestState.RESOLVED, WAIT_S)


def _requested(folder: Path) -> list[Entry]:
    return [entry for entry in entries(folder / "audit") if entry.text("what") == "requested"]


def _decision(hub: Hub, key: RequestKey, kind: OptionKind) -> Intent:
    request = hub.fleet.requests[key]
    assert request.fact is not None
    option = next(option.id for option in request.fact.options if option.kind is kind)
    return Intent(
        id=str(uuid4()),
        primitive=Primitive.APPROVE,
        target=key.owner,
        by="ann",
        request=key.request,
        option=option,
        seen=Seen(request.digest, since_local=0, whole=True),
    )


async def test_what_a_policy_approves_goes_on_by_itself_and_is_written_down_as_such(host: Host, tmp_path: Path) -> None:
    hub = _hub(tmp_path, Policy("writing", Does.APPROVE, tool="write"))
    try:
        _start(hub, host)
        host.add(writes(tmp_path), name="writer", text="hello")
        key = await _request(hub)
        assert await appears(tmp_path / "done") == "hello"
        await _ended(hub, key)
        (trail,) = hub.fleet.trails.values()
        trail = await hub.settle(trail.id, WAIT_S)
        assert (trail.outcome, trail.effect) == (OutcomeKind.APPLIED, EffectState.SEEN)
        assert trail.intent.policy == "writing"
    finally:
        await hub.close()
    (asked,) = _requested(tmp_path)
    assert (asked.fields["automatic"], asked.fields["policy"], asked.fields["by"]) == (True, "writing", "ann")
    assert figures(entries(tmp_path / "audit")).automatic == 1
    assert all(one.fault is None for one in check(tmp_path / "audit"))


async def test_what_a_policy_denies_is_not_done(host: Host, tmp_path: Path) -> None:
    hub = _hub(tmp_path, Policy("nothing here", Does.DENY, path=f"{tmp_path}/"), Policy("no", Does.DENY, tool="write"))
    try:
        _start(hub, host)
        host.add(writes(tmp_path), name="writer", text="hello")
        key = await _request(hub)
        await _ended(hub, key)
        decision = hub.fleet.requests[key].decision
        assert decision is not None
        assert decision.kind is OptionKind.DENY
        assert decision.note == "automatically, by policy nothing here"
    finally:
        await hub.close()
    assert not (tmp_path / "done").exists()


async def test_a_request_that_waited_before_the_console_came_is_looked_at_too(host: Host, tmp_path: Path) -> None:
    host.add(writes(tmp_path), name="writer", text="hello")
    hub = _hub(tmp_path, Policy("writing", Does.APPROVE, tool="write"))
    try:
        _start(hub, host)
        assert await appears(tmp_path / "done") == "hello"
    finally:
        await hub.close()


@pytest.mark.parametrize("read_only", [True, False])
async def test_a_console_that_only_watches_and_one_without_a_match_leave_it_to_a_human(
    host: Host, tmp_path: Path, read_only: bool
) -> None:
    hub = _hub(tmp_path, Policy("p", Does.APPROVE, tool="write" if read_only else "other"), read_only=read_only)
    try:
        _start(hub, host)
        host.add(writes(tmp_path), name="writer", text="hello")
        key = await _request(hub)
        assert hub.ruling(key) is None
        assert hub.fleet.requests[key].open
        assert not hub.fleet.trails
    finally:
        await hub.close()
    assert not (tmp_path / "done").exists()


async def test_a_second_key_is_among_what_has_to_be_agreed_to_and_only_for_what_allows(
    host: Host, tmp_path: Path
) -> None:
    hub = _hub(tmp_path, Policy("look twice", Does.SECOND_KEY, source="local"))
    try:
        _start(hub, host)
        host.add(writes(tmp_path), name="writer", text="hello")
        key = await _request(hub)
        allow = hub.gate(_decision(hub, key, OptionKind.ALLOW))
        assert isinstance(allow, Gated)
        assert allow.confirm == ("policy look twice asks for a second key",)
        deny = hub.gate(_decision(hub, key, OptionKind.DENY))
        assert isinstance(deny, Gated)
        assert deny.confirm == ()
    finally:
        await hub.close()


async def test_two_consoles_with_the_same_policy_decide_once(host: Host, tmp_path: Path) -> None:
    policy = Policy("writing", Does.APPROVE, tool="write")
    hubs = [_hub(tmp_path / name, policy) for name in ("one", "two")]
    try:
        for hub in hubs:
            _start(hub, host)
        for hub in hubs:
            # What was decided before the other console came it would never hear of.
            assert await _listed(hub)
        host.add(writes(tmp_path), name="writer", text="hello")
        for hub in hubs:
            key = await _request(hub)
            await _ended(hub, key)
            for id in list(hub.fleet.trails):
                await hub.answered(id, WAIT_S)
        outcomes = [trail.outcome for hub in hubs for trail in hub.fleet.trails.values()]
        assert outcomes.count(OutcomeKind.APPLIED) == 1
        assert set(outcomes) <= {OutcomeKind.APPLIED, OutcomeKind.ALREADY_DECIDED}
    finally:
        for hub in hubs:
            await hub.close()


async def test_a_decision_by_hand_is_written_down_with_how_long_it_waited(host: Host, tmp_path: Path) -> None:
    hub = _hub(tmp_path)
    try:
        _start(hub, host)
        host.add(writes(tmp_path), name="writer", text="hello")
        key = await _request(hub)
        early = _decision(hub, key, OptionKind.ALLOW)
        hub.refused_early(early, Refusal(OutcomeKind.REFUSED, "armed in 0.2 s", early=True))
        hub.revealed(key)
        trail = await hub.submit(_decision(hub, key, OptionKind.ALLOW))
        await hub.settle(trail.id, WAIT_S)
        assert key.owner == SessionKey("local", key.session)
    finally:
        await hub.close()
    (asked,) = _requested(tmp_path)
    waited = asked.fields["waited_ms"]
    assert isinstance(waited, int)
    assert waited >= 0
    assert "policy" not in asked.fields
    found = figures(entries(tmp_path / "audit"))
    assert (found.decisions, found.automatic, found.early, found.median_ms) == (1, 0, 1, waited)
    assert [entry.text("what") for entry in entries(tmp_path / "audit")][:2] == ["refused", "revealed"]
