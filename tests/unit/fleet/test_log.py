"""The ring of events: order, streamed items, what is dropped."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.facts import EventFact
from console.fleet.log import KEEP, KEEP_ALL, KEEP_OPEN, KEEP_OPEN_ALL, KEEP_TEXT, SLACK, Log
from console.fleet.state import Session
from console.fleet.store import KEEP_LOGS, Store
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.protocol import frames as f
from watchfloor.text import Clean

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine that tests may be busy with other things."""


def event(
    seq: int | None, text: str = "", item: str | None = None, offset: int | None = None, **data: Any
) -> EventFact:
    kind = "delta" if seq is None else "message"
    return EventFact(kind, 0, seq, seq, 1, None, item, offset, None, Clean(""), Clean(text), data)


def add(log: Log, *facts: EventFact) -> None:
    for fact in facts:
        if fact.seq is None:
            log.stream(fact)
        else:
            log.add(fact, fact.seq)


def texts(log: Log) -> list[str]:
    return [entry.text for entry in log.entries()]


def seqs(log: Log) -> list[int | None]:
    return [entry.fact.seq for entry in log.entries()]


@settings(PATIENT, max_examples=25)
@given(st.randoms(use_true_random=False))
def test_any_order_ends_in_the_same_last_entries(random: Random) -> None:
    order = list(range(1, KEEP + 2 * SLACK))
    random.shuffle(order)
    log = Log()
    for seq in order:
        log.add(event(seq), seq)
    assert seqs(log) == list(range(2 * SLACK, KEEP + 2 * SLACK))
    assert log.first == 2 * SLACK - 1
    assert log.end == KEEP + 2 * SLACK - 1


def test_absolute_numbers_grow_with_what_is_dropped() -> None:
    log = Log()
    for seq in range(1, KEEP + 1):
        log.add(event(seq), seq)
    assert (log.first, len(log)) == (0, KEEP)
    log.add(event(KEEP + 1), KEEP + 1)
    assert (log.first, len(log), log.entry(0).fact.seq) == (1, KEEP, 2)


def test_deltas_gather_below_and_the_whole_takes_its_place() -> None:
    log = Log()
    add(log, event(1, "one"), event(None, "he", "i", 0), event(None, "llo", "i", 2), event(2, "two"))
    assert texts(log) == ["one", "two", "hello"]
    assert log.entry(2).open
    add(log, event(3, "hello, world", "i"))
    assert texts(log) == ["one", "two", "hello, world"]
    assert not log.entry(2).open


def test_a_delta_after_its_whole_is_nothing_new() -> None:
    log = Log()
    add(log, event(1, "whole", "i"), event(None, "wh", "i", 0))
    assert texts(log) == ["whole"]


def test_a_late_joiner_gets_everything_so_far() -> None:
    log = Log()
    add(log, event(None, "lo", "i", 3), event(None, "hello", "i", 0), event(None, "!", "i", 5))
    assert texts(log) == ["hello!"]
    assert not log.entry(0).holed


def test_a_missing_piece_shows_until_it_comes() -> None:
    log = Log()
    add(log, event(None, "he", "i", 0), event(None, "o", "i", 4))
    assert log.entry(0).holed
    assert texts(log) == ["he"]
    add(log, event(None, "ll", "i", 2))
    assert texts(log) == ["hello"]
    assert not log.entry(0).holed


def test_offsets_count_what_was_sent_not_what_is_shown() -> None:
    log = Log()
    add(log, event(None, "a\u241bb", "i", 0, length=3), event(None, "<U+202E>", "i", 3, length=1))
    add(log, event(None, "c", "i", 4, length=1))
    assert texts(log) == ["a\u241bb<U+202E>c"]


WORDS = "the quick brown fox jumps over the lazy dog"


@st.composite
def pieces(draw: st.DrawFn) -> list[EventFact]:
    """The text cut anywhere, every piece at least once, in any order."""
    cuts = sorted(draw(st.sets(st.integers(1, len(WORDS) - 1), max_size=6)))
    bounds = [0, *cuts, len(WORDS)]
    parts = [event(None, WORDS[a:b], "i", a) for a, b in pairwise(bounds)]
    again = draw(st.lists(st.sampled_from(parts), max_size=4))
    return draw(st.permutations(parts + again))


@PATIENT
@given(pieces())
def test_pieces_in_any_order_and_any_number_make_the_text(parts: list[EventFact]) -> None:
    log = Log()
    add(log, *parts)
    assert texts(log) == [WORDS]
    assert not log.entry(0).holed


