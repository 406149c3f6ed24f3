"""Members of a subject that this console does not know: the digest covers them, so they are shown and agreed to."""

from __future__ import annotations

from typing import Any

import pytest

from console.fleet.facts import RequestKey
from console.fleet.gate import Gated, gate
from console.fleet.views.card import card
from console.intake.unknown import KEEP_UNKNOWN, unknown_members
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.canonical import subject_digest
from watchfloor.protocol import model as m

KEYS = {"approve": "a", "options": "A", "deny": "d", "deny_reason": "D", "answer": "o"}


def asks(host: ScriptedHost, **more: Any) -> RequestKey:
    subject: dict[str, Any] = {
        "session": "s1",
        "attempt": 1,
        "id": "r1",
        "kind": "approval",
        "actions": [{"tool": "shell", "text": "make", **more.pop("action", {})}],
        "options": [
            {"id": "yes", "label": "Allow", "kind": "allow", **more.pop("option", {})},
            {"id": "no", "label": "Deny", "kind": "deny"},
        ],
        **more,
    }
    return host.open(m.RequestModel(subject=subject, digest=subject_digest(subject), asked_at=host.there))


@pytest.fixture(autouse=True)
def session(host: ScriptedHost) -> None:
    host.session()


def shown(host: ScriptedHost, key: RequestKey) -> tuple[str, tuple[str, ...]]:
    made = card(host.fleet, key, host.now, keys=KEYS)
    assert made is not None
    return made.strange, made.unknown


def test_they_are_counted_and_shown_as_they_came(host: ScriptedHost) -> None:
    key = asks(
        host,
        action={"env": {"LD_PRELOAD": "/tmp/x.so"}},
        option={"effects": ["deletes\nall"]},
        hidden="a\x1b[2Jb\u202e",
    )
    strange, unknown = shown(host, key)
    assert strange == "3 members this console does not know"
    assert unknown[0] == 'actions[0].env = {"LD_PRELOAD": "/tmp/x.so"}'
    assert unknown[1] == r'options[0].effects = ["deletes\nall"]'
    assert unknown[2].startswith("hidden = ")
    assert "\x1b" not in unknown[2]
    assert "\u202e" not in unknown[2]


def test_whoever_allows_it_agrees_to_them_first_and_denying_is_free(host: ScriptedHost) -> None:
    key = asks(host, action={"env": {"A": "1"}})
    allowed = gate(host.fleet, host.decision(key), host.now)
    assert isinstance(allowed, Gated)
    assert allowed.confirm == ("it has 1 member this console does not know: actions[0].env",)
    denied = gate(host.fleet, host.decision(key, "no"), host.now)
    assert isinstance(denied, Gated)
    assert denied.confirm == ()


def test_an_answer_in_words_agrees_to_them_as_well(host: ScriptedHost) -> None:
    subject: dict[str, Any] = {
        "session": "s1",
        "attempt": 1,
        "id": "q1",
        "kind": "question",
        "fields": [],
        "sends_to": "everybody",
    }
    key = host.open(m.RequestModel(subject=subject, digest=subject_digest(subject), asked_at=host.there))
    gated = gate(host.fleet, host.decision(key, None, text="yes"), host.now)
    assert isinstance(gated, Gated)
    assert gated.confirm == ("it has 1 member this console does not know: sends_to",)


def test_what_is_shown_of_them_is_bounded_and_what_is_not_is_counted(host: ScriptedHost) -> None:
    key = asks(host, **{f"x{n}": "y" * 100_000 for n in range(KEEP_UNKNOWN + 5)}, **{"z" * 100_000: 1})
    strange, unknown = shown(host, key)
    assert strange == "26 members this console does not know"
    assert unknown[-1] == "… 6 more not shown"
    assert len(unknown) == KEEP_UNKNOWN + 1
    assert all(len(line) < 10_000 for line in unknown)


@pytest.mark.parametrize(("levels", "digits"), [(5_000, 1), (1, 5_000)])
def test_a_value_that_cannot_be_written_costs_nothing_but_itself(levels: int, digits: int) -> None:
    value: Any = 10**digits
    for _ in range(levels):
        value = [value]
    kept, count = unknown_members({"odd": value, "other": 1})
    assert count == 2
    assert "to be shown" in kept[0].value
    assert kept[1] == ("other", "1")


def test_of_what_is_known_nothing_is_called_unknown(host: ScriptedHost) -> None:
    assert shown(host, host.ask()) == ("", ())
    fields = [m.FormField(name="f", type=m.FieldType.CHOICE, choices=(m.Choice(value="a", label="A"),))]
    assert shown(host, host.question(fields=fields)) == ("", ())
