"""The log in memory: the suite that any log must pass, and how this one forgets."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchfloor.host.log.events import COMPACT_AT, EventLog, MemoryLog
from watchfloor.testing.log_suite import LogSuite, messages, seqs


def memory(keep: int | None = None) -> MemoryLog:
    numbers = count(1)
    return MemoryLog(lambda: f"e{next(numbers)}", keep)


class TestMemoryLog(LogSuite):
    @pytest.fixture
    def log(self) -> EventLog:
        return memory()


def test_the_oldest_are_forgotten_and_it_says_so() -> None:
    log = memory(keep=5)
    log.append("a", messages(3))
    log.append("b", messages(3))
    log.append("a", messages(2, start=4))
    assert log.pos == 8
    assert (log.first("a"), log.head("a"), log.lost("a")) == (4, 5, 3)
    assert (log.first("b"), log.head("b"), log.lost("b")) == (1, 3, 0)
    assert seqs(log.read("a", after=0)) == [4, 5]
    assert seqs(log.read("a", before=4)) == []
    assert [item.event.pos for item in log.after(0, 99)] == [4, 5, 6, 7, 8]
    assert [item.event.pos for item in log.after(0, 99, "a")] == [7, 8]


def test_a_session_of_which_nothing_is_kept() -> None:
    log = memory(keep=2)
    log.append("a", messages(3))
    log.append("b", messages(2))
    assert (log.first("a"), log.head("a"), log.lost("a")) == (4, 3, 3)
    assert log.read("a") == []
    assert seqs(log.append("a", messages(1, start=4))) == [4]


def test_a_log_that_keeps_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        memory(keep=0)


@settings(deadline=None)
@given(
    keep=st.integers(1, 40),
    batches=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 30)), max_size=30),
    after=st.integers(0, 400),
    limit=st.integers(1, 50),
)
def test_forgetting_never_moves_what_is_left(keep: int, batches: list[tuple[str, int]], after: int, limit: int) -> None:
    whole, short = memory(), memory(keep)
    for session, size in batches:
        events = messages(size)
        assert [(e.seq, e.pos) for e in whole.append(session, events)] == [
            (e.seq, e.pos) for e in short.append(session, events)
        ]
    oldest = max(0, whole.pos - keep)
    assert short.after(after, limit) == whole.after(max(after, oldest), limit)
    for session in "abc":
        first = short.first(session)
        assert short.read(session, limit=999) == [e for e in whole.read(session, limit=999) if (e.seq or 0) >= first]
        assert short.after(after, limit, session) == whole.after(max(after, oldest), limit, session)


def test_a_long_life_does_not_keep_what_was_forgotten() -> None:
    log = memory(keep=10)
    for start in range(1, 4 * COMPACT_AT, 100):
        log.append("a", messages(100, start=start))
    assert len(log._all._items) < 3 * COMPACT_AT
    assert seqs(log.read("a", limit=3)) == [log.head("a") - 2, log.head("a") - 1, log.head("a")]
