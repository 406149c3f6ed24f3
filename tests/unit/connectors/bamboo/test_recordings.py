"""What consoles are told of the recordings of two lines of real servers."""

from __future__ import annotations

from collections import Counter

import pytest

from console.connectors.bamboo.state import Want
from console.connectors.web.reading import each, text
from tests.unit.connectors.bamboo.replay import (
    NEW,
    SCENES,
    VERSIONS,
    Line,
    Replay,
    answers,
    played,
    recording,
)
from watchfloor.protocol.events import (
    Child,
    LifecycleChanged,
    Mail,
    MailState,
    Message,
    Notice,
    Plan,
    Raw,
    Reasoning,
    RequestOpened,
    Speaker,
    ToolCall,
    ToolResult,
    ToolStatus,
)
from watchfloor.words import Lifecycle, Primitive, StopReason

EVERY = [(version, scene) for version in VERSIONS for scene in SCENES]
both = pytest.mark.parametrize("version", VERSIONS)


def deleted(line: Line) -> bool:
    return bool(line["kind"] == "http" and line["method"] == "DELETE")


def states(replay: Replay, id: str) -> list[str | None]:
    return [event.native_state for event in replay.of(id, LifecycleChanged)]


@pytest.mark.parametrize(("version", "scene"), EVERY)
def test_everything_that_was_recorded_is_understood(version: str, scene: str) -> None:
    replay = Replay()
    replay.tell(recording(version, scene), deleted)
    for id in replay.sessions:
        assert replay.of(id, Raw) == []
        assert [notice for notice in replay.of(id, Notice) if notice.code == "gap"] == []
        keys = Counter(event.key for event in replay.events[id] if event.key is not None)
        assert [key for key, times in keys.items() if times > 1] == []


@both
def test_a_run_is_told_as_it_happens_and_the_history_adds_nothing(version: str) -> None:
    replay = Replay()
    lines = recording(version, "run")
    stored = next(
        number
        for number, line in enumerate(lines)
        if line["kind"] == "http" and line["path"].endswith("/history") and line["status"] == 200
    )
    replay.tell(lines[:stored])
    id = replay.only()
    live = [event for event in replay.events[id] if not isinstance(event, LifecycleChanged)]
    assert [thought.text for thought in replay.of(id, Reasoning)] == ["First look. ", "Now tell. "]
    assert [said.text for said in replay.of(id, Message) if said.role is Speaker.ASSISTANT] == [
        "There is one folder, and it is empty."
    ]
    assert [call.name for call in replay.of(id, ToolCall)] == ["Task", "Read", "Read", "Task"]
    assert [result.status for result in replay.of(id, ToolResult)] == [
        ToolStatus.OK,
        ToolStatus.OK,
        ToolStatus.ERROR,
        ToolStatus.OK,
    ]
    assert [[step.status for step in plan.steps] for plan in replay.of(id, Plan)] == [
        ["running", "open"],
        ["done", "done"],
    ]
    replay.tell(lines[stored : stored + 1])
    assert [event for event in replay.events[id] if not isinstance(event, LifecycleChanged)] == live
    replay.tell(lines[stored + 1 :])
    assert [[step.status for step in plan.steps] for plan in replay.of(id, Plan)][2:] == [], "a plan goes never back"
    summary = replay.summary(id)
    assert (summary.lifecycle, summary.native_state, summary.turn) == (Lifecycle.IDLE, "completed", None)
    assert summary.result is not None
    assert summary.result.stop_reason is StopReason.END_TURN
    assert summary.labels["context"].endswith(" of 1,000,000 tokens")


@both
def test_the_history_alone_tells_the_same(version: str) -> None:
    live = played(version, "run")
    body = next(answers(version, "run", "GET", "/history"))["body"]
    stored = Replay()
    stored.feed.found({"id": "s", "title": "Stored", "last_run_status": "completed"}, None)
    stored.feed.past(stored.feed.sessions["s"], body)
    stored.flush()

    def facts(replay: Replay, id: str) -> list[tuple[str, str]]:
        told: list[tuple[str, str]] = []
        for event in replay.events[id]:
            match event:
                case Message() | Reasoning():
                    told.append((event.kind, event.text))
                case ToolCall():
                    told.append(("call", event.call))
                case ToolResult():
                    told.append(("result", f"{event.call} {event.status}"))
        return told

    told = facts(stored, "s")
    assert told == facts(live, live.only())[: len(told)]
    assert len(told) > 10
    assert all(event.at > 1_790_000_000_000 for event in stored.events["s"] if isinstance(event, Message))


