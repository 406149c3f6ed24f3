"""What a client makes of frames that are bad, newer than it, or hostile."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchfloor.errors import ProtocolError
from watchfloor.protocol.codec import KEEP_RAW, Decoded, decode_client, decode_host, encode
from watchfloor.protocol.events import Message, Raw, UnknownEvent
from watchfloor.protocol.frames import (
    Beat,
    Command,
    DoPause,
    Events,
    Outcome,
    Reply,
    RequestFrame,
    Sessions,
    UnknownDo,
    UnknownFrame,
    Watch,
    Welcome,
)
from watchfloor.words import OutcomeKind, Role


def message(seq: int, text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"kind": "message", "seq": seq, "pos": seq + 100, "attempt": 1, "at": 5, "text": text, **more}


def batch(*events: Any) -> bytes:
    return json.dumps({"type": "events", "session": "s", "epoch": "e", "events": events}).encode()


def read_events(raw: bytes) -> tuple[Events, Decoded]:
    decoded = decode_host(raw)
    assert isinstance(decoded.frame, Events)
    return decoded.frame, decoded


def test_a_good_batch_has_nothing_bad() -> None:
    frame, decoded = read_events(batch(message(1), message(2)))
    assert [(event.seq, event.pos) for event in frame.events] == [(1, 101), (2, 102)]
    assert decoded.bad == ()


def test_a_malformed_known_event_costs_itself_alone_and_keeps_its_place() -> None:
    frame, decoded = read_events(batch(message(1), {**message(2), "text": 7}, message(3)))
    first, bad, last = frame.events
    assert isinstance(first, Message)
    assert isinstance(last, Message)
    assert isinstance(bad, Raw)
    assert (bad.seq, bad.pos, bad.attempt, bad.at) == (2, 102, 1, 5)
    assert bad.note is not None
    assert bad.note.startswith("unreadable event: message.text:")
    assert json.loads(str(bad.data))["text"] == 7
    assert len(decoded.bad) == 1
    assert decoded.bad[0].reason.startswith("message.text:")


@pytest.mark.parametrize("place", [{"seq": 0}, {"seq": True}, {"seq": "two"}, {"seq": -1}, {"seq": 2.5}])
def test_of_an_unreadable_place_what_can_be_read_is_kept(place: dict[str, Any]) -> None:
    frame, decoded = read_events(batch(message(1), {**message(2), **place, "text": 7}))
    bad = frame.events[1]
    assert (bad.seq, bad.pos) == (None, 102)
    assert len(decoded.bad) == 1


@pytest.mark.parametrize("item", [7, None, "text", [], True])
def test_what_is_no_object_is_told_and_left_out(item: Any) -> None:
    frame, decoded = read_events(batch(message(1), item, message(2)))
    assert [event.seq for event in frame.events] == [1, 2]
    assert [bad.raw for bad in decoded.bad] == [json.dumps(item)]


def test_what_is_kept_of_a_bad_event_is_bounded() -> None:
    frame, decoded = read_events(batch({**message(1), "text": ["x" * 100_000]}))
    bad = frame.events[0]
    assert isinstance(bad, Raw)
    assert len(str(bad.data)) == len(decoded.bad[0].raw) == KEEP_RAW


def test_a_lone_surrogate_in_a_good_batch_is_replaced() -> None:
    raw = batch(message(1)).replace(b'"hello"', rb'"a\ud800b \ud83d\ude00"')
    frame, decoded = read_events(raw)
    event = frame.events[0]
    assert isinstance(event, Message)
    assert event.text == "a\ufffdb \N{GRINNING FACE}"
    [bad] = decoded.bad
    assert (bad.reason, bad.mended) == ("lone surrogates: replaced", True)
    encode(frame)


def test_a_lone_surrogate_in_a_name_is_replaced_as_well() -> None:
    raw = rb'{"type":"reply","id":"1","data":{"k\udc00":1}}'
    frame = decode_host(raw).frame
    assert isinstance(frame, Reply)
    assert frame.data == {"k\ufffd": 1}


def test_broken_utf_8_is_replaced() -> None:
    frame, _ = read_events(batch(message(1)).replace(b"hello", b"a\xff\xfeb"))
    event = frame.events[0]
    assert isinstance(event, Message)
    assert event.text == "a\ufffd\ufffdb"


def test_an_unknown_kind_of_event_is_kept_with_what_it_carried() -> None:
    frame, decoded = read_events(batch(message(1), {"kind": "telepathy", "seq": 2, "pos": 102, "at": 5, "whom": "x"}))
    event = frame.events[1]
    assert isinstance(event, UnknownEvent)
    assert (event.seq, event.pos, event.kind, event.model_extra) == (2, 102, "telepathy", {"whom": "x"})
    assert decoded.bad == ()


def test_an_unknown_frame_is_kept_with_what_it_carried() -> None:
    frame = decode_host(b'{"type":"hologram","size":3}').frame
    assert isinstance(frame, UnknownFrame)
    assert (frame.type, frame.model_extra) == ("hologram", {"size": 3})


def test_a_malformed_known_frame_is_not_taken_for_an_unknown_one() -> None:
    with pytest.raises(ProtocolError, match="pos"):
        decode_host(b'{"type":"beat","now":5}')


def test_unknown_members_are_ignored() -> None:
    frame = decode_host(b'{"type":"beat","now":5,"pos":6,"mood":"fine"}').frame
    assert frame == Beat(now=5, pos=6)


def test_words_of_a_newer_host_read_as_the_neutral_ones() -> None:
    welcome = decode_host(
        b'{"type":"welcome","protocol":"watchfloor.v1","host":{"name":"h","version":"9"},"principal":"p",'
        b'"role":"emperor","pos":0,"heartbeat_s":15,"now":1}'
    ).frame
    assert isinstance(welcome, Welcome)
    assert welcome.role is Role.OBSERVER
    outcome = decode_host(b'{"type":"outcome","id":"1","outcome":"deferred","at":1}').frame
    assert isinstance(outcome, Outcome)
    assert outcome.outcome is OutcomeKind.UNKNOWN


def test_one_bad_field_of_a_summary_costs_itself_alone() -> None:
    decoded = decode_host(
        b'{"type":"sessions","sessions":[{"id":"a"},{"id":"b","head":"x","cwd":"/"},7],"listed":true}'
    )
    assert isinstance(decoded.frame, Sessions)
    assert [summary.id for summary in decoded.frame.sessions] == ["a", "b"]
    assert decoded.frame.listed
    assert decoded.frame.sessions[1].model_fields_set == {"id", "cwd"}
    assert [bad.raw for bad in decoded.bad] == ['{"id": "b", "head": "x", "cwd": "/"}', "7"]
    assert decoded.bad[0].reason.startswith("head:")
    assert [(bad.session, bad.fields) for bad in decoded.bad] == [("b", ("head",)), (None, ())]


def test_a_badly_listed_request_costs_neither_the_others_nor_itself() -> None:
    good = '{"id":"r1","kind":"question","asked_at":5,"digest":"d"}'
    decoded = decode_host(
        f'{{"type":"sessions","sessions":[{{"id":"a","requests":[{good},{{"id":"r2"}},7]}}]}}'.encode()
    )
    assert isinstance(decoded.frame, Sessions)
    assert [(ref.id, ref.asked_at) for ref in decoded.frame.sessions[0].requests] == [("r1", 5), ("r2", 0)]
    assert decoded.bad[0].fields == ()


def test_what_of_a_request_cannot_be_read_is_left_out_of_it() -> None:
    raw = b'{"type":"request","session":"s","request":{"subject":{"id":"r","x":[%s]},"digest":"d","asked_at":"x"}}'
    frame = decode_host(raw % b"1").frame
    assert isinstance(frame, RequestFrame)
    assert (frame.request.subject, frame.request.asked_at) == ({"id": "r", "x": [1]}, 0)
    deep = decode_host(raw % (b"[" * 300 + b"]" * 300))
    assert isinstance(deep.frame, RequestFrame)
    assert (deep.frame.request.subject, deep.frame.request.digest) == ({"id": "r"}, "d")
    assert len(deep.bad) == 1
    with pytest.raises(ProtocolError):
        decode_host(b'{"type":"request","session":"s","request":{"subject":{},"digest":"d","asked_at":"x"}}')


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"\x00\x01\x02\xff", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "an array"),
        (b"null", "null"),
        (b"true", "a boolean"),
        (b"3.5", "a number"),
        (b'"events"', "a string"),
        (b"{}", "type"),
        (b'{"type":7}', "type"),
        (b'{"type":"events","session":"s","epoch":"e","events":{}}', "events"),
        (b'{"type":"events","session":7,"epoch":"e","events":[]}', "session"),
    ],
)
def test_what_is_no_frame_says_why(raw: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason) as caught:
        decode_host(raw)
    assert "\n" not in caught.value.reason


def nested(depth: int, opening: bytes) -> bytes:
    return opening * depth + b"1" + (b"]" if opening == b"[" else b"}") * depth


@pytest.mark.parametrize("depth", [1_000, 100_000])
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_a_depth_bomb_is_refused_in_good_order(depth: int, opening: bytes) -> None:
    bomb = nested(depth, opening)
    with pytest.raises(ProtocolError, match="nested too deeply"):
        decode_host(b'{"type":"reply","id":"1","data":' + bomb + b"}")
    with pytest.raises(ProtocolError, match="nested too deeply"):
        decode_host(batch(message(1), {**message(2), "text": "BOMB"}).replace(b'"BOMB"', bomb))


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_what_is_deep_and_can_be_read_costs_itself_alone(opening: bytes) -> None:
    bomb = nested(260, opening)
    with pytest.raises(ProtocolError, match="depth") as caught:
        decode_host(b'{"type":"reply","id":"1","data":' + bomb + b"}")
    assert len(caught.value.reason) < 300
    raw = batch(message(1), {"kind": "raw", "seq": 2, "at": 5, "data": "BOMB"}).replace(b'"BOMB"', bomb)
    frame, decoded = read_events(raw)
    assert [event.seq for event in frame.events] == [1, 2]
    assert len(decoded.bad) == 1


def test_not_a_number_costs_the_event_that_needs_a_number() -> None:
    raw = batch(message(1), {**message(2), "at": "HERE"}, message(3)).replace(b'"HERE"', b"NaN")
    frame, decoded = read_events(raw)
    assert [type(event) for event in frame.events] == [Message, Raw, Message]
    assert (frame.events[1].seq, frame.events[1].at) == (2, 0)
    assert len(decoded.bad) == 1


def test_not_a_number_where_anything_may_stand_costs_nothing_else() -> None:
    raw = batch({**message(1), "text": 7}, {"kind": "raw", "seq": 2, "at": 5, "data": "HERE"})
    frame, decoded = read_events(raw.replace(b'"HERE"', b"[NaN, -Infinity]"))
    other = frame.events[1]
    assert isinstance(other, Raw)
    assert other.data == ["NaN", "-Infinity"]
    assert len(decoded.bad) == 1


@pytest.mark.parametrize("heartbeat", [b"NaN", b"Infinity", b"1e999"])
def test_a_duration_must_be_finite(heartbeat: bytes) -> None:
    with pytest.raises(ProtocolError, match="heartbeat_s"):
        decode_host(
            b'{"type":"welcome","protocol":"watchfloor.v1","host":{"name":"h","version":"9"},"principal":"p",'
            b'"role":"operator","pos":0,"heartbeat_s":' + heartbeat + b',"now":1}'
        )


def test_an_endless_integer_costs_itself_alone() -> None:
    raw = batch(message(1), {**message(2), "at": "HERE"}).replace(b'"HERE"', b"9" * 50_000)
    frame, decoded = read_events(raw)
    assert [type(event) for event in frame.events] == [Message, Raw]
    assert len(decoded.bad) == 1


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(ProtocolError, match="Watch"):
        encode(Watch(session="\ud800"))


def test_only_what_was_set_is_written() -> None:
    assert json.loads(encode(Watch(session="*", after=3))) == {"type": "watch", "session": "*", "after": 3}
    command = Command(id="1", session="s", do=DoPause())
    assert json.loads(encode(command)) == {
        "type": "command",
        "id": "1",
        "session": "s",
        "do": {"primitive": "pause"},
    }


def test_a_host_reads_frames_of_clients() -> None:
    assert decode_client(encode(Command(id="1", session="s", do=DoPause(interrupt=True)))) == Command(
        id="1", session="s", do=DoPause(interrupt=True)
    )
    unknown = decode_client(b'{"type":"command","id":"1","session":"s","do":{"primitive":"levitate","height":3}}')
    assert isinstance(unknown, Command)
    assert isinstance(unknown.do, UnknownDo)
    with pytest.raises(ProtocolError, match="do"):
        decode_client(b'{"type":"command","id":"1","session":"s","do":{"primitive":"pause","interrupt":"yes"}}')


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
events = st.one_of(
    json_values,
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["message", "delta", "tool_call", "result", "raw", "other"]), "at": json_values},
        optional={"seq": json_values, "pos": json_values, "text": json_values, "data": json_values},
    ),
)


@given(st.lists(events, max_size=6))
def test_no_batch_escapes_but_as_frame_or_protocol_error(items: list[Any]) -> None:
    raw = json.dumps({"type": "events", "session": "s", "epoch": "e", "events": [message(1), *items]}).encode()
    frame, decoded = read_events(raw)
    assert frame.events[0] == Message.model_validate(message(1))
    assert len(frame.events) + len(decoded.bad) >= 1 + len(items)


@given(st.binary(max_size=200))
def test_no_bytes_escape_but_as_frame_or_protocol_error(raw: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode_host(raw)
