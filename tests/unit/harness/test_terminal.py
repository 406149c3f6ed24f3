"""A program on a terminal of its own: what it sees of it, what it is told by it, how it ends."""

from __future__ import annotations

import sys

import pytest

from tests.unit.harness.fake_port import FakePort
from watchfloor.errors import AgentError
from watchfloor.harness.base import MailItem, Stop, Wake
from watchfloor.harness.program import ProgramHarness, ProgramSession
from watchfloor.protocol.events import ToolOutput
from watchfloor.words import StopReason

LOOKS = """
import os, sys
print("tty", [os.isatty(n) for n in range(3)], tuple(os.get_terminal_size()), os.tcgetpgrp(0) == os.getpgrp())
"""
READS = "print('ready', flush=True)\nprint('got', input().upper(), flush=True)\ninput()"


async def begun(port: FakePort, code: str, *, stdin: bool = False) -> ProgramSession:
    """The code as a program on a terminal of 97 columns and 31 rows."""
    harness = ProgramHarness([sys.executable, "-c", code], stdin=stdin, terminal=(97, 31), grace_s=1.0)
    return await harness.start(port.spec(), port)


def output(port: FakePort) -> str:
    """All that the program wrote."""
    return "".join(event.text for event in port.events if isinstance(event, ToolOutput))


async def test_it_has_a_terminal_of_that_size() -> None:
    port = FakePort()
    session = await begun(port, LOOKS)
    await port.until(lambda: port.result is not None)
    assert output(port) == "tty [True, True, True] (97, 31) True\r\n"
    assert port.result is not None
    assert port.result.stop_reason is StopReason.END_TURN
    await session.close()


async def test_messages_are_typed_and_a_stop_ends_it() -> None:
    port = FakePort()
    session = await begun(port, READS, stdin=True)
    await port.until(lambda: "ready" in output(port))
    await session.intervene(Wake("t1", (MailItem("#1", "hello", "ann"),)))
    await port.until(lambda: "got HELLO" in output(port))
    await session.intervene(Stop())
    await port.until(lambda: "stopped" in port.log)
    await session.close()


async def test_what_cannot_be_run_is_said_at_once() -> None:
    port = FakePort()
    with pytest.raises(AgentError, match="there is no such program"):
        await ProgramHarness(["/no/such"], terminal=(80, 24)).start(port.spec(), port)
    with pytest.raises(AgentError, match="there is no such folder"):
        await ProgramHarness(["true"], cwd="/no/such", terminal=(80, 24)).start(port.spec(), port)
