"""The console with its journal, killed and opened again, against a program that goes on meanwhile."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.pty.kit import SLOW_S, WATCHFLOOR, console, program

EVENTS = re.compile(r"counter ─ .*whole ─ ([\d,]+) events")


def stats(env: Mapping[str, str]) -> int:
    """How many events the journal says that it has."""
    done = subprocess.run(
        [*WATCHFLOOR, "journal", "stats", "--json"],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(json.loads(done.stdout)["events"])


def test_a_console_that_was_killed_goes_on_where_its_journal_ends(env: dict[str, str], tmp_path: Path) -> None:
    with program(env, tmp_path) as (url, _):
        with console(env, "connect", url) as terminal:
            terminal.wait_until(lambda: told(terminal.screen()) > 60, SLOW_S, what="some events")
            seen = told(terminal.screen())
            terminal.process.kill()
            terminal.wait_exit()
        kept = stats(env)
        # What came in its last moment may be missing.
        assert kept > seen - 40
        with console(env, "connect", url) as terminal:
            terminal.wait_until(lambda: told(terminal.screen()) > kept + 10, SLOW_S, what="what came since")
            # Also what came before the kill is there to be read.
            terminal.press("tab", "g")
            terminal.wait_for(re.compile(r"line 1\b"), SLOW_S)
            assert "not in the journal" not in terminal.screen()
        assert stats(env) > kept


def told(screen: str) -> int:
    found = EVENTS.search(screen)
    return int(found[1].replace(",", "")) if found is not None else 0


def test_a_journal_that_cannot_be_kept_is_told_and_the_console_goes_on(env: dict[str, str], tmp_path: Path) -> None:
    state = Path(env["XDG_STATE_HOME"]) / "watchfloor"
    (state / "journal.db").mkdir(parents=True)
    with program(env, tmp_path) as (url, _), console(env, "connect", url, size=(160, 40)) as terminal:
        terminal.wait_for("the journal keeps nothing new", SLOW_S)
        terminal.wait_until(lambda: told(terminal.screen()) > 20, SLOW_S, what="some events")
