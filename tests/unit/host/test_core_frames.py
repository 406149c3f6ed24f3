"""Frames that a host cannot read or does not answer: one costs itself, the first one the connection."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.host.glass import Glass
from watchfloor.protocol.codec import encode
from watchfloor.protocol.frames import Error, ErrorCode, Hello
from watchfloor.words import OutcomeKind

SEND = {"primitive": "send", "text": "x"}


# --- the first frame


def test_the_first_frame_must_be_hello() -> None:
    glass = Glass()
    glass.connect("c", hello=False)
    glass.watch("c")
    (error,) = glass.of("c", Error)
    assert (error.code, error.fatal, error.about) == (ErrorCode.MALFORMED, True, "watch")
    assert glass.closed == {"c": 1008}
    glass.send("c", Hello(client="x", version="1"))
    assert len(glass.got["c"]) == 1
    glass.tick(60_000)
    assert len(glass.got["c"]) == 1


@pytest.mark.parametrize(
    ("raw", "about"),
    [
        (b'{"type": "hello", "client": "x"}', "hello"),
        (b'{"type": "hello", "client": "x", "version": 1}', "hello"),
        (b'{"type": "command", "id": "k1", "session": "s1", "do": {"primitive": "resume"}}', "k1"),
        (b'{"type": "command", "id": "k1"}', "k1"),
        (b'{"type": "newer", "id": "n1"}', "n1"),
        (b'{"type": "newer"}', "newer"),
        (b"GET / HTTP/1.1", None),
        (b"[]", None),
        (b"", None),
    ],
)
def test_a_first_frame_that_is_no_good_hello_ends_the_connection(raw: bytes, about: str | None) -> None:
    glass = Glass()
    glass.add(running=False)
    glass.connect("c", hello=False)
    glass.receive("c", raw)
    (error,) = glass.of("c", Error)
    assert (error.code, error.fatal, error.about) == (ErrorCode.MALFORMED, True, about)
    assert glass.closed == {"c": 1008}
    for late in (raw, encode(Hello(client="x", version="1"))):
        glass.receive("c", late)
    glass.tick(60_000)
    assert len(glass.got["c"]) == 1


def test_who_says_nothing_is_let_go_and_who_has_said_hello_is_not() -> None:
    glass = Glass()
    glass.connect("ann")
    glass.now += 5_000
    glass.connect("mute", hello=False)
    due = glass.now + 10_000
    glass.tick()
    assert glass.core.next_due() == due
    glass.tick(9_999)
    assert glass.closed == {}
    glass.tick(1)
    (error,) = glass.got["mute"]
    assert error == Error(code=ErrorCode.OTHER, message="no hello within 10 s", fatal=True)
    assert glass.closed == {"mute": 1008}
    glass.tick(60_000)
    glass.send("mute", Hello(client="x", version="1"))
    assert len(glass.got["mute"]) == 1
    assert "ann" not in glass.closed
    assert (glass.core.next_due() or 0) > glass.now


# --- later frames


@pytest.mark.parametrize(
    ("raw", "about"),
    [
        (b"", None),
        (b"not json", None),
        (b"[]", None),
        (b"{}", None),
        (b"\xff\xfe", None),
        (b"[" * 100_000, None),
        (b'{"type": 5, "id": 5}', None),
        (b'{"type": "watch", "session": 7}', "watch"),
        (b'{"type": "watch", "session": "*", "after": -1}', "watch"),
        (b'{"type": "hello"}', "hello"),
        (b'{"type": "command", "id": "k", "session": "s1", "do": {"primitive": "send"}}', "k"),
        (b'{"type": "command", "id": "k"}', "k"),
        (b'{"id": "k"}', "k"),
        (b'{"type": "command", "id": "\\u00e9\\ud800", "session": "s1"}', "\u00e9\ufffd"),
        (b'{"type": "command", "id": "\xff", "session": "s1"}', "\ufffd"),
        (b'{"type": "command", "id": "", "session": "s1"}', "command"),
        (b'{"type": "command", "id": 7, "session": "s1"}', "command"),
        (b'{"type": "command", "id": "' + b"x" * 201 + b'"}', "x" * 201),
        (b'{"type": "history", "id": "h", "session": "s1", "epoch": "e", "limit": 0}', "h"),
    ],
)
def test_a_frame_that_cannot_be_read_costs_itself_and_is_named(raw: bytes, about: str | None) -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.receive("c", raw)
    (error,) = glass.of("c", Error)
    assert (error.code, error.fatal, error.about) == (ErrorCode.MALFORMED, False, about)
    assert "\n" not in error.message
    assert len(error.message) < 400
    assert glass.command("c", "s1", SEND).outcome is OutcomeKind.APPLIED


@pytest.mark.parametrize(
    ("frame", "about"),
    [
        ({"type": "query", "id": "q7", "what": "weather"}, "q7"),
        ({"type": "subscribe", "to": "everything"}, "subscribe"),
        ({"type": "subscribe", "id": "s9"}, "s9"),
        ({"type": "subscribe", "id": 9}, "subscribe"),
        ({"type": "subscribe", "id": ""}, "subscribe"),
    ],
)
def test_frames_that_this_host_does_not_answer(frame: dict[str, Any], about: str) -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.receive("c", json.dumps(frame).encode())
    (error,) = glass.of("c", Error)
    assert (error.code, error.about, error.fatal) == (ErrorCode.UNSUPPORTED, about, False)
