"""The log by keys: looked through, gone to a time, less of it shown; what is read stays where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.screens.staged import Stage, staged
from tests.screens.widget_kit import lines, strips
from widgets.event_log import EventLog
from widgets.line_box import LineBox


def log(stage: Stage) -> EventLog:
    return stage.console.app.fleet_screen.query_one(EventLog)


def footer(stage: Stage) -> str:
    return lines(log(stage))[-1]


def writing(stage: Stage) -> bool:
    return stage.console.app.fleet_screen.line_open


def cursor_line(stage: Stage) -> str:
    return next((text for text in lines(log(stage)) if text.startswith("▌")), "")


async def talk(stage: Stage, count: int = 60) -> None:
    host = stage.host
    host.session("deploy", {"send": {}}, lifecycle="running")
    events: list[dict[str, Any]] = []
    for i in range(count):
        kind = "reasoning" if i % 3 == 1 else "message"
        events.append(
            {
                "kind": kind,
                "text": f"line {i} {'migrate' if i % 10 == 0 else ''}",
                "at": stage.clock() - (count - i) * 60_000,
            }
        )
    host.events("deploy", *events)
    await stage.show()
    await stage.press("tab")
    assert log(stage).has_focus


async def test_what_is_looked_for_is_marked_and_gone_to(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await talk(stage)
        await stage.press("slash", *"MIGRATE")
        assert "6 found" in " ".join(
            text for part in stage.console.app.fleet_screen.query_one(LineBox).query("_Said") for text in lines(part)
        )
        await stage.press("enter")
        assert "line 50" in cursor_line(stage)
        assert "MIGRATE: 6 of 6" in footer(stage)
        await stage.press("N")
        assert "line 40" in cursor_line(stage)
        await stage.press("n", "n")
        assert "line 0" in cursor_line(stage)
        assert "1 of 6" in footer(stage)
        marked = [
            segment.text for strip in strips(log(stage)) for segment in strip
            if segment.style is not None and segment.style.reverse
        ]  # fmt: skip
        assert set(marked) == {"migrate"}
        await stage.press("escape")
        assert "MIGRATE" not in footer(stage)


async def test_a_search_that_finds_nothing_says_so_and_stays_open(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await talk(stage)
        await stage.press("slash", *"zzz", "enter")
        assert writing(stage)
        await stage.press("escape")
        assert not writing(stage)
        await stage.press("n")
        assert "nothing was looked for" in stage.said


async def test_in_the_roster_the_same_key_filters(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await talk(stage)
        await stage.press("shift+tab", "slash", *"zzz")
        assert stage.console.app.fleet_screen._board.filter is not None
        assert stage.console.app.fleet_screen._board.book.query == ""


async def test_a_search_goes_along_to_the_next_session(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await talk(stage)
        stage.host.session("other", {}, lifecycle="running")
        stage.host.events("other", {"kind": "message", "text": "nothing to migrate"})
        await stage.press("slash", *"migrate", "enter")
        await stage.press("shift+tab", "G")
        assert "migrate: 1 of 1" in footer(stage)


async def test_a_time_is_gone_to(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await talk(stage)
        await stage.press("T", *"13:45", "enter")
        assert "13:45:22" in cursor_line(stage)
        await stage.press("T", *"5m", "enter")
        assert "14:00:22" in cursor_line(stage)
        await stage.press("T", *"soon", "enter")
        assert writing(stage)
        await stage.press("escape")
        assert "14:00:22" in cursor_line(stage)


async def test_less_of_the_log_is_shown_and_all_of_it_again(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await talk(stage)
        assert any("think" in text for text in lines(log(stage)))
        await stage.press("l")
        assert not any("think" in text for text in lines(log(stage)))
        assert "only work, 20 left out" in footer(stage)
        await stage.press("l")
        assert "only alerts, 60 left out" in footer(stage)
        assert "nothing but what is left out" in lines(log(stage))[0]
        stage.host.events("deploy", {"kind": "notice", "level": "error", "text": "quota"})
        await stage.show()
        assert "quota" in lines(log(stage))[0]
        await stage.press("l")
        assert "left out" not in footer(stage)
        assert log(stage).following


async def test_what_is_read_stays_while_more_comes_and_the_end_follows_again(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await talk(stage)
        await stage.press("l", "pageup")
        before = cursor_line(stage)
        stage.host.events("deploy", {"kind": "message", "text": "one"}, {"kind": "reasoning", "text": "hm"})
        stage.host.events("deploy", {"kind": "message", "text": "two"})
        await stage.show()
        assert cursor_line(stage) == before
        assert "2 new" in footer(stage)
        await stage.press("end")
        assert "following" in footer(stage)
        assert "two" in cursor_line(stage)


async def test_no_key_typed_behind_a_line_acts(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await talk(stage)
        await stage.press("slash", *"migrate", "enter")
        stage.host.session("deploy", {"send": {}, "pause": {}}, lifecycle="running")
        await stage.press("p")
        assert not stage.sent
        assert "you were writing just now" in stage.said
