"""The application tells what waits: to who does not look, not in quiet hours, never of a recording."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from console.app import Watchfloor
from console.attention import BELL_MS
from console.config import parse
from console.notifying import keeper
from tests.screens.stage import LARGE, Clock, StagedHost, console, shown, until
from tests.screens.widget_kit import lines
from widgets.status_bar import StatusBar

AWAY_MS = 60_000


@asynccontextmanager
async def telling(
    monkeypatch: pytest.MonkeyPatch, notify: str = "", **rest: Any
) -> AsyncIterator[tuple[Watchfloor, Pilot[int], Clock, list[str]]]:
    """A console, and what it has told the terminal: a bell is a bell."""
    out: list[str] = []
    monkeypatch.setattr("console.app.tell_terminal", lambda app, sequence: out.append(sequence))
    monkeypatch.setattr(App, "bell", lambda app: out.append("\a"))
    clock = Clock()
    app = console(clock, **rest)
    text = f'[notify]\nterminal = "osc9"\n{notify}'
    app._config = replace(app._config, notify=parse(text, Path("/c.toml")).notify)
    async with app.run_test(size=LARGE) as pilot:
        await until(pilot, lambda: app.hub.showing is not None or app.attention.keeper is not None, lambda: "begun")
        yield app, pilot, clock, out


def _raise(app: Watchfloor, clock: Clock, *names: str) -> StagedHost:
    host = StagedHost(app, clock)
    for name in names:
        host.session(name)
        host.ask(f"r-{name}", session=name)
    return host


def _texts(out: list[str]) -> list[str]:
    return [text.removeprefix("\x1b]9;watchfloor: ").removesuffix("\a") for text in out if text != "\a"]


async def test_who_left_is_told_and_who_is_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async with telling(monkeypatch) as (app, pilot, clock, out):
        _raise(app, clock, "a", "b")
        await shown(pilot, app)
        clock.now += AWAY_MS - 1
        tick(app)
        assert _texts(out) == []
        clock.now += 1
        tick(app)
        assert _texts(out) == ["2 agents wait: a, b"]


async def test_a_key_is_a_sign_of_life_and_a_terminal_without_focus_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async with telling(monkeypatch) as (app, pilot, clock, out):
        _raise(app, clock, "a")
        await shown(pilot, app)
        clock.now += AWAY_MS
        await pilot.press("j")
        tick(app)
        assert _texts(out) == []
        app.app_focus = False
        tick(app)
        assert _texts(out) == ["1 agent waits: a"]


async def test_what_stands_on_the_card_is_not_told_when_one_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    async with telling(monkeypatch) as (app, pilot, clock, out):
        _raise(app, clock, "a", "b")
        await shown(pilot, app)
        await pilot.press("i")
        await until(pilot, lambda: app.fleet_screen.attended is not None, lambda: "a card is open")
        app._attend()
        clock.now += AWAY_MS
        tick(app)
        assert _texts(out) == ["2 agents wait: b"]


async def test_a_console_that_only_watches_tells_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    async with telling(monkeypatch, "away_after_s = 0", read_only=True) as (app, pilot, clock, out):
        _raise(app, clock, "a")
        await shown(pilot, app)
        clock.now += 1_000
        tick(app)
        assert _texts(out) == ["1 agent waits: a"]


async def test_what_nobody_answers_rings_once_a_second_at_most_and_not_in_quiet_hours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with telling(monkeypatch, 'quiet = "15:00-16:00"') as (app, pilot, clock, out):
        for _ in range(5):
            app.bell()
        assert out.count("\a") == 1
        clock.now += BELL_MS
        app.bell()
        assert out.count("\a") == 2
        _raise(app, clock, "a")
        await shown(pilot, app)
        before = out.count("\a")
        clock.now += 300_000
        tick(app)
        assert out.count("\a") == before + 1
        assert _texts(out) == ["1 agent waits, unanswered: a"]
        clock.now += 3_600_000  # five past three
        app.bell()
        assert out.count("\a") == before + 1


async def test_a_way_that_fails_stands_in_the_status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    notify = f'away_after_s = 0\ncommand = ["{tmp_path}/none"]'
    async with telling(monkeypatch, notify) as (app, pilot, clock, _):
        _raise(app, clock, "a")
        await shown(pilot, app)
        clock.now += 1_000
        tick(app)
        await until(pilot, lambda: app.hub.not_told, lambda: "it fails")
        app.fleet_screen.paint(everything=True)
        bar = "\n".join(lines(app.fleet_screen.query_one("#counts", StatusBar)))
        assert "not notified by command: it cannot be started" in bar


async def test_nothing_is_told_of_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(keeper, "Keeper", lambda *words, **rest: made.append(words))
    clock = Clock()
    app = console(clock)
    app.hub.showing = lambda: "REPLAY"
    async with app.run_test(size=LARGE) as pilot:
        await until(pilot, lambda: app._collector._taken, lambda: "all is begun")
        await shown(pilot, app)
        assert made == []
        assert app.attention.keeper is None


def tick(app: Watchfloor) -> None:
    assert app.attention.keeper is not None
    app.attention.keeper.tick()
