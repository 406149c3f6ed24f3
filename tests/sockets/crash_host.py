"""Fifty agents on a host in a file, which do what they may, until their process is killed."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path

from watchfloor import Agent, Host, LiveAgent, Permissions, SqliteLog, Turn
from watchfloor.harness.base import MailItem
from watchfloor.protocol.frames import DoApprove

AGENTS, LINES = 50, 4


async def works(turn: Turn, mail: tuple[MailItem, ...]) -> str:
    """Appends its lines, one after the other, each once it may."""
    for number in range(LINES):
        await turn.call("append", {"name": turn.name, "line": f"{turn.name}-{number}"}, key=str(number))
    return f"done with {mail[0].text}"


def agent(folder: Path, host: Host) -> Agent:
    """The agent of all of them, over the files in the folder."""

    def append(name: str, line: str) -> str:
        time.sleep(0.002)
        handle = os.open(folder / f"{name}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(handle, f"{line}\n".encode())
        finally:
            os.close(handle)
        time.sleep(0.002)
        return f"appended {line}"

    builder = Agent.builder().data_folder(folder).permissions(Permissions()).host(host)
    return builder.tool(append).function(works).build()


def decide(host: Host, live: LiveAgent, request: str, digest: str, option: str) -> None:
    """Take an option of a request."""
    do = DoApprove(request=request, option=option, digest=digest)
    assert host.command(live.handle, do).applied


async def main(folder: Path) -> None:
    """Decides nearly all that is asked, and leaves some of it open."""
    chance = random.Random(7)
    async with Host(log=SqliteLog(folder / "log.db")) as host:
        lives = [agent_.spawn(name=f"a{n}") for agent_ in [agent(folder, host)] for n in range(AGENTS)]
        for live in lives:
            live.send("the work")
        print("begun", flush=True)
        left: set[str] = set()
        while True:
            for live in lives:
                for asked in host.core.session(live.handle).requests.open():
                    id = asked.read().id
                    if id in left:
                        continue
                    if chance.random() < 0.1:
                        left.add(id)
                    else:
                        decide(host, live, id, asked.digest, "allow")
            await asyncio.sleep(0.001)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
