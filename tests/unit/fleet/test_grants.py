"""What an option grants is told exactly, compared with what was asked lately, and never made wider."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.decisions.grants import Granting, Width, granting, grants_of, too_wide, whole_only
from console.fleet.facts import Intent, Refusal, RequestKey
from console.fleet.gate import Gated, gate
from tests.unit.fleet.scripted import ALLOW, DENY, ScriptedHost
from watchfloor.protocol import model as m
from watchfloor.words import OptionKind, OutcomeKind


def always(*grants: str, **rest: Any) -> m.Option:
    fields = {"id": "always", "label": "Always", "kind": OptionKind.ALLOW, "scope": "session", "grants": grants, **rest}
    return m.Option.model_validate(fields)


def ask(host: ScriptedHost, text: str, option: m.Option, id: str = "r1", **rest: Any) -> RequestKey:
    return host.ask(id, text=text, options=(ALLOW, option, DENY), **rest)


def let_through(host: ScriptedHost, intent: Intent) -> Gated | Refusal:
    return gate(host.fleet, intent, host.now)


def told(host: ScriptedHost, key: RequestKey, option: str = "always") -> Granting:
    request = host.request(key)
    assert request.fact is not None
    chosen = next(o for o in request.fact.options if o.id == option)
    return granting(host.fleet, host.fleet.sessions[key.owner], request.fact, chosen)


@pytest.mark.parametrize(
    ("grant", "width", "words"),
    [
        ("shell: make test", Width.EXACT, '"make test", exactly'),
        ("make test", Width.EXACT, '"make test", exactly'),
        ("shell", Width.TOOL, "every call of shell"),
        ("Bash(*)", Width.TOOL, "every call of Bash"),
        ("Bash(make:*)", Width.BEGINNING, 'whatever begins with "make"'),
        ("Bash(make t*)", Width.PATTERN, 'whatever fits "make t*"'),
        ('every command that begins with: ["make"]', Width.BEGINNING, 'whatever begins with "make"'),
        ("writing below /srv", Width.PLACE, "writing anything below /srv"),
        ("all sorts of things", Width.UNKNOWN, "in its source's words: all sorts of things"),
        ("every command that begins with: [1, 2", Width.UNKNOWN, "in its source's words: every command that begins"),
    ],
)
def test_a_grant_is_told_exactly_or_in_its_sources_words(
    host: ScriptedHost, grant: str, width: Width, words: str
) -> None:
    host.session()
    request = host.request(ask(host, "make test", always(grant)))
    assert request.fact is not None
    (found,) = grants_of(request.fact, request.fact.options[1])
    assert found.width is width
    assert found.words.startswith(words)


def test_what_it_would_have_matched_lately_is_counted_and_denials_are_named(host: ScriptedHost) -> None:
    host.session()
    for number, (text, how) in enumerate([("make a", "yes"), ("ls", "yes"), ("make b", "no"), ("maker", "yes")]):
        ask(host, text, always(), f"old{number}")
        host.decide(f"old{number}", how)
    found = told(host, ask(host, "make test", always("Bash(make:*)", persists=True), call=None))
    # The tool of those was called shell: what a grant for another tool matches is nothing.
    assert found.matched == 0

    found = told(host, ask(host, "make test", always('every command that begins with: ["make"]'), "r2"))
    assert (found.matched, found.denied, found.looked_at) == (2, 1, 4)
    assert found.lately is not None
    assert [(match.line, match.how) for match in found.lately] == [("make b", "denied"), ("make a", "approved")]
    assert "would have matched 2 of the last 4 requests, 1 of which were denied" in found.lines()


def test_other_sessions_count_only_where_the_option_reaches_them(host: ScriptedHost) -> None:
    host.session("s1", cwd="/a", name="bob")
    host.session("s2", cwd="/a", name="bob")
    host.session("s3", cwd="/b", name="eve")
    for session in ("s2", "s3"):
        ask(host, "make", always(), f"of-{session}", session=session)
        host.decide(f"of-{session}", "yes")
    reach = {"session": 0, "workspace": 1, "agent": 1, "global": 2}
    for number, (scope, expected) in enumerate(reach.items()):
        assert told(host, ask(host, "make", always("make", scope=scope), f"n{number}")).looked_at == expected


def test_once_grants_nothing_beyond_and_says_so(host: ScriptedHost) -> None:
    host.session()
    found = told(host, ask(host, "make", always("make")), "yes")
    assert found.lines() == ("this once",)
    assert not found.beyond


def test_an_option_that_does_not_say_what_it_matches_is_said_not_to(host: ScriptedHost) -> None:
    host.session()
    found = told(host, ask(host, "make", always()))
    assert not found.known
    assert found.lately is None
    assert "what else it will match its source does not say" in found.lines()


WIDE = 'every command that begins with: ["x"]'


@pytest.mark.parametrize(
    "command",
    [
        *("make && rm -rf x", "ls | sh", "echo $(id)", "cat < <(id)", "a; b", "a\nb", "echo x > ~/.bashrc", "echo 'x"),
        *("python -m pytest", "bash run.sh", "sudo ls", "env ls", "npx tool", "find . -name x", "ssh web ls", "$X y"),
    ],
)
def test_compound_commands_and_interpreters_are_never_widened(host: ScriptedHost, command: str) -> None:
    host.session()
    key = ask(host, command, always(WIDE))
    refused = let_through(host, host.decision(key, "always"))
    assert isinstance(refused, Refusal)
    assert refused.outcome is OutcomeKind.INVALID
    assert refused.reason.startswith("not taken from here: whatever begins with")
    assert told(host, key).wide == refused.reason
    assert isinstance(let_through(host, host.decision(key, "yes")), Gated), "just this once is another matter"
    exact = ask(host, command, always(command), "r2")
    assert isinstance(let_through(host, host.decision(exact, "always")), Gated), (
        "exactly this is not wider than what was read"
    )


@pytest.mark.parametrize("command", ["ls -la", "git status", "pytest -q", "cat a 2>/dev/null", "npm test"])
def test_a_simple_command_may_be_allowed_by_its_beginning(host: ScriptedHost, command: str) -> None:
    host.session()
    assert isinstance(let_through(host, host.decision(ask(host, command, always(WIDE)), "always")), Gated)


def test_refusing_for_good_is_never_too_wide(host: ScriptedHost) -> None:
    host.session()
    never = m.Option.model_validate(
        {"id": "never", "label": "Never", "kind": OptionKind.DENY, "persists": True, "grants": ["Bash(*)"]}
    )
    key = host.ask(text="a; b", options=(ALLOW, never))
    request = host.request(key)
    assert request.fact is not None
    assert too_wide(request.fact, request.fact.options[1]) == ""


def test_where_nothing_narrower_is_offered_it_takes_a_knowing_step(host: ScriptedHost) -> None:
    host.session()
    key = host.ask(text="make", options=(always("make"), DENY))
    gated = let_through(host, host.decision(key, "always"))
    assert isinstance(gated, Gated)
    assert gated.confirm == ("Always: for this session; it offers nothing narrower",)


@given(text=st.text(max_size=200))
def test_any_text_is_judged(text: str) -> None:
    assert isinstance(whole_only(text), str)


@given(before=st.sampled_from(["ls", "git log", "x=1"]), text=st.text(alphabet="ab \n;&|", max_size=10))
def test_whatever_another_command_follows_has_several_parts(before: str, text: str) -> None:
    if any(part.strip() for part in text.replace("&", ";").replace("|", ";").split(";")[1:]):
        assert whole_only(f"{before} {text}")
