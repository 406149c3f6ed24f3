"""Keys that come together, in a real terminal."""

from __future__ import annotations

import re
from pathlib import Path

from tests.pty.kit import SLOW_S, console, press_until


def test_of_two_decisions_in_one_read_one_is_sent(env: dict[str, str]) -> None:
    with console(env, "demo", size=(130, 40)) as terminal:
        terminal.wait_for("need you", SLOW_S)
        terminal.press("i")
        terminal.wait_for(re.compile(r"^ 1 of \d+  ", re.MULTILINE), SLOW_S)
        press_until(terminal, "dd", lambda: re.search("denied by|answered by", terminal.screen()))
        terminal.wait_for("effect seen", SLOW_S)
        state = Path(env["XDG_STATE_HOME"])
        (audit,) = state.rglob("audit/*.jsonl")
        assert audit.read_text().count('"what":"requested"') == 1
