"""The help: every key as it is now, why one does nothing, and what is found in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.widgets import Input

from console.actions import ACTIONS
from console.screens.pages.help import HelpScreen
from tests.screens.stage import SMALL
from tests.screens.staged import Stage, staged
from tests.screens.widget_kit import IN_ONE_READ, WRITTEN, lines, type_at_once
from widgets.facts import Facts
from widgets.status_bar import StatusBar


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path, keys={"pause": "f2,h", "reseed": ""}) as stage:
        stage.host.session("alpha", capabilities={"send": {}, "pause": {}})
        await stage.show()
        await stage.press("question_mark")
        yield stage


def screen(stage: Stage) -> HelpScreen:
    found = stage.console.app.screen
    assert isinstance(found, HelpScreen)
    return found


def rows(stage: Stage) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in screen(stage).query_one(Facts).facts]


def row(stage: Stage, label: str) -> tuple[str, str]:
    return next(one for one in rows(stage) if one[1].startswith(f"{label:<15}"))


async def press(stage: Stage, *keys: str) -> None:
    await stage.console.press(*keys)
    await stage.console.pilot.pause()


async def closed(stage: Stage) -> None:
    await stage.console.until(lambda: stage.console.app.screen is stage.console.app.fleet_screen, "the help is closed")


async def test_every_action_is_there_with_the_keys_that_it_has_now(stage: Stage) -> None:
    texts = "\n".join(text for _, text in rows(stage))
    for action in ACTIONS:
        assert action.help in texts, action.id
    assert row(stage, "pause")[0] == "f2 h"
    assert row(stage, "reseed")[0] == "no key"


async def test_it_says_why_a_key_does_nothing_and_where_others_belong(stage: Stage) -> None:
    listed = rows(stage)
    after = {text[:15].strip(): listed[at + 1][1].strip() for at, (_, text) in enumerate(listed[:-1])}
    assert after["stop"] == "not offered by this session"
    assert after["try now"] == "only on the sources screen"
    assert not after["send"].startswith("not now")


async def test_words_find_what_holds_them(stage: Stage) -> None:
    await press(stage, "slash", *"cut off")
    found = [label for label, text in rows(stage) if text.startswith("pause now")]
    assert found == ["P"]
    assert not any(text.startswith("quit") for _, text in rows(stage))
    await press(stage, "enter")
    assert "only cut off" in "\n".join(lines(screen(stage).query_one(StatusBar)))
    await press(stage, "escape")
    assert any(text.startswith("quit") for _, text in rows(stage)), "escape first takes the words away"
    await press(stage, "escape")
    await closed(stage)


async def test_a_key_is_found_by_itself(stage: Stage) -> None:
    await press(stage, "slash", *"f2")
    assert [label for label, _ in rows(stage) if label] == ["f2 h"]


async def test_what_is_not_there_is_said(stage: Stage) -> None:
    await press(stage, "slash", *"zzz")
    assert rows(stage) == [("", "no key is described so")]


async def test_letters_that_are_looked_for_are_no_keys(stage: Stage) -> None:
    await press(stage, "slash", *"quit")
    assert {text[:5].strip() for label, text in rows(stage) if label} == {"quit", "leave"}
    assert isinstance(stage.console.app.screen, HelpScreen)
    await press(stage, "escape")
    assert len(rows(stage)) > len(ACTIONS)


@pytest.mark.parametrize("key", ["escape", "question_mark", "q"])
async def test_the_keys_that_leave_it(stage: Stage, key: str) -> None:
    await press(stage, key)
    await closed(stage)


async def test_a_console_that_only_watches_says_so_of_every_intervention(tmp_path: Path) -> None:
    async with staged(tmp_path, SMALL, read_only=True) as stage:
        stage.host.session("alpha")
        await stage.show()
        for action in ACTIONS:
            if action.intervenes and action.keys:
                await stage.press(action.keys[0])
                assert "this console only watches" in stage.said, action.id
                assert stage.console.asking == "", action.id
        assert not stage.sent
        await stage.press("question_mark")
        watching = [text for _, text in rows(stage) if "this console only watches" in text]
        assert len(watching) == sum(action.intervenes for action in ACTIONS)
        await press(stage, "end")
        assert screen(stage).query_one(Facts).scroll_offset.y > 0


async def test_keys_of_one_read_edit_in_their_order(stage: Stage) -> None:
    await press(stage, "slash")
    line = screen(stage).query_one(Input)
    type_at_once(stage.console.app, *IN_ONE_READ)
    await stage.console.until(lambda: line.value == WRITTEN, "what was typed")
