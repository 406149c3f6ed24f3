"""Requests and decisions: the first wins, nothing widens, and nobody decides on what was not read."""

from __future__ import annotations

import pytest

from tests.unit.host.puppet import ALLOW, BY, DENY, Puppet, approval, question
from tests.unit.host.rows import drive
from watchfloor.errors import ContractError
from watchfloor.harness.base import Decided, Withdrawn
from watchfloor.host.sessions.requests import BY_DEADLINE, REMEMBERED, Requests
from watchfloor.protocol.events import RequestResolved
from watchfloor.protocol.model import Option, RequestModel, Subject
from watchfloor.words import Lifecycle, OptionKind, OutcomeKind, RequestKind, RequestState, Row

EDIT = Option(id="edit", label="Edit", kind=OptionKind.EDIT)
BRANCH = Option(id="main", label="main", kind=OptionKind.ANSWER)


def running() -> Puppet:
    return drive(Row.RUNNING, pending=False)


def test_the_first_decision_stands_and_the_second_learns_of_it() -> None:
    puppet = running()
    request = puppet.ask(approval(puppet.core))
    at = puppet.now
    assert puppet.decide(request, "yes", by="ada").applied
    second = puppet.decide(request, "no", by="bob")
    assert second.outcome is OutcomeKind.ALREADY_DECIDED
    assert second.effects == []
    assert second.decided is not None
    assert (second.decided.option, second.decided.by, second.decided.at) == ("yes", "ada", at)
    assert second.decided.kind is OptionKind.ALLOW
    assert [s for s in puppet.told if isinstance(s, Decided)] == [Decided("r1", "yes", OptionKind.ALLOW, "ada")]


def test_a_decision_is_an_event_and_a_new_form_of_the_request() -> None:
    puppet = running()
    request = puppet.ask(approval(puppet.core))
    puppet.decide(request, "no")
    event = puppet.of(RequestResolved)[0]
    assert (event.state, event.option, event.option_kind, event.by) == (
        RequestState.RESOLVED,
        "no",
        OptionKind.DENY,
        BY,
    )
    assert [r.state for r in puppet.requests] == [RequestState.OPEN, RequestState.RESOLVED]
    assert puppet.requests[-1].decision is not None
    assert puppet.requests[-1].digest == request.digest


def test_a_digest_of_something_else_decides_nothing() -> None:
    puppet = running()
    request = puppet.ask(approval(puppet.core))
    other = request.model_copy(update={"digest": "sha256:" + "0" * 64})
    handled = puppet.decide(other)
    assert handled.outcome is OutcomeKind.STALE_TARGET
    assert "digest" in (handled.reason or "")
    assert puppet.core.requests


@pytest.mark.parametrize("option", ["maybe", ""])
def test_an_option_that_is_none_is_invalid(option: str) -> None:
    puppet = running()
    handled = puppet.decide(puppet.ask(approval(puppet.core)), option)
    assert handled.outcome is OutcomeKind.INVALID
    assert "yes, no" in (handled.reason or "")


def test_approve_covers_allow_deny_and_edit() -> None:
    for option in (ALLOW, DENY, EDIT):
        puppet = running()
        request = puppet.ask(approval(puppet.core, options=(ALLOW, DENY, EDIT)))
        assert puppet.decide(request, option.id).applied


def test_approve_does_not_cover_an_answer_and_answer_no_approval() -> None:
    puppet = running()
    asked = puppet.ask(question(puppet.core, options=(BRANCH,)))
    assert puppet.decide(asked, "main").outcome is OutcomeKind.INVALID
    gated = puppet.ask(approval(puppet.core, options=(ALLOW, BRANCH)))
    assert puppet.decide(gated, "main").outcome is OutcomeKind.INVALID
    assert puppet.answer(gated, option="yes").outcome is OutcomeKind.INVALID
    assert len(puppet.core.requests.open()) == 2


