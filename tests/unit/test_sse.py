"""Server-sent events: whatever pieces they come in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.connectors.web.sse import SseDecoder, SseEvent
from watchfloor.errors import ProtocolError

STREAM = (
    b"\xef\xbb\xbf: hello\r\n"
    b"id: 7\nevent: state\ndata: one\ndata:two\n\n"
    b"data: \xc3\xa9\r\rid: 8\r\ndata\r\n\r\n"
    b"retry: 1500\nretry: soon\nunknown: x\n\nid: a\0b\ndata: last\n\ndata: cut off"
)
EVENTS = [
    SseEvent("one\ntwo", "state", "7"),
    SseEvent("é", "message", "7"),
    SseEvent("", "message", "8"),
    SseEvent("last", "message", "8"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_pieces_give_the_same_events(cuts: list[int]) -> None:
    decoder = SseDecoder()
    at = [0, *sorted(cuts), len(STREAM)]
    events = [event for start, end in pairwise(at) for event in decoder.feed(STREAM[start:end])]
    assert events == EVENTS
    assert (decoder.retry_ms, decoder.last_id, decoder.comments) == (1500, "8", 1)


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 2000, b"data: " + b"x" * 500 + b"\n"], ids=["line", "lines"])
def test_an_event_without_end_is_not_kept(piece: bytes) -> None:
    decoder = SseDecoder(largest=1000)

    def flood() -> None:
        for _ in range(3):
            decoder.feed(piece)

    with pytest.raises(ProtocolError, match="more than 1000 bytes"):
        flood()


@given(st.binary(max_size=200))
def test_garbage_is_borne(garbage: bytes) -> None:
    decoder = SseDecoder()
    decoder.feed(garbage)
    # Whatever was half said before ends with two line ends.
    decoder.feed(b"\n\n\n")
    assert [event.data for event in decoder.feed(b"data: still here\n\n")] == ["still here"]
