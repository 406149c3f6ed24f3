"""A decision of ours on a request that is still open: when another one may be taken, and what is said of the first."""

from __future__ import annotations

import pytest

from console.fleet.facts import Intent, Refusal, RequestKey, Seen
from console.fleet.gate import Gated, gate
from console.fleet.views.card import card
from console.fleet.views.trail import trail_brief
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.text import Clean
from watchfloor.words import Contact, OutcomeKind

KEYS = {"approve": "a", "options": "A", "deny": "d", "deny_reason": "D", "answer": "o"}


@pytest.fixture
def asked(host: ScriptedHost) -> RequestKey:
    host.session()
    return host.ask()


def again(host: ScriptedHost, asked: RequestKey) -> Gated | Refusal:
    return gate(host.fleet, second(host, asked), host.now)


def second(host: ScriptedHost, asked: RequestKey) -> Intent:
    request = host.request(asked)
    return host.decision(asked, "no", id="again", seen=Seen(request.digest, host.now - 10_000, True))


def shows(host: ScriptedHost, asked: RequestKey) -> tuple[str, set[bool], set[str], list[str]]:
    """The state of the card, its keys with what stands beside them, and its flags."""
    made = card(host.fleet, asked, host.now, keys=KEYS, seen=Seen(host.request(asked).digest, host.now - 10_000, True))
    assert made is not None
    enabled = {option.enabled for option in made.options}
    return made.armed, enabled, {option.note for option in made.options}, [text for text, _ in made.flags]


def test_a_card_shows_the_decision_that_is_on_its_way(host: ScriptedHost, asked: RequestKey) -> None:
    host.go(host.decision(asked))
    host.wait(7_000)
    armed, enabled, notes, _ = shows(host, asked)
    assert armed == "approve sent 0:07 ago, no word yet"
    assert (enabled, notes) == ({False}, {"approve sent, no word yet"})
    host.outcome("cmd-approve")
    armed, enabled, notes, _ = shows(host, asked)
    assert armed == "approve sent 0:07 ago, taken, its effect is not seen yet"
    assert enabled == {False}


def test_nothing_of_a_card_that_disarms_it_counts_the_time_of_a_decision(host: ScriptedHost, asked: RequestKey) -> None:
    host.go(host.decision(asked))
    before = shows(host, asked)[1:]
    host.wait(3_000)
    assert shows(host, asked)[1:] == before


def test_without_a_word_another_decision_is_confirmed_first(host: ScriptedHost, asked: RequestKey) -> None:
    host.go(host.decision(asked))
    host.wait(10_000)
    host.fleet.settle("cmd-approve", OutcomeKind.UNKNOWN, Clean("no word came back within 10 s"), host.now)
    assert trail_brief(host.fleet.trails["cmd-approve"])[0] == "approve: no word came back"
    armed, enabled, _, flags = shows(host, asked)
    assert armed == "armed"
    assert enabled == {True}
    assert "approve was sent, and no word came back: it may have been taken" in flags
    gated = again(host, asked)
    assert isinstance(gated, Gated)
    assert gated.confirm == ("approve was sent 0:11 ago, and no word came back: it may have been taken",)


def test_without_an_effect_in_time_another_decision_is_confirmed_first(host: ScriptedHost, asked: RequestKey) -> None:
    host.go(host.decision(asked))
    host.outcome("cmd-approve")
    host.wait(8_000)
    assert isinstance(again(host, asked), Refusal)
    host.wait(2_000)
    gated = again(host, asked)
    assert isinstance(gated, Gated)
    assert "its effect was not seen, and the request is still open" in gated.confirm[0]


@pytest.mark.parametrize("answered", [False, True])
def test_nothing_comes_any_more_from_a_host_that_was_started_anew(
    host: ScriptedHost, asked: RequestKey, answered: bool
) -> None:
    host.go(host.decision(asked))
    host.contact(Contact.LOST)
    host.contact(Contact.LIVE)
    host.welcome(instance="i1")
    assert isinstance(again(host, asked), Refusal)
    host.welcome(instance="i2")
    if answered:
        host.outcome("cmd-approve", OutcomeKind.UNKNOWN)
    gated = again(host, asked)
    assert isinstance(gated, Gated)
    assert "its host was started anew since: it may have been taken" in gated.confirm[0]


def test_what_certainly_came_to_nothing_needs_no_confirmation(host: ScriptedHost, asked: RequestKey) -> None:
    host.go(host.decision(asked))
    host.outcome("cmd-approve", OutcomeKind.REFUSED)
    gated = again(host, asked)
    assert isinstance(gated, Gated)
    assert gated.confirm == ()
