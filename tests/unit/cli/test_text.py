"""A text that is given to a verb: bounded, and told to be none before anything is dialled."""

from __future__ import annotations

import io

import pytest

from console.cli.changing import MOST
from console.cli.main import main

URL = "ws://127.0.0.1:1"


class Endless(io.TextIOBase):
    """Standard input that never ends."""

    def __init__(self) -> None:
        self.given = 0

    def read(self, size: int | None = -1) -> str:
        assert size is not None
        assert size >= 0, "it would be read for ever"
        self.given += size
        return "x" * size


@pytest.mark.parametrize(
    "words",
    [
        ("send", URL, "s", "-"),
        ("answer", URL, "s", "r", "--text", "-", "--current"),
        ("act", URL, "s", "a", "--fields", "-"),
    ],
)
def test_what_never_ends_is_refused(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    endless = Endless()
    monkeypatch.setattr("sys.stdin", endless)
    assert main(words) == 2
    says = f"watchfloor: the text is longer than 512 KiB, which no host takes; see watchfloor {words[0]} --help\n"
    assert capsys.readouterr().err == says
    assert endless.given == MOST + 1


def test_so_is_what_is_too_long_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", URL, "s", "é" * (MOST // 2 + 1)]) == 2
    assert "longer than 512 KiB" in capsys.readouterr().err
