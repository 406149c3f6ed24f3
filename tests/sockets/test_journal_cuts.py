"""A journal behind a connection that breaks all the time equals the host's own log, event for event.

`make torture` runs it with two hundred cuts in a hundred thousand events of a hundred sessions.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from console.connectors.supervisor import Item
from console.journal.journal import Journal
from console.journal.records import Retention
from console.journal.store import Store
from tests.sockets.test_faults import EAGER, Screen, console
from watchfloor.errors import ConnectionLost
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.host.log.events import MemoryLog
from watchfloor.host.serving.server import Host, wall_clock
from watchfloor.protocol.events import Intervention
from watchfloor.protocol.frames import Command, DoSend
from watchfloor.testing.fault_proxy import FaultProxy, Faults
from watchfloor.words import OutcomeKind


@dataclass(frozen=True, slots=True)
class Scale:
    cuts: int
    events: int
    sessions: int
    holes: int
    patience_s: float


TORTURE: Final = "WATCHFLOOR_TORTURE" in os.environ
SCALE: Final = Scale(200, 100_000, 100, 10, 2_700.0) if TORTURE else Scale(20, 10_000, 10, 1, 60.0)
BROKEN: Final = Faults(
    cut_after=(30, 150) if TORTURE else (20, 80),
    duplicate=0.05,
    reorder=0.2,
    repeat_command=0.2,
    lose_command=0.02,
    lose_outcome=0.04,
)
STRETCHES: Final = (
    BROKEN,
    replace(BROKEN, delay_s=(0.0, 0.01)),
    replace(BROKEN, duplicate=0.6, reorder=0.8),
)
ATTENTIVE: Final = replace(EAGER, silent_after_s=1.0, lost_after_s=1.5)


class Recorder(Screen):
    """Hands everything to the journal first, as a console does."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def take(self, items: Sequence[Item]) -> None:
        self._journal.take("busy", items)
        super().take(items)


class Crowd:
    """Agents that talk until they are told to be quiet, and note what they were told."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()
        self.quiet = asyncio.Event()

    async def talk(self, run: Run, mail: tuple[MailItem, ...]) -> str:
        self.heard.update(item.text for item in mail)
        number = 0
        while not self.quiet.is_set():
            for _ in range(5):
                number += 1
                await run.say(f"{run.name} {number}")
            self.heard.update(item.text for item in await run.checkpoint())
            await run.sleep(0.02 if TORTURE else 0.004)
        self.heard.update(item.text for item in await run.checkpoint())
        return "done"


@pytest.mark.parametrize("seed", [11])
async def test_the_journal_equals_the_log_of_the_host_over_many_cuts(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    crowd = Crowd()
    journal = Journal(path, clock=wall_clock, retention=Retention(None, None))
    journal.start()
    screen = Recorder(journal)
    names = [f"agent-{number}" for number in range(SCALE.sessions)]
    rng = random.Random(seed)
    sent: list[str] = []
    kept_back: list[str] = []
    epochs = iter(range(1_000_000))
    log = MemoryLog(lambda: f"epoch-{next(epochs)}", None)
    started = time.monotonic()
    async with Host(name="busy", heartbeat_s=0.2, log=log) as host:
        for name in names:
            host.add(FunctionHarness(crowd.talk, grace_s=5), name=name, id=name, text="start")
        await host.serve()
        async with (
            FaultProxy(host.url, BROKEN, seed=seed) as proxy,
            console(proxy.url, screen, seed, ATTENTIVE) as (supervisor, connector),
        ):
            tally = proxy.tally
            async with asyncio.timeout(SCALE.patience_s):
                turn = 0
                while tally.cuts < SCALE.cuts or log.pos < SCALE.events or tally.black_holes < SCALE.holes:
                    turn += 1
                    proxy.faults = STRETCHES[turn // 20 % len(STRETCHES)]
                    if tally.black_holes < SCALE.holes and turn % 60 == 59:
                        proxy.faults = Faults(black_hole_after=(1, 5))
                        proxy.cut()
                        before = tally.black_holes
                        while tally.black_holes == before:  # noqa: ASYNC110 - the proxy has no event for it
                            await asyncio.sleep(0.01)
                    id = f"c{turn}"
                    try:
                        await supervisor.send(Command(id=id, session=rng.choice(names), do=DoSend(text=id)))
                        sent.append(id)
                    except ConnectionLost:
                        kept_back.append(id)
                    await asyncio.sleep(0.02)
                crowd.quiet.set()
                await asyncio.gather(*(host.wait(name) for name in names))
                proxy.faults = Faults()
                proxy.cut()

                def whole() -> bool:
                    if host.core.wants_flush or connector.core.pending():
                        return False
                    return all(len(screen.events.get(name, ())) == log.head(name) for name in names)

                while not whole():  # noqa: ASYNC110 - nor has the host
                    await asyncio.sleep(0.02)
        await journal.flushed()
        said, waiting = journal.says, journal.waiting
        await journal.close()
        told = {name: log.read(name, after=0, limit=10_000_000) for name in names}
        took = time.monotonic() - started
    assert (said, waiting) == ("", 0)

    store = Store(path)
    for name in names:
        assert store.events("busy", name, log.epoch(name)) == told[name]
    total = sum(map(len, told.values()))
    assert store.stats().events == total, "none twice, none of elsewhere"
    assert {place.through for place in store.places("busy").values()} == {len(events) for events in told.values()}
    store.close()

    done = Counter(e.command for events in told.values() for e in events if isinstance(e, Intervention))
    assert {*screen.outcomes} == {*sent}
    for id, outcomes in screen.outcomes.items():
        kinds = {outcome.outcome for outcome in outcomes}
        assert kinds in ({OutcomeKind.APPLIED}, {OutcomeKind.UNDELIVERED}), (id, kinds)
        assert done[id] == crowd.heard[id] == int(kinds == {OutcomeKind.APPLIED})
    assert not any(crowd.heard[id] for id in kept_back)
    assert tally.duplicated > 10
    assert tally.reordered > 10
    print(
        f"\n{tally.cuts} cuts, {tally.black_holes} black holes, {total:,} events of {len(names)} sessions, "
        f"{len(sent)} commands, {tally.lost_outcomes} outcomes lost: journal equals log, {took:.0f} s"
    )
