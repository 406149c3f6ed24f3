"""Bytes of an agent, put together to messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchfloor.harness.acp_wire import Lines, read

MESSAGES: list[dict[str, Any]] = [{"id": 1, "result": {}}, {"method": "a/b", "params": {"t": "é\u2028"}}, {"id": "x"}]
STREAM = b"".join(json.dumps(m, ensure_ascii=False).encode() + b"\n" for m in MESSAGES) + b"noise\n\n"


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_it_makes_no_difference_where_the_bytes_are_cut(cuts: list[int]) -> None:
    lines, found, start = Lines(), [], 0
    for end in [*sorted(cuts), len(STREAM)]:
        found += lines.feed(STREAM[start:end])
        start = end
    assert found == [*MESSAGES, "noise"]


def test_a_line_that_is_too_long_is_told_once_and_costs_no_other() -> None:
    lines = Lines(most=10)
    found = lines.feed(b"x" * 11) + lines.feed(b"x" * 50) + lines.feed(b'x\n{"id":1}\n')
    assert found == ["a line of more than 10 bytes", {"id": 1}]


def test_a_last_line_without_its_end_counts() -> None:
    lines = Lines()
    assert lines.feed(b'{"id":1}') == []
    assert lines.end() == [{"id": 1}]


@pytest.mark.parametrize(
    "line", [b"[1]", b"3", b'{"id":[1]}', b'{"id":true}', b'{"id":1.5}', b'{"method":3}', b"[" * 50_000, b"\xff"]
)
def test_what_would_break_the_package_is_no_message(line: bytes) -> None:
    assert isinstance(read(line), str)


@pytest.mark.parametrize("error", ['"x"', "[1]", '{"code":"a"}', '{"code":1,"message":2}', "true"])
def test_an_error_of_any_form_is_one_that_the_package_takes(error: str) -> None:
    message = read(b'{"id":1,"error":' + error.encode() + b"}")
    assert isinstance(message, dict)
    assert message["error"]["code"] == -32603
    assert isinstance(message["error"]["message"], str)
