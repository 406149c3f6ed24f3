"""The console is killed while it records at full rate: its journal opens each time, and the cursor fills the rest.

`make torture` kills it fifty times.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path
from typing import Final

from console.journal.file import open_journal
from console.journal.store import Store
from tests.sockets.host_kit import until
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.host.log.events import MemoryLog
from watchfloor.host.serving.server import Host, wall_clock

KILLS: Final = 50 if "WATCHFLOOR_TORTURE" in os.environ else 5
NAMES: Final = tuple(f"agent-{number}" for number in range(8))
PATIENCE_S: Final = 60.0
LATE_MS: Final = 3_000
"""What came so long before the kill is certainly in the file, however busy this machine is."""


class Killed:
    """One life of the console."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.heard: list[tuple[int, int, int]] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if line.endswith(b"\n"):
                at, count, pos = line.split()
                self.heard.append((int(at), int(count), int(pos)))

    async def end(self) -> int:
        """Kill it with what cannot be caught; returns when, by the wall clock."""
        at = wall_clock()
        self.process.kill()
        await self.process.wait()
        await self._reading
        return at


async def start(url: str, folder: Path) -> Killed:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.sockets.recording_console", url, str(folder), stdout=asyncio.subprocess.PIPE
    )
    return Killed(process)


async def test_a_console_that_is_killed_again_and_again_has_it_all_in_the_end(tmp_path: Path) -> None:
    rng = random.Random(5)
    path = tmp_path / "journal.db"
    quiet = asyncio.Event()
    log = MemoryLog(lambda: "epoch", None)

    async def talks(run: Run, mail: object) -> str:
        number = 0
        while not quiet.is_set():
            for _ in range(5):
                number += 1
                await run.say(f"{run.name} {number}")
            await run.sleep(0.01)
        return "done"

    missing_ms: list[int] = []
    missing_events: list[int] = []
    again = 0
    started = time.monotonic()
    async with Host(name="busy", heartbeat_s=0.2, log=log) as host:
        for name in NAMES:
            host.add(FunctionHarness(talks, grace_s=2), name=name, id=name, text="go")
        url = await host.serve()
        for _ in range(KILLS):
            kept_before = await asyncio.to_thread(kept, path)
            life = await start(url, tmp_path)
            wanted = rng.randint(3, 40)
            async with asyncio.timeout(PATIENCE_S):
                await until(lambda life=life, wanted=wanted: len(life.heard) >= wanted)  # type: ignore[misc]
            killed_at = await life.end()
            in_file = await asyncio.to_thread(kept, path)
            # A slice that catches up begins where the journal ended.
            again += max(0, kept_before - (life.heard[0][2] - life.heard[0][1]))
            lost = [at for at, _, pos in life.heard if pos > in_file]
            missing_ms.append(killed_at - min(lost) if lost else 0)
            missing_events.append(max(0, life.heard[-1][2] - in_file))
            assert missing_ms[-1] < LATE_MS
        quiet.set()
        await asyncio.gather(*(host.wait(name) for name in NAMES))
        await until(lambda: not host.core.wants_flush)
        last = await start(url, tmp_path)
        async with asyncio.timeout(PATIENCE_S):
            while await asyncio.to_thread(kept, path) < log.pos:  # noqa: ASYNC110 - another process does it
                await asyncio.sleep(0.05)
        await last.end()
        told = {name: log.read(name, after=0, limit=10_000_000) for name in NAMES}
        epochs = {name: log.epoch(name) for name in NAMES}

    store = Store(path, check=True)
    for name in NAMES:
        assert store.events("busy", name, epochs[name]) == told[name]
    assert store.stats().events == log.pos
    store.close()
    assert [file for file in os.listdir(tmp_path) if "aside" in file] == []
    assert again < log.pos // 20, "it went on where the journal ended"
    print(
        f"\nkilled {KILLS} times in {time.monotonic() - started:.0f} s, {log.pos:,} events; missing after a kill: "
        f"{max(missing_events)} events at most, of the last {max(missing_ms)} ms; {again} were sent twice"
    )


def kept(path: Path) -> int:
    """How many events are in the file, looked at from outside; it opens, whatever happened to its writer."""
    if not path.exists():
        return 0
    db = open_journal(path, check=True)
    try:
        return int(db.execute("SELECT COUNT(*) FROM events").fetchone()[0])
    finally:
        db.close()
