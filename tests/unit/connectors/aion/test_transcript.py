"""A transcript, event by event. Each test names the check of the acceptance list that it is."""

from __future__ import annotations

from console.connectors.aion.steps import Asked, CutShort, NoLongerAsked, Piece, Step
from console.connectors.aion.transcript import Transcript
from tests.unit.connectors.aion.said import CHILD, Json, event, message, note, piece, told
from watchfloor.protocol.events import (
    Level,
    Message,
    Notice,
    Progress,
    Raw,
    Reasoning,
    ToolCall,
    ToolResult,
    ToolStatus,
)


def all_of(*events: Json) -> list[Step]:
    transcript = Transcript(1)
    return [step for each in events for step in transcript.take(each)]


def pieces(steps: list[Step]) -> dict[str, str]:
    found: dict[str, str] = {}
    for step in steps:
        if isinstance(step, Piece):
            found[step.item] = found.get(step.item, "") + step.text
    return found


def test_pieces_of_one_message_grow_one_item_and_others_do_not() -> None:
    """Check 3."""
    steps = all_of(piece("he", 0), piece("llo", 1), piece("other", 2, "m2"), piece("third", 3, "m", CHILD))
    assert sorted(pieces(steps).values()) == ["hello", "other", "third"]


def test_a_whole_message_ends_its_own_agents_preview_only() -> None:
    """Check 4."""
    steps = all_of(piece("hello", 0), piece("mine", 1, "m", CHILD), message("hello", 0, worker=2))
    (whole,) = told(steps, Message)
    assert pieces(steps)[str(whole.item)] == "hello"
    assert not [step for step in steps if isinstance(step, CutShort)]


def test_a_preview_that_began_after_a_message_was_said_outlives_it() -> None:
    transcript = Transcript(1)
    transcript.take(piece("next", 5, "m2"))
    (before,) = told(transcript.take(message("before", 0, worker=3)), Message)
    assert before.item is None
    (whole,) = told(transcript.take(message("next one", 1, worker=7)), Message)
    assert whole.item is not None


def test_reasoning_ends_by_its_id_and_shows_its_summary_alone() -> None:
    """Check 5."""
    item = {"id": "rs-1", "summary": [{"type": "summary_text", "text": "short"}], "encrypted_content": "SECRET"}
    raw = {"kind": "Raw", "source": "event/raw", "value": {"type": "reasoning_item", "item": item}}
    steps = all_of(piece("thinking", 0, "rs-1"), event(raw, 0, worker=1))
    (reasoning,) = told(steps, Reasoning)
    assert reasoning.text == "short"
    assert reasoning.item in pieces(steps)
    bare = {**raw, "value": {"type": "reasoning_item", "item": {**item, "summary": []}}}
    steps = all_of(event(bare, 0))
    assert "SECRET" not in repr(steps)
    assert told(steps, Raw)


def test_notes_that_repeat_are_counted_and_usage_is_none_of_them() -> None:
    """Check 6."""
    usage = {"kind": "Progress", "detail": {"detail": "UsageEstimate", "input_tokens": 7, "output_tokens": None}}
    transcript = Transcript(1)
    events = [note("busy", 0), note("busy", 1), note("busy", 1), event(usage, 2), note("busy", 3), message("x", 4)]
    steps = [step for each in events for step in transcript.take(each)]
    assert [each.note for each in told(steps, Progress) if each.note] == ["busy", "busy (2 more times)"]
    assert transcript.usage is not None
    assert transcript.usage.input_tokens == 7


def test_calls_and_results_pair_by_their_id_in_any_order() -> None:
    """Check 7."""
    call = {"kind": "ToolCall", "tool": "ls", "call_id": "c", "input": {"command": "ls -l"}}
    result = {"kind": "ToolResult", "call_id": "c", "output": "done", "is_error": False}
    transcript = Transcript(1)
    steps = [*transcript.take(event(call, 0)), *transcript.take(event({**call, "call_id": "open"}, 1))]
    steps += transcript.take(event(result, 2))
    assert (told(steps, ToolCall)[0].call, told(steps, ToolResult)[0].call) == ("c", "c")
    assert told(steps, ToolCall)[0].text == "ls -l"
    assert list(transcript.running) == ["open"]
    late = all_of(event(result, 0), event(call, 1))
    assert told(late, ToolResult)[0].call == told(late, ToolCall)[0].call


def test_a_failed_result_is_not_like_another_one() -> None:
    """Check 8."""
    results: list[Json] = [
        {"kind": "ToolResult", "call_id": "c", "output": {"why": 1}, "is_error": bad} for bad in (True, False)
    ]
    unknown: Json = {"kind": "ToolResult", "call_id": "c", "output": None}
    steps = all_of(*(event(result, seq) for seq, result in enumerate([*results, unknown])))
    states = [result.status for result in told(steps, ToolResult)]
    assert states == [ToolStatus.ERROR, ToolStatus.OK, ToolStatus.UNKNOWN]


