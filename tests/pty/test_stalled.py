"""The terminal takes nothing for a while (Ctrl-S, a line that stands still): nothing of what sources say is missed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from tests.pty.kit import SLOW_S, console, press_until
from tests.pty.soak import fleet, kept

RATE: Final = 500
WHILE: Final = 2_500
"""Events that come meanwhile: more than what the terminal is given in that time fills all that lies between."""


def test_a_terminal_that_takes_nothing_keeps_the_console_from_nothing(env: Mapping[str, str]) -> None:
    with fleet(env, 100, RATE) as speaker, console(env, "connect", speaker.url, size=(160, 45)) as terminal:
        terminal.wait_for("soak live", SLOW_S)
        terminal.wait_until(lambda: kept(env) > RATE, SLOW_S, what="events in the journal")
        wanted = speaker.count() + WHILE
        patience = time.monotonic() + SLOW_S
        while kept(env) < wanted:
            assert time.monotonic() < patience, "the console waits for its terminal"
            time.sleep(0.05)  # and nothing is read from the terminal
        terminal.wait_for("soak live", SLOW_S)
        press_until(terminal, "?", lambda: " keys" in terminal.line(0))
        press_until(terminal, "escape", lambda: " keys" not in terminal.line(0))
        # What is shown is what is so now, drawn whole.
        terminal.wait_for("100 sessions", SLOW_S)
        terminal.wait_for("q quit", SLOW_S)
