"""Which source is told at which card the operator looks."""

from __future__ import annotations

from console.fleet.facts import RequestKey
from console.hub.attending import RESTS_MS, Attending, Look

A1, A2, B1 = RequestKey("a", "s", "r1"), RequestKey("a", "s", "r2"), RequestKey("b", "s", "r1")


def _due(attending: Attending, now: int, *deaf: str) -> list[Look]:
    return attending.due(now, lambda source: source not in deaf)


def test_a_card_is_told_once_it_has_stood_and_its_end_at_once() -> None:
    attending = Attending()
    attending.attend(A1, 0)
    assert _due(attending, RESTS_MS - 1) == []
    attending.attend(A1, RESTS_MS - 1)
    assert _due(attending, RESTS_MS) == [Look("a", A1)]
    assert _due(attending, RESTS_MS + 1) == []
    attending.attend(None, RESTS_MS + 2)
    assert _due(attending, RESTS_MS + 2) == [Look("a", None)]
    assert _due(attending, RESTS_MS + 3) == []


def test_running_through_cards_tells_the_last_one_alone() -> None:
    attending = Attending()
    for now in range(0, 1_000, 100):
        attending.attend(A1 if now % 200 else A2, now)
        assert _due(attending, now) == []
    assert _due(attending, 900 + RESTS_MS) == [Look("a", A1)]


def test_the_source_that_is_left_hears_of_it() -> None:
    attending = Attending()
    attending.attend(A1, 0)
    _due(attending, RESTS_MS)
    attending.attend(A2, 1_000)
    assert _due(attending, 2_000) == [Look("a", A2)], "one word replaces the other"
    attending.attend(B1, 3_000)
    assert _due(attending, 4_000) == [Look("a", None), Look("b", B1)]


def test_a_source_that_does_not_hear_is_told_nothing_until_it_does() -> None:
    attending = Attending()
    attending.attend(A1, 0)
    assert _due(attending, 1_000, "a") == []
    assert _due(attending, 2_000) == [Look("a", A1)]
    attending.parted("a")
    assert _due(attending, 3_000) == [Look("a", A1)], "a new connection knows nothing of it"
    attending.failed(Look("a", A1))
    assert _due(attending, 4_000) == [Look("a", A1)]
    assert _due(attending, 5_000, "a") == [], "nothing can be taken back there any more"
    attending.attend(None, 6_000)
    assert _due(attending, 6_000) == []
