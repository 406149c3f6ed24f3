"""What the fleet and a card look like in every theme, the session and the inbox in those that differ most, and without
colour."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.screens.inbox_states import INBOX
from tests.screens.session_states import SESSIONS
from tests.screens.stage import Clock, console
from tests.screens.states import STATES
from themes.loader import theme_names

Compare = Callable[..., bool]
SIZE = (120, 36)


@pytest.mark.parametrize("state", ["fleet", "card"])
@pytest.mark.parametrize("theme", theme_names())
def test_it_looks_as_it_did(theme: str, state: str, snap_compare: Compare, tmp_path: Path) -> None:
    clock = Clock()
    app = console(clock, folder=tmp_path, theme=theme)

    async def play(pilot: Pilot[Any]) -> None:
        await STATES[state](app, clock, pilot)

    assert snap_compare(app, terminal_size=SIZE, run_before=play)


@pytest.mark.parametrize("state", ["session-request", "session-mailbox", "inbox"])
@pytest.mark.parametrize("look", ["watchfloor-light", "high-contrast", "monochrome", "ascii"])
def test_session_and_inbox_look_as_they_did(look: str, state: str, snap_compare: Compare, tmp_path: Path) -> None:
    clock = Clock()
    ascii = look == "ascii"
    app = console(clock, folder=tmp_path, theme=None if ascii else look, ascii=ascii)
    states = {**SESSIONS, **INBOX}

    async def play(pilot: Pilot[Any]) -> None:
        await states[state](app, clock, pilot)

    assert snap_compare(app, terminal_size=SIZE, run_before=play)


def test_it_looks_as_it_did_without_colour(
    snap_compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    clock = Clock()
    app = console(clock, folder=tmp_path, theme="harbour")

    async def play(pilot: Pilot[Any]) -> None:
        await STATES["card"](app, clock, pilot)

    assert snap_compare(app, terminal_size=SIZE, run_before=play)
