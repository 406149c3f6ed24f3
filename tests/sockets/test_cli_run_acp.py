"""`watchfloor run --acp`: an agent of the Agent Client Protocol, steered from the command line over a WebSocket."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.sockets.cli_kit import Program, gone, until
from tests.sockets.test_cli_run import Running, running
from watchfloor.harness.process import members

AGENT = [sys.executable, str(Path(__file__).parents[1] / "peers" / "acp_agent.py")]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


class Floor:
    """An agent that runs, and its operator."""

    def __init__(self, program: Program, run: Running) -> None:
        self.program = program
        self.run = run

    async def session(self) -> dict[str, Any]:
        return (await self.program("sessions", self.run.url, "--json")).record

    async def comes_to(self, lifecycle: str) -> dict[str, Any]:
        while (record := await self.session())["lifecycle"] != lifecycle:
            pass
        return record

    async def request(self) -> str:
        while not (records := (await self.program("requests", self.run.url, "--json")).records):
            pass
        return str(records[0]["request"])

    async def do(self, verb: str, *words: str) -> None:
        done = await self.program(verb, self.run.url, "agent", *words)
        assert done.code == 0, done.err

    async def events(self, kind: str) -> list[dict[str, Any]]:
        records = (await self.program("events", self.run.url, "--json")).records
        return [record["event"] for record in records if record.get("event", {}).get("kind") == kind]


@asynccontextmanager
async def floor(program: Program, *words: str) -> AsyncIterator[Floor]:
    async with running(program, "--acp", "--name", "agent", "--", *AGENT, *words) as run:
        floor = Floor(program, run)
        while not await floor.events("notice"):
            pass
        await floor.comes_to("idle")
        yield floor
        run.process.send_signal(signal.SIGINT)
        assert (await run.ends())[0] == 130


async def test_what_is_approved_runs_once_and_what_is_denied_does_not(program: Program, tmp_path: Path) -> None:
    async with floor(program) as agent:
        assert (await agent.session())["capabilities"] == [
            "send",
            "resume",
            "interrupt",
            "stop",
            "approve",
            "notify",
            "delete",
        ]
        await agent.do("send", "run echo x >> allowed")
        await agent.comes_to("waiting")
        await agent.do("approve", await agent.request(), "--option", "once", "--current")
        await agent.comes_to("idle")
        assert (tmp_path / "allowed").read_text() == "x\n"
        await agent.do("send", "run echo x >> denied")
        await agent.comes_to("waiting")
        await agent.do("deny", await agent.request(), "--current")
        await agent.comes_to("idle")
        assert not (tmp_path / "denied").exists()
        assert (tmp_path / "allowed").read_text() == "x\n"
        assert [event["status"] for event in await agent.events("tool_result")] == ["ok", "declined"]
        assert [event["text"] for event in await agent.events("message")] == ["not done "]


async def test_an_interrupt_ends_the_turn_and_what_was_sent_meanwhile_is_the_next_prompt(program: Program) -> None:
    async with floor(program) as agent:
        await agent.do("send", "hang")
        await agent.comes_to("running")
        await agent.do("send", "say later")
        await agent.do("interrupt", "--wait", "30")
        await agent.comes_to("idle")
        assert (await agent.events("lifecycle"))[-1]["why"].startswith("interrupted by ")
        await agent.do("resume")
        while not await agent.events("message"):
            pass
        assert [event["text"] for event in await agent.events("message")] == ["later "]


async def test_a_crash_is_told_and_it_can_be_started_again(program: Program) -> None:
    async with floor(program) as agent:
        await agent.do("send", "crash 3")
        assert (await agent.run.says()).startswith("watchfloor: ended with status 3; r in a console ")
        await agent.comes_to("failed")
        assert (await agent.events("lifecycle"))[-1]["why"] == "exit status 3"
        await agent.do("stop")
        await agent.do("resume")
        assert await agent.run.says() == "watchfloor: started again (attempt 2)"
        await agent.comes_to("idle")
        await agent.do("send", "say well again")
        while not await agent.events("message"):
            pass


async def test_an_agent_that_prints_anything_cannot_break_it(program: Program) -> None:
    async with floor(program) as agent:
        await agent.do("send", "garbage\nlong 10000000\nunknown\nodd\nsay still here")
        while not await agent.events("message"):
            pass
        assert (await agent.events("message"))[-1]["text"] == "refused -32602 still here "
        assert len(await agent.events("raw")) == 4


async def test_ctrl_c_leaves_no_process(program: Program, tmp_path: Path) -> None:
    async with floor(program) as agent:
        (notice, *_) = await agent.events("notice")
        pid = int(notice["text"].rpartition("(process ")[2].removesuffix(")"))
        await agent.do("send", "free touch begun; sleep 60")
        await until(lambda: (tmp_path / "begun").exists() or None)
    assert await until(lambda: gone(pid))
    assert members(pid) == ()


async def test_an_agent_that_has_not_begun_can_be_left(program: Program, tmp_path: Path) -> None:
    async with running(program, "--acp", "--", *AGENT, "--late", str(tmp_path / "never")) as run:
        run.process.send_signal(signal.SIGINT)
        assert (await run.ends())[0] == 130


async def test_an_agent_that_will_not_begin_is_said_and_exit_hands_it_on(program: Program) -> None:
    async with running(program, "--acp", "--exit", "--", *AGENT, "--auth") as run:
        assert await run.ends() == (
            126,
            "",
            "watchfloor: the agent wants its user to log in first (Log in on the web)\n",
        )


async def test_without_the_package_it_says_what_to_install(program: Program, tmp_path: Path) -> None:
    (tmp_path / "acp.py").write_text("raise ModuleNotFoundError(\"No module named 'acp'\", name='acp')\n")
    done = await program.but(PYTHONPATH=str(tmp_path)).process("run", "--acp", "--", "true")
    assert (done.code, done.out) == (2, "")
    assert done.err == "watchfloor: run --acp needs an extra: pip install 'watchfloor-console[acp]'\n"
