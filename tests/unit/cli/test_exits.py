"""How the command line ends: the right status, one line, never a traceback."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import pytest

from console.cli.exits import Fail, Usage, guarded
from console.version import VERSION
from watchfloor import errors

KEY = "-".join(("sk", "ant", "a1b2c3d4" * 5))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "watchfloor"


def _raises(error: BaseException) -> Callable[[], int]:
    def body() -> NoReturn:
        raise error

    return body


def _program(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "console.cli.main", *words], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Fail("no", 6), 6),
        (Usage("no"), 2),
        (errors.Unreachable("no"), 8),
        (errors.NotAHost("no"), 8),
        (errors.NoCommonProtocol("no"), 8),
        (errors.ConnectionLost("no"), 8),
        (errors.Denied("no"), 7),
        (errors.AddressInUse("no"), 8),
        (errors.ConfigError("no"), 2),
    ],
)
def test_what_is_expected_is_told_in_one_line(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    assert guarded(_raises(error)) == code
    assert capsys.readouterr() == ("", "watchfloor: no\n")
    assert not state.exists(), "nothing of it belongs into the log"


def test_ctrl_c_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(_raises(KeyboardInterrupt())) == 130
    assert capsys.readouterr() == ("", "")


def test_our_own_fault_leaves_its_story_in_the_log(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    error = KeyError(f"{KEY} \x1b[31m")
    assert guarded(_raises(error)) == 1
    captured = capsys.readouterr()
    log = state / "watchfloor.log"
    assert captured.out == ""
    assert captured.err == f"watchfloor: KeyError (a fault of this program, not of yours); what happened is in {log}\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    story = log.read_text()
    assert "Traceback" in story
    assert "a1b2c3d4" not in story
    assert "\x1b" not in story


def test_a_log_that_cannot_be_written_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert guarded(_raises(ValueError("x"))) == 1
    assert "could not be written" in capsys.readouterr().err


def test_hostile_words_of_an_error_cannot_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    guarded(_raises(errors.Unreachable(f"\x1b]0;x\x07\u202e {KEY}")))
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "a1b2c3d4" not in said


def test_a_reader_that_leaves_ends_the_program_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "console.cli.main", "schema"],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_version() -> None:
    assert version("watchfloor-console") == VERSION
    done = _program("--version")
    assert (done.returncode, done.stdout) == (0, f"watchfloor {VERSION}\n")


def test_usage_is_told_on_standard_error_with_status_2() -> None:
    done = _program("sessions")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == ("watchfloor: the following arguments are required: URL; see watchfloor sessions --help\n")


@pytest.mark.parametrize("words", [[], ["demo"], ["connect", "ws://127.0.0.1:1"]])
def test_without_a_terminal_the_console_says_so(words: list[str]) -> None:
    done = _program(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("watchfloor: the console needs a terminal on its input, its output and its standard")
    assert done.stderr.count("\n") == 1


def test_version_loads_nothing_heavy() -> None:
    probe = (
        "import sys; from console.cli.main import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: pass\n"
        "heavy = {'asyncio', 'httpx', 'pydantic', 'rich', 'sqlite3', 'textual', 'websockets'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
