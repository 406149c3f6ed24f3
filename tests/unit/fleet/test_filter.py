"""The filter language: what a term stands for, and what is told of one that stands for nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.roster.filter import KEYS, FilterError, Term, parse
from tests.unit.fleet.scripted import ScriptedHost


@pytest.fixture
def fleet() -> ScriptedHost:
    host = ScriptedHost(name="codex-1")
    host.session("deploy", lifecycle="waiting", labels={"team": "web", "tier": "1"}, cwd="/srv/shop")
    host.session("review", {"send": {}}, lifecycle="idle", labels={"team": "ops"}, parent="deploy")
    host.session("watch", {}, lifecycle="running", demo=True, last={"at": 1, "kind": "message", "text": "row 12: ok"})
    host.session("stöber-机器", {"pause": {}}, lifecycle="failed", error="model refused", owned=True)
    host.ask("r1", "deploy")
    return host


def found(host: ScriptedHost, text: str) -> list[str]:
    filter = parse(text)
    return [key.session for key, session in host.fleet.sessions.items() if filter.accepts(host.fleet, session)]


ALL = ["deploy", "review", "watch", "stöber-机器"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ALL),
        ("   ", ALL),
        ("state:waiting", ["deploy"]),
        ("state:wait", ["deploy"]),
        ("state:WAITING", ["deploy"]),
        ("state:waiting,failed", ["deploy", "stöber-机器"]),
        ("-state:idle", ["deploy", "watch", "stöber-机器"]),
        ("state:!idle", ["deploy", "watch", "stöber-机器"]),
        ("-state:idle,waiting", ["watch", "stöber-机器"]),
        ("source:codex", ALL),
        ("source:local", []),
        ("cap:pause", ["deploy", "stöber-机器"]),
        ("-cap:send", ["watch", "stöber-机器"]),
        ("label:team", ["deploy", "review"]),
        ("label:team=web", ["deploy"]),
        ("label:TEAM=We", ["deploy"]),
        ("-label:team=web", ["review", "watch", "stöber-机器"]),
        ("label:tier=", ["deploy"]),
        ("name:STÖ", ["stöber-机器"]),
        ("机器", ["stöber-机器"]),
        ("cwd:/srv", ["deploy"]),
        ("is:asking", ["deploy"]),
        ("is:child", ["review"]),
        ("is:demo", ["watch"]),
        ("is:mine", ["stöber-机器"]),
        ("refused", ["stöber-机器"]),
        ('"row 12: ok"', ["watch"]),
        ('-"row 12"', ["deploy", "review", "stöber-机器"]),
        ('"-state:idle"', []),
        ('name:"stöber"', ["stöber-机器"]),
        ("state:waiting,failed cap:pause -web", ["stöber-机器"]),
        ("web", ["deploy"]),
    ],
)
def test_what_a_filter_finds(fleet: ScriptedHost, text: str, names: list[str]) -> None:
    assert found(fleet, text) == names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sate:idle", "sate: there is no such key; there are state, source, cap, label, name, id, cwd, is"),
        ("state:sleeping", "state: sleeping is none of starting, idle"),
        ("state:", "state: one of starting, idle"),
        ("source:", "source: a text has to follow"),
        ("cap:fly", "cap: fly is none of send, pause"),
        ("is:x", "is: x is none of asking, child, demo, mine"),
        ("-", "- what?"),
        ('""', "nothing between the quotes"),
        ('"open', 'a " is still open'),
        ("http://x", "http: there is no such key"),
    ],
)
def test_what_is_no_filter_says_why(text: str, why: str) -> None:
    with pytest.raises(FilterError) as fault:
        parse(text)
    assert why in str(fault.value)


def test_a_term_that_names_what_a_hostile_hand_wrote_is_cleaned() -> None:
    with pytest.raises(FilterError) as fault:
        parse("\x1b]0;x\x07:y")
    assert "\x1b" not in str(fault.value)


@given(st.text(max_size=40))
def test_any_text_is_a_filter_or_an_error(text: str) -> None:
    try:
        parsed = parse(text)
    except FilterError:
        return
    assert all(term.key in ("", *KEYS) and term.values for term in parsed.terms)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(lambda text: '"' not in text))
def test_a_quoted_text_is_taken_as_it_is(text: str) -> None:
    assert parse(f'"{text}"').terms == (Term("", (text.casefold(),), False),)
