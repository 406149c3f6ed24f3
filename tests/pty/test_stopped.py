"""The console is stopped for ten seconds while a fleet talks on, as by a laptop's lid or Ctrl-Z, and goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.pty.kit import SLOW_S, console
from tests.pty.soak import fleet, kept, stopped_for

STOP_S: Final = 10.0
RATE: Final = 500
SLACK: Final = 5.0
"""A machine that does other things as well takes so many times as long. On one at rest the limits are 1 and 10 s."""


def test_a_console_that_was_stopped_under_load_is_of_use_at_once_and_soon_whole(env: Mapping[str, str]) -> None:
    with fleet(env, 100, RATE) as speaker, console(env, "connect", speaker.url) as terminal:

        def behind() -> bool:
            """By more than what is said in a second."""
            return kept(env) < speaker.count() - RATE

        terminal.wait_for("soak live", SLOW_S)
        terminal.wait_until(lambda: kept(env) > RATE and not behind(), SLOW_S, what="a journal that is up to date")
        usable, caught_up = stopped_for(terminal, STOP_S, behind)
        assert "lost" not in terminal.line(0), "nobody is blamed for it"
        print(f"\nstopped for {STOP_S:g} s: a key after {usable:.2f} s, nothing behind after {caught_up:.1f} s")
        assert usable < 1.0 * SLACK
        assert caught_up < 10.0 * SLACK
