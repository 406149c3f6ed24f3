"""Files that an operator names: what is no small file is refused at once, whatever reads it."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from console import files
from console.cli.main import main
from console.config import load, parse, read_token
from watchfloor import runtime
from watchfloor.errors import ConfigError


def _fifo(path: Path) -> Path:
    os.mkfifo(path, 0o600)
    return path


def _folder(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path


def _socket(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    return path


def _large(path: Path) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(b"x" * (files.MOST + 1))
    return path


ODD: list[tuple[Callable[[Path], Path], str]] = [
    (_fifo, "it is a pipe, and must be a file"),
    (_folder, "it is a folder, and must be a file"),
    (_socket, "it is a device or a socket, and must be a file"),
    (_large, "it is larger than 1 MB, and must be a small file"),
    (lambda _: Path("/dev/zero"), "it is a device or a socket, and must be a file"),
    (lambda _: Path("/dev/full"), "it is a device or a socket, and must be a file"),
]


@pytest.mark.parametrize("reads", [load, read_token])
@pytest.mark.parametrize(("make", "says"), ODD)
def test_what_is_no_small_file_is_refused(
    tmp_path: Path, make: Callable[[Path], Path], says: str, reads: Callable[[Path], object]
) -> None:
    path = make(tmp_path / "odd")
    with pytest.raises(ConfigError) as caught:
        reads(path)
    assert str(caught.value) == f"{path}: {says}"


def test_a_file_that_grows_while_it_is_read_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST", 10)
    for size in (10, 11):
        # Such files say that they are empty.
        monkeypatch.setattr(files, "_check", lambda info, path: None)
        (tmp_path / "file").write_bytes(b"x" * size)
        if size == 10:
            assert files.read(tmp_path / "file") == b"x" * 10
        else:
            with pytest.raises(ConfigError, match="larger than 1 MB"):
                files.read(tmp_path / "file")


def test_a_user_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"^~no-such-user/token: there is no user 'no-such-user'$"):
        read_token(Path("~no-such-user/token"))
    monkeypatch.setenv("WATCHFLOOR_CONFIG", "~no-such-user/config.toml")
    with pytest.raises(ConfigError, match="there is no user 'no-such-user'"):
        load()
    text = "[[source]]\nname = 'a'\nurl = 'ws://h:1'\ntoken_file = '~no-such-user/t'\n"
    with pytest.raises(ConfigError, match=r"^/c:4: source 1: token_file: .* there is no user 'no-such-user'$"):
        parse(text, Path("/c"))


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whom nobody knows, as in many a container."""

    def unknown(uid: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME", "WATCHFLOOR_CONFIG", "WATCHFLOOR_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("homeless")
@pytest.mark.parametrize(
    "words", ["sessions ws://127.0.0.1:1", "pause ws://127.0.0.1:1 s", "config path", "config check", "connect ws://h"]
)
def test_without_a_home_the_variable_to_set_is_named(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr() == (
        "",
        "watchfloor: your home folder is not known: set HOME, or XDG_CONFIG_HOME\n",
    )


@pytest.mark.usefixtures("homeless")
def test_each_folder_has_a_variable_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["pause", "ws://127.0.0.1:1", "s"]) == 2
    assert capsys.readouterr().err == "watchfloor: your home folder is not known: set HOME, or XDG_STATE_HOME\n"
    with pytest.raises(runtime.RuntimeFolderError, match="set WATCHFLOOR_RUNTIME_DIR, or HOME"):
        runtime.publish("ws://127.0.0.1:1", None, "x")
    assert runtime.hosts() == []
    assert runtime.stamp() is None
    with pytest.raises(ConfigError, match="~/token: your home folder is not known: set HOME"):
        read_token(Path("~/token"))


@pytest.mark.usefixtures("homeless")
def test_a_fault_of_our_own_is_told_without_a_home(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> NoReturn:
        raise ZeroDivisionError

    monkeypatch.setattr("console.cli.settings.config_path", broken)
    assert main(["config", "path"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("watchfloor: ZeroDivisionError (a fault of this program, not of yours); it could not be ")
    assert said.endswith("written down: your home folder is not known: set HOME, or XDG_STATE_HOME\n")
