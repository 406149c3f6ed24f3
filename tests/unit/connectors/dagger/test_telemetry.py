"""What telemetry says of agents, in the engine's words, and what becomes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.connectors.dagger.roster import Roster
from console.connectors.dagger.telemetry import Span, StateRecord, Subscription, records, spans
from console.connectors.web.sse import SseDecoder
from tests.peers.dagger_server import FIXTURES


def stream(name: str) -> list[str]:
    """The data of the events of a stream, without the one that opens it."""
    events = SseDecoder().feed((FIXTURES / name).read_bytes())
    return [event.data for event in events if event.event in ("spans", "logs")]


HANDLE = "x3c0tfmoo5hphht0ung67wv48"


def test_the_span_of_an_agent() -> None:
    assert spans(stream("telemetry_traces.sse")[0]) == [
        Span("7uGbfsPBsXQ=", "obLD1OX2Bxg=", "triage", 1_790_000_000_000, None, HANDLE)
    ]


def test_records_of_both_forms() -> None:
    told = [record for data in stream("telemetry_logs.sse") for record in records(data)]
    older, digest, newer, subscription = told
    assert isinstance(older, StateRecord)
    assert (older.handle, older.span, older.state, older.at) == ("", "7uGbfsPBsXQ=", "RUNNING", 1_790_000_001_000)
    assert isinstance(digest, StateRecord)
    assert digest.state is None
    assert isinstance(newer, StateRecord)
    assert (newer.handle, newer.name, newer.state, newer.stop_reason) == (HANDLE, "triage", "STOPPED", "EXPLICIT")
    assert (newer.revision, newer.incarnation) == (7, "inc1")
    assert subscription == Subscription(HANDLE, "h2", ("FAILED", "IDLE"), 1)


def test_the_roster_made_of_them() -> None:
    roster = Roster()
    logs = stream("telemetry_logs.sse")
    # The two streams are read side by side: a record may come before the span that tells whose it is.
    assert roster.take_records(records(logs[0])) == set()
    assert roster.take_spans(spans(stream("telemetry_traces.sse")[0])) == {HANDLE}
    seen = roster.agents[HANDLE]
    assert (seen.name, seen.record and seen.record.state) == ("triage", "RUNNING")
    for data in logs[1:]:
        roster.take_records(records(data))
    assert (seen.record and seen.record.state, list(seen.subscribers)) == ("STOPPED", ["h2"])
    assert seen.subscribers["h2"].states == ("FAILED", "IDLE")
    assert roster.started(HANDLE)
    assert not roster.started("another")


def test_programs_output_is_no_word_of_an_agent() -> None:
    record = {"spanId": "s1", "body": {"stringValue": "dagger.io/agent.state RUNNING"}, "attributes": []}
    assert records(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]})) == []


@pytest.mark.parametrize(
    "data",
    ["", "{", "[]", "7", "null", '{"resourceSpans": 7}', '{"resourceSpans": [{"scopeSpans": [{"spans": [{}, 7]}]}]}'],
)
def test_what_cannot_be_read_says_nothing(data: str) -> None:
    assert spans(data) == []
    assert records(data) == []


def test_attributes_of_odd_kinds_are_passed_over() -> None:
    attributes: list[Any] = [
        7,
        {"key": "dagger.io/agent.state", "value": {"doubleValue": 1.5}},
        {"key": "dagger.io/agent.control.revision", "value": {"intValue": "many"}},
        {"key": "dagger.io/agent.subscription.states", "value": {"arrayValue": 3}},
        {"key": "dagger.io/agent.id", "value": {"stringValue": "h1"}},
    ]
    raw = {"spanId": "s", "timeUnixNano": "x", "attributes": attributes}
    told = records(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [raw]}]}]}))
    assert told == [StateRecord("s", 0, "h1")]


def agent(id: str, parent: str, handle: str, end: int | None = None) -> Span:
    return Span(id, parent, handle, 1, end, handle)


def work(id: str, parent: str, end: int | None = None, start: int = 2) -> Span:
    return Span(id, parent, f"work {id}", start, end)


def test_the_nearest_other_agent_above_is_the_parent() -> None:
    roster = Roster()
    # Children may be told before what stands between them and their parent.
    roster.take_spans([agent("c", "x2", "child"), work("x2", "x1")])
    assert roster.parent("child") is None
    roster.take_spans([work("x1", "p"), agent("p", "top", "parent"), agent("top", "", "chief")])
    assert (roster.parent("child"), roster.parent("parent"), roster.parent("chief")) == ("parent", "chief", None)
    # A span of its own above it is no parent.
    roster.take_spans([agent("again", "c", "child")])
    assert roster.parent("child") == "parent"
    roster.take_records([StateRecord("c", 5, "child", state="IDLE", parent="stepmother")])
    assert roster.parent("child") == "stepmother"
    assert roster.parent("nobody") is None


def test_spans_in_a_circle_have_no_top() -> None:
    roster = Roster()
    roster.take_spans([agent("a", "b", "one"), work("b", "c"), work("c", "b")])
    assert roster.parent("one") is None


def test_the_latest_record_wins_by_revision_else_by_time() -> None:
    roster = Roster()
    roster.take_records([StateRecord("s", 9, "h", state="IDLE", revision=3, incarnation="i")])
    assert roster.take_records([StateRecord("s", 10, "h", state="RUNNING", revision=2, incarnation="i")]) == set()
    assert roster.take_records([StateRecord("s", 8, "h", state="FAILED", revision=4, incarnation="i")]) == {"h"}
    assert roster.take_records([StateRecord("s", 7, "h", state="IDLE")]) == set()
    assert roster.take_records([StateRecord("s", 11, "h", state="STOPPED", revision=1, incarnation="j")]) == {"h"}
    record = roster.agents["h"].record
    assert record is not None
    assert record.state == "STOPPED"


def test_what_runs_right_below_an_agent_is_in_flight() -> None:
    roster = Roster()
    assert roster.take_spans([agent("a", "", "h"), work("w1", "a", start=5), work("deep", "w1")]) == {"h"}
    assert roster.take_spans([work("w2", "a", start=3)]) == {"h"}
    assert [(f.id, f.since) for f in roster.in_flight("h")] == [("w2", 3), ("w1", 5)]
    assert roster.take_spans([work("w2", "a", start=3)]) == set(), "a heartbeat is no news"
    assert roster.take_spans([work("w1", "a", end=9), work("w2", "a", end=9)]) == {"h"}
    assert roster.in_flight("h") == ()
    assert roster.in_flight("nobody") == ()


def test_what_a_real_engine_told_of_an_agent() -> None:
    """Recorded: it was paused before it ever ran, sent a message, resumed, and stopped by a client."""
    begun, ended = (spans(data)[0] for data in stream("recorded_traces.sse"))
    assert (begun.id, begun.handle, begun.name) == ("KiP7CALQueg=", "lb63vm75a0ci2vaxn1ezs2t0g", "real2")
    assert begun.end is None, "a time before 1970, taken for a number without a sign"
    assert ended == Span(begun.id, begun.parent, begun.name, begun.start, 1_796_084_799_822, begun.handle)
    told = [record for data in stream("recorded_logs.sse") for record in records(data)]
    states = [record.state for record in told if isinstance(record, StateRecord) and record.state]
    assert states == ["PAUSED", "RUNNING", "IDLE", "STOPPED"]
    roster = Roster()
    roster.take_records(told)
    roster.take_spans([ended, begun])
    record = roster.agents[begun.handle].record
    assert record is not None
    assert (record.state, record.stop_reason) == ("STOPPED", "EXPLICIT")


def test_the_first_event_of_a_real_stream_tells_that_it_is_open() -> None:
    first = SseDecoder().feed((FIXTURES / "recorded_logs.sse").read_bytes())[0]
    assert (first.event, first.data, first.id) == ("subscribed", "", "")


def test_what_ended_stays_ended_in_whatever_order_it_is_told() -> None:
    roster = Roster()
    roster.take_spans([agent("a", "", "h"), work("w", "a", end=9)])
    assert roster.take_spans([work("w", "a")]) == set()
    assert roster.in_flight("h") == ()
    late = Subscription("h", "other", ("IDLE",), 1)
    roster.take_records([Subscription("h", "other", (), 2), late])
    assert roster.agents["h"].subscribers["other"].states == ()
