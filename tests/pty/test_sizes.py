"""Terminals of odd sizes, and what an environment says of the size of a terminal that it is not about."""

from __future__ import annotations

import re
import signal
import time

import pytest

from console.terminal.lifeline import MOST
from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, WATCHFLOOR, console

SOURCE = "ws://127.0.0.1:9"
ENDS_S = 20.0
"""A few seconds on a machine at rest."""
"""Within this much a signal ends the console, however large its terminal."""


@pytest.mark.parametrize(
    "exported",
    [{"COLUMNS": "5", "LINES": "99999"}, {"COLUMNS": "300"}, {"LINES": "3"}, {"COLUMNS": "0", "LINES": "x"}],
    ids=str,
)
def test_the_terminal_itself_says_how_large_it_is(env: dict[str, str], exported: dict[str, str]) -> None:
    with Terminal([*WATCHFLOOR, "connect", SOURCE], (100, 30), env={**env, **exported}) as terminal:
        terminal.wait_for("STATE", SLOW_S)
        terminal.wait_for(re.compile(r"^.*\bq quit\b", re.MULTILINE))
        assert terminal.line(29) or terminal.line(28), "the footer stands at the end of the terminal"
        assert places(terminal.raw) <= (100, 30)
        terminal.resize(120, 40)
        terminal.wait_until(lambda: terminal.line(39) or terminal.line(38), what="the new size to be taken")
        assert places(terminal.raw) <= (120, 40)


def places(raw: bytearray) -> tuple[int, int]:
    """The rightmost column and the lowest row that the cursor was sent to."""
    sent = [(int(x or 1), int(y or 1)) for y, x in re.findall(rb"\x1b\[(\d*);(\d*)H", raw)]
    return max((x for x, _ in sent), default=0), max((y for _, y in sent), default=0)


@pytest.mark.parametrize("size", [(0, 0), (0, 24), (80, 0)], ids=str)
def test_a_terminal_that_does_not_know_its_size_is_taken_for_a_usual_one(
    env: dict[str, str], size: tuple[int, int]
) -> None:
    with Terminal([*WATCHFLOOR, "connect", SOURCE], size, env=env, drawn=False) as terminal:
        terminal.wait_until(lambda: b"STATE" in terminal.raw, SLOW_S, what="the first frame")
        terminal.wait_until(lambda: b"not reached" in terminal.raw, SLOW_S, what="the source to be told of")
        assert places(terminal.raw)[1] == 24
        assert places(terminal.raw)[0] <= 80


@pytest.mark.parametrize("size", [(65_535, 65_535), (65_535, 30), (60, 65_535), (3, 65_535), (1, 1)], ids=str)
@pytest.mark.parametrize("begun", ["at once", "once it is drawn"])
def test_a_signal_ends_it_however_large_the_terminal_says_that_it_is(
    env: dict[str, str], size: tuple[int, int], begun: str
) -> None:
    with Terminal([*WATCHFLOOR, "connect", SOURCE], size, env=env, drawn=False) as terminal:
        terminal.wait_until(lambda: b"\x1b[?1049h" in terminal.raw, SLOW_S, what="the terminal to be taken")
        if begun == "once it is drawn":
            terminal.wait_until(lambda: drawn(terminal, size), SLOW_S, what="the first frame")
        terminal.process.terminate()
        asked = time.monotonic()
        assert terminal.wait_exit(SLOW_S) == 128 + signal.SIGTERM
        assert time.monotonic() - asked < ENDS_S
        if begun == "once it is drawn" and min(size) > 12:
            columns, rows = places(terminal.raw)
            assert columns <= MOST[0]
            assert rows <= MOST[1]


def drawn(terminal: Terminal, size: tuple[int, int]) -> bool:
    """Is a whole frame out, with the parts that a terminal of this size has room for?"""
    frames = terminal.raw.count(b"\x1b[?2026l")
    return frames >= 1 and b"STATE" in terminal.raw if size[0] >= 40 and size[1] >= 12 else frames > 2


def test_it_is_drawn_anew_in_a_terminal_that_changes_its_mind(env: dict[str, str]) -> None:
    with console(env, "connect", SOURCE, size=(80, 24)) as terminal:
        terminal.wait_for("STATE", SLOW_S)
        terminal.resize(20, 5)
        terminal.wait_for("too small")
        terminal.resize(120, 40)
        terminal.wait_for("STATE")
        terminal.wait_until(lambda: terminal.line(39) or terminal.line(38), what="the footer at its end")


def test_a_size_that_the_terminal_reports_in_its_own_words_is_bounded_too(env: dict[str, str]) -> None:
    with Terminal([*WATCHFLOOR, "connect", SOURCE], (100, 30), env=env, drawn=False) as terminal:
        terminal.wait_until(lambda: b"not reached" in terminal.raw, SLOW_S, what="the first frame")
        terminal.raw.clear()
        terminal.write(b"\x1b[48;65535;65535;1;1t")
        terminal.wait_until(lambda: places(terminal.raw)[1] > 30, SLOW_S, what="the new size to be taken")
        terminal.process.terminate()
        assert terminal.wait_exit(SLOW_S) == 128 + signal.SIGTERM
        columns, rows = places(terminal.raw)
        assert columns <= MOST[0]
        assert rows <= MOST[1]
