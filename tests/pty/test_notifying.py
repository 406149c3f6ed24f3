"""Alerts by the terminal, in a real one: whole sequences of the two kinds that were asked for, whatever agents say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fixtures.hostile import BENIGN, HOSTILE
from tests.pty.kit import SLOW_S, console, press_until
from tests.pty.scripted_host import ScriptedHost, serving
from tests.pty.sequences import sequences, unseen

SESSIONS = 80
ALERT = re.compile(rb"\x1b\](?:9|777);([^\x07\x1b]*)\x07")


def _run(env: Mapping[str, str], texts: Sequence[str], notify: str, *words: str) -> bytes:
    """What a console wrote that was told to notify, and left once it had."""
    where = Path(env["XDG_CONFIG_HOME"]) / "watchfloor" / "config.toml"
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(f"[notify]\naway_after_s = 0\n{notify}")
    with (
        serving(ScriptedHost(texts, SESSIONS)) as url,
        console(env, *words, "connect", url, size=(130, 40)) as terminal,
    ):
        terminal.wait_for(re.compile(r"64 need you"), SLOW_S)
        terminal.wait_until(lambda: ALERT.search(terminal.raw), SLOW_S, what="an alert")
        terminal.press("j", "j")
        terminal.wait_for(re.compile(rf"^ {SESSIONS} sessions ", re.MULTILINE), SLOW_S)
        terminal.press("q")
        terminal.wait_for(re.compile(r"y +quit"), SLOW_S)
        press_until(terminal, "y", lambda: terminal.process.poll() is not None)
        assert terminal.wait_exit() == 0
        return bytes(terminal.raw)


def test_hostile_agents_have_the_terminal_told_no_more_than_others(env: dict[str, str]) -> None:
    usual = _run(env, BENIGN, 'terminal = "osc9"\ndetails = true\n')
    odd = _run(env, HOSTILE, 'terminal = "osc777"\ndetails = true\n', "--read-only")
    assert "OSC 9" in sequences(usual)
    assert sequences(odd) - sequences(usual) == {"OSC 777"}
    assert unseen(odd) - unseen(usual) == set()
    for raw in (usual, odd):
        # 64 requests came at once: one alert.
        (words,) = ALERT.findall(raw)
        assert words.decode().isprintable()
        assert b"agents wait: " in words


def test_without_being_asked_to_it_only_rings(env: dict[str, str]) -> None:
    where = Path(env["XDG_CONFIG_HOME"]) / "watchfloor"
    assert not where.exists()
    with serving(ScriptedHost(BENIGN, SESSIONS)) as url, console(env, "connect", url, size=(130, 40)) as terminal:
        terminal.wait_for(re.compile(r"64 need you"), SLOW_S)
        terminal.press("j", "j")
        terminal.press("q")
        terminal.wait_for(re.compile(r"y +quit"), SLOW_S)
        press_until(terminal, "y", lambda: terminal.process.poll() is not None)
        assert ALERT.search(terminal.raw) is None
