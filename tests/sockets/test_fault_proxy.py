"""What the proxy does to time: a console finds out by itself that nothing comes any more, and loses nothing by it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from console.connectors.supervisor import Timings
from tests.sockets.test_faults import EAGER, Agents, Screen, busy_host, console, held, is_complete, quieten
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import Message
from watchfloor.testing.fault_proxy import FaultProxy, Faults
from watchfloor.words import Contact

ATTENTIVE = replace(EAGER, silent_after_s=1.0, lost_after_s=1.5)
"""For hosts that beat five times a second."""


def whole(host: Host, screen: Screen) -> None:
    for name, events in screen.events.items():
        there = held(host, name)
        assert [events[event.seq] for event in there if event.seq] == there


@pytest.mark.parametrize(
    ("faults", "kind"),
    [(Faults(black_hole_after=(5, 30)), "black_holes"), (Faults(half_open_after=(5, 30)), "half_opened")],
)
async def test_a_connection_that_stands_and_brings_nothing_is_left_and_made_again(faults: Faults, kind: str) -> None:
    agents, screen = Agents(), Screen()
    async with busy_host(agents) as host, FaultProxy(host.url, faults, seed=1) as proxy:
        async with console(proxy.url, screen, 1, ATTENTIVE):
            await screen.until(lambda: getattr(proxy.tally, kind) >= 2)
            proxy.faults = Faults()
            await screen.until(lambda: proxy.tally.connections >= 3)
            await quieten(agents, host)
            await screen.until(lambda: is_complete(host, screen))
        told = [change.contact for change in screen.contacts]
        assert told.count(Contact.SILENT) >= 2
        lost = [change for change in screen.contacts if change.contact is Contact.LOST]
        assert all("nothing was heard for 1.5 s" in change.why for change in lost[:2])
        whole(host, screen)
    assert proxy.tally.cuts == 0


async def test_what_comes_late_comes_in_order() -> None:
    agents, screen = Agents(), Screen()
    async with busy_host(agents) as host, FaultProxy(host.url, Faults(delay_s=(0.0, 0.05)), seed=2) as proxy:
        async with console(proxy.url, screen, 2):
            await screen.until(lambda: proxy.tally.delayed > 30)
            proxy.faults = Faults()
            await quieten(agents, host)
            await screen.until(lambda: is_complete(host, screen))
        assert screen.repeated == 0
        for events in screen.events.values():
            assert list(events) == sorted(events)
        whole(host, screen)


async def test_a_slow_reader_is_told_what_it_was_not_sent_and_fetches_it() -> None:
    """The host does not wait for who reads slowly: it drops what has no room, and its log has it."""
    screen = Screen()
    go = asyncio.Event()

    async def shouts(run: Run, mail: object) -> str:
        await go.wait()
        for number in range(1_500):
            await run.say(f"{number} " + "x" * 20_000)
            if number % 50 == 0:
                await run.sleep(0.001)
        return "done"

    async with Host(name="loud", heartbeat_s=0.2) as host:
        host.add(FunctionHarness(shouts, grace_s=2), name="loud", id="loud", text="start")
        await host.serve()
        async with FaultProxy(host.url, Faults(frames_per_s=20.0), seed=3) as proxy:
            timings = Timings(first_delay_s=0.01, longest_delay_s=0.02, steady_after_s=0.0)
            async with console(proxy.url, screen, 3, timings):
                go.set()
                await host.wait("loud")
                assert len(screen.events.get("loud", ())) < 1_000, "it was slow"
                proxy.faults = Faults()
                log = host.core.log
                await screen.until(lambda: len(screen.events.get("loud", ())) == log.head("loud"))
            assert screen.pages > 0, "a part of it came as pages of the history"
            whole(host, screen)
            said = [event for event in screen.events["loud"].values() if isinstance(event, Message)]
            assert len(said) == 1_500
