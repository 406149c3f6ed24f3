"""When what is told: storms, presence, quiet hours, patience."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.fleet.facts import RequestKey
from console.notifying.core import GATHERS_MS, WORDS_MS, Due, Notifier
from console.notifying.rules import Channel, Quiet, Rules

WORDY = Rules(terminal="osc9", desktop=True, command=("page",), webhook="https://x/")
ALL = (Channel.BELL, *WORDY.channels)
NOON = 12 * 60


def _key(n: int) -> RequestKey:
    return RequestKey("a", f"s{n}", "r")


def _run(notifier: Notifier, first: int, last: int, step: int = 50, *, away: bool = True) -> list[Due]:
    return [due for now in range(first, last, step) for due in notifier.due(now, NOON, away=away)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 99), min_size=500, max_size=500), st.integers(1, 240))
def test_a_storm_of_500_within_100_ms_is_one_alert_of_each_channel(times: list[int], step: int) -> None:
    notifier = Notifier(WORDY, ALL)
    raised = sorted((at, _key(n)) for n, at in enumerate(times))
    found: list[Due] = []
    for now in range(0, 20_000, step):
        while raised and raised[0][0] <= now:
            notifier.opened(raised[0][1], now)
            raised.pop(0)
        found += notifier.due(now, NOON, away=True)
    assert sorted(due.channel for due in found) == sorted(WORDY.channels)
    assert all(len(due.keys) == 500 and not due.unanswered for due in found)


def test_what_comes_soon_after_an_alert_waits_for_the_next() -> None:
    notifier = Notifier(Rules(desktop=True))
    notifier.opened(_key(1), 0)
    assert _run(notifier, 0, GATHERS_MS) == []
    assert _run(notifier, GATHERS_MS, 1_000) == [Due(Channel.DESKTOP, (_key(1),), False)]
    for n in range(2, 30):
        notifier.opened(_key(n), 1_000 * n)
    (due,) = _run(notifier, 1_000, WORDS_MS + 1_000)
    assert len(due.keys) == 28


def test_nothing_is_told_to_who_is_there_and_what_still_waits_when_they_leave_is() -> None:
    notifier = Notifier(Rules(desktop=True, escalate_after_s=0))
    for n in range(3):
        notifier.opened(_key(n), 0)
    assert _run(notifier, 0, 5_000, away=False) == []
    notifier.ended(_key(0))
    notifier.seen(_key(1))
    assert _run(notifier, 5_000, 6_000) == [Due(Channel.DESKTOP, (_key(2),), False)]
    notifier.opened(_key(2), 6_000)
    assert _run(notifier, 100_000, 101_000) == [], "it is known"


def test_what_nobody_answers_is_told_once_more_by_every_channel_whoever_is_there() -> None:
    notifier = Notifier(WORDY, ALL)
    notifier.opened(_key(1), 0)
    notifier.seen(_key(1))
    assert _run(notifier, 0, 300_000, 1_000, away=False) == []
    found = _run(notifier, 300_000, 900_000, 1_000, away=False)
    assert {due.channel for due in found} == set(ALL)
    assert found == [Due(channel, (_key(1),), True) for channel in ALL]


def test_patience_counts_from_when_each_was_heard_of_and_ends_with_an_answer() -> None:
    notifier = Notifier(Rules(escalate_after_s=10), (Channel.BELL,))
    for n in range(4):
        notifier.opened(_key(n), n * 2_000)
    notifier.ended(_key(1))
    found = _run(notifier, 0, 40_000, 500, away=False)
    assert [due.keys for due in found] == [(_key(0),), (_key(2),), (_key(3),)]
    assert notifier.idle is False
    for n in range(4):
        notifier.ended(_key(n))
    assert notifier.idle


@pytest.mark.parametrize(
    ("quiet", "inside", "outside"),
    [
        (Quiet(22 * 60, 7 * 60), (22 * 60, 23 * 60 + 59, 0, 7 * 60 - 1), (7 * 60, 12 * 60, 22 * 60 - 1)),
        (Quiet(9 * 60, 17 * 60), (9 * 60, 12 * 60), (0, 17 * 60, 23 * 60 + 59)),
        (Quiet(1, 0), (1, 720, 1439), (0,)),
    ],
)
def test_quiet_hours_may_go_over_midnight(quiet: Quiet, inside: tuple[int, ...], outside: tuple[int, ...]) -> None:
    assert all(quiet.holds(minute) for minute in inside)
    assert not any(quiet.holds(minute) for minute in outside)


@given(st.integers(0, 1439), st.integers(0, 1439), st.integers(0, 1439))
def test_quiet_hours_turned_round_are_the_other_hours(begins: int, ends: int, minute: int) -> None:
    if begins != ends:
        assert Quiet(begins, ends).holds(minute) != Quiet(ends, begins).holds(minute)


def test_in_quiet_hours_nothing_is_told_and_at_their_end_what_still_waits_is_in_one_alert() -> None:
    rules = Rules(desktop=True, command=("page",), quiet=Quiet(22 * 60, 7 * 60), quiet_for=frozenset({Channel.DESKTOP}))
    notifier = Notifier(rules)
    now = 0
    found: list[tuple[int, Due]] = []
    for minute in [*range(23 * 60, 24 * 60), *range(8 * 60)]:
        now += 60_000
        if minute == 3 * 60 or minute == 4 * 60 or minute == 5 * 60:
            notifier.opened(_key(minute), now - 1_000)
        if minute == 6 * 60:
            notifier.ended(_key(4 * 60))
        found += [(minute, due) for due in notifier.due(now, minute, away=True)]
    desk = [(minute, due) for minute, due in found if due.channel is Channel.DESKTOP]
    assert desk == [(7 * 60, Due(Channel.DESKTOP, (_key(180), _key(300)), True))]
    paged = [minute for minute, due in found if due.channel is Channel.COMMAND and not due.unanswered]
    assert paged == [180, 240, 300], "a channel that is not to be quiet is not"


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "end", "seen", "wait", "away", "back"]), st.integers(0, 9), st.integers(1, 2_000)
    ),
    max_size=80,
)


@settings(max_examples=150, deadline=None)
@given(_STEPS)
def test_alerts_keep_their_distance_and_name_only_what_waits(steps: list[tuple[str, int, int]]) -> None:
    notifier = Notifier(Rules(desktop=True, escalate_after_s=20), (Channel.BELL, Channel.DESKTOP))
    now, away, waiting = 0, False, dict[RequestKey, int]()
    last: dict[Channel, int] = {}
    told: set[tuple[Channel, RequestKey, bool]] = set()
    for act, n, ms in steps:
        key = _key(n)
        if act == "open" and key not in waiting:
            notifier.opened(key, now)
            waiting[key] = now
            told = {one for one in told if one[1] != key}
        elif act == "end":
            notifier.ended(key)
            waiting.pop(key, None)
        elif act == "seen":
            notifier.seen(key)
        elif act in ("away", "back"):
            away = act == "away"
        now += ms if act == "wait" else 10
        for due in notifier.due(now, NOON, away=away):
            assert now - last.get(due.channel, -WORDS_MS) >= (1_000 if due.channel is Channel.BELL else WORDS_MS)
            last[due.channel] = now
            assert set(due.keys) <= set(waiting)
            assert due.keys
            assert away or due.unanswered
            for one in due.keys:
                assert not due.unanswered or any(now - waiting[other] >= 20_000 for other in due.keys)
                late = now - waiting[one] >= 20_000
                assert (due.channel, one, late) not in told, "told twice"
                told.add((due.channel, one, late))
