"""A host whose agents talk at a steady rate: the load of the long run in a terminal.

    python -m tests.pty.soak_host AGENTS EVENTS_PER_S

Its first line is `listening on ws://…`. Only events that have a number count: pieces of a message that is being written
come in addition. On SIGINT its agents fall silent and it prints how many events its log has, on SIGUSR1 how many there
are by now. It serves until it is killed.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import signal
import sys
from functools import partial
from typing import Final

from watchfloor.harness.base import MailItem
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.host.log.events import MemoryLog
from watchfloor.host.serving.server import Host

KEEP_S: Final = 300
"""Seconds of its log that the host keeps: a console that stands still for two minutes is to get all of it."""
_WORDS: Final = [
    "reads",
    "each",
    "line",
    "of",
    "the",
    "log",
    "and",
    "counts",
    "those",
    "that",
    "are",
    "new",
    "since",
    "yesterday",
]


class Talker:
    """One agent. `per_s`: its numbered events a second, which come at an even pace from a moment of its own on."""

    quiet = False
    """All of them are to say no more."""

    def __init__(self, per_s: float, seed: int) -> None:
        self._gap_s = 1 / per_s
        self._rng = random.Random(seed)

    async def __call__(self, run: Run, mail: tuple[MailItem, ...]) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._rng.random() * self._gap_s
        number = 0
        while not Talker.quiet:
            number += 1
            told = await self._tell(run, number)
            due += told * self._gap_s
            # What could not be told in time is made up for: the rate is what counts.
            await run.sleep(max(0.0, due - loop.time()))
            del run.messages[:-20]

    async def _tell(self, run: Run, number: int) -> int:
        """Say or do one thing; returns how many numbered events that made."""
        text = " ".join(self._rng.choices(_WORDS, k=self._rng.choice((8, 8, 20, 80))))
        if number % 10 == 0:
            await run.tool("read", {"path": f"src/part_{number % 97}.py"}, lambda: text, gate=False)
            return 2
        if number % 10 == 5:
            async with run.stream() as out:
                for piece in (text[:40], text[40:]):
                    if piece:
                        await out.write(piece)
        else:
            await run.say(text)
        return 1


async def main(agents: int, rate: float) -> None:
    """Serve until it is killed."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, asked.set)
    log = MemoryLog(lambda: secrets.token_hex(4), round(rate * KEEP_S))
    async with Host(name="soak", log=log) as host:
        await host.serve()
        print(f"listening on {host.url}", flush=True)
        names = [f"t{number}" for number in range(agents)]
        for number, name in enumerate(names):
            harness = FunctionHarness(Talker(rate / agents, number), starts_itself=True)
            host.add(harness, name=f"talker-{number}", id=name)
        told = partial(print, "there are", flush=True)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: told(log.pos))
        await asked.wait()
        Talker.quiet = True
        await asyncio.gather(*(host.wait(name) for name in names))
        while host.core.wants_flush:  # noqa: ASYNC110 - the host has no event for it
            await asyncio.sleep(0.01)
        print(f"said {log.pos}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
