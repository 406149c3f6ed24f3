"""The screen of the sources: what it says, and what its keys do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from console.fleet.facts import FaultFact
from console.screens.pages.commandline import CommandScreen
from console.screens.pages.help import HelpScreen
from console.screens.pages.sources import SourcesScreen
from tests.screens.stage import SMALL, StagedHost
from tests.screens.staged import Stage, staged
from tests.screens.widget_kit import HOSTILE, lines
from watchfloor.text import clean, clean_line
from watchfloor.words import Contact


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        stage.host.session("alpha")
        farm = StagedHost(stage.console.app, stage.clock, "farm")
        farm.contact(Contact.LOST, "connection refused", tries=3)
        await stage.show()
        await stage.press("S")
        yield stage


def screen(stage: Stage) -> SourcesScreen:
    found = stage.console.app.screen
    assert isinstance(found, SourcesScreen)
    return found


def shown(stage: Stage, part: str) -> str:
    return "\n".join(lines(screen(stage).query_one(part)))


async def press(stage: Stage, *keys: str) -> None:
    await stage.console.press(*keys)
    await stage.console.pilot.pause()


def fault(stage: Stage, raw: str, why: str = "no such kind") -> None:
    facts = [FaultFact("local", clean_line(why), clean(raw))]
    stage.console.app.take(stage.console.app.hub.fleet.apply(facts, stage.clock()))


async def test_it_opens_on_the_source_of_the_selected_session(stage: Stage) -> None:
    assert "local" in shown(stage, "#details")
    assert "may intervene" in shown(stage, "#details")
    assert "farm" in shown(stage, "#sources")
    assert "connection refused" in shown(stage, "#sources")


async def test_a_lost_source_is_tried_at_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(stage.console.app.hub, "retry", tried.append)
    await press(stage, "t")
    assert tried == []
    assert "try now: it is connected" in shown(stage, "#sources-notice")
    await press(stage, "j", "t")
    assert tried == ["farm"]
    assert "trying farm now" in shown(stage, "#sources-notice")


async def test_what_could_not_be_read_is_inspected_whole(stage: Stage) -> None:
    await press(stage, "enter")
    assert "all that came from it could be read" in shown(stage, "#sources-notice")
    fault(stage, '{"type": "sessions", "rows": 3}', "rows is not known")
    fault(stage, "second", "another")
    await press(stage, "enter")
    assert "another" in shown(stage, "#details")
    await press(stage, "j")
    assert '"rows": 3' in shown(stage, "#details")
    fault(stage, "third", "one that comes later")
    await press(stage, "home", "end")
    assert "rows is not known" in shown(stage, "#details")
    await press(stage, "escape")
    assert "may intervene" in shown(stage, "#details")
    await press(stage, "escape")
    assert stage.console.app.screen is stage.console.app.fleet_screen


async def test_a_fault_that_comes_in_does_not_move_the_cursor(stage: Stage) -> None:
    fault(stage, "first", "the first")
    await press(stage, "enter")
    fault(stage, "later", "a later one")
    screen(stage).paint(everything=True)
    assert "the first" in shown(stage, "#details")


async def test_nothing_that_came_can_act_on_the_terminal(stage: Stage) -> None:
    for text in HOSTILE:
        fault(stage, text, text)
    await press(stage, "enter")
    for _ in HOSTILE:
        said = shown(stage, "#details") + shown(stage, "#faults") + shown(stage, "#sources")
        assert all(character.isprintable() or character == "\n" for character in said)
        await press(stage, "j")


async def test_what_is_said_can_be_copied(stage: Stage) -> None:
    await press(stage, "j", "y")
    assert "why: connection refused" in stage.console.app.clipboard


async def test_help_and_command_line_are_a_key_away(stage: Stage) -> None:
    await press(stage, "question_mark")
    await stage.console.until(lambda: isinstance(stage.console.app.screen, HelpScreen), "the help")
    await press(stage, "escape")
    await stage.press("S")
    await press(stage, "colon")
    await stage.console.until(lambda: isinstance(stage.console.app.screen, CommandScreen), "the command line")


async def test_no_key_of_it_intervenes(stage: Stage) -> None:
    await press(stage, *"adDsopPxrRX")
    assert not stage.sent
    assert stage.console.app.screen is screen(stage)


async def test_the_smallest_terminal_shows_every_part(tmp_path: Path) -> None:
    async with staged(tmp_path, SMALL) as stage:
        fault(stage, "raw", "not read")
        await stage.show()
        await stage.press("S")
        for part in ("#sources", "#details", "#faults", "#sources-footer"):
            region = screen(stage).query_one(part).region
            assert region.height >= 1, part
            assert screen(stage).region.contains_region(region), part
