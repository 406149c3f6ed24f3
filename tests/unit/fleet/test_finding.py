"""Finding one of many by a few letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.roster.finding import MOST, Finder, fitness

NAMES = ("stop", "stop deploy", "pause", "pause now", "deploy-eu local", "redeploy", "dead letters", "Über uns")


def found(asked: str) -> list[str]:
    return [NAMES[at] for at in Finder(NAMES, [0] * len(NAMES)).find(asked)]


def test_without_letters_everything_is_there_in_its_order() -> None:
    assert found("") == list(NAMES)


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("sto", "stop"),
        ("dep", "deploy-eu local"),
        ("now", "pause now"),
        ("über", "Über uns"),
        ("ple", "deploy-eu local"),
    ],
)
def test_what_begins_so_comes_before_what_holds_it(asked: str, first: str) -> None:
    assert found(asked)[0] == first


def test_every_word_must_fit_in_any_order() -> None:
    assert found("now pause") == ["pause now"]
    assert found("stop pause") == []


def test_letters_in_their_order_are_enough_and_come_last() -> None:
    assert sorted(found("dpl")) == ["deploy-eu local", "redeploy", "stop deploy"]
    texts = ["d-e-p", "xdep"]
    assert Finder(texts, [0, 0]).find("dep") == [1, 0]
    assert found("yolped") == []


def test_scattered_letters_count_in_the_name_only() -> None:
    texts = ["stop\nends the session", "send\nwrites to it"]
    assert Finder(texts, [0, 0]).find("stp") == [0]
    assert Finder(texts, [0, 0]).find("esn") == []
    assert Finder(texts, [0, 0]).find("writes") == [1]


def test_of_two_that_fit_as_well_the_weightier_comes_first() -> None:
    texts = ["stop", "stop"]
    assert Finder(texts, [12, 0]).find("stop") == [1, 0]


def test_a_whole_name_comes_before_one_that_goes_on() -> None:
    texts = ["stopped session\nact", "stop\nact that ends it"]
    assert Finder(texts, [0, 0]).find("stop") == [1, 0]


def test_no_more_are_listed_than_anybody_reads() -> None:
    assert len(Finder(["a"] * 1_000, [0] * 1_000).find("a")) == MOST


@given(st.lists(st.text("abcd- ", max_size=8), max_size=20), st.text("abcd ", max_size=5))
def test_writing_on_finds_what_asking_at_once_does(texts: list[str], asked: str) -> None:
    step = Finder(texts, [0] * len(texts))
    for end in range(len(asked) + 1):
        step.find(asked[:end])
    assert step.find(asked) == Finder(texts, [0] * len(texts)).find(asked)


@given(st.text(max_size=20), st.text(max_size=6))
def test_what_is_found_holds_the_letters_in_their_order(text: str, asked: str) -> None:
    words = asked.casefold().split()
    fits = fitness(text.casefold(), words)
    for word in words if fits is not None else ():
        rest = iter(text.casefold())
        assert all(letter in rest for letter in word)
    if all(word in text.casefold() for word in words):
        assert fits is not None
