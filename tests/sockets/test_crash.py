"""A host that is killed with fifty sessions in the middle of their work, and comes back."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.sockets.crash_host import AGENTS, LINES, agent, decide
from tests.sockets.host_kit import PATIENCE_S
from watchfloor.agent.tools import UNKNOWN
from watchfloor.host.log.sqlite import SqliteLog
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import ToolResult, ToolStatus
from watchfloor.words import Lifecycle

SCRIPT = Path(__file__).with_name("crash_host.py")


def lines(folder: Path) -> Counter[str]:
    """How often each line was written."""
    return Counter(line for file in folder.glob("a*.txt") for line in file.read_text().splitlines())


async def killed(folder: Path, after: int) -> None:
    """Run the host until so many lines were written, and kill it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), str(folder), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            while lines(folder).total() < after:
                await asyncio.sleep(0.005)
                assert process.returncode is None
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("after", [AGENTS // 2, AGENTS * 2])
async def test_a_host_that_is_killed_loses_nothing_and_repeats_nothing(tmp_path: Path, after: int) -> None:
    await killed(tmp_path, after)
    before = lines(tmp_path)
    assert max(before.values()) == 1
    async with Host(log=SqliteLog(tmp_path / "log.db")) as host:
        recipe = agent(tmp_path, host)
        lives = [recipe.spawn(record) for record in recipe.storage.list() if record.live]
        assert len(lives) == AGENTS
        log = host.core.log
        unknown = 0
        for live in lives:
            events = log.read(live.handle, limit=10_000)
            # Whole to the last committed step: numbered without a hole, and what was said of a call stands.
            assert [event.seq for event in events] == list(range(1, log.head(live.handle) + 1))
            results = [event for event in events if isinstance(event, ToolResult)]
            done = {event.text.removeprefix("appended ") for event in results if event.status is ToolStatus.OK}
            assert done <= before.keys()
            assert live.state in (Lifecycle.PAUSED, Lifecycle.IDLE)
            unknown += sum(message.text == "(is being carried out)" for message in live.snapshot.messages)
        again: list[str] = []
        for live in lives:
            live.resume()
        async with asyncio.timeout(PATIENCE_S):
            while any(live.state is not Lifecycle.IDLE for live in lives):
                for live in lives:
                    assert live.state is not Lifecycle.FAILED, live.error
                    for asked in host.core.session(live.handle).requests.open():
                        subject = asked.read()
                        line = str(subject.actions[0].arguments["line"])  # type: ignore[index,call-overload]  # as it was called
                        ran = line in lines(tmp_path)
                        if asked.about == UNKNOWN:
                            again.append(line)
                        else:
                            assert not ran, f"{line} ran, and is asked for as if it had not"
                        decide(host, live, subject.id, asked.digest, "deny" if ran else "allow")
                await asyncio.sleep(0.001)
        assert len(again) == unknown
        for live in lives:
            assert (await live.message("#1").response) == "done with the work"
    written = lines(tmp_path)
    assert max(written.values()) == 1
    assert written.total() == AGENTS * LINES
