"""A log as it is read: its levels, what is found in it, and where a time is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.log import KEEP, SLACK
from console.fleet.roster.search import Level, LogReader, level_of, time_of
from console.fleet.views.log import SessionLog
from tests.unit.fleet.scripted import ScriptedHost
from tests.unit.fleet.viewing import GLYPHS

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NOON = int(datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC).timestamp() * 1000)

SAYS: dict[str, Any] = {"kind": "message", "role": "assistant", "text": "I will migrate"}
THINKS: dict[str, Any] = {"kind": "reasoning", "text": "migrate how?"}
FAILS: dict[str, Any] = {"kind": "tool_result", "call": "c", "status": "error", "text": "no such file"}
WORKS: dict[str, Any] = {"kind": "tool_result", "call": "c", "status": "ok", "text": "fine"}
WARNS: dict[str, Any] = {"kind": "notice", "level": "warning", "text": "slow"}
INFORMS: dict[str, Any] = {"kind": "notice", "level": "info", "text": "hello"}
DIES: dict[str, Any] = {"kind": "lifecycle", "lifecycle": "failed"}
RUNS: dict[str, Any] = {"kind": "lifecycle", "lifecycle": "running"}


def reader(host: ScriptedHost, level: Level = Level.ALL, query: str = "") -> LogReader:
    return LogReader(SessionLog(host.fleet, host.at().key, GLYPHS, UTC), level, query)


def shown(log: LogReader) -> list[str]:
    return [log.line(i).text for i in range(len(log))]


def test_levels_leave_out_more_and_more(host: ScriptedHost) -> None:
    host.session("s1")
    host.events("s1", SAYS, THINKS, FAILS, WORKS, WARNS, INFORMS, DIES, RUNS)
    host.events("s1", {"kind": "delta", "item": "m1", "of": "reasoning", "offset": 0, "text": "hm"})
    log = host.at().log
    assert [level_of(entry) for entry in log.entries()] == [
        Level.WORK, Level.ALL, Level.ALERTS, Level.WORK, Level.ALERTS, Level.WORK, Level.ALERTS, Level.ALL, Level.ALL,
    ]  # fmt: skip
    assert [len(reader(host, level)) for level in Level] == [9, 6, 3]
    assert [reader(host, level).hidden for level in Level] == [0, 3, 6]


def test_a_text_is_found_in_what_a_line_stands_for(host: ScriptedHost) -> None:
    host.session("s1")
    host.events("s1", SAYS, THINKS, WORKS, {"kind": "tool_result", "call": "c", "status": "ok", "text": "a\nMIGRATED"})
    log = reader(host, query="migrate")
    assert log.matches == [0, 1, 3]
    assert [log.line(i).matched for i in range(4)] == [True, True, False, True]
    assert [log.next_match(i) for i in (0, 1, 2, 3)] == [1, 3, 3, 0]
    assert [log.match_before(i) for i in (0, 1, 2, 4)] == [3, 0, 1, 3]
    assert [log.place_of_match(i) for i in range(4)] == [1, 2, None, 3]
    log.level = Level.WORK
    log.take_up()
    assert log.matches == [0, 2]
    log.query = "nowhere"
    log.take_up()
    assert (log.next_match(0), log.match_before(0)) == (None, None)


def test_what_is_masked_cannot_be_found(host: ScriptedHost) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    host.session("s1")
    host.events("s1", {"kind": "message", "text": f"token {secret}"})
    assert reader(host, query="token").matches == [0]
    assert reader(host, query=secret[:12]).matches == []


def test_the_kind_of_a_line_is_found(host: ScriptedHost) -> None:
    host.session("s1")
    host.events("s1", THINKS, SAYS)
    assert reader(host, query="think").matches == [0]


def test_a_time_is_a_line(host: ScriptedHost) -> None:
    host.session("s1")
    host.events("s1", *[{"kind": "message", "text": "x", "at": at} for at in (0, 1_000, 2_000, 5_000)])
    log = reader(host)
    assert [log.at_time(there) for there in (1, 1_000, 1_500, 9_000)] == [1, 1, 2, 3]
    host.session("s2")
    assert LogReader(SessionLog(host.fleet, host.at("s2").key, GLYPHS, UTC)).at_time(1) is None


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("11:58", NOON - 120_000),
        ("11:58:30", NOON - 90_000),
        ("12:00", NOON),
        ("12:01", NOON + 60_000 - 86_400_000),
        (" 90s ", NOON - 90_000),
        ("-10m", NOON - 600_000),
        ("2h", NOON - 7_200_000),
        ("1d", NOON - 86_400_000),
    ],
)
def test_times_as_they_are_written(text: str, then: int) -> None:
    assert time_of(text, NOON, UTC) == then


@pytest.mark.parametrize("text", ["", "noon", "25:00", "12:61", "10", "10x", "1:2:3", "٣m"])
def test_what_is_no_time_says_so(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        time_of(text, NOON, UTC)


@PATIENT
@given(
    st.lists(st.tuples(st.sampled_from([SAYS, THINKS, FAILS, RUNS]), st.integers(1, 400)), max_size=8),
    st.sampled_from(Level),
)
def test_absolute_numbers_stay_with_their_lines(steps: list[tuple[dict[str, Any], int]], level: Level) -> None:
    """What the ring drops moves `first` on by as many lines as were shown of it, and nothing else does."""
    host = ScriptedHost()
    host.session("s1")
    log = reader(host, level)
    kept: dict[int, str] = {}
    count = 0
    for event, times in steps:
        numbered = [{**event, "text": f"{count + i}"} if "text" in event else event for i in range(times)]
        count += times
        host.events("s1", *numbered)
        log.take_up()
        for i in range(len(log)):
            line = log.line(i)
            text = f"{line.kind} {line.text}"
            assert kept.setdefault(log.first + i, text) == text
        assert len(log) <= KEEP + SLACK