def test_a_withdrawn_request_is_stale_and_says_why() -> None:
    puppet = running()
    request = puppet.ask(approval(puppet.core))
    puppet.take(puppet.core.withdraw("r1", "the file is gone", puppet.now))
    handled = puppet.decide(request)
    assert handled.outcome is OutcomeKind.STALE_TARGET
    assert handled.reason == "the request was withdrawn: the file is gone"


def test_an_unknown_request_is_stale() -> None:
    puppet = running()
    assert puppet.decide(approval(puppet.core, "never asked")).outcome is OutcomeKind.STALE_TARGET


# --- deadlines


def test_a_deadline_takes_the_option_that_was_named_for_it() -> None:
    puppet = running()
    request = puppet.ask(approval(puppet.core, deadline=50_000, at_deadline="no"))
    assert puppet.core.next_due() == 50_000
    puppet.take(puppet.core.tick(49_999))
    assert puppet.core.requests
    puppet.take(puppet.core.tick(50_000))
    assert not puppet.core.requests
    told = [s for s in puppet.told if isinstance(s, Decided)]
    assert (told[0].option, told[0].kind, told[0].by) == ("no", OptionKind.DENY, BY_DEADLINE)
    late = puppet.decide(request)
    assert late.outcome is OutcomeKind.ALREADY_DECIDED
    assert late.decided is not None
    assert late.decided.automatic


@pytest.mark.parametrize("at_deadline", [None, "deny_all"])
def test_a_deadline_without_an_option_expires_the_request(at_deadline: str | None) -> None:
    puppet = running()
    request = puppet.ask(approval(puppet.core, deadline=50_000, at_deadline=at_deadline))
    puppet.take(puppet.core.tick(60_000))
    assert puppet.of(RequestResolved)[0].state is RequestState.EXPIRED
    assert [s.request for s in puppet.told if isinstance(s, Withdrawn)] == ["r1"]
    assert puppet.state() is Lifecycle.RUNNING
    assert puppet.decide(request).outcome is OutcomeKind.STALE_TARGET


# --- asking


def test_a_request_id_is_unique_for_ever() -> None:
    puppet = running()
    puppet.decide(puppet.ask(approval(puppet.core)))
    with pytest.raises(ContractError, match="unique"):
        puppet.ask(approval(puppet.core))


def test_a_request_must_be_of_this_session_and_attempt_and_hold_together() -> None:
    requests = Requests("s1")
    subject = Subject(session="s1", attempt=1, id="r", kind=RequestKind.APPROVAL)
    good = RequestModel.ask(subject, asked_at=1)
    for bad in (
        RequestModel.ask(subject.model_copy(update={"session": "s2"}), asked_at=1),
        RequestModel.ask(subject.model_copy(update={"attempt": 2}), asked_at=1),
        good.model_copy(update={"digest": "sha256:no"}),
        good.model_copy(update={"subject": {"id": "r"}}),
        good.model_copy(update={"state": RequestState.RESOLVED}),
    ):
        with pytest.raises(ContractError):
            requests.ask(bad, 1)
    assert not requests
    requests.ask(good, 1)
    assert "r" in requests


def test_the_state_is_written_even_where_it_is_the_default() -> None:
    puppet = running()
    puppet.ask(approval(puppet.core))
    assert '"state":"open"' in puppet.requests[0].model_dump_json(exclude_unset=True)


def test_ended_requests_are_remembered_for_a_while_only() -> None:
    puppet = running()
    first = puppet.ask(approval(puppet.core, "r0"))
    puppet.decide(first)
    for number in range(1, REMEMBERED):
        puppet.decide(puppet.ask(approval(puppet.core, f"r{number}")))
    assert puppet.decide(first).outcome is OutcomeKind.ALREADY_DECIDED
    puppet.decide(puppet.ask(approval(puppet.core, "one more")))
    assert puppet.decide(first).outcome is OutcomeKind.STALE_TARGET
