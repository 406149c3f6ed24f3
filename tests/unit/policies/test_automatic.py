"""Policies at work: each request is decided once, by the text that was looked at, and never against a human."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from console.fleet.facts import RequestKey
from console.fleet.gate import Gated, gate
from console.policies.automatic import Automatic, Decided
from console.policies.rules import Does, Policy
from tests.unit.fleet.scripted import ScriptedHost

POLICIES = (
    Policy("tests", Does.APPROVE, command="make test"),
    Policy("evil", Does.DENY, command="evil"),
    Policy("look", Does.SECOND_KEY, command="deploy"),
)


def at_work(host: ScriptedHost, *policies: Policy) -> Automatic:
    host.session()
    return Automatic(policies or POLICIES, host.fleet)


def due(host: ScriptedHost, automatic: Automatic, *keys: RequestKey) -> list[Decided]:
    automatic.arrived(keys, host.now)
    return list(automatic.due(host.now))


def test_a_decision_names_the_text_that_was_looked_at_and_passes_the_gate(host: ScriptedHost) -> None:
    automatic = at_work(host)
    key = host.ask(text="make test")
    (decided,) = due(host, automatic, key)
    gated = gate(host.fleet, decided.intent, host.now)
    assert isinstance(gated, Gated)
    assert (gated.digest, gated.option and gated.option.id) == (host.request(key).digest, "yes")
    assert decided.intent.policy == "tests"
    assert decided.intent.note == "automatically, by policy tests"
    assert decided.audited == {"automatic": True, "policy": "tests", "risks": None}


def test_it_stays_due_until_it_was_begun_and_is_never_decided_again(host: ScriptedHost) -> None:
    automatic = at_work(host)
    key = host.ask(text="evil")
    assert len(due(host, automatic, key)) == 1
    assert len(list(automatic.due(host.now))) == 1
    automatic.begun(key)
    assert list(automatic.due(host.now)) == []
    assert due(host, automatic, key) == []


def test_another_text_is_looked_at_anew(host: ScriptedHost) -> None:
    automatic = at_work(host)
    key = host.ask(text="make test")
    automatic.arrived([key], host.now)
    host.ask(text="make other")
    assert due(host, automatic, key) == []
    host.ask(text="evil")
    (decided,) = due(host, automatic, key)
    assert decided.ruling.does is Does.DENY


def test_a_human_who_was_first_is_left_alone(host: ScriptedHost) -> None:
    automatic = at_work(host)
    key = host.ask(text="make test")
    host.go(host.decision(key, "no"))
    assert due(host, automatic, key) == []


def test_what_ended_or_is_claimed_is_left_alone(host: ScriptedHost) -> None:
    automatic = at_work(host)
    key = host.ask(text="make test")
    automatic.arrived([key], host.now)
    host.decide("r1")
    assert list(automatic.due(host.now)) == []
    assert automatic.on(key) is None
    second = host.ask("r2", text="make test")
    automatic.arrived([second], host.now)
    host.request(second).claimed_by = host.request(second).key.request  # type: ignore[assignment]
    assert list(automatic.due(host.now)) == []


def test_a_policy_that_ends_meanwhile_decides_no_more(host: ScriptedHost) -> None:
    automatic = at_work(host, Policy("tests", Does.APPROVE, command="make test", until=host.now + 10))
    key = host.ask(text="make test")
    automatic.arrived([key], host.now)
    host.now += 10
    assert list(automatic.due(host.now)) == []


def test_where_a_source_does_not_list_or_takes_no_ids_a_human_decides(host: ScriptedHost) -> None:
    automatic = Automatic(POLICIES, host.fleet)
    host.session("s1", traits={"approval_target": "oldest"})
    host.session("s2", traits={"requests": "derived"})
    first, second = host.ask("r1", text="make test"), host.ask("r2", "s2", text="make test")
    assert due(host, automatic, first, second) == []
    found = automatic.on(first)
    assert found is not None
    assert "no decision by id" in found.why


def test_a_second_key_is_asked_for_by_name(host: ScriptedHost) -> None:
    automatic = at_work(host)
    key = host.ask(text="deploy")
    assert due(host, automatic, key) == []
    assert automatic.second_key(key) == "policy look asks for a second key"
    assert automatic.second_key(None) == ""
    assert automatic.second_key(host.ask("r2", text="make lint")) == ""


def test_without_policies_nothing_is_looked_at(host: ScriptedHost) -> None:
    host.session()
    key = host.ask(text="make test")
    automatic = Automatic((), host.fleet)
    assert due(host, automatic, key) == []
    assert automatic.on(key) is None


class Deciding(RuleBasedStateMachine):
    """Whatever arrives, changes and ends in whatever order: at most one decision a request, and of the text it has."""

    def __init__(self) -> None:
        super().__init__()
        self.host = ScriptedHost()
        self.automatic = at_work(self.host)
        self.begun: set[RequestKey] = set()
        self.count = self.decisions = 0

    @rule(text=st.sampled_from(["make test", "evil", "deploy", "ls", "rm -rf x"]))
    def asks(self, text: str) -> None:
        self.count += 1
        self.automatic.arrived([self.host.ask(f"r{self.count}", text=text)], self.host.now)

    @rule(number=st.integers(1, 5), text=st.sampled_from(["make test", "evil", "ls"]), told=st.booleans())
    def changes(self, number: int, text: str, told: bool) -> None:
        if f"r{number}" in self.host.asked:
            key = self.host.ask(f"r{number}", text=text)
            if told:
                self.automatic.arrived([key], self.host.now)

    @rule(number=st.integers(1, 5))
    def ends(self, number: int) -> None:
        if f"r{number}" in self.host.asked:
            self.host.decide(f"r{number}", "no")

    @rule(number=st.integers(1, 5))
    def a_human_decides(self, number: int) -> None:
        key = RequestKey("here", "s1", f"r{number}")
        if key in self.host.fleet.requests:
            self.decisions += 1
            intent = self.host.decision(key, id=f"human-{self.decisions}")
            if isinstance(gate(self.host.fleet, intent, self.host.now), Gated):
                self.host.fleet.requested(intent, self.host.now)
                self.begun.add(key)

    @rule()
    def policies_decide(self) -> None:
        for decided in self.automatic.due(self.host.now):
            gated = gate(self.host.fleet, decided.intent, self.host.now)
            if not isinstance(gated, Gated) or gated.request is None:
                continue
            assert gated.request not in self.begun, "decided twice"
            fact = self.host.request(gated.request).fact
            assert fact is not None
            wanted = {"make test": "yes", "evil": "no"}[fact.actions[0].text]
            assert gated.option is not None
            assert gated.option.id == wanted
            self.begun.add(gated.request)
            self.automatic.begun(gated.request)
            self.host.fleet.requested(decided.intent, self.host.now)


TestDeciding = Deciding.TestCase
TestDeciding.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
