"""The roster in a real terminal: filtered, marked, acted on at once, at sizes that change in the middle."""

from __future__ import annotations

import re
from pathlib import Path

from rich.cells import cell_len

from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console, hit, press_until, process_state, program

WIDE = "机器人-🚀"


def states(*pids: int) -> set[str]:
    return {process_state(pid) for pid in pids}


def column_of(terminal: Terminal, name: str, what: str) -> int:
    """At which cell of the row of a session a text begins."""
    row = next(line for line in terminal.screen().splitlines() if name in line and what in line)
    return cell_len(row[: row.index(what)])


def test_marked_sessions_are_paused_and_resumed_at_once(env: dict[str, str], tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    with (
        program(env, one, "--name", "alpha") as (near, first),
        program(env, two, "--name", WIDE) as (far, second),
        console(env, "connect", near, far, size=(80, 24)) as terminal,
    ):
        terminal.wait_for(re.compile(r"running +alpha"), SLOW_S)
        terminal.wait_for(re.compile(rf"running +{WIDE}"), SLOW_S)
        assert column_of(terminal, "alpha", "line ") == column_of(terminal, WIDE, "line ")
        terminal.press("M")
        terminal.wait_for("2 marked")
        hit(terminal, "p", "pause 2 marked sessions?")
        terminal.resize(200, 60)
        terminal.wait_until(lambda: terminal.line(59) or terminal.line(58), what="the new size to be taken")
        terminal.wait_for("pause 2 marked sessions?")
        press_until(terminal, "y", lambda: states(first, second) == {"T"})
        terminal.wait_for(re.compile(r"paused +alpha"))
        terminal.wait_for(re.compile(rf"paused +{WIDE}"))
        assert column_of(terminal, "alpha", "line ") == column_of(terminal, WIDE, "line ")
        terminal.resize(120, 40)
        terminal.press("/", "name:alpha", "enter")
        terminal.wait_for("filter name:alpha")
        terminal.wait_until(lambda: not re.search(rf"^.. . paused +{WIDE}", terminal.screen(), re.M), what="one row")
        terminal.wait_for("2 marked")  # marks hold for what the filter hides
        # What is typed right behind a text is no key.
        hit(terminal, "r", "resume 2 marked sessions?")
        terminal.wait_for(WIDE)  # named, hidden or not
        press_until(terminal, "y", lambda: "T" not in states(first, second))
        terminal.wait_for(re.compile(r"running +alpha"))
        terminal.press("escape")
        terminal.wait_gone("2 marked")
        terminal.press("escape")
        terminal.wait_for(re.compile(rf"running +{WIDE}"))


def test_a_log_is_looked_through_while_it_grows(env: dict[str, str], tmp_path: Path) -> None:
    with program(env, tmp_path) as (url, _), console(env, "connect", url, size=(80, 24)) as terminal:
        terminal.wait_for(re.compile(r"line [3-9]\d"), SLOW_S)
        terminal.press("tab", "/", "line 12", "enter")
        terminal.wait_for(re.compile(r"▌.*line 12"))
        terminal.wait_for(re.compile(r"line 12: \d+ of \d+"))
        terminal.wait_for(re.compile(r"\d+ new \(end\)"))
        terminal.press("escape", "end")
        terminal.wait_for("following")
        terminal.wait_gone(" new (end)")
