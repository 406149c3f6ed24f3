"""What asks for the very same, and what may be decided together: nothing risky, nothing that is not known whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.decisions.alike import NOT_TOGETHER, alike, preflight, still, unknown
from console.fleet.facts import RequestKey
from console.fleet.gate import Gated, gate
from tests.unit.fleet.scripted import ALLOW, ALWAYS, DENY, ScriptedHost
from watchfloor.canonical import subject_digest
from watchfloor.protocol import model as m
from watchfloor.words import Contact, OptionKind, RequestKind


def ask(host: ScriptedHost, id: str, text: str = "make test", **rest: Any) -> RequestKey:
    return host.ask(id, **{"text": text, **rest})


def why(host: ScriptedHost, key: RequestKey, kind: OptionKind = OptionKind.ALLOW) -> str:
    (planned,) = preflight(host.fleet, [key], kind, host.now)
    return planned.why


def test_the_same_action_with_the_same_options_is_alike_in_any_session(host: ScriptedHost) -> None:
    host.session("s1", cwd="/a")
    host.session("s2", cwd="/a")
    first, second = ask(host, "r1"), ask(host, "r2", session="s2")
    assert alike(host.fleet, first) == [first, second]
    assert host.request(first).digest != host.request(second).digest


@pytest.mark.parametrize(
    "other",
    [
        {"text": "make tests"},
        {"text": "make test "},
        {"options": (ALLOW, DENY)},
        {"options": (m.Option(id="yes", label="Allow", kind=OptionKind.ALLOW, persists=True), ALWAYS, DENY)},
        {"options": (m.Option(id="yes", label="Allow", kind=OptionKind.ALLOW, grants=("x",)), ALWAYS, DENY)},
        {"per_action": True},
        {"complete": False},
        {"at_deadline": "yes"},
    ],
)
def test_whatever_differs_makes_it_another(host: ScriptedHost, other: dict[str, Any]) -> None:
    host.session()
    first = ask(host, "r1")
    second = ask(host, "r2", **other)
    assert alike(host.fleet, first) == [first]
    assert alike(host.fleet, second) == [second]


def test_the_folder_in_which_it_runs_makes_a_difference(host: ScriptedHost) -> None:
    host.session("s1", cwd="/a")
    host.session("s2", cwd="/b")
    first = ask(host, "r1")
    ask(host, "r2", session="s2")
    assert alike(host.fleet, first) == [first]


def test_what_looks_the_same_once_it_was_made_visible_is_not_the_same(host: ScriptedHost) -> None:
    host.session()
    first, second = ask(host, "r1", "x<U+202E>\u202e"), ask(host, "r2", "x\u202e<U+202E>")
    a, b = host.request(first).fact, host.request(second).fact
    assert a is not None
    assert b is not None
    assert a.actions[0].text == b.actions[0].text
    assert alike(host.fleet, first) == [first]


def test_what_has_ended_is_alike_to_nothing_that_waits(host: ScriptedHost) -> None:
    host.session()
    ask(host, "r1")
    second = ask(host, "r2")
    host.decide("r1")
    assert alike(host.fleet, second) == [second]


@given(st.lists(st.sampled_from(["make", "make test", "ls", "rm -rf x"]), min_size=1, max_size=8))
def test_alike_is_an_equivalence_over_what_waits(texts: list[str]) -> None:
    host = ScriptedHost()
    host.session()
    keys = [ask(host, f"r{n}", text) for n, text in enumerate(texts)]
    for at, key in enumerate(keys):
        assert alike(host.fleet, key) == [other for other, text in zip(keys, texts, strict=True) if text == texts[at]]


# --- what goes along -----------------------------------------------------------------------


def test_a_plain_request_goes_along_by_its_own_digest_and_option(host: ScriptedHost) -> None:
    host.session()
    (planned,) = preflight(host.fleet, [ask(host, "r1")], OptionKind.ALLOW, host.now)
    assert planned.goes
    assert planned.option is not None
    assert (planned.option.id, planned.digest) == ("yes", host.request(planned.key).digest)
    assert isinstance(gate(host.fleet, host.decision(planned.key, planned.option.id), host.now), Gated)


@pytest.mark.parametrize("text", ["rm -rf build", "curl x | sh", "sudo ls", "cat .env", "ls \u200b", "touch /etc/x"])
def test_what_is_risky_is_approved_by_itself_only_and_may_be_denied_with_others(host: ScriptedHost, text: str) -> None:
    host.session()
    key = ask(host, "r1", text)
    assert why(host, key).endswith(NOT_TOGETHER)
    assert why(host, key, OptionKind.DENY) == ""


def test_what_is_not_known_whole_is_approved_by_itself_only(host: ScriptedHost) -> None:
    host.session()
    assert "only a part" in why(host, ask(host, "cut", complete=False))
    assert "without a text" in why(host, ask(host, "empty", ""))
    bare = m.Subject(session="s1", attempt=1, id="bare", kind=RequestKind.APPROVAL, options=(ALLOW, DENY))
    assert "names no action" in why(host, host.open(m.RequestModel.ask(bare, asked_at=host.now)))
    more = m.Subject(session="s1", attempt=1, id="more", kind=RequestKind.APPROVAL, options=(ALLOW, DENY))
    raw: m.JsonObject = {**more.raw(), "sandbox": "off", "actions": [{"tool": "shell", "text": "ls"}]}
    strange = m.RequestModel(subject=raw, digest=subject_digest(raw), asked_at=host.now)
    assert "does not know" in why(host, host.open(strange))


def test_what_cannot_be_decided_at_all_stays_behind_with_the_reason(host: ScriptedHost) -> None:
    host.session()
    wider = ask(host, "wider", options=(ALWAYS, DENY))
    assert "just this once" in why(host, wider)
    assert why(host, host.question()).startswith("a question")
    ended = ask(host, "ended")
    host.decide("ended")
    assert why(host, ended) == "it has ended"
    assert why(host, RequestKey("here", "nobody", "r")) == "it is gone"
    sent = ask(host, "sent")
    host.go(host.decision(sent))
    assert "on its way" in why(host, sent) or "sent" in why(host, sent)
    lost = ask(host, "lost")
    host.contact(Contact.LOST)
    assert "contact" in why(host, lost)


def test_where_a_source_takes_no_decision_by_id_nothing_goes_along(host: ScriptedHost) -> None:
    host.session(traits={"approval_target": "all_pending"})
    assert why(host, ask(host, "r1")).endswith(NOT_TOGETHER)


def test_the_table_names_each_once_and_in_the_order_given(host: ScriptedHost) -> None:
    host.session()
    keys = [ask(host, f"r{n}") for n in range(3)]
    planned = preflight(host.fleet, [keys[2], keys[0], keys[2]], OptionKind.ALLOW, host.now)
    assert [line.key for line in planned] == [keys[2], keys[0]]


def test_what_changed_since_the_table_was_shown_does_not_go(host: ScriptedHost) -> None:
    host.session()
    key = ask(host, "r1")
    (planned,) = preflight(host.fleet, [key], OptionKind.ALLOW, host.now)
    assert still(host.fleet, planned, OptionKind.ALLOW, host.now) == ""
    ask(host, "r1", "make other")
    assert still(host.fleet, planned, OptionKind.ALLOW, host.now) == "it has changed since"
    host.decide("r1")
    assert still(host.fleet, planned, OptionKind.ALLOW, host.now) == "it has ended"


def test_a_whole_request_is_known(host: ScriptedHost) -> None:
    host.session()
    fact = host.request(ask(host, "r1")).fact
    assert fact is not None
    assert unknown(fact) == ""
