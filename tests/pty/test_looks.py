"""How the console looks in a real terminal: without colour or mouse, with other keys, in a theme of one's own."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console, press_until, program

_SGR: Final = re.compile(rb"\x1b\[([0-9;:]*)m")
_MOUSE: Final = (b"\x1b[?1000h", b"\x1b[?1003h", b"\x1b[?1006h")


def configured(env: Mapping[str, str], text: str) -> Path:
    path = Path(env["XDG_CONFIG_HOME"]) / "watchfloor" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def colours(raw: bytes) -> set[bytes]:
    """The colours that were asked for; 39 and 49 ask for the terminal's own."""
    found: set[bytes] = set()
    for codes in _SGR.findall(raw):
        parts = re.split(rb"[;:]", codes)
        found |= {part for part in parts if re.fullmatch(rb"38|48|[349][0-7]|10[0-7]", part)}
    return found


def ready(terminal: Terminal) -> None:
    terminal.wait_for("DEMO", SLOW_S)
    terminal.wait_for("q quit", SLOW_S)


def written_within(terminal: Terminal, seconds: float) -> int:
    """How many bytes come within this time."""
    before, until = len(terminal.raw), time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        terminal.take_in(left)
    return len(terminal.raw) - before


def test_no_colour_means_none_at_all_whatever_the_theme(env: dict[str, str]) -> None:
    configured(env, 'theme = "harbour"\n')
    with console({**env, "NO_COLOR": "1"}, "demo") as terminal:
        ready(terminal)
        terminal.press("?")
        terminal.wait_for("Decide", SLOW_S)
        terminal.press("escape")
        terminal.wait_for("waiting", SLOW_S)
        terminal.press(":")
        terminal.wait_for("command line", SLOW_S)
        assert colours(bytes(terminal.raw)) == set()
        assert b"\x1b[7" in terminal.raw or b";7m" in terminal.raw or b";7;" in terminal.raw, "a cursor can be seen"


def test_an_empty_no_colour_asks_for_nothing(env: dict[str, str]) -> None:
    with console({**env, "NO_COLOR": ""}, "demo") as terminal:
        ready(terminal)
        assert b"38" in colours(bytes(terminal.raw))


@pytest.mark.parametrize("wanted", [True, False])
def test_the_mouse_is_taken_only_where_it_is_wanted(env: dict[str, str], wanted: bool) -> None:
    configured(env, f"mouse = {str(wanted).lower()}\n")
    with console(env, "demo") as terminal:
        ready(terminal)
        assert [mode in terminal.raw for mode in _MOUSE] == [wanted] * 3


def test_other_keys_work_and_are_the_ones_that_are_shown(env: dict[str, str]) -> None:
    configured(env, '[keys]\nquit = "ctrl+o"\nhelp = "f1"\n')
    with console(env, "demo") as terminal:
        terminal.wait_for("^O quit", SLOW_S)
        terminal.press("q", "?")
        terminal.write(b"\x1bOP")
        terminal.wait_for("Decide", SLOW_S)
        terminal.press("escape")
        terminal.wait_for("^O quit", SLOW_S)
        terminal.write(b"\x0f")
        terminal.wait_for("quit?", SLOW_S)
        press_until(terminal, "y", lambda: terminal.process.poll() is not None)
        assert terminal.wait_exit() == 0


@pytest.mark.parametrize(
    ("text", "theme", "says"),
    [
        ('mouse = true\n[keys]\nstop = "a"\n', "", "config.toml:3: keys.stop: the key a is taken by approve"),
        ('[keys]\nstop = "ctrl+i"\n', "", "config.toml:2: keys.stop: a terminal sends ctrl+i as tab"),
        (
            'theme = "mine"\n',
            'name = "mine"\nbase = "harbour"\n[tones]\nlost = "grey"\n',
            "mine.toml:4: tones.lost: 'grey' is not a colour",
        ),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_drawn(env: dict[str, str], text: str, theme: str, says: str) -> None:
    folder = configured(env, text).parent / "themes"
    if theme:
        folder.mkdir()
        (folder / "mine.toml").write_text(theme)
    with console(env, "demo", size=(200, 30)) as terminal:
        assert terminal.wait_exit(SLOW_S) == 2
        terminal.wait_for(says)
        assert b"\x1b[?1049h" not in terminal.raw


def test_a_theme_of_ones_own_is_worn(env: dict[str, str]) -> None:
    folder = configured(env, 'theme = "mine"\n').parent / "themes"
    folder.mkdir()
    (folder / "mine.toml").write_text('name = "mine"\nbase = "harbour"\n[grounds]\nground = "#010203"\n')
    with console(env, "demo") as terminal:
        ready(terminal)
        assert b"48;2;1;2;3" in terminal.raw


def test_in_reduced_motion_a_quiet_screen_is_not_drawn_on(env: dict[str, str], tmp_path: Path) -> None:
    configured(env, "reduced_motion = true\n")
    # Nothing waits for anybody here: how long something has waited is counted on every screen.
    with program(env, tmp_path) as (url, _), console(env, "connect", url) as terminal:
        terminal.wait_for(re.compile(r"running +counter"), SLOW_S)
        terminal.press("?")
        terminal.wait_for("Decide", SLOW_S)
        # Sooner or later it has been drawn; from then on nothing of it moves.
        terminal.wait_until(lambda: not written_within(terminal, 3.0), SLOW_S, what="a screen that stands still")
        assert b"\x1b[5m" not in terminal.raw, "nothing blinks"
