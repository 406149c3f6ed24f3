"""Programs on a real host: what an operator does over a socket is seen in the process table."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.sockets.harness_kit import Operator, operated
from tests.unit.harness.programs import MARK, eventually, marked, python, shell, state
from watchfloor.harness.program import ProgramHarness
from watchfloor.protocol.model import Capabilities

TICKER = "import time\nn = 0\nwhile True:\n    print('tick', n); n += 1; time.sleep(0.01)"

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the tests read the process table")


@asynccontextmanager
async def programmed(argv: list[str], monkeypatch: pytest.MonkeyPatch, **kwargs: Any) -> AsyncIterator[Operator]:
    """A host with the program, and an operator who follows it; nothing of it may stay."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    async with operated(ProgramHarness(argv, **kwargs)) as client:
        yield client
    await eventually(lambda: not marked(mark))


def pid(client: Operator) -> int:
    notices = [event.text for event in client.events("notice") if "(process " in event.text]
    return int(notices[-1].rpartition("(process ")[2].rstrip(")"))


async def test_pause_resume_and_stop_are_seen_in_the_process_table(monkeypatch: pytest.MonkeyPatch) -> None:
    async with programmed(python(TICKER), monkeypatch) as client:
        await client.until(lambda: "tick 1" in client.output())
        await client.in_state("running")
        await client.do("pause")
        await client.in_state("paused")
        assert state(pid(client)) == "T"
        await client.do("resume")
        await client.in_state("running")
        assert state(pid(client)) != "T"
        seen = client.output()
        await client.until(lambda: len(client.output()) > len(seen))
        await client.do("pause")
        await client.in_state("paused")
        await client.do("stop")
        await client.in_state("stopped")
        assert state(pid(client)) == ""
        assert client.result == "killed by SIGTERM"


async def test_a_stubborn_program_is_killed_after_its_grace_time(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('ready')\nwhile True: time.sleep(60)"
    async with programmed(python(source), monkeypatch, grace_s=0.2) as client:
        await client.until(lambda: client.output() == "ready\n")
        await client.do("stop")
        await client.in_state("stopped")
        assert client.result == "killed by SIGKILL"


async def test_exit_statuses_and_a_relaunch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = f"cd {tmp_path!s}; if [ -e tried ]; then exit 0; fi; : > tried; echo 'no luck' >&2; exit 3"
    async with programmed(shell(source), monkeypatch) as client:
        await client.in_state("failed")
        assert client.summary["error"] == "exit status 3"
        assert client.summary["result"]["final_message"] == "no luck"
        await client.do("resume")
        await client.in_state("completed", attempt=2)
        assert client.result == "exit status 0"


async def test_a_program_that_somebody_else_kills_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with programmed(python(TICKER), monkeypatch) as client:
        await client.until(lambda: client.output())
        os.kill(pid(client), signal.SIGKILL)
        await client.in_state("failed")
        assert client.summary["error"] == "killed by SIGKILL"


async def test_lines_go_to_a_program_with_input(monkeypatch: pytest.MonkeyPatch) -> None:
    async with programmed(python("for line in open(0): print('got', line, end='')"), monkeypatch, stdin=True) as client:
        await client.in_state("running")
        await client.do("send", text="one")
        await client.until(lambda: client.output() == "got one\n")
        await client.do("pause")
        await client.in_state("paused")
        await client.do("send", text="two")
        await client.until(lambda: client.summary["mailbox"]["queued"] == 1)
        await client.do("resume")
        await client.until(lambda: client.output() == "got one\ngot two\n")


async def test_a_relaunched_program_is_not_sent_its_old_lines_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with programmed(python("for line in open(0): print('got', line, end='')"), monkeypatch, stdin=True) as client:
        await client.do("send", text="delete it")
        await client.until(lambda: client.output() == "got delete it\n")
        await client.do("stop")
        await client.in_state("stopped")
        await client.do("resume")
        await client.in_state("running", attempt=2)
        await client.do("send", text="next")
        await client.until(lambda: client.output().endswith("got next\n"))
        assert client.output() == "got delete it\ngot next\n"


async def test_an_observed_program_takes_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    async with programmed(python(TICKER), monkeypatch, observe=True, stdin=True) as client:
        await client.until(lambda: client.output())
        assert client.profiles[client.summary["profile"]].capabilities == Capabilities()
        for primitive, members in (("pause", {}), ("stop", {"kill": True}), ("send", {"text": "x"})):
            outcome = await client.command(primitive, **members)
            assert outcome.outcome == "capability_not_supported"
        assert state(pid(client)) in {"R", "S", "D"}


async def test_what_cannot_be_executed_has_failed_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async with programmed(["/nowhere/agent"], monkeypatch) as client:
        await client.in_state("failed")
        assert client.summary["error"].endswith("cannot run '/nowhere/agent': there is no such program")


async def test_a_flood_does_not_drown_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    async with programmed(["yes", "a line of a flood"], monkeypatch) as client:
        await client.until(lambda: client.output())
        # The host still answers, and lands what it is asked for.
        await client.do("pause")
        await client.in_state("paused")
        assert state(pid(client)) == "T"
        await client.do("stop", kill=True)
        await client.in_state("stopped")


async def test_closing_the_host_ends_programs_and_their_children(monkeypatch: pytest.MonkeyPatch) -> None:
    source = f"{shlex.quote(sys.executable)} -S -c 'import time; time.sleep(60)' & echo up; wait"
    async with programmed(shell(source), monkeypatch, grace_s=0.2) as client:
        await client.until(lambda: client.output() == "up\n")