@both
def test_a_permission_waits_with_every_decision_that_is_allowed(version: str) -> None:
    replay = Replay()
    replay.tell(recording(version, "permission"), lambda line: "respond/pending" in line.get("path", ""))
    id = replay.only()
    request = replay.open(id)[0]
    subject = request.read()
    assert [option.id for option in subject.options] == [
        "allow_once",
        "allow_session:exact_resource",
        "allow_session:command_prefix",
        "allow_global:exact_resource",
        "allow_global:command_prefix",
        "deny_once",
        "deny_session:exact_resource",
        "deny_session:command_prefix",
    ]
    assert [option.id for option in subject.options if option.confirm] == [
        "allow_global:exact_resource",
        "allow_global:command_prefix",
    ]
    (action,) = subject.actions
    assert action.text == "touch /home/operator/bamboo/workspaces/shared/approved"
    assert (action.call, action.complete) == ("call_yes", True)
    assert "risk high, asked because of its risk" in (request.about or "")
    summary = replay.summary(id)
    assert (summary.lifecycle, summary.native_state) == (Lifecycle.WAITING, "waiting for permission")
    assert Primitive.INTERRUPT in summary.blocked
    assert replay.of(id, ToolResult) == [], "a tool that waits has said nothing"
    assert (Want.SETTLE, id) in replay.feed.wants, "complete does not mean that it has come to rest"


@both
def test_what_is_dangerous_can_only_be_decided_once(version: str) -> None:
    replay = Replay()
    replay.tell(recording(version, "permission"))
    hard = next(request for request in replay.requests.values() if "call_hard" in str(request.subject["id"])).read()
    assert [option.id for option in hard.options] == ["allow_once", "deny_once"]


@both
def test_a_question_is_asked_with_its_options_and_with_words_where_they_are_taken(version: str) -> None:
    replay = played(version, "question")
    id = replay.only()
    fields = {
        str(request.subject["id"]).partition("#")[0]: request.read().fields[0] for request in replay.requests.values()
    }
    assert list(fields) == ["call_plan", "call_name", "call_else", "call_again"]
    assert [choice.value for choice in fields["call_plan"].choices] == [
        "Approve (Default mode)",
        "Approve (Accept edits mode)",
        "Stay in plan mode",
        "Edit plan first",
    ]
    assert [(field.type.value, field.free_text) for field in fields.values()] == [
        ("choice", False),
        ("choice", True),
        ("text", False),
        ("choice", False),
    ]
    assert fields["call_name"].label == "Under which name?"
    assert replay.of(id, ToolResult) == [], "a question is no result of its tool"
    assert len(replay.of(id, RequestOpened)) == 4


@both
def test_the_answers_are_in_the_history(version: str) -> None:
    results = []
    for line in answers(version, "permission", "GET", "history?projection=messages"):
        replay = Replay()
        replay.feed.found({"id": "s"}, None)
        replay.feed.past(replay.feed.sessions["s"], line["body"])
        replay.flush()
        results = [(result.call, result.status) for result in replay.of("s", ToolResult)]
    # The newer line leaves tools out of this projection; that is why it is not what the connector asks for.
    wanted = [("call_yes", ToolStatus.OK), ("call_no", ToolStatus.DECLINED), ("call_hard", ToolStatus.DECLINED)]
    assert results == ([] if version == NEW else wanted)


@both
def test_an_interrupted_run_is_no_failure(version: str) -> None:
    replay = Replay()
    lines = recording(version, "interrupt")
    replay.tell(lines, lambda line: line["kind"] == "http" and '"cancelled"' in str(line["body"]).replace("'", '"'))
    id = replay.only()
    summary = replay.summary(id)
    assert (summary.lifecycle, summary.native_state) == (Lifecycle.IDLE, "cancelled")
    assert summary.result is not None
    assert summary.result.stop_reason is StopReason.CANCELLED
    assert [(notice.code, notice.level.value) for notice in replay.of(id, Notice)] == [("interrupted", "info")]
    said = [message for message in replay.of(id, Message) if message.role is Speaker.ASSISTANT]
    assert [(message.text, message.cut) for message in said] == [("word0 ", True)]
    assert Lifecycle.FAILED not in {event.lifecycle for event in replay.of(id, LifecycleChanged)}


@both
def test_a_failed_run_says_why(version: str) -> None:
    replay = Replay()
    replay.tell(
        recording(version, "failure"), lambda line: line["kind"] == "http" and "last_run_error" in str(line["body"])
    )
    id = replay.only()
    summary = replay.summary(id)
    assert summary.lifecycle is Lifecycle.FAILED
    assert "the script says so" in (summary.error or "")
    assert [notice.level.value for notice in replay.of(id, Notice)] == ["error"]


