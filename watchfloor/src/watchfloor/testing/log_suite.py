# ruff: noqa: S101 - asserting is what a test suite does
"""What every event log must do, as tests.

    class TestMyLog(LogSuite):
        @pytest.fixture
        def log(self) -> EventLog:
            return MyLog(...)

The log must be empty, and keep at least a thousand events. Import this module from tests only: it needs pytest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pytest

from watchfloor.host.log.events import EventLog
from watchfloor.protocol.events import Delta, Event, Message, ToolCall


def messages(count: int, start: int = 1) -> list[Event]:
    """Events that can be told apart by their `at`."""
    return [Message(at=number, text=f"message {number}") for number in range(start, start + count)]


def seqs(events: Sequence[Event]) -> list[int | None]:
    return [event.seq for event in events]


class LogSuite(ABC):
    """Subclass it, and give it a log."""

    @pytest.fixture
    @abstractmethod
    def log(self) -> EventLog:
        """An empty log."""

    def test_is_empty_at_first(self, log: EventLog) -> None:
        assert log.pos == 0
        assert log.head("a") == 0
        assert log.first("a") == 1
        assert log.lost("a") == 0
        assert log.after(0, 10) == []
        assert log.read("a") == []

    def test_numbers_sessions_from_one_and_the_whole_without_holes(self, log: EventLog) -> None:
        first = log.append("a", messages(2))
        second = log.append("b", messages(1))
        third = log.append("a", messages(1, start=3))
        assert [(e.seq, e.pos) for e in [*first, *second, *third]] == [(1, 1), (2, 2), (1, 3), (3, 4)]
        assert (log.pos, log.head("a"), log.head("b")) == (4, 3, 1)

    def test_returns_what_it_was_given(self, log: EventLog) -> None:
        call = ToolCall(
            at=7, attempt=2, turn="t9", item="i", key="k", author="x", call="c", name="shell", text="é\u2028"
        )
        stored = log.append("a", [call])[0]
        expected = call.model_copy(update={"seq": 1, "pos": 1})
        assert stored == expected
        assert log.read("a") == [expected]
        assert log.after(0, 1)[0].event == expected

    def test_an_append_of_nothing_changes_nothing(self, log: EventLog) -> None:
        assert log.append("a", []) == []
        assert log.pos == 0

    def test_deltas_are_refused_and_nothing_is_stored(self, log: EventLog) -> None:
        delta = Delta(at=1, item="i", offset=0, text="x")
        with pytest.raises(ValueError, match="delta"):
            log.append("a", [*messages(1), delta])
        assert log.pos == 0
        assert log.read("a") == []

    def test_after_is_exclusive_and_in_order_of_pos(self, log: EventLog) -> None:
        for number in range(1, 31):
            log.append("ab"[number % 2], messages(1, start=number))
        assert [item.event.pos for item in log.after(10, 5)] == [11, 12, 13, 14, 15]
        assert [item.session for item in log.after(10, 3)] == ["b", "a", "b"]
        assert [item.event.pos for item in log.after(28, 99)] == [29, 30]
        assert log.after(30, 5) == []
        assert log.after(99, 5) == []

    def test_after_of_one_session(self, log: EventLog) -> None:
        for number in range(1, 31):
            log.append("ab"[number % 2], messages(1, start=number))
        found = log.after(10, 3, "a")
        assert {item.session for item in found} == {"a"}
        assert [item.event.pos for item in found] == [12, 14, 16]
        assert log.after(0, 5, "nobody") == []

    @pytest.mark.parametrize(
        ("after", "before", "limit", "expected"),
        [
            (None, None, 3, [8, 9, 10]),
            (None, None, 99, list(range(1, 11))),
            (None, 8, 3, [5, 6, 7]),
            (None, 3, 99, [1, 2]),
            (None, 1, 5, []),
            (None, 99, 2, [9, 10]),
            (0, None, 3, [1, 2, 3]),
            (8, None, 99, [9, 10]),
            (10, None, 5, []),
            (99, None, 5, []),
            (2, 6, 99, [3, 4, 5]),
            (2, 6, 2, [3, 4]),
            (6, 3, 5, []),
        ],
    )
    def test_pages(self, log: EventLog, after: int | None, before: int | None, limit: int, expected: list[int]) -> None:
        log.append("other", messages(5))
        log.append("a", messages(10))
        assert seqs(log.read("a", after=after, before=before, limit=limit)) == expected

    def test_an_epoch_lasts_and_belongs_to_one_session(self, log: EventLog) -> None:
        epoch = log.epoch("a")
        assert epoch
        log.append("a", messages(3))
        assert log.epoch("a") == epoch

    def test_what_is_erased_is_gone_and_all_else_stays_in_its_place(self, log: EventLog) -> None:
        for number in range(1, 31):
            log.append("ab"[number % 2], messages(1, start=number))
        epoch = log.epoch("b")
        log.erase("b")
        assert (log.head("b"), log.first("b"), log.lost("b"), log.read("b"), log.pos) == (0, 1, 0, [], 30)
        assert "b" not in log.sessions()
        assert [item.event.pos for item in log.after(0, 5)] == [2, 4, 6, 8, 10]
        assert [item.event.pos for item in log.after(21, 99)] == [22, 24, 26, 28, 30]
        assert log.after(0, 5, "b") == []
        # One that is given the id later is another one.
        assert [(e.seq, e.pos) for e in log.append("b", messages(1))] == [(1, 31)]
        assert log.epoch("b") != epoch
        assert [item.session for item in log.after(29, 9)] == ["a", "b"]
        log.erase("nobody")

    def test_pages_through_a_thousand_events(self, log: EventLog) -> None:
        for start in range(1, 1001, 50):
            log.append("a", messages(50, start=start))
        seen: list[int | None] = []
        while page := log.read("a", after=seen[-1] if seen else 0, limit=64):
            seen += seqs(page)
        assert seen == list(range(1, 1001))
        pos, count = 0, 0
        while found := log.after(pos, 64):
            pos, count = found[-1].event.pos or 0, count + len(found)
        assert (pos, count) == (1000, 1000)
