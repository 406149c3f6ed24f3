"""What a program says: batched, bounded, in order, and passed on."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.unit.harness.fake_port import FakePort
from tests.unit.harness.programs import eventually, launched, python, shell, state
from watchfloor.harness.base import Pause, Stop
from watchfloor.harness.output import PIECE
from watchfloor.harness.program import BATCH_S, BUDGET
from watchfloor.protocol.events import ToolOutput

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the tests read the process table")


async def test_both_streams_are_told_apart() -> None:
    port = FakePort()
    await launched(shell("echo out; echo err >&2"), port)
    await port.until_log("completed")
    assert (port.output("stdout"), port.output("stderr")) == ("out\n", "err\n")


async def test_many_short_lines_become_few_events() -> None:
    port = FakePort()
    await launched(python("print('\\n'.join(str(n) for n in range(5000)))"), port)
    await port.until_log("completed")
    assert port.output() == "".join(f"{n}\n" for n in range(5000))
    assert len(port.all(ToolOutput)) < 20


async def test_a_very_long_line_is_cut_into_pieces() -> None:
    port = FakePort()
    await launched(python("import sys; sys.stdout.write('x' * 300_000 + '\\n')"), port)
    await port.until_log("completed")
    assert port.output() == "x" * 300_000 + "\n"
    assert max(len(event.text) for event in port.all(ToolOutput)) <= PIECE


async def test_a_prompt_without_a_line_end_is_shown_while_the_program_waits() -> None:
    port = FakePort()
    session = await launched(shell("printf 'line\\nname? '; exec sleep 60"), port)
    await port.until(lambda: port.output() == "line\nname? ")
    assert "completed" not in port.log
    await session.close()


async def test_the_last_line_needs_no_end_and_bad_bytes_become_marks() -> None:
    port = FakePort()
    await launched(shell(r"printf 'a\377b\303'"), port)
    await port.until_log("completed")
    assert port.output() == "a\ufffdb\ufffd"


async def test_a_flood_is_read_at_a_bounded_rate_and_leaves_the_event_loop_free() -> None:
    port = FakePort()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    session = await launched(["yes", "flood " * 20], port)
    worked = time.thread_time()
    await asyncio.sleep(10 * BATCH_S)
    worked = time.thread_time() - worked
    told = len(port.output())
    elapsed = loop.time() - begun
    windows = elapsed / BATCH_S + 2
    assert told > 0
    assert told <= (BUDGET + PIECE) * windows
    assert worked < elapsed / 2
    assert max(len(event.text) for event in port.all(ToolOutput)) <= PIECE
    await session.intervene(Stop(kill=True))
    await port.until_log("stopped")


async def test_a_program_that_writes_faster_than_we_read_waits_for_its_pipe() -> None:
    port = FakePort()
    session = await launched(["yes"], port)
    await port.until(lambda: port.output())
    # It can do nothing but wait for room in its pipe most of the time.
    await eventually(lambda: state(session.pid) == "S")
    await session.intervene(Pause())
    await port.until_log("paused")
    await session.close()


async def test_the_output_is_passed_on_as_it_was_written() -> None:
    seen: list[tuple[str, bytes]] = []
    port = FakePort()
    await launched(shell(r"printf '\033[1m\377\n'"), port, echo=lambda stream, data: seen.append((stream, data)))
    await port.until_log("completed")
    assert b"".join(data for _, data in seen) == b"\x1b[1m\xff\n"
    assert {stream for stream, _ in seen} == {"stdout"}


async def test_a_listener_that_left_does_not_end_the_program() -> None:
    def gone(stream: str, data: bytes) -> None:
        raise BrokenPipeError

    port = FakePort()
    await launched(shell("echo one; echo two"), port, echo=gone)
    await port.until_log("completed")
    assert port.output() == "one\ntwo\n"


async def test_output_of_a_superseded_attempt_is_dropped_and_the_program_still_ends() -> None:
    port = FakePort()
    session = await launched(python("import time\nwhile True: print('x'); time.sleep(0.001)"), port)
    await port.until(lambda: port.output())
    port.superseded = True
    count = len(port.events)
    await session.intervene(Stop())
    await port.until_log("stopped")
    assert len(port.events) == count
