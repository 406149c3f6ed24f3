"""How the command line shows members of a request that it does not know, and what it asks for before it approves."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.cli import records, verbs
from console.cli.link import Link
from console.fleet.facts import RequestFact
from console.fleet.state import Request
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.canonical import subject_digest
from watchfloor.protocol import model as m


@pytest.fixture
def host() -> ScriptedHost:
    return ScriptedHost()


@pytest.fixture
def request_(host: ScriptedHost) -> Request:
    host.session()
    subject: dict[str, Any] = {
        "session": "s1",
        "id": "r1",
        "kind": "approval",
        "actions": [{"tool": "shell", "text": "make", "env": {"A": "1"}}],
        "options": [{"id": "yes", "label": "Allow", "kind": "allow"}],
    }
    key = host.open(m.RequestModel(subject=subject, digest=subject_digest(subject), asked_at=host.there))
    return host.request(key)


def fact_of(request: Request) -> RequestFact:
    assert request.fact is not None
    return request.fact


def test_a_person_reads_them(request_: Request) -> None:
    lines: list[str] = list(records._fact_lines(fact_of(request_)))
    at = lines.index("  1 member this console does not know:")
    assert lines[at + 1] == '    actions[0].env = {"A": "1"}'


def test_a_program_reads_them(host: ScriptedHost, request_: Request) -> None:
    link = cast(Link, SimpleNamespace(name=host.name))
    record = records._request_record(link, host.at(), request_)
    assert record["unknown"] == {"actions[0].env": '{"A": "1"}'}
    assert record["unknown_count"] == 1


def test_they_are_approved_only_when_that_is_asked_for(request_: Request) -> None:
    fact = fact_of(request_)
    for verb in ("approve", "answer"):
        asked = {"verb": verb, "option": None, "note": None}
        assert "does not know; --incomplete takes it all the same" in (
            verbs._unmeant(Namespace(**asked, incomplete=False), fact) or ""
        )
        assert verbs._unmeant(Namespace(**asked, incomplete=True), fact) is None
    assert verbs._unmeant(Namespace(verb="deny", option=None, note=None), fact) is None


def test_declining_a_question_is_always_safe(host: ScriptedHost) -> None:
    host.session()
    subject: dict[str, Any] = {
        "session": "s1",
        "id": "q1",
        "kind": "question",
        "fields": [{"name": "f", "type": "text", "label": "Where?", "hint": "new"}],
        "options": [{"id": "no", "label": "Skip", "kind": "deny"}, {"id": "yes", "label": "Here", "kind": "answer"}],
    }
    fact = fact_of(
        host.request(host.open(m.RequestModel(subject=subject, digest=subject_digest(subject), asked_at=host.there)))
    )
    asked = {"verb": "answer", "note": None, "incomplete": False}
    assert verbs._unmeant(Namespace(**asked, option="no"), fact) is None
    assert "does not know" in (verbs._unmeant(Namespace(**asked, option="yes"), fact) or "")


def test_what_our_own_door_has_cut_is_not_put_on_the_source(request_: Request) -> None:
    fact = fact_of(request_)
    (action,) = fact.actions

    def told(complete: bool = True, whole: bool = True) -> str:
        changed = action._replace(complete=complete, whole=whole)
        return "\n".join(records._fact_lines(fact._replace(actions=(changed,))))

    ours, theirs = "longer than this program shows", "its source gave only a part"
    assert ours not in told()
    assert theirs not in told()
    assert theirs in told(complete=False)
    assert ours not in told(complete=False)
    cut = told(complete=False, whole=False)
    assert ours in cut
    assert theirs not in cut
    assert records._action_record(action._replace(whole=False))["whole"] is False
