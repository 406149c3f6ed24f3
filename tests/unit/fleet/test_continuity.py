"""Continuity: numbers held, and the word for what is missing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.continuity import KEEP_GAPS, SETTLE_MS, Spans, Track, spell
from watchfloor.words import Continuity

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine that tests may be busy with other things."""

NUMBERS = st.integers(1, 40)


@PATIENT
@given(st.lists(st.tuples(NUMBERS, st.integers(-2, 6))))
def test_spans_are_a_set(ranges: list[tuple[int, int]]) -> None:
    spans, model = Spans(), set[int]()
    for first, more in ranges:
        if more == 0:
            assert spans.add(first) == (first not in model)
        else:
            spans.add_range(first, first + more)
        model |= set(range(first, first + more + 1))
        assert {n for n in range(60) if n in spans} == model
        assert (spans.low, spans.high) == (min(model, default=0), max(model, default=0))
        intervals = spans.intervals()
        assert all(lo <= hi for lo, hi in intervals)
        # Touching intervals are one.
        assert all(a[1] + 1 < b[0] for a, b in pairwise(intervals))


@PATIENT
@given(st.sets(NUMBERS), NUMBERS, NUMBERS)
def test_missing_is_the_complement(held: set[int], first: int, last: int) -> None:
    spans = Spans()
    for n in held:
        spans.add(n)
    missing = {n for lo, hi in spans.missing(first, last) for n in range(lo, hi + 1)}
    assert missing == set(range(first, last + 1)) - held


@PATIENT
@given(st.sets(NUMBERS), NUMBERS, NUMBERS, st.integers(1, 5))
def test_the_first_missing_and_how_many_more(held: set[int], first: int, last: int, most: int) -> None:
    spans = Spans()
    for n in held:
        spans.add(n)
    every = spans.missing(first, last)
    assert spans.first_missing(first, last, most) == (every[:most], max(0, len(every) - most))


def test_more_gaps_than_are_told_one_by_one_are_counted() -> None:
    made = track(*((n, n) for n in range(1, 2 * KEEP_GAPS + 8, 2)))
    state = made.state(0)
    assert len(state.missing) == KEEP_GAPS
    assert str(state) == f"gap 2, 4, 6 and {KEEP_GAPS} more"


def test_numbers_of_any_length_have_words() -> None:
    assert str(track((1, 1), (10**5_000, 10**5_000)).state(0)) == "gap 2-over 2^53"


def track(*held: tuple[int, int], head: int = 0, followed: bool = True) -> Track:
    made = Track(epoch="e", followed=followed)
    for first, last in held:
        made.held.add_range(first, last)
    made.head = max(head, made.held.high)
    return made


def test_whole() -> None:
    assert str(track((1, 9)).state(0)) == "whole"


def test_a_gap_has_numbers() -> None:
    state = track((1, 100), (181, 200)).state(0)
    assert state.word is Continuity.GAP
    assert state.missing == ((101, 180),)
    assert str(state) == "gap 101-180"


def test_a_gap_that_is_gone_for_good_says_so() -> None:
    made = track((1, 100), (181, 200))
    made.gone.add_range(101, 180)
    assert str(made.state(0)) == "gap 101-180, lost for good"


def test_a_gone_beginning_is_retention() -> None:
    made = track((181, 200))
    made.gone.add_range(1, 180)
    state = made.state(0)
    assert state.word is Continuity.BEYOND_RETENTION
    assert state.missing == ((1, 180),)


def test_a_gone_beginning_does_not_hide_a_hole_behind_it() -> None:
    made = track((181, 190), (195, 200))
    made.gone.add_range(1, 180)
    assert made.state(0).missing == ((191, 194),)


def test_a_beginning_that_nobody_asked_for_is_the_tail_only() -> None:
    made = track((181, 200))
    made.floor_open = True
    assert str(made.state(0)) == "tail only, from 181"


def test_a_beginning_that_was_asked_for_is_a_gap() -> None:
    assert str(track((181, 200)).state(0)) == "gap 1-180"


def test_not_followed() -> None:
    assert track(head=12, followed=False).state(0).word is Continuity.NOT_FOLLOWED


def test_broken_contact_without_replay_is_a_gap_of_unknown_size() -> None:
    made = track((1, 5))
    made.broken = True
    assert made.state(0).word is Continuity.GAP_UNKNOWN


def test_arrival_order() -> None:
    made = track((1, 5))
    made.ordered = False
    assert made.state(0).word is Continuity.ARRIVAL_ORDER


def test_the_newest_may_be_late_before_they_are_missing() -> None:
    made = track((1, 5))
    made.note_head(8, now=100)
    early = made.state(100)
    assert (early.word, early.behind) == (Continuity.WHOLE, 3)
    late = made.state(100 + SETTLE_MS)
    assert (late.word, late.missing) == (Continuity.GAP, ((6, 8),))
    made.held.add_range(6, 8)
    made.watch_behind(100 + SETTLE_MS)
    assert str(made.state(100 + SETTLE_MS)) == "whole"


def test_another_epoch_starts_anew_and_the_old_one_stays_over() -> None:
    made = track((1, 5), (9, 9))
    made.begin("f")
    assert not made.held
    assert made.past == ["e"]
    assert made.state(0).word is Continuity.WHOLE


@pytest.mark.parametrize(
    ("gaps", "words"),
    [(((3, 3),), "3"), (((3, 4), (6, 6)), "3-4, 6"), (((1, 1), (3, 3), (5, 5), (7, 7), (9, 9)), "1, 3, 5 and 2 more")],
)
def test_spelling(gaps: tuple[tuple[int, int], ...], words: str) -> None:
    assert spell(gaps) == words
