"""What a session asks as requests, and what is sent for a decision; and the state that its words amount to."""

from __future__ import annotations

from typing import Any

import pytest

from console.connectors.bamboo.requests import (
    answer_body,
    child_body,
    child_request,
    decision_body,
    request_of,
    source_id,
    words_of,
)
from console.connectors.bamboo.state import Gate, Session, result_of, shown
from console.connectors.web.reading import millis
from watchfloor.protocol.frames import DoAnswer
from watchfloor.words import Lifecycle, OptionKind, RequestKind, Scope, StopReason

NOW = 1_796_072_400_000


def permission(**changes: Any) -> dict[str, Any]:
    asked = {
        "request_id": "call_1",
        "request_generation": "g1",
        "session_id": "s",
        "tool_name": "Bash",
        "permission_type": "execute_command",
        "resource": "make",
        "operation_summary": "Execute command: make",
        "risk_level": "high",
        "reason_code": "risk_threshold",
        "effective_mode": "default",
        "policy_revision": 7,
        "allowed_decisions": ["allow_once", "allow_workspace", "allow_global", "deny_once"],
        "suggested_matchers": [{"id": "exact_resource", "kind": "exact_resource", "value": "make"}],
        **changes,
    }
    return {
        "has_pending_question": True,
        "interaction_kind": "permission",
        "question": "May it?",
        "options": ["Approve", "Deny"],
        "allow_custom": False,
        "tool_call_id": "call_1",
        "tool_name": "Bash",
        "permission_request": asked,
        "tool_arguments": {"command": "make", "timeout": 5},
        "tool_arguments_truncated": False,
    }


def test_decisions_that_last_name_what_they_cover_and_the_policy_that_they_change() -> None:
    subject = request_of("s", "r", permission(), now=NOW).read()
    options = {option.id: option for option in subject.options}
    assert list(options) == [
        "allow_once",
        "allow_workspace:exact_resource",
        "allow_global:exact_resource",
        "deny_once",
    ]
    everywhere = options["allow_global:exact_resource"]
    assert (everywhere.scope, everywhere.persists, everywhere.confirm) == (Scope.GLOBAL, True, True)
    assert everywhere.grants == ("exactly make",)
    assert everywhere.note == "written to the server's policy (revision 7)"
    assert options["allow_workspace:exact_resource"].scope is Scope.WORKSPACE


def test_what_changes_the_policy_is_not_offered_without_its_revision() -> None:
    subject = request_of("s", "r", permission(policy_revision=None), now=NOW).read()
    assert [option.id for option in subject.options] == ["allow_once", "deny_once"]


def test_another_policy_is_another_request() -> None:
    before, after = (request_of("s", "r", permission(policy_revision=n), now=NOW) for n in (7, 8))
    assert before.digest != after.digest


def test_a_decision_that_this_console_does_not_know_is_not_offered() -> None:
    asked = permission(allowed_decisions=["allow_for_ever", "allow_once", "ask_my_mother"])
    assert [option.id for option in request_of("s", "r", asked, now=NOW).read().options] == ["allow_once"]


def test_arguments_that_were_cut_are_said_to_be() -> None:
    cut = {**permission(), "tool_arguments_truncated": True}
    assert not request_of("s", "r", cut, now=NOW).read().actions[0].complete
    hidden = {**permission(resource="[redacted]"), "tool_arguments": None}
    (action,) = request_of("s", "r", hidden, now=NOW).read().actions
    assert (action.text, action.complete) == ("[redacted]", False)


def test_a_permission_without_a_description_needs_a_second_look() -> None:
    bare = {**permission(), "permission_request": None}
    request = request_of("s", "r", bare, now=NOW).read()
    assert request.kind is RequestKind.APPROVAL
    assert [(option.id, option.kind, option.confirm) for option in request.options] == [
        ("Approve", OptionKind.ALLOW, True),
        ("Deny", OptionKind.DENY, False),
    ]


def test_older_servers_say_by_an_event_that_a_permission_is_asked_for() -> None:
    old = {name: permission()[name] for name in ("question", "options", "allow_custom", "tool_call_id", "tool_name")}
    assert request_of("s", "r", old, now=NOW).read().kind is RequestKind.QUESTION
    assert request_of("s", "r", old, now=NOW, permission_calls={"call_1"}).read().kind is RequestKind.APPROVAL


@pytest.mark.parametrize(
    ("option", "more"),
    [
        ("allow_once", {"decision": "allow_once"}),
        ("deny_once", {"decision": "deny_once"}),
        (
            "allow_global:exact_resource",
            {
                "decision": "allow_global",
                "matcher_id": "exact_resource",
                "expected_policy_revision": 7,
                "confirm_global": True,
            },
        ),
        (
            "allow_workspace:exact_resource",
            {"decision": "allow_workspace", "matcher_id": "exact_resource", "expected_policy_revision": 7},
        ),
    ],
)
def test_what_is_sent_for_a_decision(option: str, more: dict[str, Any]) -> None:
    assert decision_body(permission(), option) == {"request_id": "call_1", "request_generation": "g1", **more}


