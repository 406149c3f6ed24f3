"""The screen of one session in a real terminal, on the demo: opened, decided and steered on, resized, and left."""

from __future__ import annotations

import re

import pytest

from console.screens.quiet import QUIET_MS
from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console, hit, open_box, press_until

SIZES = [(80, 24), (120, 40)]
READING = re.compile(r"from the beginning|earlier entr|kept no longer")
"""What only the transcript's last line says."""


def ready(terminal: Terminal) -> None:
    terminal.wait_for("11 sessions", SLOW_S)
    terminal.wait_for("q quit", SLOW_S)


def select(terminal: Terminal, name: str) -> None:
    """Turn to a session by its name."""
    terminal.press(":")
    terminal.wait_for("command line", SLOW_S)
    terminal.press(name)
    terminal.wait_until(lambda: name in terminal.line(1), SLOW_S, what=f"{name} written")
    terminal.press("enter")
    terminal.wait_for(f"{name} ─", SLOW_S)
    # What is typed right behind a text is no key.
    terminal.wait_until(lambda: False, 2 * QUIET_MS / 1000, or_fail=False)


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
def test_a_session_is_steered_on_its_screen(env: dict[str, str], size: tuple[int, int]) -> None:
    with console(env, "demo", size=size) as terminal:
        ready(terminal)
        select(terminal, "narrator")
        terminal.press("enter")
        terminal.wait_for(READING, SLOW_S)
        terminal.wait_for(re.compile(r"\d\d:\d\d:\d\d +agent", re.MULTILINE), SLOW_S)
        open_box(terminal, "s", "send to narrator")
        terminal.press("tell me about the harbour")
        terminal.wait_for("about the harbour")
        terminal.press("enter")
        terminal.wait_for(re.compile(r"by hand +send"), SLOW_S)
        terminal.resize(100, 30)
        terminal.wait_for(READING, SLOW_S)
        press_until(terminal, "p", lambda: re.search(r"narrator ─ paused", terminal.screen()))
        terminal.resize(*size)
        terminal.wait_for("narrator ─ paused", SLOW_S)
        terminal.press("M")
        terminal.wait_for("mailbox: 1 message", SLOW_S)
        terminal.wait_for(re.compile(r"^ text +tell me about the harbour", re.MULTILINE), SLOW_S)
        terminal.press("escape")
        terminal.wait_for(READING, SLOW_S)
        press_until(terminal, "s", lambda: "send to narrator" in terminal.screen())
        terminal.press("up")
        terminal.wait_for(re.compile(r"^ tell me about the harbour", re.MULTILINE), SLOW_S)
        terminal.press("escape")
        terminal.wait_until(lambda: "send to narrator" not in terminal.screen(), SLOW_S, what="the box is closed")
        terminal.press("escape")
        terminal.wait_until(lambda: not READING.search(terminal.screen()), SLOW_S, what="the fleet")
        assert re.search(r"▌.*paused +narrator", terminal.screen()), "the same session is selected"


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
def test_a_request_is_denied_on_the_screen_of_its_session(env: dict[str, str], size: tuple[int, int]) -> None:
    with console(env, "demo", size=size) as terminal:
        ready(terminal)
        select(terminal, "deploy")
        terminal.wait_for(re.compile(r"waiting +deploy"), SLOW_S)
        terminal.press("enter")
        terminal.wait_for(re.compile(r"^ \d+ of \d+  deploy", re.MULTILINE), SLOW_S)
        terminal.press("enter")
        terminal.wait_for(READING, SLOW_S)
        terminal.wait_for(re.compile(r"^ +armed(  |$)", re.MULTILINE), SLOW_S)
        hit(terminal, "d", "denied by")
        terminal.press("escape")
        terminal.wait_for(re.compile(r"by hand +deny"), SLOW_S)
        terminal.press("escape")
        terminal.wait_until(lambda: not READING.search(terminal.screen()), SLOW_S, what="the fleet")
        terminal.wait_for(re.compile(r"^▌.* deploy ", re.MULTILINE))