@both
def test_a_parent_that_waits_for_its_children_runs(version: str) -> None:
    replay = Replay()
    replay.tell(recording(version, "children"), deleted)
    parent = next(iter(replay.sessions))
    assert "waiting for children" in states(replay, parent)
    waiting = [event for event in replay.of(parent, LifecycleChanged) if event.native_state == "waiting for children"]
    assert {event.lifecycle for event in waiting} == {Lifecycle.RUNNING}
    children = replay.of(parent, Child)
    assert [child.name for child in children if child.state == "opened"] == ["Quiet child", "Gated child"]
    assert [child.state for child in children if child.state != "opened"] == ["completed", "completed"]
    assert {id for want, id in replay.feed.wants if want is Want.READ} >= {child.session for child in children}


def test_a_child_whose_parent_decides_asks_nobody() -> None:
    lines = recording(NEW, "children")
    replay = Replay()
    (approval,) = next(found for line in lines if line["kind"] == "http" and (found := each(line["body"], "approvals")))
    child, parent = approval["child_session_id"], approval["parent_session_id"]
    replay.feed.found({"id": parent, "title": "Parent"}, None)
    replay.feed.found({"id": child, "title": "Gated", "parent_session_id": parent, "is_running": True}, None)
    replay.feed.gates.snapshot([approval], replay.now)
    replay.flush()
    summary = replay.summary(child)
    assert (summary.lifecycle, summary.native_state) == (Lifecycle.RUNNING, "awaiting permission")
    assert summary.why == "its parent's model decides whether exec_command may run"
    assert (summary.parent, summary.requests) == (parent, ())
    replay.feed.gates.snapshot([], replay.now + 1)
    replay.flush()
    assert replay.summary(child).native_state == "running"


@both
def test_a_deleted_tree_is_gone(version: str) -> None:
    replay = played(version, "children")
    assert replay.sessions == {}
    replay = played(version, "delete")
    assert [text(info, "name") for info in replay.sessions.values()] == ["To be cleared"]


@both
def test_the_feed_tells_nothing_twice(version: str) -> None:
    replay = Replay()
    told = [line for line in recording(version, "feed") if line["kind"] == "recv"]
    lines = [line for line in told if line["frame"].get("ch") == "feed"]
    first = next(line["frame"]["event"] for line in lines if "event" in line["frame"])
    replay.feed.found({"id": first["session_id"], "title": "One"}, None)
    replay.tell(lines)
    id = replay.only()
    once = list(replay.events[id])
    assert once
    replay.tell(lines)
    assert replay.events[id] == once


@both
def test_after_a_restart_what_was_asked_is_still_asked(version: str) -> None:
    replay = Replay()
    lines = recording(version, "restart")
    again = next(number for number, line in enumerate(lines) if line["kind"] == "open" and line["on"] == "between")
    replay.tell(lines[:again])
    before = {id: [request.subject["id"] for request in replay.open(id)] for id in replay.sessions}
    assert sum(map(len, before.values())) == 2
    replay.tell(lines[again:], lambda line: line["kind"] == "http" and line["path"].endswith("/runs/active"))
    assert {id: [request.subject["id"] for request in replay.open(id)] for id in replay.sessions} == before


@both
def test_a_run_that_a_crash_ended_is_lost_and_not_running(version: str) -> None:
    replay = Replay()
    lost = [
        line["body"]["session"]
        for line in recording(version, "restart")
        if line["kind"] == "http"
        and line["status"] == 200
        and text(line["body"], "session", "last_run_status") == "running"
        and line["body"]["session"]["is_running"] is False
    ]
    assert lost
    replay.feed.found(lost[0], None)
    replay.flush()
    summary = replay.summary(replay.only())
    assert (summary.lifecycle, summary.native_state) == (Lifecycle.FAILED, "lost")
    assert "nothing runs it" in (summary.error or "")


@both
def test_a_message_given_to_a_run_is_read_by_it(version: str) -> None:
    replay = played(version, "guidance")
    id = replay.only()
    session = replay.feed.sessions[id]
    if version != NEW:
        # The older line tells of it in the history only.
        replay.feed.past(session, next(answers(version, "guidance", "GET", "history?projection=messages"))["body"])
        replay.flush()
    said = [message.text for message in replay.of(id, Message) if message.role is Speaker.USER]
    assert said[1:3] == ["Be brief.", "Then this."]


@both
def test_guidance_from_here_is_read_when_the_history_has_it(version: str) -> None:
    body = next(answers(version, "guidance", "GET", "history?projection=messages"))["body"]
    replay = Replay()
    replay.feed.found({"id": "s"}, None)
    session = replay.feed.sessions["s"]
    first = "00000000-0000-0000-0000-000000000001"
    session.unread_mail |= {first: "Be brief.", "another": "Not yet."}
    replay.feed.past(session, body)
    replay.flush()
    assert [(mail.ref, mail.state) for mail in replay.of("s", Mail)] == [(session.refs[first], MailState.CONSUMED)]
    assert session.unread_mail == {"another": "Not yet."}