def test_what_was_not_offered_is_never_sent() -> None:
    with pytest.raises(KeyError):
        decision_body(permission(), "allow_session:exact_resource")


def test_a_question_is_answered_only_if_it_is_still_the_same() -> None:
    pending = {"tool_call_id": "call_2", "question": "Which?", "options": ["a", "b", "a"], "allow_custom": False}
    (field,) = request_of("s", "r", pending, now=NOW).read().fields
    assert [choice.value for choice in field.choices] == ["a", "b"], "an option that is there twice is one"
    assert answer_body(pending, "a") == {"response": "a", "expected_tool_call_id": "call_2"}
    assert source_id(pending) == "call_2"
    assert source_id(permission()) == "call_1/g1"


def test_the_words_of_an_answer() -> None:
    def given(**how: Any) -> str | None:
        return words_of(DoAnswer(request="r", digest="d", **how))

    assert given(text="violet") == given(fields={"answer": "violet"}) == given(option="violet") == "violet"
    assert given(fields={"other": "violet"}) is None


def test_a_childs_tool_call_is_decided_by_its_whole_identity() -> None:
    gate = Gate("child", "parent", "q1", "Bash", "Execute shell commands", "make", attempt=2, version=9, asks=True)
    subject = child_request(gate, now=NOW).read()
    assert (subject.session, subject.id) == ("child", "child/q1/2")
    assert child_body(gate, approved=True) == {
        "request_id": "q1",
        "approved": True,
        "parent_session_id": "parent",
        "child_attempt": 2,
        "expected_version": 9,
    }
    old = Gate("child", "parent", "q1", "Bash", "", "[redacted]", asks=True)
    assert child_body(old, approved=False) == {"request_id": "q1", "approved": False}
    assert child_request(old, now=NOW).read().options[0].confirm, "what is hidden is not allowed in passing"


# --- states


def of(**info: Any) -> Session:
    return Session("s", {"id": "s", **info})


@pytest.mark.parametrize(
    ("info", "lifecycle", "native"),
    [
        ({}, Lifecycle.IDLE, "never run"),
        ({"is_running": True}, Lifecycle.RUNNING, "running"),
        ({"last_run_status": "completed"}, Lifecycle.IDLE, "completed"),
        ({"last_run_status": "skipped"}, Lifecycle.IDLE, "skipped"),
        ({"last_run_status": "canceled"}, Lifecycle.IDLE, "cancelled"),
        ({"last_run_status": "timed_out"}, Lifecycle.FAILED, "timed_out"),
        ({"last_run_status": "running"}, Lifecycle.FAILED, "lost"),
        ({"last_run_status": "something new"}, Lifecycle.IDLE, "something new"),
        ({"last_run_status": "suspended", "running_child_count": 2}, Lifecycle.RUNNING, "waiting for children"),
        ({"last_run_status": "suspended"}, Lifecycle.RUNNING, "suspended"),
        ({"last_run_status": "queued", "last_activity_at": "2026-11-30T20:59:30Z"}, Lifecycle.RUNNING, "queued"),
        ({"last_run_status": "queued", "last_activity_at": "2026-11-30T20:00:00Z"}, Lifecycle.IDLE, "queued"),
        ({"has_pending_question": True, "last_run_status": "suspended"}, Lifecycle.WAITING, "waiting"),
    ],
)
def test_states(info: dict[str, Any], lifecycle: Lifecycle, native: str) -> None:
    told = shown(of(**info), NOW)
    assert (told.lifecycle, told.native) == (lifecycle, native)


def test_what_is_asked_comes_before_everything_else() -> None:
    session = of(is_running=True, last_run_status="error")
    session.pending = permission()
    assert shown(session, NOW).lifecycle is Lifecycle.WAITING


def test_a_run_that_has_just_ended_is_not_shown_as_what_was_before() -> None:
    session = of(last_run_status="completed")
    session.settling, session.stale = True, True
    assert shown(session, NOW).native == "ending"
    session.stale, session.expects = False, frozenset({"cancelled"})
    assert shown(session, NOW).native == "ending"
    session.info = {"last_run_status": "cancelled"}
    assert shown(session, NOW).lifecycle is Lifecycle.IDLE


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("completed", StopReason.END_TURN),
        ("cancelled", StopReason.CANCELLED),
        ("timeout", StopReason.ERROR),
        ("skipped", StopReason.END_TURN),
        ("unheard of", StopReason.OTHER),
    ],
)
def test_results(status: str, reason: StopReason) -> None:
    result = result_of(of(last_run_status=status))
    assert result is not None
    assert result.stop_reason is reason
    assert result_of(of(last_run_status=status, is_running=True)) is None


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-30T21:00:00Z", NOW),
        ("2026-11-30T21:00:00.123456789Z", NOW + 123),
        ("2026-11-30T21:00:00.5+00:00", NOW + 500),
        ("2026-11-30T22:00:00.000000001+01:00", NOW),
        ("2026-11-30T21:00:00", NOW),
        ("yesterday", None),
        ("", None),
        (None, None),
        (5, None),
    ],
)
def test_times(text: object, at: int | None) -> None:
    assert millis({"at": text}, "at") == at
