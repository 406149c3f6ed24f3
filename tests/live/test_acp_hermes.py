"""A real agent of the Agent Client Protocol: the pinned Hermes agent, whose model is a scripted one on loopback."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.peers.chat_model import chat_model
from tests.sockets.cli_kit import Program, until
from tests.sockets.test_cli_run import running
from tests.sockets.test_cli_run_acp import Floor

HERMES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "watchfloor/peers/hermes-0.19.0/bin/hermes"
CONFIG = """\
model:
  default: scripted
  provider: custom
  base_url: {url}
  api_key: none
  context_length: 128000
approvals:
  mode: manual
  timeout: 120
terminal:
  backend: local
  cwd: {cwd}
compression:
  enabled: false
memory:
  memory_enabled: false
  user_profile_enabled: false
"""

needs_hermes = pytest.mark.skipif(
    not (HERMES.parents[1] / ".whole").exists(), reason="make peer-hermes installs the Hermes agent"
)
pytestmark = [pytest.mark.live, needs_hermes]


@asynccontextmanager
async def hermes(folder: Path) -> AsyncIterator[Floor]:
    home = folder / "home"
    (home / ".hermes").mkdir(parents=True)
    async with chat_model() as url:
        (home / ".hermes" / "config.yaml").write_text(CONFIG.format(url=url, cwd=folder))
        program = Program(folder, HOME=str(home), HERMES_HOME=str(home / ".hermes"), OPENAI_API_KEY="none", TZ="UTC")
        async with running(program, "--acp", "--name", "agent", "--", str(HERMES), "acp") as run:
            yield Floor(program, run)


def told(*steps: dict[str, str]) -> str:
    return f"Please do as you are told. do: {json.dumps(steps)}"


async def test_a_permission_is_approved_and_one_is_denied(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    async with hermes(tmp_path) as agent:
        approved = {"run": f"rm -rf {tmp_path}/first && echo x >> {tmp_path}/ran"}
        await agent.do("send", told(approved, {"say": "It is gone."}))
        await agent.comes_to("waiting")
        await agent.do("approve", await agent.request(), "--option", "allow_once", "--current")
        await agent.comes_to("idle")
        assert not (tmp_path / "first").exists()
        assert (tmp_path / "ran").read_text() == "x\n"
        denied = {"run": f"rm -rf {tmp_path}/second && echo x >> {tmp_path}/ran"}
        await agent.do("send", told(denied, {"say": "It is still there."}))
        await agent.comes_to("waiting")
        await agent.do("deny", await agent.request(), "--option", "deny", "--current")
        await agent.comes_to("idle")
        assert (tmp_path / "second").exists()
        assert (tmp_path / "ran").read_text() == "x\n"
        said = [event["text"].strip() for event in await agent.events("message")]
        assert said[-1] == "It is still there."


async def test_an_interrupt_ends_the_turn_also_where_its_answer_is_an_error(tmp_path: Path) -> None:
    async with hermes(tmp_path) as agent:
        await agent.do("send", told({"run": f"touch {tmp_path}/begun; sleep 20"}, {"say": "Never."}))
        await until(lambda: (tmp_path / "begun").exists() or None)
        await agent.do("interrupt", "--wait", "30")
        await agent.comes_to("idle")
        assert (await agent.events("lifecycle"))[-1]["why"].startswith("interrupted by ")
