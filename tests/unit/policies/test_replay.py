"""A host's log through the policies: what they would have decided, the risky ones first."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from console.fleet.decisions.risk.model import RiskLevel
from console.policies.replay import Replay, replay
from console.policies.rules import Does, Policy


def line(kind: str, session: str = "s1", **fields: Any) -> dict[str, Any]:
    return {"source": "here", "session": session, "epoch": "e", "event": {"kind": kind, "at": 1_000, **fields}}


def opened(request: str, text: str, **rest: Any) -> dict[str, Any]:
    return line("request_opened", request=request, request_kind="approval", digest="sha256:0", text=text, **rest)


def ids(replayed: Replay) -> list[str]:
    return [one.key.request for one in replayed.by_risk()]


TESTS = Policy("tests", Does.APPROVE, command="make test")
CLEAN = Policy("clean", Does.APPROVE, command="rm -rf build", risks=frozenset({"destructive"}))


def test_what_would_have_been_decided_comes_first_and_of_that_the_riskiest() -> None:
    replayed = replay(
        (TESTS, CLEAN),
        [
            opened("r1", "shell  ls"),
            opened("r2", "shell  make test", at=2_000),
            opened("r3", "shell  rm -rf build", at=3_000),
            opened("r4", "shell  rm -rf /", at=4_000),
            line("request_resolved", request="r3", state="resolved", option_kind="deny", by="ann"),
        ],
    )
    assert ids(replayed) == ["r3", "r2", "r4", "r1"]
    risky, plain, human, _ = replayed.by_risk()
    assert (risky.ruling.does, risky.level, risky.ended) == (Does.APPROVE, RiskLevel.HIGH, "deny by ann")
    assert plain.ended == ""
    assert not human.ruling.decides


def test_the_call_that_waited_is_what_is_judged() -> None:
    call = line("tool_call", call="c1", name="Bash", arguments={"command": "make test"}, cwd="/srv/app")
    replayed = replay((TESTS,), [call, opened("r1", "Bash  command: make test")])
    (found,) = replayed.by_risk()
    assert found.whole
    assert found.ruling.does is Does.APPROVE
    (guess,) = replay((TESTS,), [opened("r1", "Bash  command: make test")]).by_risk()
    assert not guess.whole
    assert not guess.ruling.decides


def test_what_a_line_does_not_say_whole_is_not_decided() -> None:
    everything = Policy("all", Does.APPROVE, tool="shell")
    texts = ["shell  make test (and 2 more)", "shell  make a very long…"]
    assert not any(one.ruling.decides for one in replay((everything,), [opened(t, t) for t in texts]).by_risk())


def test_names_of_sessions_count_where_they_are_known() -> None:
    only = Policy("bob", Does.APPROVE, command="make test", agent="bob")
    lines = [opened("r1", "shell  make test")]
    assert not replay((only,), lines).by_risk()[0].ruling.decides
    assert replay((only,), lines, {"s1": "bob"}).by_risk()[0].ruling.decides


def test_questions_and_what_is_no_event_are_left_out() -> None:
    question = line("request_opened", request="q", request_kind="question", digest="d", text="which?")
    replayed = replay((TESTS,), [question, 3, None, {"event": 1}, line("unheard of")])
    assert replayed.by_risk() == []
    assert replayed.odd == 3


NAMES = ("request", "text", "at", "name", "arguments", "cwd", "option_kind", "by")
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)


@given(
    st.lists(
        st.one_of(
            JSON,
            st.builds(
                lambda kind, fields: {"source": "s", "session": "x", "event": {**fields, "kind": kind}},
                st.sampled_from(["tool_call", "request_opened", "request_resolved"]),
                st.fixed_dictionaries(
                    {},
                    optional=dict.fromkeys(
                        ("request", "text", "at", "name", "arguments", "cwd", "option_kind", "by"), JSON
                    )
                    | {"request_kind": st.just("approval")},
                ),
            ),
        ),
        max_size=6,
    )
)
def test_any_log_can_be_replayed(lines: list[Any]) -> None:
    for one in replay((TESTS, CLEAN), lines).by_risk():
        assert one.line == one.line.replace("\n", "")
