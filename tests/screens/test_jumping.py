"""Jumping: a letter stands before each line and part in sight, and brings the cursor and the keys there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.geometry import Region
from textual.widget import Widget

from console.fleet.facts import SessionKey
from console.screens.fleet.screen import FleetScreen
from console.screens.inbox.screen import InboxScreen
from console.screens.session.screen import SessionScreen
from tests.screens.staged import Stage, staged
from widgets.event_log import EventLog
from widgets.listing import Listing
from widgets.roster import Roster
from widgets.transcript import Transcript


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        for name in ("alpha", "beta", "gamma"):
            stage.host.session(name)
        await stage.show()
        await stage.console.select("alpha")
        yield stage


def front(stage: Stage) -> FleetScreen:
    screen = stage.console.app.screen
    assert isinstance(screen, FleetScreen)
    return screen


def lines(part: Widget) -> list[str]:
    """What is on the screen of it, with letters before its lines."""
    return [strip.text for strip in part.render_lines(Region(0, 0, *part.size))]


def letter(stage: Stage, part: str, text: str) -> str:
    """The letter before the first line of a part that holds this text."""
    line = next(line for line in lines(front(stage).query_one(part)) if text in line)
    assert line[0].strip(), line
    return line[0]


async def test_a_letter_brings_the_cursor_to_its_line_and_a_number_the_keys_to_its_part(stage: Stage) -> None:
    screen = stage.console.app.fleet_screen
    await stage.press("apostrophe")
    await stage.press(letter(stage, "Roster", "gamma"))
    assert screen.selected == SessionKey("local", "gamma")
    assert screen.pane.id == "roster"
    await stage.press("apostrophe")
    await stage.press(lines(screen.query_one(EventLog))[0][0])
    assert screen.pane.id == "log"
    assert not lines(screen.query_one(Roster))[0][0].strip(), "no letter is left"


async def test_while_letters_are_shown_no_key_acts_and_one_that_is_none_of_them_leaves(stage: Stage) -> None:
    await stage.press("apostrophe", "p")
    assert not stage.sent
    await stage.press("apostrophe", "escape")
    screen = stage.console.app.fleet_screen
    assert not screen.jumping
    await stage.show(2_000)
    await stage.press("p")
    assert [intent.primitive.value for intent in stage.sent] == ["pause"]


async def test_a_letter_stays_with_its_line_when_others_come(stage: Stage) -> None:
    screen = stage.console.app.fleet_screen
    await stage.press("apostrophe")
    key = letter(stage, "Roster", "beta")
    stage.host.session("aaa", lifecycle="failed")
    await stage.show(2_000)
    assert letter(stage, "Roster", "beta") == key
    await stage.press(key)
    assert screen.selected == SessionKey("local", "beta")


async def test_it_works_on_the_other_screens_as_well(stage: Stage) -> None:
    stage.host.events("alpha", {"kind": "message", "text": "one"}, {"kind": "notice", "text": "two"})
    for name in ("alpha", "beta"):
        stage.host.ask(f"r-{name}", name, text=f"make {name}")
    await stage.show()
    await stage.press("w")
    await stage.console.until(lambda: isinstance(front(stage), InboxScreen), "the inbox")
    await stage.console.until(lambda: "make beta" in "".join(lines(front(stage).query_one(Listing))), "its lines")
    await stage.press("apostrophe")
    await stage.press(letter(stage, "Listing", "make beta"))
    await stage.console.until(lambda: front(stage).selected == SessionKey("local", "beta"), "the cursor there")
    await stage.press("escape")
    await stage.console.select("alpha")
    await stage.press("enter", "enter")
    await stage.console.until(lambda: isinstance(front(stage), SessionScreen), "the session")
    await stage.console.until(lambda: "two" in "".join(lines(front(stage).query_one(Transcript))), "its blocks")
    await stage.press("apostrophe")
    await stage.press(letter(stage, "Transcript", "agent"))
    selected = front(stage).query_one(Transcript).selected_block
    assert selected is not None
    assert selected.kind == "agent"
