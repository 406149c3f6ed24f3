"""Which policy rules, what it may decide, and what none of them ever decides."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.decisions.risk.actions import request_risks
from console.fleet.facts import RequestFact
from console.policies.rules import Asker, Does, Policy, Ruling, rule, told
from tests.unit.fleet.risk.commands import HARMFUL, HARMLESS
from tests.unit.fleet.scripted import ALLOW, ALWAYS, DENY, ScriptedHost
from watchfloor.canonical import subject_digest
from watchfloor.protocol import model as m
from watchfloor.words import OptionKind, RequestKind

NOW = 2_000_000
BOB = Asker("here", "bob", "/srv/app")


def asked(text: str = "make test", **rest: Any) -> RequestFact:
    host = ScriptedHost()
    host.session()
    fact = host.request(host.ask(text=text, **rest)).fact
    assert fact is not None
    return fact


def with_actions(*actions: m.Action, options: tuple[m.Option, ...] = (ALLOW, DENY)) -> RequestFact:
    host = ScriptedHost()
    host.session()
    subject = m.Subject(session="s1", attempt=1, id="r1", kind=RequestKind.APPROVAL, actions=actions, options=options)
    fact = host.request(host.open(m.RequestModel.ask(subject, asked_at=1))).fact
    assert fact is not None
    return fact


def approve(**rest: Any) -> Policy:
    return Policy("yes", Does.APPROVE, **rest)


def deny(**rest: Any) -> Policy:
    return Policy("no", Does.DENY, **rest)


def ruled(fact: RequestFact, *policies: Policy, asker: Asker = BOB, now: int = NOW) -> Ruling:
    return rule(policies, fact, asker, now)


def does(fact: RequestFact, *policies: Policy, **rest: Any) -> Does | None:
    return ruled(fact, *policies, **rest).does


def test_without_policies_a_human_decides() -> None:
    found = ruled(asked())
    assert (found.policy, found.does, found.decides) == (None, None, False)
    assert told(found) == "no policy matches: a human decides"


def test_an_exact_command_is_approved_once_by_the_option_for_just_that() -> None:
    found = ruled(asked(options=(ALWAYS, ALLOW, DENY)), approve(command="make test"))
    assert found.option is not None
    assert found.option.id == "yes"
    assert told(found) == "approved automatically, by policy yes"


@pytest.mark.parametrize(
    "other", ["make tests", "make test ", " make test", "make test; ls", "make  test", "Make test"]
)
def test_any_other_command_is_not(other: str) -> None:
    assert does(asked(other), approve(command="make test")) is None


def test_the_first_that_matches_rules() -> None:
    fact = asked()
    assert does(fact, deny(tool="shell"), approve(command="make test")) is Does.DENY
    assert does(fact, approve(command="make test"), deny(tool="shell")) is Does.APPROVE
    assert does(fact, deny(tool="other"), approve(command="make test")) is Does.APPROVE
    second = Policy("look", Does.SECOND_KEY, source="here")
    assert does(fact, second, approve(command="make test")) is Does.SECOND_KEY
    assert told(ruled(fact, second)) == "policy look asks for a second key"


def test_a_policy_that_matches_and_may_not_approve_ends_the_search() -> None:
    found = ruled(
        asked("rm -rf x"), approve(command="rm -rf x"), approve(command="rm -rf x", risks=frozenset({"destructive"}))
    )
    assert found.does is None
    assert "does not name destructive (delete-tree: deletes a folder)" in found.why


@pytest.mark.parametrize(
    ("condition", "other"),
    [
        ({"source": "here"}, {"source": "there"}),
        ({"agent": "bob"}, {"agent": "eve"}),
        ({"tool": "shell"}, {"tool": "x"}),
    ],
)
def test_each_condition_has_to_hold(condition: dict[str, str], other: dict[str, str]) -> None:
    assert does(asked(), approve(command="make test", **condition)) is Does.APPROVE
    assert does(asked(), approve(command="make test", **other)) is None


def test_a_policy_that_has_ended_matches_nothing() -> None:
    assert does(asked(), approve(command="make test", until=NOW + 1)) is Does.APPROVE
    assert does(asked(), approve(command="make test", until=NOW)) is None


# --- risks ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("command", "rules"), HARMFUL)
def test_nothing_risky_is_approved_unless_each_risk_is_named(command: str, rules: str) -> None:
    fact = asked(command)
    assert does(fact, approve(tool="shell")) is None
    assert does(fact, approve(command=command)) is None
    names = rules.split()
    for left_out in names:
        some = frozenset(name for name in names if name != left_out)
        assert does(fact, approve(command=command, risks=some)) is None
    all_named = ruled(fact, approve(command=command, risks=frozenset(names)))
    # What cannot be seen whole stays with a human, whatever is named.
    assert all_named.does is (None if "not fully known" in all_named.why else Does.APPROVE)
    assert does(fact, deny(tool="shell")) is (Does.DENY if all_named.does else None)


@pytest.mark.parametrize("command", [command for command in HARMLESS if command.strip()])
def test_what_is_harmless_is_approved_by_its_exact_command(command: str) -> None:
    fact = asked(command)
    assert (does(fact, approve(command=command)) is Does.APPROVE) == ("\u200b" not in command)


def test_a_risk_may_be_named_by_its_kind() -> None:
    assert does(asked("rm -rf x"), approve(command="rm -rf x", risks=frozenset({"destructive"}))) is Does.APPROVE


# --- what is never decided -----------------------------------------------------------------


@pytest.mark.parametrize("policy", [approve(command="make test"), deny(tool="shell")])
def test_what_is_not_known_whole_is_never_decided(policy: Policy) -> None:
    assert does(asked(complete=False), policy) is None
    raw: m.JsonObject = {
        "session": "s1", "attempt": 1, "id": "r1", "kind": "approval", "sandbox": "off",
        "actions": [{"tool": "shell", "text": "make test"}],
        "options": [{"id": "yes", "label": "Yes", "kind": "allow"}, {"id": "no", "label": "No", "kind": "deny"}],
    }  # fmt: skip
    host = ScriptedHost()
    host.session()
    strange = host.request(host.open(m.RequestModel(subject=raw, digest=subject_digest(raw), asked_at=1))).fact
    assert strange is not None
    assert does(strange, policy) is None
    forged = host.request(host.open(m.RequestModel(subject={**raw, "id": "r2"}, digest="sha256:0", asked_at=1))).fact
    assert forged is not None
    assert does(forged, policy) is None


def test_what_is_hidden_masked_or_late_is_never_decided() -> None:
    named = frozenset({"disguised", "secrets"})
    assert does(asked("ls \u200b"), approve(tool="shell", risks=named)) is None
    key = "-".join(("sk", "ant", "a1b2c3d4" * 5))
    secret = ruled(asked(f"deploy {key}"), approve(tool="shell", risks=named))
    assert secret.does is None
    assert "secret" in secret.why
    late = asked(deadline=NOW)
    assert does(late, approve(tool="shell")) is None
    assert does(late, approve(tool="shell"), now=NOW - 1) is Does.APPROVE
    assert does(late, approve(tool="shell"), now=NOW - 1, asker=Asker("here", "bob", None, ahead_ms=1)) is None


def test_questions_and_wider_options_are_left_to_a_human() -> None:
    host = ScriptedHost()
    host.session()
    question = host.request(host.question()).fact
    assert question is not None
    assert does(question, deny(source="here")) is None
    assert does(asked(options=(ALWAYS, DENY)), approve(tool="shell")) is None
    confirmed = m.Option(id="yes", label="Allow", kind=OptionKind.ALLOW, confirm=True)
    assert does(asked(options=(confirmed, DENY)), approve(tool="shell")) is None
    assert does(asked(options=(ALLOW,)), deny(tool="shell")) is None


# --- several actions, arguments, paths -----------------------------------------------------


def test_all_actions_have_to_be_allowed_and_one_is_enough_to_deny() -> None:
    both = with_actions(m.Action(tool="shell", text="make test"), m.Action(tool="shell", text="make lint"))
    assert does(both, approve(command="make test")) is None
    assert does(both, deny(command="make lint")) is Does.DENY
    twice = with_actions(m.Action(tool="shell", text="make test"), m.Action(tool="shell", text="make test"))
    assert does(twice, approve(command="make test")) is Does.APPROVE


def arguments(tool: str, **given: Any) -> RequestFact:
    return with_actions(m.Action(tool=tool, arguments=given, cwd="/srv/app"))


def test_a_command_in_arguments_is_exact_only_where_nothing_else_changes_it() -> None:
    policy = approve(command="make test")
    assert does(arguments("Bash", command="make test", description="run them"), policy) is Does.APPROVE
    assert does(arguments("Bash", command="make test", env={"X": "1"}), policy) is None
    assert does(arguments("Bash", command="make test", cmd="rm x"), policy) is None
    assert does(arguments("Bash", command="make test", env={}), deny(command="make test")) is Does.DENY


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("docs/a.md", True),
        ("/srv/app/docs/sub/b.md", True),
        ("docs/../src/a.py", False),
        ("docs", True),
        ("docsx/a.md", False),
        ("/srv/other/docs/a.md", False),
        ("$HOME/docs/a.md", False),
    ],
)
def test_a_folder_is_what_lies_in_it_wherever_a_path_leads(path: str, allowed: bool) -> None:
    policy = approve(tool="write", path="docs/")
    assert (does(arguments("write", path=path, content="x"), policy) is Does.APPROVE) is allowed


def test_every_path_has_to_be_allowed_and_one_is_enough_to_deny() -> None:
    moved = arguments("move", path="docs/a", destination="src/a")
    assert does(moved, approve(tool="move", path="docs/")) is None
    assert does(moved, deny(path="src/")) is Does.DENY
    assert does(arguments("write", content="x"), approve(tool="write", path="docs/")) is None


@pytest.mark.parametrize(
    "command", ["cp a /srv/app/secret/x", "echo x > secret/x", "tee --output=secret/x", "ls ./secret"]
)
def test_a_denied_path_is_found_in_commands_too(command: str) -> None:
    assert does(with_actions(m.Action(tool="shell", text=command, cwd="/srv/app")), deny(path="secret/")) is Does.DENY


def test_a_member_that_stands_twice_is_no_argument() -> None:
    twice = '{"command": "make test", "command": "make test"}'
    assert does(asked(twice), approve(command="make test")) is None


TEXTS = st.sampled_from(
    ["make test", "rm -rf x", "curl x | sh", "cat .env", "ls", json.dumps({"command": "make test"}), "ls \u200b", ""]
)


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=3),
    policies=st.lists(
        st.builds(
            Policy,
            st.sampled_from(["a", "b"]),
            st.sampled_from(Does),
            command=st.sampled_from([None, "make test", "rm -rf x", "ls"]),
            tool=st.sampled_from([None, "shell"]),
            risks=st.frozensets(st.sampled_from(["destructive", "secrets", "network-to-shell", "delete-tree"])),
            until=st.sampled_from([None, NOW, NOW + 1]),
        ),
        max_size=4,
    ),
    complete=st.booleans(),
)
def test_whatever_the_policies_nothing_unnamed_is_approved(
    texts: list[str], policies: list[Policy], complete: bool
) -> None:
    fact = with_actions(*(m.Action(tool="shell", text=text, complete=complete) for text in texts))
    found = rule(tuple(policies), fact, BOB, NOW)
    if not found.decides:
        return
    assert complete
    assert all(texts)
    assert found.policy is not None
    assert not found.policy.ended(NOW)
    if found.does is Does.APPROVE:
        for risks in request_risks(fact, BOB.workspace):
            for risk in risks:
                assert risk.kind in found.policy.risks or risk.rule in found.policy.risks
        assert found.option is not None
        assert found.option.kind is OptionKind.ALLOW
