"""Policies beside the configuration, in the real console."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.pty.kit import SLOW_S, console

DENY = '[[policy]]\nname = "nothing today"\ndo = "deny"\nsource = "demo"\n'


def _file(env: dict[str, str], text: str) -> Path:
    where = Path(env["XDG_CONFIG_HOME"]) / "watchfloor" / "policies.toml"
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(text)
    return where


def _asked(env: dict[str, str]) -> list[dict[str, Any]]:
    files = Path(env["XDG_STATE_HOME"]).rglob("audit/*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [line for line in lines if line["what"] == "requested"]


def test_a_policy_decides_and_is_written_down_as_what_decided(env: dict[str, str]) -> None:
    _file(env, DENY)
    with console(env, "demo", size=(130, 40)) as terminal:
        terminal.wait_until(lambda: bool(_asked(env)), SLOW_S, what="a decision of the policy")
        first = _asked(env)[0]
        assert (first["policy"], first["automatic"], first["option_kind"]) == ("nothing today", True, "deny")
        assert first["waited_ms"] >= 0


def test_policies_that_cannot_be_read_keep_the_console_from_opening(env: dict[str, str]) -> None:
    where = _file(env, DENY.replace("deny", "dney"))
    with console(env, "demo") as terminal:
        assert terminal.wait_exit(SLOW_S) == 2
        said = terminal.screen().replace("\n", "")
        assert f"{where}:3: policy 1: do: 'dney' is not known".replace(" ", "") in said.replace(" ", "")
