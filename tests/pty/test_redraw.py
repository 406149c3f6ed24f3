"""The key that draws the screen once more, after somebody else wrote to the terminal."""

from __future__ import annotations

import re

from tests.pty.kit import SLOW_S, console

FOREIGN = "\x1b[20;1Hbroadcast message: the machine goes down\r\n\x1b[22;4Hfor a while"


def test_what_somebody_else_wrote_goes_at_a_key(env: dict[str, str]) -> None:
    with console(env, "connect", "ws://127.0.0.1:9") as terminal:
        terminal.wait_for(re.compile(r"127\.0\.0\.1:9 not reached.*STATE", re.DOTALL), SLOW_S)
        terminal.scribble(FOREIGN)
        assert "broadcast message" in terminal.screen()
        # What is painted by itself, each second and at other keys, leaves it where it is.
        terminal.press("s")
        terminal.wait_for("no session is selected")
        terminal.wait_gone(terminal.line(0)[-8:])
        assert "broadcast message" in terminal.screen()
        terminal.press("ctrl+l")
        terminal.wait_gone("broadcast message")
        terminal.wait_gone("for a while")
        terminal.press("?")
        terminal.wait_for("keys")
        terminal.press("end")
        terminal.wait_for(re.compile(r"\^L +redraw"))
