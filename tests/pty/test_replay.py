"""A recording in the real console: marked, steered, and acting on nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

from tests.pty.kit import check_given_back, console, press_until
from tests.sockets.test_recording import asking, recorded


async def made(path: Path) -> Path:
    async with asking() as host:
        return await recorded(host, path)


def test_a_recording_is_shown_paused_stepped_and_searched(env: Mapping[str, str], tmp_path: Path) -> None:
    path = asyncio.run(made(tmp_path / "build.rec"))
    with console(env, "replay", str(path), "--speed", "0.025") as terminal:
        terminal.wait_for("REPLAY")
        terminal.wait_for("this is a recording")
        terminal.wait_for("] request")
        # Played on, it comes to the request by itself: only the key stops it there.
        press_until(terminal, "]", lambda: "paused" in terminal.screen())
        terminal.wait_for("1 needs you")
        terminal.wait_for("asker")
        press_until(terminal, "i", lambda: "make release" in terminal.screen())
        press_until(terminal, "a", lambda: "approve: this is a recording" in terminal.screen())
        press_until(terminal, "]", lambda: "no request comes after this" in terminal.screen())
        terminal.wait_for("1 needs you")
        for _ in range(9):
            terminal.press(">")
        terminal.wait_for("x12.8")
        press_until(terminal, "@", lambda: "go to" in terminal.screen())
        terminal.press("1h", "enter")
        terminal.wait_gone("1 needs you")
        terminal.press(",")
        terminal.wait_gone("paused")
        terminal.wait_for("at its end")
        terminal.wait_for("1 needs you")
        press_until(terminal, "?", lambda: "half as fast" in terminal.screen())
        terminal.wait_for(re.compile(r", +pause +pause the recording, or go on"))
        press_until(terminal, "escape", lambda: "half as fast" not in terminal.screen())
        terminal.press("q")
        terminal.wait_for(re.compile(r"y +quit"))
        press_until(terminal, "y", lambda: terminal.process.poll() is not None)
        assert terminal.wait_exit() == 0
        check_given_back(terminal)


def test_what_is_no_recording_is_told_in_one_line(env: Mapping[str, str], tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("dear diary")
    with console(env, "replay", str(text), size=(200, 30)) as terminal:
        terminal.wait_for("is no recording")
        assert terminal.wait_exit() == 2
