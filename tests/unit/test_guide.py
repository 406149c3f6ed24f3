"""The operator's guide: what it tells to write is understood, and what it shows is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from console.actions import ACTIONS, BY_ID
from console.cli.parser import parse as parse_words
from console.config import parse
from console.keymap import keymap
from themes.data import parse_theme
from themes.loader import load_theme, theme_names

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guide.md").read_text(encoding="utf-8")
CONFIG, THEME = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
COMMANDS = list(re.findall(r"^    (watchfloor.*?)(?: +#.*)?$", PAGE, flags=re.MULTILINE))


def test_its_configuration_is_in_order(tmp_path: Path) -> None:
    config = parse(CONFIG, tmp_path / "config.toml")
    assert set(config.keys) == {"approve", "next"}
    assert config.sources[0].name == "build-farm"


def test_its_theme_is_in_order() -> None:
    theme = parse_theme(THEME, "mine.toml", base=load_theme)
    assert (theme.tones["attention"], theme.grounds["ground"], theme.styles["failed"]) == ("#ffd166", "#0b0f14", "bold")


def test_every_theme_is_named() -> None:
    for name in theme_names():
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize("line", COMMANDS)
def test_its_command_lines_are_understood(line: str) -> None:
    assert parse_words(shlex.split(line)[1:]).handler


def test_there_are_command_lines_to_look_at() -> None:
    assert {"watchfloor doctor", "watchfloor doctor --dial", "watchfloor web"} <= set(COMMANDS)


@pytest.mark.parametrize("picture", re.findall(r"\]\(\.\./(screenshots/[\w.-]+)\)", PAGE))
def test_its_pictures_are_there(picture: str) -> None:
    assert (ROOT / picture).is_file()


@pytest.mark.parametrize(
    ("id", "key"),
    [
        ("next", "i"),
        ("approve", "a"),
        ("deny", "d"),
        ("deny_reason", "D"),
        ("options", "A"),
        ("answer", "o"),
        ("send", "s"),
        ("pause", "p"),
        ("pause_now", "P"),
        ("interrupt", "x"),
        ("resume", "r"),
        ("stop", "X"),
        ("quit", "q"),
        ("command", ":"),
        ("sources", "S"),
        ("retry", "t"),
        ("help", "?"),
    ],
)
def test_its_keys_are_the_usual_ones(id: str, key: str) -> None:
    assert keymap(ACTIONS).shown(id) == key
    assert f"`{key}`" in PAGE
    assert BY_ID[id].label
