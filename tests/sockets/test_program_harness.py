"""Programs on a real host: what an operator does over a socket is seen in the process table."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.sockets.plain_client import PlainClient
from tests.unit.harness.programs import MARK, eventually, marked, python, shell, state
from watchfloor.harness.program import ProgramHarness
from watchfloor.host.server import Host

S = "s"
TICKER = "import time\nn = 0\nwhile True:\n    print('tick', n); n += 1; time.sleep(0.01)"

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the tests read the process table")


@asynccontextmanager
async def operated(argv: list[str], monkeypatch: pytest.MonkeyPatch, **kwargs: Any) -> AsyncIterator[PlainClient]:
    """A host with the program as session `s`, and an operator who follows it; nothing of it may stay."""
    mark = f"socket-{os.getpid()}-{id(argv)}"
    monkeypatch.setenv(MARK, mark)
    async with Host(name="test") as host:
        client = PlainClient(await host.serve(), name="ann")
        await client.open()
        try:
            await client.watch("*")
            host.add(ProgramHarness(argv, **kwargs), name="program", id=S)
            await client.until(lambda: S in client.sessions)
            yield client
        finally:
            await client.close()
    await eventually(lambda: not marked(mark))


def output(client: PlainClient) -> str:
    return "".join(event["text"] for _, event in client.arrived if event["kind"] == "tool_output")


def pid(client: PlainClient) -> int:
    notices = [
        event["text"] for _, event in client.arrived if event.get("code") == "process" and "(process" in event["text"]
    ]
    return int(notices[-1].rpartition("(process ")[2].rstrip(")"))


async def in_state(client: PlainClient, lifecycle: str, attempt: int = 1) -> None:
    await client.until(
        lambda: (client.sessions[S].get("lifecycle"), client.sessions[S].get("attempt")) == (lifecycle, attempt)
    )


async def did(client: PlainClient, primitive: str, **members: Any) -> None:
    outcome = await client.command(S, primitive, **members)
    assert outcome["outcome"] == "applied", outcome


async def test_pause_resume_and_stop_are_seen_in_the_process_table(monkeypatch: pytest.MonkeyPatch) -> None:
    async with operated(python(TICKER), monkeypatch) as client:
        await client.until(lambda: "tick 1" in output(client))
        await in_state(client, "running")
        await did(client, "pause")
        await in_state(client, "paused")
        assert state(pid(client)) == "T"
        await did(client, "resume")
        await in_state(client, "running")
        assert state(pid(client)) != "T"
        seen = output(client)
        await client.until(lambda: len(output(client)) > len(seen))
        await did(client, "pause")
        await in_state(client, "paused")
        await did(client, "stop")
        await in_state(client, "stopped")
        assert state(pid(client)) == ""
        assert client.sessions[S]["result"]["text"] == "killed by SIGTERM"


async def test_a_stubborn_program_is_killed_after_its_grace_time(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('ready')\nwhile True: time.sleep(60)"
    async with operated(python(source), monkeypatch, grace_s=0.2) as client:
        await client.until(lambda: output(client) == "ready\n")
        await did(client, "stop")
        await in_state(client, "stopped")
        assert client.sessions[S]["result"]["text"] == "killed by SIGKILL"


async def test_exit_statuses_and_a_relaunch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = f"cd {tmp_path!s}; if [ -e tried ]; then exit 0; fi; : > tried; echo 'no luck' >&2; exit 3"
    async with operated(shell(source), monkeypatch) as client:
        await in_state(client, "failed")
        assert client.sessions[S]["error"] == "exit status 3"
        assert client.sessions[S]["result"]["final_message"] == "no luck"
        await did(client, "resume")
        await in_state(client, "completed", attempt=2)
        assert client.sessions[S]["result"]["text"] == "exit status 0"


async def test_a_program_that_somebody_else_kills_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with operated(python(TICKER), monkeypatch) as client:
        await client.until(lambda: output(client))
        os.kill(pid(client), signal.SIGKILL)
        await in_state(client, "failed")
        assert client.sessions[S]["error"] == "killed by SIGKILL"


async def test_lines_go_to_a_program_with_input(monkeypatch: pytest.MonkeyPatch) -> None:
    async with operated(python("for line in open(0): print('got', line, end='')"), monkeypatch, stdin=True) as client:
        await in_state(client, "running")
        await did(client, "send", text="one")
        await client.until(lambda: output(client) == "got one\n")
        await did(client, "pause")
        await in_state(client, "paused")
        await did(client, "send", text="two")
        await client.until(lambda: client.sessions[S]["mailbox"]["queued"] == 1)
        await did(client, "resume")
        await client.until(lambda: output(client) == "got one\ngot two\n")


async def test_a_relaunched_program_is_not_sent_its_old_lines_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with operated(python("for line in open(0): print('got', line, end='')"), monkeypatch, stdin=True) as client:
        await did(client, "send", text="delete it")
        await client.until(lambda: output(client) == "got delete it\n")
        await did(client, "stop")
        await in_state(client, "stopped")
        await did(client, "resume")
        await in_state(client, "running", attempt=2)
        await did(client, "send", text="next")
        await client.until(lambda: output(client).endswith("got next\n"))
        assert output(client) == "got delete it\ngot next\n"


async def test_an_observed_program_takes_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    async with operated(python(TICKER), monkeypatch, observe=True, stdin=True) as client:
        await client.until(lambda: output(client))
        assert client.profiles[client.sessions[S]["profile"]]["capabilities"] == {}
        for primitive, members in (("pause", {}), ("stop", {"kill": True}), ("send", {"text": "x"})):
            outcome = await client.command(S, primitive, **members)
            assert outcome["outcome"] == "capability_not_supported"
        assert state(pid(client)) in {"R", "S", "D"}


async def test_what_cannot_be_executed_has_failed_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async with operated(["/nowhere/agent"], monkeypatch) as client:
        await in_state(client, "failed")
        assert client.sessions[S]["error"].endswith("cannot run '/nowhere/agent': there is no such program")


async def test_a_flood_does_not_drown_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    async with operated(["yes", "a line of a flood"], monkeypatch) as client:
        await client.until(lambda: output(client))
        # The host still answers, and lands what it is asked for.
        await did(client, "pause")
        await in_state(client, "paused")
        assert state(pid(client)) == "T"
        await did(client, "stop", kill=True)
        await in_state(client, "stopped")


async def test_closing_the_host_ends_programs_and_their_children(monkeypatch: pytest.MonkeyPatch) -> None:
    source = f"{sys.executable} -S -c 'import time; time.sleep(60)' & echo up; wait"
    async with operated(shell(source), monkeypatch, grace_s=0.2) as client:
        await client.until(lambda: output(client) == "up\n")
