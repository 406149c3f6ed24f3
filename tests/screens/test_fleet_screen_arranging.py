"""The roster arranged by keys: filtered while one writes, sorted, grouped, put away, marked; nothing is lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.fleet.facts import SessionKey
from console.fleet.roster.filter import KEYS
from console.fleet.roster.order import Sort
from console.screens.pages.told import Told
from tests.screens.stage import LARGE, SMALL, until
from tests.screens.staged import ALLOW, DENY, Stage, staged
from tests.screens.widget_kit import lines
from widgets.line_box import LineBox
from widgets.roster import Roster
from widgets.status_bar import StatusBar

ABLE: dict[str, dict[str, object]] = {"send": {}, "pause": {}, "resume": {}, "interrupt": {}, "approve": {}}


def names(stage: Stage) -> list[str]:
    rows = stage.console.app.fleet_screen._board.rows
    return [f"{row.tree}{row.name}" for row in map(rows.row, range(len(rows)))]


def selected(stage: Stage) -> str | None:
    key = stage.console.app.fleet_screen.selected
    return key.session if key is not None else None


def bar(stage: Stage, id: str) -> str:
    return " ".join(lines(stage.console.app.fleet_screen.query_one(id, StatusBar)))


def line(stage: Stage) -> str:
    box = stage.console.app.fleet_screen.query_one(LineBox)
    return " ".join(text for part in box.query("_Said") for text in lines(part))


async def cast(stage: Stage) -> None:
    host = stage.host
    host.session("deploy", ABLE, lifecycle="waiting", labels={"team": "web"}, usage={"input_tokens": 5})
    host.session("review", ABLE, lifecycle="idle", parent="deploy", usage={"input_tokens": 50})
    host.session("index", ABLE, lifecycle="failed", labels={"team": "ops"}, usage={"input_tokens": 500})
    host.session("watch", {}, lifecycle="running")
    host.ask("r1", "deploy", options=(ALLOW, DENY))
    await stage.show()
    await stage.press("g")


async def test_the_filter_works_while_it_is_written_and_goes_with_escape(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        assert len(names(stage)) == 4
        await stage.press("slash", *"state:fa")
        assert names(stage) == ["index"]
        assert "1 of 4" in line(stage)
        await stage.press("escape")
        assert len(names(stage)) == 4
        assert "filter" not in bar(stage, "#counts")


async def test_a_filter_stays_with_enter_and_a_later_escape_takes_it_away(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        await stage.press("slash", *"-state:idle cap:pause", "enter")
        assert names(stage) == ["deploy", "index"]
        assert "filter -state:idle cap:pause" in bar(stage, "#counts")
        await stage.press("slash")
        assert stage.console.app.fleet_screen.query_one(LineBox).text == "-state:idle cap:pause"
        await stage.press("enter")
        await stage.press("escape")
        assert len(names(stage)) == 4


async def test_an_error_stands_in_the_line_and_the_last_filter_holds(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        await stage.press("slash", *"state:failed in:x")
        assert names(stage) == ["index"]
        assert "in: there is no such key" in line(stage)
        await stage.press("enter")
        assert stage.console.app.fleet_screen.line_open
        await stage.press(*["backspace"] * 5, "enter")
        assert not stage.console.app.fleet_screen.line_open


async def test_an_error_that_does_not_fit_beside_the_line_stands_below_when_it_is_to_be_taken(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        await cast(stage)
        await stage.press("slash", *"in:x")
        assert "…" in line(stage)
        await stage.press("enter")
        told = " ".join(lines(stage.console.app.fleet_screen.query_one(Told)))
        whole = " ".join(f"{bar(stage, '#trail')} {told}".split())
        assert "in: there is no such key; there are state" in whole
        for key in KEYS:
            assert key in whole
        await stage.press("backspace")
        assert "there are state" not in bar(stage, "#trail")


async def test_who_needs_you_is_told_whatever_the_filter_hides_and_can_be_reached(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        await stage.press("slash", *"state:failed", "enter")
        assert names(stage) == ["index"]
        assert "1 needs you" in bar(stage, "#top")
        assert "1 hidden by the filter" in bar(stage, "#top")
        await stage.press("i")
        assert (selected(stage), names(stage)) == ("deploy", ["deploy", "index"])
        assert stage.card() is not None
        assert "hidden" not in bar(stage, "#top")
        await stage.press("escape")
        assert names(stage) == ["index"]


async def test_an_empty_roster_says_what_hides_everything(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        await stage.press("slash", *"zzz", "enter")
        roster = stage.console.app.fleet_screen.query_one(Roster)
        assert "none of 4 sessions is let through by the filter zzz" in " ".join(lines(roster))
        await stage.press("p")
        assert not stage.sent


async def test_no_key_steers_a_session_that_the_filter_put_under_the_cursor(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        await stage.press("slash", *"state:failed")
        await stage.press("escape", "slash", *"state:idle", "enter")
        await stage.show(2_000)
        # With enter the operator has seen what is left.
        await stage.press("p")
        assert [intent.target.session for intent in stage.sent] == ["review"]
        stage.host.summary("review", lifecycle="failed")
        stage.host.summary("index", lifecycle="idle")
        await stage.show(2_000)
        assert selected(stage) == "index"
        await stage.press("p")
        assert len(stage.sent) == 1
        assert "select" in stage.said


async def test_the_selected_session_stays_through_every_order(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        stage.console.app.fleet_screen.query_one(Roster).select(SessionKey("local", "index"))
        await stage.show()
        for sort in [*list(Sort)[1:], Sort.ATTENTION]:
            await stage.press("O")
            assert stage.console.app.fleet_screen._board.rows.sort is sort
            assert selected(stage) == "index"
            assert (f"sort {sort}" in bar(stage, "#counts")) is (sort is not Sort.ATTENTION)
            await stage.press("I")
            assert selected(stage) == "index"
            assert f"sort {sort}, reversed" in bar(stage, "#counts")
            await stage.press("I")


async def test_the_heading_of_the_column_tells_the_order(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        await stage.press("O")
        assert "SESSION▾" in lines(stage.console.app.fleet_screen.query_one(Roster))[0]
        assert names(stage) == ["deploy", "└ review", "index", "watch"]
        await stage.press("I")
        assert "SESSION^" in lines(stage.console.app.fleet_screen.query_one(Roster))[0]
        assert names(stage) == ["watch", "index", "deploy", "└ review"]


async def test_groups_by_source_label_and_nothing(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        await stage.press("v")
        assert names(stage)[0] == "local"
        assert "by source" in bar(stage, "#counts")
        await stage.press("v")
        assert names(stage) == ["team: web", "deploy", "└ review", "team: ops", "index", "no team", "watch"]
        await stage.press("v")
        assert names(stage) == ["deploy", "index", "watch", "review"]
        await stage.press("v")
        assert names(stage) == ["deploy", "└ review", "index", "watch"]


async def test_on_a_heading_nothing_intervenes(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        await stage.press("v", "g")
        assert selected(stage) is None
        for key in "paxXs":
            stage.clock.now += 400  # each is a press of its own, and no word that is typed
            await stage.press(key)
        assert not stage.sent
        assert "no session is selected" in stage.said
        await stage.press("z")
        assert names(stage) == ["local"]
        assert "+4" in lines(stage.console.app.fleet_screen.query_one(Roster))[1]
        await stage.press("enter")
        assert len(names(stage)) == 5


async def test_a_branch_is_put_away_and_its_requests_stay_counted(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        stage.host.ask("r2", "review", options=(ALLOW, DENY))
        stage.console.app.fleet_screen.query_one(Roster).select(SessionKey("local", "review"))
        await stage.show()
        await stage.press("z")
        assert names(stage) == ["deploy", "index", "watch"]
        assert selected(stage) == "deploy"
        assert stage.console.app.fleet_screen._board.rows.row(0).needs == "2"
        # The next request is behind it: it comes into sight.
        await stage.press("i", "i")
        assert selected(stage) == "review"
        assert "└ review" in names(stage)


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_a_click_while_one_writes_neither_acts_nor_takes_the_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    async with staged(tmp_path, size=size) as stage:
        await cast(stage)
        before = selected(stage)
        await stage.press("s", *"keep the")
        await stage.console.pilot.click(Roster, offset=(20, 3))
        await stage.press(*" column")
        assert selected(stage) == before
        await stage.press("enter")
        await until(stage.console.pilot, lambda: stage.sent, lambda: stage.said)
        assert stage.sent[0].text == "keep the column"
        assert stage.sent[0].target.session == before
        await stage.show(2_000)
        await stage.press("slash", *"inde")
        await stage.console.pilot.click(Roster, offset=(20, 1))
        await stage.press("x")
        assert stage.console.app.fleet_screen.query_one(LineBox).text == "index"


async def test_marks_are_set_counted_and_taken_away(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await cast(stage)
        await stage.press("space", "j", "space")
        assert "2 marked" in bar(stage, "#counts")
        await stage.press("space")
        assert "1 marked" in bar(stage, "#counts")
        await stage.press("M")
        assert "4 marked" in bar(stage, "#counts")
        await stage.press("slash", *"index", "enter")
        assert "4 marked" in bar(stage, "#counts")
        await stage.press("escape")
        assert "marked" not in bar(stage, "#counts")
        assert names(stage) == ["index"]
