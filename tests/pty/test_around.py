"""The screens around the fleet in a real terminal: command line, sources, help and doctor, resized in the middle."""

from __future__ import annotations

import pytest

from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console


def ready(terminal: Terminal) -> None:
    terminal.wait_for("11 sessions", SLOW_S)
    terminal.wait_for("q quit", SLOW_S)


def find(terminal: Terminal, text: str) -> None:
    """Open the command line and write; what fits best stands first."""
    terminal.press(":")
    terminal.wait_for("command line", SLOW_S)
    terminal.press(text)
    terminal.wait_until(lambda: text in terminal.line(1), SLOW_S, what=f"{text} written")


def test_a_session_is_found_and_paused_by_its_name(env: dict[str, str]) -> None:
    with console(env, "demo", size=(120, 40)) as terminal:
        ready(terminal)
        find(terminal, "narrator")
        terminal.press("enter")
        terminal.wait_gone("command line", SLOW_S)
        terminal.wait_for("narrator ─", SLOW_S)
        find(terminal, "pause")
        terminal.resize(80, 24)
        terminal.wait_until(lambda: "pause" in terminal.line(1), SLOW_S, what="the line in its new size")
        for _ in range(40):
            terminal.press("enter")
            if terminal.wait_until(lambda: "demo live" in terminal.line(0), 0.5, or_fail=False):
                break
        terminal.wait_for("paused", SLOW_S)


def test_what_is_typed_in_one_go_does_nothing_that_was_not_read(env: dict[str, str]) -> None:
    with console(env, "demo", size=(120, 40)) as terminal:
        ready(terminal)
        find(terminal, "narrator")
        terminal.press("enter")
        terminal.wait_for("narrator ─", SLOW_S)
        terminal.take_in(1.0)
        terminal.write(b":stop\r")
        terminal.wait_for("read it first", SLOW_S)
        terminal.press("escape")
        terminal.wait_gone("command line", SLOW_S)
        assert "stop narrator" not in terminal.screen()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_sources_and_help_fit_and_come_back(env: dict[str, str], size: tuple[int, int]) -> None:
    with console(env, "demo", size=size) as terminal:
        ready(terminal)
        terminal.press("S")
        terminal.wait_for("may intervene", SLOW_S)
        terminal.wait_for("try now: it is connected", SLOW_S)
        terminal.resize(100, 30)
        terminal.wait_for("heartbeat", SLOW_S)
        terminal.press("?")
        terminal.wait_for("Decide", SLOW_S)
        terminal.press("/", "zzz")
        terminal.wait_for("no key is described so", SLOW_S)
        terminal.press("escape", "escape")
        terminal.wait_for("q quit", SLOW_S)


def test_the_doctor_sees_the_terminal(env: dict[str, str]) -> None:
    with console({**env, "TMUX": "/tmp/none,1,0"}, "doctor", size=(200, 40)) as terminal:
        assert terminal.wait_exit(SLOW_S) == 0
        screen = terminal.screen()
        for said in ("200x40", "16 million colours", "UTF-8", "inside tmux", "nothing has to be mended"):
            assert said in screen
