"""Events that are read without models: what is read so is what the models read, and all else is left to them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.fleet.facts import EventFact, EventsFact, Fact
from console.intake import Intake
from watchfloor.client import ClientCore
from watchfloor.connector import Received, Streamed, Target
from watchfloor.protocol.codec import decode_host
from watchfloor.protocol.frames import Events
from watchfloor.protocol.stream import read_stream

NOW = 1_700_000_000_000
NUMBERS: st.SearchStrategy[Any] = st.sampled_from([1, 2, 7, 0, -1, 2**53, 2**70, True, None, 1.0, 1.5, "3", [], {}])
TEXTS: st.SearchStrategy[Any] = st.sampled_from(
    ["", "i1", "a: b", "wörds\u202e", "\x1b[31m", "x" * 1_100, "user", "ok", "running", "diff", "nonsense"]
) | st.sampled_from([None, 1, True, [], {"a": 1}])
VALUES = st.recursive(
    TEXTS | NUMBERS | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
WELL: dict[str, dict[str, Any]] = {
    "delta": {"item": "i1", "offset": 0, "text": "so"},
    "message": {"text": "said: so"},
    "reasoning": {"text": "thought"},
    "tool_call": {"call": "c1", "name": "edit", "arguments": {"path": "a", "lines": [1, 2], "of": {"x": "y: z"}}},
    "tool_output": {"text": "out\n"},
    "tool_result": {"call": "c1", "status": "ok"},
    "lifecycle": {"lifecycle": "running"},
    "request_opened": {"request": "r", "request_kind": "approval", "digest": "sha256:00"},
    "hologram": {"depth": [1, {}]},
}
MORE = {
    **dict.fromkeys(("seq", "pos", "attempt", "at", "offset", "exit_code", "duration_ms"), NUMBERS),
    **dict.fromkeys(("turn", "item", "key", "author", "of", "role", "call", "name", "text", "stream", "status"), TEXTS),
    **dict.fromkeys(("cut", "gated"), st.sampled_from([True, False, None, 1, "yes"])),
    "cwd": TEXTS,
    "arguments": VALUES,
    "strange": VALUES,
}


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """An event of some kind, of which now and then a member is another one, too much or missing."""
    kind = draw(st.sampled_from(sorted(WELL)))
    event = {"kind": kind, "at": NOW, **WELL[kind]}
    if kind != "delta":
        event["seq"] = draw(st.integers(1, 5))
    for name in draw(st.lists(st.sampled_from(sorted(MORE)), max_size=2)):
        event[name] = draw(MORE[name])
    if draw(st.integers(0, 9)) == 0:
        event.pop(draw(st.sampled_from(sorted(event))))
    return event


def frame(events: list[Any], **more: Any) -> bytes:
    told = {"type": "events", "session": "s1", "epoch": "e", "events": events, **more}
    return json.dumps(told, separators=(",", ":")).encode()


def drawn(facts: list[Fact]) -> list[Fact]:
    """The facts, with the lines of calls written out."""
    return [
        fact._replace(events=tuple(map(_written, fact.events))) if isinstance(fact, EventsFact) else fact
        for fact in facts
    ]


def _written(event: EventFact) -> EventFact:
    write = event.data.get("line")
    return event if write is None else event._replace(data={**event.data, "line": write()})


@settings(deadline=None, max_examples=400)
@given(st.lists(events(), min_size=1, max_size=5))
def test_what_streams_is_what_the_models_read(told: list[dict[str, Any]]) -> None:
    raw = frame(told)
    stream = read_stream(raw)
    if stream is None:
        return
    decoded = decode_host(raw)
    assert decoded.bad == ()
    assert isinstance(decoded.frame, Events)
    read = decoded.frame.events
    assert (stream.session, stream.epoch, len(stream.events)) == ("s1", "e", len(read))
    assert stream.seqs == [event.seq for event in read if event.seq is not None]
    assert stream.poss == [event.pos for event in read if event.pos is not None]
    for mine, theirs in zip(stream.events, read, strict=True):
        if isinstance(mine, dict):
            assert {name: getattr(theirs, name) for name in mine if name not in ("role", "status")} == {
                name: value for name, value in mine.items() if name not in ("role", "status")
            }
            assert theirs.model_fields_set == set(mine)
        else:
            assert mine == theirs
    there, here = Intake("h", lambda: NOW), Intake("h", lambda: NOW)
    facts = here.arrival(Streamed.of(stream, raw))
    assert drawn(facts) == drawn(there.arrival(Received(decoded.frame, raw)))


@pytest.mark.parametrize("kind", sorted(WELL))
def test_what_is_in_order_is_read_without_its_models(kind: str) -> None:
    event = {"kind": kind, "seq": 1, "pos": 4, "at": NOW, "key": "k", **WELL[kind]}
    stream = read_stream(frame([event]))
    assert stream is not None
    assert (stream.seqs, stream.poss, stream.keys) == ([1], [4], {1: "k"})
    assert isinstance(stream.events[0], dict) == (kind not in ("lifecycle", "request_opened", "hologram"))


@pytest.mark.parametrize(
    "raw",
    [
        b'{"type":"beat","now":1,"pos":1}',
        b'{"type":"events","session":"s"',
        b'{"type":"events","session":"s","epoch":"e","events":[],"type":"page"}',
        frame([], more=1),
        frame([1]),
        frame([{"kind": "delta", "at": 1, "item": "i", "offset": -1, "text": ""}]),
        frame([{"kind": "message", "at": 1, "text": "x", "seq": 2**53}]),
        frame([{"kind": "message", "at": 1, "text": "x", "seq": 0}]),
        frame([{"kind": ["message"], "at": 1, "text": "x"}]),
        rb'{"type":"events","session":"s","epoch":"e","events":[{"kind":"message","at":1,"text":"\ud800"}]}',
        b'{"type":"events","session":"s","epoch":"e","events":[{"kind":"message","at":1,"text":"\xff"}]}',
        b'{"type":"events","session":"s","epoch":"e","events":' + b"[" * 10_000,
    ],
)
def test_what_is_not_plainly_a_stream_is_left_to_the_models(raw: bytes) -> None:
    assert read_stream(raw) is None


@pytest.mark.parametrize(
    "event",
    [
        '{"kind":"message","at":1,"seq":1,"text":"a","text":"b"}',
        '{"kind":"message","at":1,"seq":1,"text" :"a","text":"b"}',
        r'{"kind":"message","at":1,"seq":1,"text":"a","text":"\u003a"}',
        r'{"kind":"message","at":1,"seq":1,"text":"a","text":"\":"}',
        '{"kind":"tool_call","at":1,"seq":1,"call":"c","name":"x","arguments":{"a":{"b":1,"b":2}}}',
        r'{"kind":"tool_call","at":1,"seq":1,"call":"c","name":"x","arguments":{"a":["\u003A"],"b":1,"b":2}}',
    ],
)
def test_a_member_that_stands_twice_is_found_in_what_streams(event: str) -> None:
    raw = f'{{"type":"events","session":"s1","epoch":"e","events":[{event}]}}'.encode()
    stream = read_stream(raw)
    assert stream is not None
    facts = Intake("h", lambda: NOW).arrival(Streamed.of(stream, raw))
    assert any("stands in it twice" in getattr(fact, "reason", "") for fact in facts)


def test_a_client_counts_what_streams_and_gives_models_to_who_asks_for_them() -> None:
    plain, streaming = (ClientCore(Target(name="h", url="ws://h"), streams=streams) for streams in (False, True))
    greeting = (
        b'{"type":"welcome","protocol":"watchfloor.v1","host":{"name":"h","version":"1","instance":"i"},'
        b'"principal":"p","role":"operator","pos":0,"heartbeat_s":15,"now":1}'
    )
    raws = [frame([{"kind": "message", "at": NOW, "text": "x", "seq": seq, "pos": seq}]) for seq in (1, 2, 4)]
    for core in (plain, streaming):
        core.opened()
        core.receive(greeting)
        core.receive(b'{"type":"watching","session":"*","from_pos":0,"through":0}')
    for raw in raws:
        [theirs], [mine] = plain.receive(raw), streaming.receive(raw)
        assert isinstance(mine, Streamed)
        assert isinstance(theirs, Received)
        assert mine.frame == theirs.frame
        assert mine.raw == raw
    assert plain.pos == streaming.pos == 2
    for core in (plain, streaming):
        core.receive(b'{"type":"beat","now":1,"pos":4}')
    assert plain.pos == streaming.pos == 4