def test_what_was_forgotten_keeps_its_numbers() -> None:
    log = Log()
    add(log, event(1), event(2), event(None, "x", "i", 0))
    log.clear()
    assert (log.first, log.end, len(log)) == (3, 3, 0)
    add(log, event(2, "new"), event(1, "older"))
    assert (log.first, texts(log)) == (3, ["older", "new"])


def test_a_key_of_the_source_is_taken_once() -> None:
    log = Log()
    assert not log.seen_key("k")
    assert log.seen_key("k")


def test_the_text_of_a_log_is_bounded_and_what_went_is_counted() -> None:
    log = Log()
    for seq in range(1, 201):
        log.add(event(seq, "x" * 65_000), seq)
    kept = sum(len(entry.text) for entry in log.entries())
    assert KEEP_ALL // 2 < kept <= KEEP_ALL
    assert len(log) + log.left_out == 200
    assert log.first == log.left_out
    assert log.entry(len(log) - 1).fact.seq == 200


def test_a_log_that_lets_go_says_how_much_in_all() -> None:
    log = Log()
    for seq in range(1, 3_001):
        log.add(event(seq, "x"), seq)
    assert len(log) + log.left_out == 3_000
    log.clear()
    assert log.left_out == 0


def test_items_that_are_streamed_at_once_are_bounded_in_number_and_text() -> None:
    log = Log()
    for item in range(500):
        log.stream(event(None, "x" * 60_000, f"i{item}", 0))
    assert 0 < sum(len(entry.text) for entry in log.entries()) <= KEEP_OPEN_ALL
    for item in range(500):
        log.stream(event(None, "x", f"j{item}", 0))
    assert len(log) == KEEP_OPEN
    assert [entry.fact.item for entry in log.entries()][-1] == "j499"


def test_pieces_that_come_too_early_are_bounded_in_text() -> None:
    log = Log()
    for at in range(1, 200):
        log.stream(event(None, "x" * 9_000, "i", at * 10_000))
    log.stream(event(None, "y" * 10_000, "i", 0))
    [entry] = log.entries()
    assert len(entry.text) <= 10_000 + KEEP_TEXT


def test_a_remark_stands_behind_the_newest_event_and_keeps_the_order() -> None:
    log = Log()
    log.note(Clean("nothing there yet"), 1, 1, told=False)
    log.add(event(5, "five"), 5)
    log.note(Clean("odd"), 2, 2, told=False)
    log.note(Clean("odder"), 3, 3, told=False)
    log.note(Clean("said"), 4, 1, told=True)
    log.add(event(4, "four"), 4)
    log.add(event(6, "six"), 6)
    assert [str(entry.text) for entry in log.entries()] == ["nothing there yet", "four", "five", "odder", "said", "six"]
    assert log.entry(3).fact.data["count"] == 5


def test_room_is_made_without_looking_for_the_longest_log_each_time(
    host: ScriptedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    above = Store._above

    def counted(store: Store, most: int) -> tuple[list[Session], int]:
        looked.append(most)
        return above(store, most)

    monkeypatch.setattr(Store, "_above", counted)
    sessions = [f"s{i}" for i in range(100)]
    for name in sessions:
        host.session(name)
    for _ in range(40):
        for name in sessions:
            host.events(name, {"kind": "notice", "text": "x" * 60_000})
    assert 1 < len(looked) < 40
    lengths = [host.at(name).log.weight for name in sessions]
    assert KEEP_LOGS // 2 < sum(lengths) <= KEEP_LOGS
    assert max(lengths) <= 3 * min(lengths)


def test_the_newest_entry_of_each_log_stays_whatever_its_size(host: ScriptedHost) -> None:
    sessions = [f"s{i}" for i in range(1_200)]
    for name in sessions:
        host.session(name)
        host.events(name, {"kind": "notice", "text": "x" * 60_000})
    assert all(len(host.at(name).log) == 1 for name in sessions)


def test_the_text_of_all_logs_has_one_budget(host: ScriptedHost) -> None:
    sessions = [f"s{i}" for i in range(40)]
    for name in sessions:
        host.session(name)
        host.events(name, *({"kind": "notice", "text": "x" * 60_000} for _ in range(60)))
    logs = [host.at(name).log for name in sessions]
    kept = sum(log.weight for log in logs)
    assert KEEP_LOGS // 2 < kept <= KEEP_LOGS
    assert all(len(log) + log.left_out == 60 for log in logs)
    assert len(host.at("s39").log) > 1
    host.tell(f.Gone(sessions=tuple(sessions[:-1])))
    host.events("s39", *({"kind": "notice", "text": "x" * 60_000} for _ in range(20)))
    assert host.at("s39").log.weight > 20 * 60_000
