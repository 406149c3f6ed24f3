"""An action on a card: where its risks point, and what of it is masked."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from console.fleet.decisions.risk.actions import action_risks
from console.fleet.facts import RequestKey
from console.fleet.views.card import card
from console.fleet.views.card_action import card_action
from tests.unit.fleet.scripted import ScriptedHost

SECRET = "ghp_" + "a1B2c3D4e5" * 4


def made(host: ScriptedHost, text: str, *, revealed: bool = False) -> tuple[list[str], list[str]]:
    """The lines of the action, and what each place that is flagged in them holds."""
    host.session("s1")
    key = host.ask(text=text)
    shown = card(host.fleet, key, host.now, keys={"reveal": "e"}, revealed=revealed)
    assert shown is not None
    (action,) = shown.actions
    return [str(line) for line in action.lines], [
        action.lines[flag.line][flag.start : flag.end] for flag in action.flagged
    ]


def test_each_place_is_the_text_that_is_risky(host: ScriptedHost) -> None:
    _, flagged = made(host, "make\nsudo rm -rf /etc\necho done")
    assert "sudo" in flagged
    assert any("rm -rf /etc" in place for place in flagged)


def test_a_secret_is_masked_and_places_behind_it_stay_in_place(host: ScriptedHost) -> None:
    lines, flagged = made(host, f"export TOKEN={SECRET} && rm -rf build")
    assert SECRET not in lines[0]
    assert "masked" in lines[0]
    assert "rm -rf build" in flagged


def test_a_secret_that_was_asked_for_is_shown(host: ScriptedHost) -> None:
    lines, flagged = made(host, f"export TOKEN={SECRET} && rm -rf build", revealed=True)
    assert SECRET in lines[0]
    assert "rm -rf build" in flagged


def test_masking_changes_no_digest_and_is_said(host: ScriptedHost) -> None:
    host.session("s1")
    key: RequestKey = host.ask(text=f"curl -H 'Authorization: Bearer {SECRET}' https://example.com")
    hidden = card(host.fleet, key, host.now, keys={"reveal": "e"})
    shown = card(host.fleet, key, host.now, keys={"reveal": "e"}, revealed=True)
    assert hidden is not None
    assert shown is not None
    assert hidden.digest == shown.digest
    assert hidden.masked
    assert any("masked; e shows it" in text for text, _ in hidden.flags)
    assert not shown.masked


@given(st.text(string.printable + SECRET + "日本", max_size=200))
def test_every_place_lies_within_its_line(text: str) -> None:
    host = ScriptedHost()
    host.session("s1")
    fact = host.fleet.requests[host.ask(text=f"sudo {text} token={SECRET} rm -rf /")].fact
    assert fact is not None
    (asked,) = fact.actions
    action = card_action(asked, action_risks(asked, None))
    assert SECRET not in "\n".join(action.lines)
    for flag in action.flagged:
        assert 0 <= flag.start < flag.end <= len(action.lines[flag.line])
