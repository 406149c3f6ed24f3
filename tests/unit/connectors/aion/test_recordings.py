"""What is read of everything that a real aion server said when it was recorded."""

from __future__ import annotations

import random

import pytest

from console.connectors.aion import narration, status
from console.connectors.aion.history import Workflow
from console.connectors.aion.outcomes import failure, lacking, record
from console.connectors.aion.steps import Asked, CutShort, NoLongerAsked, Piece, Step, Tell
from console.connectors.aion.transcript import Transcript
from tests.peers.aion_world import FIXTURES, recording
from tests.unit.connectors.aion.said import Json, histories, sockets, told
from watchfloor.protocol.events import Event, Message, Notice, Plan, Progress, Raw, Reasoning, ToolCall, ToolOutput
from watchfloor.words import Lifecycle, StopReason

NAMES = sorted(path.stem for path in FIXTURES.glob("*.jsonl"))


def read(events: list[Json], attempt: int = 1) -> tuple[Transcript, list[Step]]:
    transcript = Transcript(attempt)
    numbers = [event["store_seq"] for event in events if event["store_seq"] is not None]
    transcript.begin_at(min(numbers, default=0))
    return transcript, [step for event in events for step in transcript.take(event)]


def keys(steps: list[Step]) -> list[str]:
    """The stored events that were told, in order. Notes that repeat each other are told once."""
    return [
        step.event.key for step in steps if isinstance(step, Tell) and step.event.key and "/b" not in step.event.key
    ]


def ended(name: str) -> list[Workflow]:
    workflows = []
    for id, events in histories(name).items():
        workflow = Workflow("default", id)
        assert all(workflow.take(event) for event in events)
        workflows.append(workflow)
    return workflows


def stored(name: str) -> list[list[Json]]:
    """Every transcript of a recording as far as it was read back."""
    found: dict[str, dict[int, Json]] = {}
    for line in recording(name):
        if line["kind"] == "http" and line["request"]["path"] == "/workflows/transcript":
            for event in (line["response"].get("body") or {}).get("events") or []:
                axes = f"{event['workflow_id']}/{event['run_id']}/{event['activity_id']}/{event['attempt']}"
                found.setdefault(axes, {})[event["store_seq"]] = event
    return [[events[seq] for seq in sorted(events)] for events in found.values()]


def test_there_are_recordings() -> None:
    assert len(NAMES) == 19


@pytest.mark.parametrize("name", NAMES)
def test_every_stored_event_is_told_once_and_in_order(name: str) -> None:
    for (*_, attempt), events in sockets(name):
        transcript, steps = read(events, attempt)
        assert transcript.missing() is None
        order = [int(key.partition("/")[2]) for key in keys(steps)]
        assert order == sorted(set(order))
        notes = sum(1 for event in events if event["kind"].get("detail", {}).get("detail") == "Note")
        seqs = {event["store_seq"] for event in events if event["store_seq"] is not None}
        assert len(seqs) - notes <= len(order) <= len(seqs)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_read_back_is_understood_whole(name: str) -> None:
    for events in stored(name):
        _, steps = read(events)
        assert not [raw for raw in told(steps, Raw) if raw.note and raw.note.startswith("aion event of the kind")]
        assert all(step.event.at for step in steps if isinstance(step, Tell) and step.event.key)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_arrival_does_not_matter(name: str) -> None:
    """Check 1: persisted events are sorted by store_seq whatever the order in which they come."""
    shuffle = random.Random(name)
    for events in stored(name):
        transcript, steps = read(events)
        mixed = [*events, *events]
        shuffle.shuffle(mixed)
        again, other = read(mixed)
        assert keys(other) == keys(steps)
        assert again.missing() is None
        assert again.asked.keys() == transcript.asked.keys()


def test_the_seam_of_a_socket_that_attached_late_is_not_told_twice() -> None:
    """Check 2: an event that comes again is dropped, and the order never goes backwards."""
    ((_, events),) = sockets("splice")
    numbers = [event["store_seq"] for event in events if event["store_seq"] is not None]
    assert len(numbers) > len(set(numbers)), "the recording has no repetition in it"
    assert numbers != sorted(numbers)
    _, steps = read(events)
    assert len(keys(steps)) == len(set(numbers))


def test_pieces_that_overtake_stored_events_end_with_their_own_message() -> None:
    (socket, *_) = [events for _, events in sockets("talk")]
    _, steps = read(socket)
    streamed = {step.item: "" for step in steps if isinstance(step, Piece)}
    for step in steps:
        if isinstance(step, Piece):
            streamed[step.item] += step.text
    whole = {message.item: message.text for message in told(steps, Message) if message.item}
    reasoned = {each.item: each.text for each in told(steps, Reasoning) if each.item}
    assert whole.keys() | reasoned.keys() == streamed.keys()
    assert all(streamed[str(item)] == text for item, text in whole.items())
    assert not [step for step in steps if isinstance(step, CutShort)]


@pytest.mark.parametrize("name", ["restart", "wedged"])
def test_a_new_process_of_an_agent_is_noticed_by_its_numbers(name: str) -> None:
    lives = []
    for _, events in sockets(name):
        transcript, _ = read(events)
        lives.append(transcript._previews.life)
    assert 1 in lives


