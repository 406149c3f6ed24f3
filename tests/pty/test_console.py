"""The whole program in a real terminal: what is pressed happens to real processes and files."""

from __future__ import annotations

import re
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, apart, check_given_back, console, hit, press_until, process_state, program


def test_the_demo_does_what_is_approved_and_not_what_is_denied(env: dict[str, str]) -> None:
    with console(env, "demo", size=(130, 40)) as terminal:
        terminal.wait_for("need you", SLOW_S)
        terminal.wait_for(re.compile(r"waiting +deploy .*mkdir"), SLOW_S)
        _card_of(terminal, "deploy")
        folder, file = _demo_file(terminal.screen())
        assert not (folder / file).exists()
        hit(terminal, "d", "denied by")
        terminal.wait_for("effect seen")
        assert not (folder / file).exists()
        terminal.press("escape")
        terminal.wait_for(re.compile(r"waiting +deploy .*mkdir"), SLOW_S)
        _card_of(terminal, "deploy")
        folder, again = _demo_file(terminal.screen())
        assert not (folder / again).exists()
        hit(terminal, "a", "approved by")
        terminal.wait_until(lambda: (folder / again).exists(), what="the file")
        terminal.wait_for("effect seen")
        terminal.press("q")
        terminal.wait_for("with this console end the demo")
        terminal.wait_for(re.compile(r"y +quit"))
        press_until(terminal, "y", lambda: terminal.process.poll() is not None)
        assert terminal.wait_exit() == 0
        assert not folder.exists()


def _card_of(terminal: Terminal, name: str) -> None:
    """Open the card of a session, by keys, and wait until it counts them."""
    shown = re.compile(r"^ (\d+ of \d+  \S+)", re.MULTILINE)

    def other_than(old: str | None) -> bool:
        now = shown.search(terminal.screen())
        return now is not None and now[1] != old

    before = None
    for _ in range(20):
        terminal.press("i")
        terminal.wait_until(partial(other_than, before), what="a card")
        title = shown.search(terminal.screen())
        assert title is not None
        if title[1].endswith(f"  {name}"):
            terminal.wait_for(re.compile(r"^ +armed(  |$)", re.MULTILINE))
            return
        before = title[1]
    raise AssertionError(f"no card of {name}:\n{terminal.screen()}")


def _demo_file(screen: str) -> tuple[Path, str]:
    """The folder that a card names, and the file that its action would make there."""
    folder = re.search(r"^ +in │ (\S+)", screen, re.MULTILINE)
    action = re.search(r"runs │ .*?cp \S+ (\S+)", screen)
    assert folder, screen
    assert action, screen
    return Path(folder[1]), action[1]


def test_a_program_is_stopped_and_goes_on_in_the_process_table(env: dict[str, str], tmp_path: Path) -> None:
    with program(env, tmp_path) as (url, pid), console(env, "connect", url) as terminal:
        terminal.wait_for(re.compile(r"running +counter"), SLOW_S)
        terminal.wait_for(re.compile(r"line \d+"))
        assert process_state(pid) != "T"
        press_until(terminal, "p", lambda: process_state(pid) == "T")
        terminal.wait_for(re.compile(r"paused +counter"))
        terminal.wait_for("effect seen: paused")
        press_until(terminal, "r", lambda: process_state(pid) in ("S", "R"))
        terminal.wait_for(re.compile(r"running +counter"))
        press_until(terminal, "X", lambda: "stop counter" in terminal.screen())
        press_until(terminal, "y", lambda: process_state(pid) == "")
        terminal.wait_for(re.compile(r"stopped +counter"))


def test_a_program_that_is_only_observed_has_no_control(env: dict[str, str], tmp_path: Path) -> None:
    with program(env, tmp_path, "--observe") as (url, pid), console(env, "connect", url, size=(80, 24)) as terminal:
        terminal.wait_for(re.compile(r"running +counter"), SLOW_S)
        assert not re.search(r"\b[aAdDospPxrRX] (approve|send|pause|interrupt|resume|stop)", terminal.line(22))
        for key in "aAdDospPxrRX":
            refused = re.compile(rf"^ {key} .*can only be observed", re.MULTILINE)
            apart(terminal)
            hit(terminal, key, refused)
        assert process_state(pid) in ("S", "R")


def test_keys_typed_faster_than_a_screen_is_drawn_keep_their_order(env: dict[str, str], tmp_path: Path) -> None:
    with program(env, tmp_path, "--stdin") as (url, pid), console(env, "connect", url) as terminal:
        terminal.wait_for(re.compile(r"running +counter"), SLOW_S)
        terminal.write(b"shello Xp\rXp")
        terminal.wait_for(re.compile(r"mail +.*hello Xp *(sent|consumed)?", re.MULTILINE))
        assert "hello XpXp" not in terminal.screen()
        terminal.press("escape")
        terminal.wait_for(re.compile(r"running +counter"))
        assert process_state(pid) in ("S", "R")


@pytest.mark.parametrize("how", ["keys", "ctrl+c", "signal"])
def test_whatever_ends_it_gives_the_terminal_back(env: dict[str, str], how: str) -> None:
    with console(env, "connect", "ws://127.0.0.1:9", size=(80, 24)) as terminal:
        terminal.wait_for("STATE", SLOW_S)
        terminal.wait_for("127.0.0.1:9 not reached")
        if how == "signal":
            terminal.process.terminate()
            assert terminal.wait_exit() == 128 + signal.SIGTERM
        else:
            key = "q" if how == "keys" else "ctrl+c"
            terminal.press(key)
            terminal.wait_for("quit?")
            press_until(terminal, "y" if how == "keys" else key, lambda: terminal.process.poll() is not None)
            assert terminal.wait_exit() == 0
        check_given_back(terminal)


def test_the_first_frame_comes_before_anybody_answers(env: dict[str, str]) -> None:
    with console(env, "connect", "ws://127.0.0.1:9", "ws://127.0.0.1:10", size=(120, 30)) as terminal:
        screen = terminal.wait_for("STATE", SLOW_S)
        assert ":9 connecting" in screen or ":9 not reached" in screen
        assert ":10 connecting" in screen or ":10 not reached" in screen
