"""Values that a server may send and that nothing of ours can hold."""

from __future__ import annotations

import pytest

from console.connectors.aion.reading import millis, number, unpacked


@pytest.mark.parametrize("value", [-1, 10**30, 2**53, True, 1.0, "1", None, []])
def test_a_number_that_json_cannot_hold_is_none(value: object) -> None:
    assert number(value) is None


@pytest.mark.parametrize(
    "value", ["", "now", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00x", "1950-01-01T00:00:00Z", None, 7, {}]
)
def test_a_time_that_is_none_or_before_all_times_is_zero(value: object) -> None:
    assert millis(value) == 0


def test_every_precision_of_a_time_is_read() -> None:
    times = ["2026-11-30T20:57:25Z", "2026-11-30T20:57:25.4Z", "2026-11-30T20:57:25.400123456Z"]
    assert [millis(time) // 1000 for time in times] == [1_796_072_245] * 3


@pytest.mark.parametrize("packed", [{}, {"bytes": [256]}, {"bytes": ["x"]}, {"bytes": 7}, {"bytes": [123]}])
def test_a_payload_that_cannot_be_read_is_none(packed: object) -> None:
    assert unpacked(packed) is None


def test_half_a_character_in_a_payload_is_replaced() -> None:
    assert unpacked({"bytes": list(b'"a\\ud83d"')}) == "a?"
