"""Real programs for the tests, and a look at the process table that is not the harness's own."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.unit.harness.fake_port import PATIENCE_S, FakePort
from watchfloor.harness.program import ProgramHarness, ProgramSession

MARK = "WATCHFLOOR_TEST_MARK"
"""In the environment of every program of a test, so that none of their children can hide."""


def python(source: str) -> list[str]:
    return [sys.executable, "-S", "-u", "-c", source]


def shell(source: str) -> list[str]:
    return ["/bin/sh", "-c", source]


def state(pid: int) -> str:
    """The letter of a process in the process table, "" where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]


def marked(mark: str) -> list[int]:
    """The living processes of a test."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0") and state(int(entry.name)) not in "ZX":
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


async def eventually(met: Callable[[], object]) -> None:
    """Wait for something that only the process table tells of."""
    deadline = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.005)


async def launched(
    argv: list[str],
    port: FakePort,
    *,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    stdin: bool = False,
    grace_s: float = 5.0,
    echo: Callable[[str, bytes], None] | None = None,
) -> ProgramSession:
    harness = ProgramHarness(argv, cwd=cwd, env=env, stdin=stdin, grace_s=grace_s, echo=echo)
    return await harness.start(port.spec(), port)
