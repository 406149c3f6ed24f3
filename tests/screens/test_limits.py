"""Budgets and forks by keys: asked for, looked at beside what is used, and sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from console.screens.flows.limits import MOST, number
from tests.screens.stage import SMALL
from tests.screens.staged import Stage, staged
from watchfloor.words import Contact, Primitive

BOTH = {"budget": {"tokens": True, "turns": True}, "fork": {}}
USAGE = {"input_tokens": 118_400, "output_tokens": 9_120, "turns": 14, "budget_tokens": 200_000}


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        stage.host.session("s1", BOTH, attempt=2, usage=USAGE)
        await stage.show()
        yield stage


async def press(stage: Stage, *keys: str) -> None:
    """Press keys with so much time between them that each counts."""
    for key in keys:
        await stage.show(ms=1_000)
        await stage.press(key)


async def write(stage: Stage, text: str) -> None:
    await stage.console.type(text)
    await stage.press("enter")


# --- budget --------------------------------------------------------------------------------


async def test_a_budget_is_asked_for_beside_what_is_used(stage: Stage) -> None:
    await press(stage, "b")
    asking = stage.console.asking
    assert "budget of s1 (local), attempt 2" in asking
    assert "most tokens (1 of 2)" in asking
    assert "used so far: 128k tokens, 14 turns" in asking
    assert "limit now: 200k tokens" in asking
    await write(stage, "1.5M")
    assert "most turns (2 of 2)" in stage.console.asking
    await write(stage, "40")
    (sent,) = stage.sent
    assert (sent.primitive, sent.extra, sent.attempt) == (Primitive.BUDGET, {"tokens": 1_500_000, "turns": 40}, 2)


async def test_what_is_used_is_read_again_while_it_is_asked(stage: Stage) -> None:
    await press(stage, "b")
    stage.host.summary("s1", usage={**USAGE, "turns": 15})
    await stage.show()
    assert "128k tokens, 15 turns" in stage.console.asking


async def test_a_limit_that_is_left_empty_stays_as_it_is(stage: Stage) -> None:
    await press(stage, "b")
    await write(stage, "")
    await write(stage, "40")
    assert [sent.extra for sent in stage.sent] == [{"turns": 40}]


async def test_no_limit_at_all_sends_nothing(stage: Stage) -> None:
    await press(stage, "b")
    await write(stage, "")
    await write(stage, "")
    assert stage.said == "the budget stays as it is: no limit was given"
    assert not stage.sent


async def test_what_is_no_number_is_refused_and_kept(stage: Stage) -> None:
    await press(stage, "b")
    await write(stage, "many")
    assert "a whole number is wanted" in stage.console.asking
    assert "tokens (1 of 2)" in stage.console.asking
    assert not stage.sent


async def test_a_limit_that_is_used_up_already_has_to_be_agreed_to(stage: Stage) -> None:
    await press(stage, "b")
    await write(stage, "100k")
    await write(stage, "")
    asking = stage.console.asking
    assert "set the budget of s1 (local), attempt 2?" in asking
    assert "100,000 tokens are used up already: a turn that runs is suspended" in asking
    assert not stage.sent
    await press(stage, "y")
    assert [sent.extra for sent in stage.sent] == [{"tokens": 100_000}]


async def test_only_limits_that_the_session_takes_are_asked_for(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("s1", {"budget": {"tokens": True}})
        await stage.show()
        await press(stage, "b")
        assert "most tokens" in stage.console.asking
        assert "of 2" not in stage.console.asking
        assert "what is used so far is not known here" in stage.console.asking
        await write(stage, "9")
        assert [sent.extra for sent in stage.sent] == [{"tokens": 9}]


@pytest.mark.parametrize(
    ("capabilities", "says"),
    [
        ({"send": {}}, "b budget: this session does not offer budget"),
        ({"budget": {}}, "b budget: this session offers budget and names nothing of it"),
        ({}, "b budget: this session can only be observed"),
    ],
)
async def test_without_a_budget_the_key_says_why(tmp_path: Path, capabilities: dict[str, object], says: str) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("s1", capabilities)
        await stage.show()
        await press(stage, "b")
        assert stage.said == says
        assert stage.console.asking == ""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("40", 40),
        (" 200,000 ", 200_000),
        ("200_000", 200_000),
        ("200k", 200_000),
        ("1.5M", 1_500_000),
        ("0", 0),
        ("1.5", None),
        ("0.0001k", None),
        ("-3", None),
        ("", None),
        ("k", None),
        ("2e3", None),
        (str(MOST), MOST),
        (str(MOST + 1), None),
        ("9" * 400 + "M", None),
    ],
)
def test_numbers_are_written_as_people_write_them(text: str, count: int | None) -> None:
    assert number(text) == count


# --- fork ----------------------------------------------------------------------------------


async def test_a_fork_gets_its_name(stage: Stage) -> None:
    await press(stage, "F")
    asking = stage.console.asking
    assert "fork s1 (local), attempt 2" in asking
    assert "name of the new session" in asking
    assert "it begins with what this one remembers; this one goes on as it is" in asking
    await write(stage, " second try ")
    (sent,) = stage.sent
    assert (sent.primitive, sent.extra, sent.attempt) == (Primitive.FORK, {"name": "second try"}, 2)


async def test_a_fork_without_a_name_is_named_by_its_source(stage: Stage) -> None:
    await press(stage, "F")
    await write(stage, "")
    assert [(sent.primitive, sent.extra) for sent in stage.sent] == [(Primitive.FORK, {})]


async def test_leaving_forks_nothing(stage: Stage) -> None:
    await press(stage, "F")
    await stage.console.type("x")
    await stage.press("escape")
    assert stage.console.asking == ""
    assert not stage.sent


async def test_another_attempt_ends_what_is_asked(stage: Stage) -> None:
    await press(stage, "F")
    stage.host.summary("s1", attempt=3)
    await write(stage, "late")
    assert "attempt 3 has begun: nothing can be sent any more" in stage.console.asking
    assert not stage.sent


async def test_a_lost_source_is_said_before_anything_is_written(stage: Stage) -> None:
    stage.host.contact(Contact.LOST)
    for key in "bF":
        await press(stage, key)
        assert "contact with local was lost" in stage.said
        assert stage.console.asking == ""


async def test_a_console_that_only_watches_has_neither(tmp_path: Path) -> None:
    async with staged(tmp_path, read_only=True) as stage:
        stage.host.session("s1", BOTH)
        await stage.show()
        for key in ("b", "F", "m", "delete"):
            await press(stage, key)
            assert "this console only watches" in stage.said, key
            assert stage.console.asking == ""


async def test_where_it_does_not_fit_nothing_is_taken(tmp_path: Path) -> None:
    async with staged(tmp_path, SMALL) as stage:
        stage.host.session("s1", BOTH, usage=USAGE)
        await stage.show()
        await press(stage, "F")
        await stage.console.pilot.resize_terminal(38, 10)
        await write(stage, "unseen")
        assert not stage.sent
