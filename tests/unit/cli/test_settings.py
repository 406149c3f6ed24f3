"""`watchfloor config`: where it is, a first one, and whether it is in order."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from console.cli.main import main
from watchfloor.protocol.schema import schema


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "conf" / "config.toml"
    monkeypatch.setenv("WATCHFLOOR_CONFIG", str(where))
    return where


def test_path(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{path}\n"


def test_init_writes_one_that_is_in_order_and_never_over_another(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "init"]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out.endswith(f"{path} is in order: 0 sources\n")

    path.write_text("mouse = false\n")
    assert main(["config", "init"]) == 2
    assert capsys.readouterr().err == f"watchfloor: {path} exists already and is left as it is\n"
    assert path.read_text() == "mouse = false\n"


def test_check_tells_every_fault(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.parent.mkdir()
    path.write_text("mose = true\naudit = 3\n")
    assert main(["config", "check"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"watchfloor: {path}:1: mose: there is no such key; did you mean mouse?",
        f"watchfloor: {path}:2: audit: it must be a text in quotes",
    ]


def test_check_looks_into_the_operators_own_themes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = path.parent / "themes"
    folder.mkdir(parents=True)
    path.write_text('theme = "mine"\n')
    (folder / "mine.toml").write_text('name = "mine"\nbase = "harbour"\n[tones]\nquiet = "grey"\n')
    assert main(["config", "check"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"watchfloor: {folder / 'mine.toml'}:4: tones.quiet: 'grey' is not a colour; write it as \"#rrggbb\""
    ]


def test_check_looks_for_the_tokens(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.parent.mkdir()
    path.write_text(
        '[[source]]\nname = "a"\nurl = "ws://h:1"\ntoken_file = "none"\n'
        '[[source]]\nname = "b"\nurl = "ws://h:2"\ntoken_env = "WATCHFLOOR_TEST_MISSING"\n'
    )
    assert main(["config", "check"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"watchfloor: {path}:4: source 1: token_file: {path.parent / 'none'}: there is no such token file",
        f"watchfloor: {path}:8: source 2: token_env: the environment variable WATCHFLOOR_TEST_MISSING with its token "
        "is not set",
    ]


def test_check_tells_in_one_run_all_that_is_wrong_wherever(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path.parent / "themes").mkdir(parents=True)
    (path.parent / "themes" / "mine.toml").write_text('name = "mine"\nbase = "harbour"\n[tones]\nquiet = "grey"\n')
    path.write_text(
        'mouse = "no"\n[keys]\nstop = "ctrl+i"\n'
        '[[source]]\nurl = "foo://h"\ntoken_file = "none"\n'
        '[[source]]\nname = "b"\nurl = "h:1"\ntoken_env = "WATCHFLOOR_TEST_MISSING"\n'
        '[[source]]\nname = "b"\nurl = "ws://h:1/#x"\ntoken_file = "~no-such-user/x"\nrecord = 3\n'
    )
    assert main(["config", "check"]) == 2
    said = [line.removeprefix(f"watchfloor: {path}:") for line in capsys.readouterr().err.splitlines()]
    starts = [
        "1: mouse: it must be true or false",
        "3: keys.stop: a terminal sends ctrl+i as tab",
        "4: source 1: name is missing",
        "9: source 2: url: 'h:1' is not a URL",
        "12: source 3: name: 'b' is the name of another source already (line 8)",
        "14: source 3: token_file: ~no-such-user/x: there is no user 'no-such-user'",
        "15: source 3: record: it must be a text in quotes",
        "5: source 1: url: no connector speaks foo://",
        f"6: source 1: token_file: {path.parent / 'none'}: there is no such token file",
        "10: source 2: token_env: the environment variable WATCHFLOOR_TEST_MISSING with its token is not set",
        "13: source 3: url: ws://h:1/: an address of a host has no part after #",
        f"watchfloor: {path.parent / 'themes' / 'mine.toml'}:4: tones.quiet: ",
    ]
    assert [line[: len(start)] for line, start in zip(said, starts, strict=False)] == starts
    assert len(said) >= len(starts)


def test_check_of_what_is_no_toml_still_looks_at_the_themes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path.parent / "themes").mkdir(parents=True)
    (path.parent / "themes" / "mine.toml").write_text('name = "other"\nbase = "harbour"\n')
    path.write_text("mouse = false\nmouse\n")
    assert main(["config", "check"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"watchfloor: {path}:2: it is not TOML: ")
    assert second.startswith(f"watchfloor: {path.parent / 'themes' / 'mine.toml'}:1: name: it is 'other'")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ws://127.0.0.1:99999", "the address is not one of a host"),
        ("ws://127.0.0.1:port", "the address is not one of a host"),
        ("ws://[::1", "the address"),
        ("ws://:7340", "the address is not one of a host"),
        ("ws://build farm:1", "the address is not one of a host"),
        ("foo://127.0.0.1:1", "no connector speaks foo://"),
        ("ws://127.0.0.1:1/#part", "an address of a host has no part after #"),
    ],
)
def test_check_tells_an_address_that_nobody_could_dial(
    path: Path, capsys: pytest.CaptureFixture[str], url: str, says: str
) -> None:
    path.parent.mkdir()
    path.write_text(f'[[source]]\nname = "a"\nurl = "ws://h:1"\n[[source]]\nname = "farm"\nurl = "{url}"\n')
    assert main(["config", "check"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"watchfloor: {path}:6: source 2: url: ")
    assert says in said


def test_check_of_a_default_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WATCHFLOOR_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["config", "check"]) == 0
    assert "does not exist: the defaults hold" in capsys.readouterr().out


def test_the_schema_is_that_of_the_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
