"""A process with one agent that joins the host which invited it: it writes into a file what it may."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from watchfloor import FunctionHarness, Host, Run
from watchfloor.harness.base import MailItem
from watchfloor.host.serving.joining import invited

FILE, NAME = Path(sys.argv[1]), sys.argv[2]


def append(text: str) -> str:
    """One line for each time that it is carried out."""
    with FILE.open("a") as file:
        file.write(f"{text}\n")
    return f"appended {text}"


async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
    """Appends what it was told, once it may."""
    text = mail[-1].text
    outcome = await run.tool("append", {"text": text}, lambda: append(text))
    return str(outcome.value) if outcome.ok else f"not: {outcome.note}"


async def main() -> None:
    """Until it is ended."""
    found = invited(os.environ)
    assert found is not None
    target, parent = found
    async with Host(name=f"host of {NAME}") as host:
        host.add(FunctionHarness(agent), name=NAME, id=NAME, parent=parent)
        await host.join(target)
        print("joined", flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
