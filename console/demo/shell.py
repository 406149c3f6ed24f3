"""Short commands, really executed: `sh -c` in a process group of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from pathlib import Path
from typing import Final

MAX_OUTPUT: Final = 16 * 1024
"""Characters of a command's output that are kept."""
PATIENCE_S: Final = 30.0


class CommandFailed(Exception):
    """A command or an edit did not do what it should; the message says why, in a few lines."""


async def shell(command: str, folder: Path) -> str:
    """Run a command in a folder; returns what it wrote, errors included.

    Raises CommandFailed where its exit status is not 0 or it takes too long. When the caller is cancelled
    everything that the command started is killed.
    """
    starting = asyncio.create_task(_start(command, folder))
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Cancelled itself, the start would kill the shell alone, and not what the shell has started meanwhile.
        await _end(await starting)
        raise
    try:
        async with asyncio.timeout(PATIENCE_S):
            data, _ = await process.communicate()
    except TimeoutError:
        raise CommandFailed(f"ended after {PATIENCE_S:g} s: it took too long") from None
    finally:
        await _end(process)
    text = data.decode("utf-8", "replace")[:MAX_OUTPUT]
    if process.returncode != 0:
        raise CommandFailed(f"{text}exit status {process.returncode}")
    return text


async def _start(command: str, folder: Path) -> Process:
    return await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        command,
        cwd=folder,
        env=_environment(folder),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
    )


async def _end(process: Process) -> None:
    """Kill the command and what it has started, unless it has ended by itself."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of ours but where programs are, and the Python that runs this as the first one found."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    return {"PATH": path, "HOME": str(folder), "LC_ALL": "C"}
