"""Reduced motion: nothing slides, and no cursor blinks, wherever a text is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, TextArea

from console.app import Watchfloor
from console.audit import Audit
from console.config import parse
from tests.screens.stage import Clock, StagedHost, shown


@pytest.mark.parametrize("wanted", [True, False])
async def test_what_the_toolkit_moves_by_itself_stands_still(tmp_path: Path, wanted: bool) -> None:
    clock = Clock()
    config = parse(f"reduced_motion = {str(wanted).lower()}", tmp_path / "config.toml")
    app = Watchfloor(
        targets=(), config=config, clock=clock, steady=clock.steady, by="ops", audit=Audit(tmp_path, clock=clock)
    )
    async with app.run_test() as pilot:
        StagedHost(app, clock).session("alpha")
        await shown(pilot, app)
        assert (app.animation_level == "none") is wanted
        for key in ("colon", "escape", "question_mark"):
            await pilot.press(key)
            await pilot.pause()
            for line in app.screen.query("Input, TextArea"):
                assert isinstance(line, Input | TextArea)
                assert not line.cursor_blink
