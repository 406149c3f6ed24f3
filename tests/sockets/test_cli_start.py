"""Which sources the console opens on, seen in a terminal of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.pty.harness import Terminal

SIZE = (120, 30)
WATCHFLOOR = [sys.executable, "-m", "console.cli.main"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "WATCHFLOOR_RUNTIME_DIR": str(tmp_path / "run"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "WATCHFLOOR_TOKEN": "",
        "WATCHFLOOR_CONFIG": "",
    }


def _open(env: Mapping[str, str], *words: str) -> Terminal:
    return Terminal([*WATCHFLOOR, *words], SIZE, env=env)


def test_bare_it_opens_on_the_hosts_of_this_machine(env: dict[str, str], tmp_path: Path) -> None:
    program = ["run", "--name", "looper", "--", "sh", "-c", "while :; do sleep 1; done"]
    with _open(env, *program) as run:
        run.wait_for("listening on")
        with _open(env) as console:
            console.wait_for("looper live")
            assert "DEMO" not in console.screen()
            assert "demo" not in console.line(0)


def test_bare_without_any_it_opens_on_the_demo(env: dict[str, str]) -> None:
    with _open(env) as console:
        console.wait_for("demo live", 40.0)
        console.wait_for("DEMO")
        console.wait_for("no host found here: this is the demo; watchfloor connect URL opens yours")
        with _open(env, "run", "--name", "looper", "--", "sh", "-c", "while :; do sleep 1; done") as run:
            run.wait_for("listening on")
            console.wait_for("2 sources live")
            console.press("j")
            console.wait_gone("no host found here")


def test_the_demo_that_was_asked_for_needs_no_ground(env: dict[str, str]) -> None:
    with _open(env, "demo") as console:
        console.wait_for("you: i", 40.0)
        assert "no host found" not in console.screen()


def test_an_open_console_finds_a_host_that_appears_that_ends_and_that_comes_back(env: dict[str, str]) -> None:
    program = ["run", "--name", "looper", "--", "sh", "-c", "while :; do sleep 1; done"]
    keeper = ["run", "--name", "keeper", "--", "sh", "-c", "while :; do sleep 1; done"]
    with _open(env, *keeper) as other:
        other.wait_for("listening on")
        with _open(env) as console:
            console.wait_for("keeper live")
            with _open(env, *program) as run:
                run.wait_for("listening on")
                console.wait_for("2 sources live")
                console.wait_for("looper  ")
                run.press("ctrl+c")
                assert run.wait_exit() == 130
            console.wait_for("the host has ended")
            assert "looper" in console.screen(), "its last known state stays"
            with _open(env, *program) as run:
                run.wait_for("listening on")
                console.wait_for("2 sources live")


def test_a_configured_source_that_is_away_is_shown_as_not_reached(env: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "config" / "watchfloor" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[[source]]\nname = "farm"\nurl = "ws://127.0.0.1:1"\n')
    with _open(env) as console:
        console.wait_for("farm not reached")


@pytest.mark.parametrize(
    ("words", "variables", "code", "says"),
    [
        ((), {"TERM": "dumb"}, 2, "TERM says that this one cannot; for scripts there are"),
        (("connect", "nowhere"), {}, 2, "'nowhere' is neither a URL"),
        (("demo", "--token-file", "x"), {}, 2, "--token-file belongs to demo --serve"),
    ],
)
def test_what_cannot_be_opened_leaves_the_terminal_alone(
    env: dict[str, str], words: tuple[str, ...], variables: dict[str, str], code: int, says: str
) -> None:
    with _open({**env, **variables}, *words) as terminal:
        assert terminal.wait_exit() == code
        assert says.encode() in bytes(terminal.raw)
        assert b"\x1b" not in terminal.raw


def test_a_malformed_configuration_is_told_before_anything_is_drawn(env: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("mose = true\n")
    with _open({**env, "WATCHFLOOR_CONFIG": str(config)}) as terminal:
        assert terminal.wait_exit() == 2
        assert b"1: mose: there is no such key; did you mean mouse?" in terminal.raw
        assert b"\x1b" not in terminal.raw


def test_a_state_folder_that_cannot_be_used_does_not_keep_the_console_from_opening(
    env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "state").touch()
    with _open(env, "connect", "ws://127.0.0.1:1") as console:
        console.wait_for("not reached")
        assert console.process.poll() is None
