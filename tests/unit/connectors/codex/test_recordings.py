"""What a console is told when a real app-server says what it said when it was recorded."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.unit.connectors.codex.replay import RECORDINGS, Replay, played, recording
from watchfloor.protocol.events import (
    Child,
    Delta,
    Diff,
    Event,
    Mail,
    Message,
    Notice,
    Progress,
    Raw,
    Reasoning,
    RequestOpened,
    RequestResolved,
    Reseeded,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStatus,
    UnknownEvent,
)
from watchfloor.words import Lifecycle, Overlay, RequestState, ReseedMode

NAMES = sorted(path.stem for path in RECORDINGS.glob("*.jsonl"))


def statuses(replay: Replay, id: str) -> list[ToolStatus]:
    return [event.status for event in replay.of(id, ToolResult)]


def said(replay: Replay, id: str) -> list[str]:
    return [event.text for event in replay.of(id, Message)]


def test_there_are_recordings() -> None:
    assert len(NAMES) == 15


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_open_and_nothing_is_not_understood(name: str) -> None:
    replay, _ = played(name)
    for id, events in replay.events.items():
        assert not [event for event in events if isinstance(event, Raw | UnknownEvent)]
        calls = Counter(event.call for event in replay.of(id, ToolCall))
        results = Counter(event.call for event in replay.of(id, ToolResult))
        assert calls == results
        assert all(n == 1 for n in calls.values())
        opened = [event.request for event in replay.of(id, RequestOpened)]
        assert opened == [event.request for event in replay.of(id, RequestResolved)]
        streamed = {event.item for event in replay.of(id, Delta)}
        whole = {event.item for event in events if not isinstance(event, Delta) and event.item is not None}
        assert streamed <= whole
        if id not in replay.sessions:
            assert name == "reseeds", "only there a thread is deleted"
            continue
        summary = replay.summary(id)
        assert (summary.turn, summary.in_flight, summary.requests) == (None, (), ())


@pytest.mark.parametrize("name", NAMES)
def test_every_event_has_a_time_of_the_server_and_a_key_of_its_own(name: str) -> None:
    replay, _ = played(name)
    for events in replay.events.values():
        keys = Counter(event.key for event in events if event.key is not None)
        assert not [key for key, n in keys.items() if n > 1]
        for event in events:
            # What we have closed ourselves has our time.
            if isinstance(event, Message | ToolCall | ToolResult | Reasoning | Notice) and not getattr(
                event, "cut", False
            ):
                assert 1_796_000_000_000 < event.at < 1_797_000_000_000


@pytest.mark.parametrize("name", NAMES)
def test_what_is_told_twice_changes_nothing(name: str) -> None:
    replay, _ = played(name)
    before = {id: _kept(events) for id, events in replay.events.items()}
    replay.feed.lost()
    replay.tell([(way, frame) for way, frame in recording(name) if _is_of_items(frame)])
    replay.settle()
    assert {id: _kept(events) for id, events in replay.events.items()} == before


def _is_of_items(frame: dict[str, object]) -> bool:
    return frame.get("method") in ("item/started", "item/completed", "turn/completed", "thread/tokenUsage/updated")


def _kept(events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, Message | ToolCall | ToolResult | Diff | Notice | Progress)]


def test_an_approved_command() -> None:
    replay, id = played("approve")
    call, result = replay.of(id, ToolCall)[0], replay.of(id, ToolResult)[0]
    assert (call.name, call.text, call.cwd) == ("command", "/bin/bash -lc 'touch made'", "/srv/codex/work")
    assert (result.call, result.status, result.exit_code) == (call.call, ToolStatus.OK, 0)
    assert [event.text for event in replay.of(id, Reasoning)] == ["let me see"]
    assert said(replay, id)[1:] == ["done"]
    request = next(iter(replay.requests.values()))
    subject = request.read()
    # The server's number of this request is 0.
    assert subject.id.endswith(".0")
    assert (subject.actions[0].text, request.about) == (call.text, "it has to be there")
    assert subject.actions[0].call == call.call
    usage = replay.summary(id).usage
    assert usage is not None
    assert usage.model_dump(exclude_unset=True) == {"input_tokens": 200, "output_tokens": 40, "turns": 1}


def test_a_request_that_was_answered_by_somebody_else_is_no_decision_of_ours() -> None:
    replay, _ = played("approve")
    request = next(iter(replay.requests.values()))
    assert (request.state, request.decision) == (RequestState.RESOLVED, None)


def test_a_declined_and_a_cancelled_command() -> None:
    replay, id = played("decline")
    assert statuses(replay, id) == [ToolStatus.DECLINED]
    assert said(replay, id)[1:] == ["without it"]
    replay, id = played("cancel")
    assert statuses(replay, id) == [ToolStatus.DECLINED]
    assert said(replay, id)[1:] == []
    assert [notice.code for notice in replay.of(id, Notice)] == ["server", "interrupted"]


def test_changes_of_files_are_shown_with_their_lines() -> None:
    replay, id = played("files")
    action = next(iter(replay.requests.values())).read().actions[0]
    assert (action.text, action.diff, action.complete) == ("add /srv/codex/work/new.txt", "+one\n+two\n", True)
    assert [(diff.path, diff.text) for diff in replay.of(id, Diff)] == [("/srv/codex/work/new.txt", "+one\n+two\n")]


def test_changes_of_files_that_the_server_never_tells_the_end_of_are_closed() -> None:
    replay, id = played("files_cancelled")
    assert statuses(replay, id) == [ToolStatus.CANCELLED]
    assert not replay.of(id, Diff)


def test_a_question_is_no_call() -> None:
    replay, _ = played("question")
    subject = next(iter(replay.requests.values())).read()
    field = subject.fields[0]
    assert (field.name, field.label, field.free_text) == ("region", "Region: Which one?", True)
    assert [(choice.value, choice.note) for choice in field.choices] == [("eu", "Europe"), ("us", "America")]


def test_tools_and_forms_of_an_mcp_server() -> None:
    replay, id = played("forms")
    order, form_tool, form = (request.read() for request in replay.requests.values())
    assert (order.actions[0].tool, order.actions[0].arguments) == ("forms.order", {"what": "tea"})
    assert order.actions[0].call == replay.of(id, ToolCall)[0].call
    assert form_tool.actions[0].tool == "forms.form"
    assert form.fields[0].name == "seat"
    assert replay.of(id, ToolOutput)[0].text == 'ordered {"what": "tea"}'


def test_a_command_outlives_an_interrupt_until_it_is_ended() -> None:
    frames = recording("interrupt")
    ended = next(n for n, (_, frame) in enumerate(frames) if frame.get("method") == "turn/completed")
    replay = Replay()
    replay.tell(frames[: ended + 1])
    replay.settle()
    id = next(iter(replay.sessions))
    summary = replay.summary(id)
    assert (summary.lifecycle, summary.turn) == (Lifecycle.IDLE, None)
    assert [work.name for work in summary.in_flight] == ["lives on: /bin/bash -lc 'echo begun; sleep 60'"]
    assert [message.cut for message in replay.of(id, Message)] == [False, True]
    replay.tell(frames[ended + 1 :])
    assert statuses(replay, id) == [ToolStatus.ERROR]
    assert replay.summary(id).in_flight == ()


def test_an_interrupt_while_a_request_is_open_withdraws_it() -> None:
    replay, id = played("interrupt_waiting")
    request = next(iter(replay.requests.values()))
    assert request.state is RequestState.WITHDRAWN
    assert [event.why for event in replay.of(id, RequestResolved)] == ["its turn is interrupted"]
    assert statuses(replay, id) == [ToolStatus.CANCELLED]


def test_a_failing_model() -> None:
    replay, id = played("failure")
    told = [notice for notice in replay.of(id, Notice) if notice.code != "server"]
    assert [notice.retrying for notice in told] == [True, False, False]
    assert replay.summary(id).error is None
    assert said(replay, id)[-1] == "well again"


def test_reseeds_of_every_kind() -> None:
    replay, id = played("reseeds")
    modes = [event.mode for event in replay.of(id, Reseeded)]
    assert modes == [ReseedMode.REWIND, ReseedMode.MODEL, ReseedMode.COMPACT]
    assert list(replay.sessions) == [id]
    assert replay.summary(id).labels["model"] == "another"


def test_a_sub_agent_is_told_of_by_what_it_does() -> None:
    replay, id = played("sub_agent")
    children = {event.session for event in replay.of(id, Child)}
    assert len(children) == 1
    wanted = {wanted for want, wanted in replay.feed.wants if want.value == "read"}
    assert children == wanted


def test_one_who_joins_while_a_request_is_open_hears_of_no_refusal() -> None:
    replay, id = played("joined")
    assert statuses(replay, id) == [ToolStatus.UNKNOWN]
    assert [call.text for call in replay.of(id, ToolCall)] == ["/bin/bash -lc 'touch made'"]


def test_a_message_in_the_queue() -> None:
    replay, id = played("queue")
    assert said(replay, id)[-1] == "second"
    assert not replay.of(id, Mail)


def test_a_goal_is_paused() -> None:
    frames = recording("goal")
    pausing = next(n for n, (_, frame) in enumerate(frames) if _paused(frame))
    cleared = [n for n, (_, frame) in enumerate(frames) if frame.get("method") == "thread/goal/cleared"][-1]
    replay = Replay()
    replay.tell(frames[: pausing + 1])
    id = next(iter(replay.sessions))
    pending = replay.summary(id).pending
    assert pending is not None
    assert (replay.summary(id).lifecycle, pending.overlay) == (Lifecycle.RUNNING, Overlay.PAUSING)
    replay.tell(frames[pausing + 1 : cleared])
    assert replay.summary(id).pending is None
    assert replay.summary(id).lifecycle is Lifecycle.PAUSED
    capabilities = replay.capabilities(id)
    assert capabilities.pause is not None
    assert capabilities.resume is not None
    assert set(replay.summary(id).blocked) == {"interrupt", "pause"}
    replay.tell(frames[cleared:])
    assert replay.capabilities(id).pause is None
    assert replay.summary(id).lifecycle is Lifecycle.IDLE


def _paused(frame: dict[str, Any]) -> bool:
    return frame.get("method") == "thread/goal/updated" and frame["params"]["goal"]["status"] == "paused"
