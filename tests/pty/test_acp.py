"""The console in a real terminal on a real agent of the Agent Client Protocol: what is approved is done once, what is
denied not at all."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.live.test_acp_hermes import hermes, needs_hermes
from tests.pty.elsewhere import elsewhere
from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console, hit, open_box, press_until

pytestmark = [pytest.mark.live, needs_hermes]

CARD = re.compile(r"^ \d+ of \d+  \S", re.MULTILINE)
"""The head of a card."""


def tell(terminal: Terminal, *steps: dict[str, str]) -> None:
    open_box(terminal, "s", "send to agent")
    terminal.write(f"Please do as you are told. do: {json.dumps(steps)}".encode())
    terminal.press("enter")


def card(terminal: Terminal, about: str) -> None:
    terminal.wait_for("1 needs you", SLOW_S)
    press_until(terminal, "i", lambda: CARD.search(terminal.screen()) and about in terminal.screen())
    press_until(terminal, "space", lambda: re.search(r"^ +armed(  |$)", terminal.screen(), re.MULTILINE))


def test_a_permission_is_approved_and_one_is_denied(env: dict[str, str], tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with elsewhere() as away:
        floor = away.run(away.stack.enter_async_context(hermes(tmp_path)))
        here = {**env, "WATCHFLOOR_RUNTIME_DIR": floor.program.env["WATCHFLOOR_RUNTIME_DIR"]}
        with console(here, "connect", "agent", size=(140, 40)) as terminal:
            terminal.wait_for("idle", SLOW_S)
            tell(terminal, {"run": f"rm -rf {tmp_path}/first && echo x >> {tmp_path}/ran"}, {"say": "It is gone."})
            card(terminal, "rm -rf")
            assert (tmp_path / "first").exists()
            hit(terminal, "a", "approved by")
            terminal.wait_until((tmp_path / "ran").exists, SLOW_S, what="the command")
            terminal.wait_for("It is gone.", SLOW_S)
            assert not (tmp_path / "first").exists()
            terminal.press("escape")
            tell(terminal, {"run": f"rm -rf {tmp_path}/second && echo x >> {tmp_path}/ran"}, {"say": "It stays."})
            card(terminal, "second")
            hit(terminal, "d", "denied by")
            terminal.wait_for("It stays.", SLOW_S)
            assert (tmp_path / "second").exists()
            assert (tmp_path / "ran").read_text() == "x\n"
