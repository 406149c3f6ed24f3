"""Policies that decide at the moment when a key is pressed: one decision, and the trail tells whose."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from console.fleet.facts import Intent, Refusal, RequestKey
from console.fleet.gate import Gated, gate
from console.fleet.state import Trail
from console.hub.deciding import Deciding
from console.policies.rules import Does, Policy
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.text import Clean
from watchfloor.words import Contact, OutcomeKind

APPROVES = Policy("tests", Does.APPROVE, command="make test")
DENIES = Policy("evil", Does.DENY, command="evil")


class Console:
    """The policies between a scripted host and its fleet, as the hub ties them together. `cut`: nothing leaves."""

    def __init__(self, host: ScriptedHost, *policies: Policy, by_itself: bool = True) -> None:
        self.host, self.cut = host, False
        self.left: list[Trail] = []
        self.audited: list[Mapping[str, object]] = []
        host.session()
        self.deciding = Deciding(
            policies,
            host.fleet,
            lambda: host.now,
            by_itself=by_itself,
            gate=self.gate,
            begin=self.begin,
            dispatch=self.dispatch,
        )

    def gate(self, intent: Intent) -> Gated | Refusal:
        found = gate(self.host.fleet, intent, self.host.now)
        return self.deciding.hold(found) if isinstance(found, Gated) else found

    def begin(self, intent: Intent, more: Mapping[str, object]) -> Trail:
        assert isinstance(self.gate(intent), Gated)
        self.audited.append(more)
        self.deciding.arrived(self.host.fleet.requested(intent, self.host.now).requests)
        return self.host.fleet.trails[intent.id]

    async def dispatch(self, trail: Trail) -> None:
        now = self.host.now
        if self.cut:
            self.host.fleet.settle(trail.id, OutcomeKind.UNDELIVERED, Clean("not sent"), now)
        else:
            self.left.append(trail)
            self.host.fleet.sent(trail.id, now)

    def key(self, request: RequestKey, option: str = "yes") -> Trail | Refusal:
        """An operator presses a key on what stands on the card."""
        intent = self.host.decision(request, option, id=f"key-{len(self.audited)}")
        found = self.gate(intent)
        return found if isinstance(found, Refusal) else self.begin(intent, {})

    async def rest(self) -> None:
        """All that was begun has left."""
        await self.deciding.close()


def whose(console: Console) -> list[str]:
    return [str(trail.intent.policy) if trail.intent.policy else "hand" for trail in console.left]


async def test_a_key_behind_a_policy_is_told_which_one_was_first(host: ScriptedHost) -> None:
    console = Console(host, APPROVES)
    request = host.ask(text="make test")
    console.deciding.arrived([request])
    second = console.key(request)
    await console.rest()
    assert isinstance(second, Refusal)
    assert second.outcome is OutcomeKind.ALREADY_DECIDED
    assert second.reason.startswith("a decision is on its way already: approve by policy tests ")
    assert whose(console) == ["tests"]
    assert console.audited == [{"automatic": True, "policy": "tests", "risks": None}]


async def test_a_policy_behind_a_key_leaves_it_alone_whatever_comes_back(host: ScriptedHost) -> None:
    console = Console(host, APPROVES)
    request = host.ask(text="make test")
    first = console.key(request)
    assert isinstance(first, Trail)
    await console.dispatch(first)
    console.deciding.arrived([request])
    host.outcome(first.id, OutcomeKind.UNKNOWN)
    console.deciding.arrived([request])
    console.deciding.decide()
    await console.rest()
    assert whose(console) == ["hand"]
    assert (
        console.deciding.automatic.says(request, host.now) == "policy tests approves it, and that was left to a human"
    )


@pytest.mark.parametrize("state", ["resolved", "expired", "withdrawn"])
@pytest.mark.parametrize("when", ["before", "between", "behind"])
async def test_what_ends_around_a_policy_is_decided_once_at_most(host: ScriptedHost, when: str, state: str) -> None:
    console = Console(host, DENIES)
    request = host.ask(text="evil")
    if when == "before":
        host.decide("r1", "yes", state=state)
    console.deciding.arrived([request])
    if when == "between":
        host.decide("r1", "yes", state=state)
        console.deciding.arrived([request])
    await console.rest()
    if when == "behind":
        host.outcome(console.left[0].id)
        host.decide("r1", "no", state=state)
        console.deciding.arrived([request])
    console.deciding.decide()
    await console.rest()
    assert whose(console) == ([] if when == "before" else ["evil"])
    assert isinstance(console.key(request, "no"), Refusal), "and no key decides it any more"


async def test_what_never_left_is_decided_again_once_the_source_is_heard(host: ScriptedHost) -> None:
    console = Console(host, DENIES)
    console.cut = True
    request = host.ask(text="evil")
    console.deciding.arrived([request])
    await console.rest()
    host.contact(Contact.LOST)
    console.deciding.decide()
    assert len(console.audited) == 1, "nothing goes out to a source that is not heard"
    held = console.key(request)
    assert isinstance(held, Refusal)
    console.cut = False
    host.contact(Contact.LIVE)
    console.deciding.decide()
    console.deciding.decide()
    await console.rest()
    assert whose(console) == ["evil"]
    assert len(console.audited) == 2


async def test_what_is_open_again_after_it_was_decided_is_left_to_a_human_who_agrees_to_that(
    host: ScriptedHost,
) -> None:
    console = Console(host, DENIES)
    request = host.ask(text="evil")
    console.deciding.arrived([request])
    await console.rest()
    host.outcome(console.left[0].id)
    console.deciding.arrived(host.summary(requests=[]).requests)  # the child that asked was lost
    assert not host.request(request).open
    host.list_requests("s1")
    console.deciding.arrived([request])  # and is there again, with what it asked
    host.wait(60_000)
    console.deciding.decide()
    await console.rest()
    assert host.request(request).open
    assert whose(console) == ["evil"]
    found = console.gate(host.decision(request, "yes", id="later"))
    assert isinstance(found, Gated)
    doubt, policy = found.confirm
    assert "deny by policy evil was sent" in doubt
    assert policy == "policy evil denies it"
    assert console.deciding.agreed(found) == {"second_key": "evil"}
    assert "and that was left to a human" in console.deciding.automatic.says(request, host.now)


async def test_what_a_policy_denies_no_key_approves_where_policies_only_hold(host: ScriptedHost) -> None:
    console = Console(host, DENIES, by_itself=False)
    request = host.ask(text="evil")
    console.deciding.arrived([request])
    await console.rest()
    assert console.left == []
    assert console.key(request) == Refusal(OutcomeKind.INVALID, "policy evil denies it")
    assert isinstance(console.key(request, "no"), Trail)


async def test_what_is_claimed_a_human_decides_knowingly(host: ScriptedHost) -> None:
    console = Console(host, DENIES)
    request = host.ask(text="evil")
    host.request(request).claimed_by = Clean("ann")
    console.deciding.arrived([request])
    await asyncio.sleep(0)
    assert console.left == []
    found = console.gate(host.decision(request, "yes"))
    assert isinstance(found, Gated)
    assert found.confirm == ("policy evil denies it",)