def test_an_agent_that_is_replaced_asks_again_and_its_first_question_is_withdrawn() -> None:
    (first,) = [event for events in stored("primitives")[:1] for event in events if event["kind"].get("source")]
    transcript = Transcript(1)
    again = {**first, "store_seq": 1, "worker_seq": 3}
    asked = [*transcript.take({**first, "store_seq": 0}), *transcript.take(again)]
    opened = [step.id for step in asked if isinstance(step, Asked)]
    assert opened == ["1:0:call-1", "1:1:call-1"]
    assert [step.id for step in asked if isinstance(step, NoLongerAsked)] == ["1:0:call-1"]


def test_what_goes_beyond_the_cap_is_marked_and_told() -> None:
    ((_, events), *_) = sockets("caps")
    _, steps = read(events)
    codes = [notice.code for notice in told(steps, Notice)]
    assert (codes.count("retention"), codes.count("beyond_retention")) == (1, 1)
    beyond = [event for event in events if event["store_seq"] is None and not event["ephemeral"]]
    assert len(beyond) > 10
    texts = [message.text for message in told(steps, Message)]
    assert "past the cap" in texts


def test_a_command_a_plan_and_thoughts_are_told_as_what_they_are() -> None:
    outputs = [each for events in stored("gate") for each in told(read(events)[1], ToolOutput)]
    assert {output.stream for output in outputs} == {"stdout"}
    thinking = [events for _, events in sockets("acp")]
    steps = [step for events in thinking for step in read(events)[1]]
    (plan,) = told(steps, Plan)
    assert [step.text for step in plan.steps] == ["read", "write"]
    assert any(isinstance(step, Piece) and step.of == "reasoning" for step in steps)


# --- histories


@pytest.mark.parametrize("name", NAMES)
def test_every_history_is_read_to_its_end(name: str) -> None:
    for workflow, events in zip(ended(name), histories(name).values(), strict=True):
        assert workflow.head == len(events)
        said = [narration.told(event, "default", {}) for event in events]
        assert len([event for event in said if event is None]) <= sum(
            e["type"] == "SearchAttributesUpdated" for e in events
        )
        known: list[Event] = [event for event in said if event is not None]
        assert len({event.key for event in known}) == len(known)


def test_all_attempts_of_a_failed_run_are_kept() -> None:
    """Check 27, and the end of each: retryable, retryable, exhausted."""
    (workflow,) = [each for each in ended("retry") if len(each.activities[(each.run, 0)].attempts) == 4]
    attempts = workflow.activities[(workflow.run, 0)].attempts
    assert [attempt.error_kind for attempt in attempts.values()] == ["Retryable", "Retryable", "Terminal", ""]
    assert failure(attempts[3]).code == "exhausted"
    assert (failure(attempts[1]).final, failure(attempts[3]).final) == (False, True)


def test_every_run_of_endless_work_has_its_own_activity() -> None:
    (workflow,) = ended("loop")
    assert len(workflow.runs) == len(set(workflow.runs)) >= 3
    assert all(id == 0 for _, id in workflow.activities)
    assert len(workflow.activities) >= 2


def test_contract_failures_and_policy_refusals_are_told_apart() -> None:
    codes = []
    for workflow in ended("failures"):
        for activity in workflow.activities.values():
            last = activity.latest
            assert last is not None
            if last.end:
                told_as = status.of_activity(workflow, activity, last, status.Facts())
                assert told_as.lifecycle is Lifecycle.FAILED
                codes.append(failure(last).code)
                assert not failure(last).text.startswith(("terminal:", "retryable:"))
    assert {"contract", "policy_refusal", "exhausted"} <= set(codes)


def test_an_outcome_has_its_four_fields_or_is_none() -> None:
    found = [
        record(attempt.result)
        for name in ("talk", "steer", "acp")
        for workflow in ended(name)
        for activity in workflow.activities.values()
        for attempt in activity.attempts.values()
        if attempt.end == "ActivityCompleted"
    ]
    assert found
    assert all(each is not None and each.stop_reason is StopReason.END_TURN and each.session_id for each in found)
    whole: Json = {"text": "a", "final_message": "b", "stop_reason": "end_turn", "session_id": "c"}
    assert record(whole | {"session_id": None}) is None
    assert lacking({"text": "a", "final_message": "b", "stop_reason": "end_turn"}) == ["session_id"]
    assert lacking({"exit_code": 0}) == []
    unheard = record(whole | {"stop_reason": "unheard"})
    assert unheard is not None
    assert unheard.stop_reason is StopReason.OTHER


def test_a_workflow_that_ends_under_its_agents_says_so() -> None:
    (workflow,) = [each for each in ended("gate") if each.status == "Cancelled"]
    (_, agent, _) = workflow.activities.values()
    attempt = agent.latest
    assert attempt is not None
    alive = status.of_activity(workflow, agent, attempt, status.Facts(live=frozenset({"Cancel"})))
    assert alive.lifecycle is Lifecycle.RUNNING
    assert "works on" in (alive.why or "")
    assert alive.capabilities.stop is not None
    gone = status.of_activity(workflow, agent, attempt, status.Facts())
    assert (gone.lifecycle, gone.capabilities.advertised()) == (Lifecycle.STOPPED, ())


def test_usage_and_calls_are_counted() -> None:
    (socket, *_) = [events for _, events in sockets("talk")]
    transcript, steps = read(socket)
    assert transcript.usage is not None
    assert (transcript.usage.input_tokens, transcript.usage.output_tokens) == (1450, 160)
    assert list(transcript.running) == ["call-99"]
    assert [call.name for call in told(steps, ToolCall)][-1] == "unfinished"
    assert [each.note for each in told(steps, Progress) if each.note] == ["indexing", "indexing (once more)"]
