"""A member that stands twice in an object is found wherever it stands, and nothing else is taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.intake.doubles import member_twice, told_twice
from tests.fixtures.odd import batch, message
from watchfloor.protocol.codec import decode_host

TEXTS = st.text(alphabet='ab":\\ {},\n\u20ac', max_size=12)
SPACES = st.sampled_from(["", " ", "\t", "\n  "])


def twice(raw: bytes) -> str:
    return told_twice(raw, decode_host(raw).frame)


@given(st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from([None, (",", ":"), (", ", " : ")]))
def test_no_text_and_no_spacing_looks_like_a_member_that_stands_twice(texts: list[str], separators: Any) -> None:
    told = json.loads(batch(*(message(n + 1, text=text) for n, text in enumerate(texts))))
    assert twice(json.dumps(told, separators=separators).encode()) == ""


@given(TEXTS, SPACES, SPACES, st.sampled_from(["text", "seq", "kind", "unheard-of", "x\\\\", "te\\u0078t"]))
def test_one_that_stands_twice_is_found_whatever_is_around_it(text: str, before: str, after: str, name: str) -> None:
    value = {"seq": "1", "kind": '"message"'}.get(name, '"a"')
    again = f'"{name}"{before}:{after}{value},'
    raw = batch(message(1, text=text)).decode().replace('"kind"', f'{again}{again}"kind"', 1).encode()
    assert twice(raw) == member_twice(raw) != ""


@pytest.mark.parametrize("arguments", [{"a": {"b": 1}}, {"a": [{"b": 1}, {"b": 2}]}, {}])
def test_arguments_of_a_call_are_looked_through(arguments: dict[str, Any]) -> None:
    call = {"kind": "tool_call", "seq": 1, "pos": 1, "at": 1, "call": "c", "name": "n", "arguments": arguments}
    raw = batch(call)
    assert twice(raw) == ""
    assert twice(raw.replace(b'"arguments": {', b'"arguments": {"z": 1, "z": 2' + b", " * bool(arguments))) == "z"
