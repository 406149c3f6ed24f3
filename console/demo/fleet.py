"""The demo's fleet: agents that really run, in a folder of their own, with different advertisements."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Final

from console.demo import project
from console.demo.deploy import Deploy
from console.demo.editors import Docs
from console.demo.migrate import Migrate
from console.demo.narrator import Narrator
from console.demo.project import ORDERS
from console.demo.stage import Stage
from console.demo.texts import Order
from console.demo.triage import Triage
from console.demo.watchers import Checksums, Etl, Indexer
from watchfloor.harness.base import AgentHarness
from watchfloor.harness.function import FULL_CONTROL, AgentFunction, FunctionHarness
from watchfloor.harness.program import ProgramHarness
from watchfloor.host.serving.server import Host
from watchfloor.protocol.model import Capabilities, NoOptions, PauseOptions, SendOptions, StopOptions

NAMED: Final = 8
"""Agents with a name and a part of their own; the streamer, which is copied, is the last of them."""
NARRATOR: Final = "narrator"
PROGRAM: Final = "linecount"

ADVERTISED: Final[Mapping[str, Capabilities]] = MappingProxyType(
    {
        "deploy": FULL_CONTROL,
        "migrate": Capabilities(approve=NoOptions()),
        "checksums": Capabilities(pause=PauseOptions(), resume=NoOptions()),
        "legacy-etl": Capabilities(),
        "triage": Capabilities(send=SendOptions(), interrupt=NoOptions(), answer=NoOptions()),
        "docs": Capabilities(send=SendOptions(), pause=PauseOptions(), resume=NoOptions(), stop=StopOptions()),
        "indexer": Capabilities(resume=NoOptions(), stop=StopOptions(kill=True)),
        NARRATOR: Capabilities(
            send=SendOptions(),
            pause=PauseOptions(interrupt=True),
            resume=NoOptions(),
            interrupt=NoOptions(),
            stop=StopOptions(kill=True),
        ),
    }
)
"""What each named agent advertises."""


async def build(
    host: Host, *, workspace: Path, agents: int = NAMED, rate: float = 20.0, seed: int = 1, tempo: float = 1.0
) -> None:
    """Write a small project into `workspace` and let agents work on it, until the host is closed.

    The first eight agents are the named ones, of whatever `agents` says; further ones are copies of the streamer.
    A child program and the children of `docs` come in addition. The streamers share `rate` events a second, pieces
    of messages included. `seed` fixes texts and their order, not the clock; `tempo` divides all rests but the
    streamers'. Raises ValueError for a rate or tempo that is not above 0.
    """
    if rate <= 0 or tempo <= 0:
        raise ValueError("rate and tempo must be above 0")
    rng = Random(f"{seed}/project")  # noqa: S311 - texts, nothing secret
    workspace = await asyncio.to_thread(project.create, workspace, rng)
    stage = Stage(host, workspace, seed=seed, tempo=tempo)
    copies = max(0, agents - NAMED)
    narrators = _narrators(stage, copies + 1, rate)
    cast: dict[str, AgentFunction] = {
        "deploy": Deploy(stage),
        "migrate": Migrate(stage),
        "checksums": Checksums(stage),
        "legacy-etl": Etl(stage),
        "triage": Triage(stage),
        "docs": Docs(stage),
        "indexer": Indexer(stage),
        NARRATOR: narrators[0],
    }
    for name, agent in cast.items():
        _add(host, workspace, name, _harness(name, agent))
    program = [sys.executable, "-u", "tools/count.py", ".", "--rest", f"{0.8 / tempo:.3f}"]
    _add(host, workspace, PROGRAM, ProgramHarness(program, grace_s=2.0))
    for number, agent in enumerate(narrators[1:], 2):
        _add(host, workspace, f"{NARRATOR}-{number}", _harness(NARRATOR, agent))


def _narrators(stage: Stage, count: int, rate: float) -> list[Narrator]:
    lines = stage.text(ORDERS).splitlines()[1:]
    orders = [Order.parse(line) for line in lines]
    starts = stage.rng(NARRATOR)
    return [
        Narrator(stage, orders, per_s=rate / count, start=starts.randrange(len(orders)) if number else 0)
        for number in range(count)
    ]


def _harness(name: str, agent: AgentFunction) -> AgentHarness:
    return FunctionHarness(agent, capabilities=ADVERTISED[name], starts_itself=True, once=name == "indexer")


def _add(host: Host, workspace: Path, name: str, harness: AgentHarness) -> None:
    host.add(harness, name=name, cwd=str(workspace), demo=True)