def test_nothing_that_is_not_known_is_left_out() -> None:
    """Check 9."""
    raw = {"kind": "Raw", "source": "somewhere", "value": {"deep": [1, {"er": None}]}}
    steps = all_of(event(raw, 0), event({"kind": "Dance", "steps": 3}, 1))
    known, dance = told(steps, Raw)
    assert (known.data, known.note) == ({"deep": [1, {"er": None}]}, "somewhere")
    assert dance.data == {"kind": "Dance", "steps": 3}


def test_what_passes_is_visibly_not_what_is_kept() -> None:
    """Check 10."""
    passing = event({"kind": "Progress", "detail": {"detail": "Note", "text": "warming up"}}, None, worker=0)
    noise = event({"kind": "Progress", "detail": {"detail": "Note", "text": "tool_call_delta"}}, None, worker=1)
    (notice,) = told(all_of(passing, noise), Notice)
    assert (notice.level, notice.code, notice.key) == (Level.DEBUG, "ephemeral", None)
    assert "not kept" in notice.text


def test_a_long_body_is_told_whole() -> None:
    """Check 11: folding it is the transcript view's affair, leaving out nothing is ours."""
    long = "x" * 50_000
    (whole,) = told(all_of(message(long, 0)), Message)
    assert whole.text == long


def test_what_is_missing_is_asked_for_and_then_said() -> None:
    transcript = Transcript(1)
    assert not transcript.take(message("late", 2))
    assert transcript.missing() == 0
    steps = transcript.give_up()
    assert [notice.code for notice in told(steps, Notice)] == ["gap"]
    assert [each.text for each in told(steps, Message)] == ["late"]
    assert not transcript.take(message("too late", 1))


def test_after_a_break_a_preview_does_not_go_on_with_a_hole_in_it() -> None:
    transcript = Transcript(1)
    steps = transcript.take(piece("one ", 0))
    transcript.interrupted()
    steps += transcript.take(piece("three", 2))
    assert list(pieces(steps).values()) == ["one "]
    steps += transcript.take(piece("in the midst", 9, "m2"))
    assert list(pieces(steps).values()) == ["one ", "…in the midst"]
    (whole,) = told(transcript.take(message("one two three", 0, worker=8)), Message)
    assert whole.item == next(iter(pieces(steps)))


def test_a_request_lives_as_long_as_its_call_waits() -> None:
    value = {"call_id": "c", "action": {"path": "/x"}, "options": ["deny"], "expires_at": "2026-11-30T21:00:00Z"}
    ask = {"kind": "Raw", "source": "approval/request", "value": value}
    transcript = Transcript(1)
    (asked,) = [step for step in transcript.take(event(ask, 0)) if isinstance(step, Asked)]
    assert [option.id for option in asked.options] == ["deny"]
    assert asked.deadline == 1_796_072_400_000
    assert '"/x"' in asked.action
    result = {"kind": "ToolResult", "call_id": "c", "output": "x", "is_error": False}
    assert [step.id for step in transcript.take(event(result, 1)) if isinstance(step, NoLongerAsked)] == [asked.id]
    transcript.take(event(ask, 2))
    (gone,) = [step for step in transcript.ended() if isinstance(step, NoLongerAsked)]
    assert "over" in gone.why


def test_a_call_without_a_result_is_no_request() -> None:
    call = {"kind": "ToolCall", "tool": "rm", "call_id": "c", "input": {}}
    nameless = {"kind": "Raw", "source": "approval/request", "value": {"action": "rm"}}
    assert not [step for step in all_of(event(call, 0), event(nameless, 1)) if isinstance(step, Asked)]


def test_what_asks_beyond_what_is_kept_asks_all_the_same() -> None:
    value: Json = {"call_id": "c", "action": "rm", "options": [], "expires_at": None}
    beyond = event({"kind": "Raw", "source": "approval/request", "value": value}, None, worker=7) | {"ephemeral": False}
    steps = all_of(beyond)
    assert [step.id for step in steps if isinstance(step, Asked)] == ["1:0.7+:c"]
    assert [notice.code for notice in told(steps, Notice)] == ["beyond_retention"]


def test_what_a_server_lost_is_numbered_anew_and_is_no_repetition() -> None:
    transcript = Transcript(1)
    before = [step for each in (message("one", 0), piece("half", 1)) for step in transcript.take(each)]
    steps = transcript.lost(0)
    assert [step for step in steps if isinstance(step, CutShort)]
    assert [notice.code for notice in told(steps, Notice)] == ["lost"]
    after = [step for each in (message("one", 0), piece("more", 1)) for step in transcript.take(each)]
    assert [each.text for each in told(after, Message)] == ["one"]
    assert told(after, Message)[0].key != told(before, Message)[0].key
    assert pieces(after).keys().isdisjoint(pieces(before))
