"""From what the gate let through to the frame that goes out: set fields only, nothing lost, nothing made up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from console.commands import command
from console.fleet.facts import Intent, OptionFact, RequestKey, SessionKey
from console.fleet.gate import Gated
from watchfloor.protocol.codec import decode_client, encode
from watchfloor.text import clean_line
from watchfloor.words import OptionKind, Primitive, Priority, ReseedMode, Scope, Then

KEY = SessionKey("local", "s1")
DIGEST = "sha256:" + "0" * 64
ONCE = OptionFact("once", clean_line("Once"), OptionKind.ALLOW, Scope.ONCE, (), False, None, Then.CONTINUES, False)


def _gated(primitive: Primitive, *, priority: Priority | None = None, **intent: Any) -> Gated:
    asked = Intent(id="c1", primitive=primitive, target=KEY, by="ann", **intent)
    request = RequestKey(*KEY, asked.request) if asked.request is not None else None
    option = ONCE if asked.option is not None else None
    digest = DIGEST if request is not None else None
    return Gated(asked, KEY, 2, None, priority or asked.priority, request, digest, option)


@pytest.mark.parametrize(
    ("gated", "do"),
    [
        (_gated(Primitive.SEND, text="hi"), {"primitive": "send", "text": "hi"}),
        (
            _gated(Primitive.SEND, text="hi", priority=Priority.QUEUE, reply_to="#3"),
            {"primitive": "send", "text": "hi", "priority": "queue", "reply_to": "#3"},
        ),
        (_gated(Primitive.PAUSE), {"primitive": "pause"}),
        (_gated(Primitive.PAUSE, interrupt=True), {"primitive": "pause", "interrupt": True}),
        (_gated(Primitive.RESUME), {"primitive": "resume"}),
        (_gated(Primitive.INTERRUPT), {"primitive": "interrupt"}),
        (_gated(Primitive.STOP), {"primitive": "stop"}),
        (_gated(Primitive.STOP, kill=True, reason="late"), {"primitive": "stop", "kill": True, "reason": "late"}),
        (_gated(Primitive.RESEED, mode=ReseedMode.CLEAR), {"primitive": "reseed", "mode": "clear"}),
        (
            _gated(Primitive.APPROVE, request="r1", option="once", note="fine"),
            {"primitive": "approve", "request": "r1", "option": "once", "digest": DIGEST, "note": "fine"},
        ),
        (
            _gated(Primitive.ANSWER, request="r1", text="main"),
            {"primitive": "answer", "request": "r1", "digest": DIGEST, "text": "main"},
        ),
        (
            _gated(Primitive.ANSWER, request="r1", fields={"a": [1, None]}),
            {"primitive": "answer", "request": "r1", "digest": DIGEST, "fields": {"a": [1, None]}},
        ),
        (_gated(Primitive.FORK, extra={"name": "b"}), {"primitive": "fork", "name": "b"}),
        (_gated(Primitive.BUDGET, extra={"tokens": 9}), {"primitive": "budget", "tokens": 9}),
        (_gated(Primitive.DELETE), {"primitive": "delete"}),
        (
            _gated(Primitive.NOTIFY, extra={"subscriber": "x", "on": ["idle"]}),
            {"primitive": "notify", "subscriber": "x", "on": ["idle"]},
        ),
        (
            _gated(Primitive.ACT, extra={"act": "archive", "fields": {"why": "old"}}),
            {"primitive": "act", "act": "archive", "fields": {"why": "old"}},
        ),
    ],
    ids=lambda value: value.primitive.value if isinstance(value, Gated) else "",
)
def test_each_primitive_becomes_its_frame(gated: Gated, do: dict[str, Any]) -> None:
    frame = command(gated)
    raw = encode(frame)
    assert json.loads(raw) == {"type": "command", "id": "c1", "session": "s1", "attempt": 2, "do": do}
    assert decode_client(raw) == frame


def test_the_priority_is_the_one_that_the_gate_settled_on() -> None:
    frame = command(_gated(Primitive.SEND, text="hi", priority=Priority.QUEUE))
    assert json.loads(encode(frame))["do"]["priority"] == "queue"


@pytest.mark.parametrize(
    "gated", [_gated(Primitive.RESEED), _gated(Primitive.SEND), _gated(Primitive.APPROVE, request="r1")]
)
def test_what_lacks_an_argument_is_no_command(gated: Gated) -> None:
    with pytest.raises(ValidationError):
        command(gated)
