"""A real host with busy agents, a console's connector, and a proxy between them that breaks things.

Whatever the proxy does: no event is lost, no command is done twice, and what a command's outcome says is true.
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from console.connectors.native import NativeConnector
from console.connectors.supervisor import ContactChange, Item, Supervisor, Timings
from watchfloor.connector import Received, Record, Target
from watchfloor.errors import ConnectionLost, Denied, NoCommonProtocol, Unreachable
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.host.log.events import MemoryLog
from watchfloor.host.principals import Principal
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import Event, Intervention
from watchfloor.protocol.frames import Command, DoSend, Events, Outcome, Page, Watch
from watchfloor.testing.fault_proxy import FaultProxy, Faults
from watchfloor.words import Contact, OutcomeKind, Role

PATIENCE_S = 60.0
AGENTS = ("ant", "bee", "cicada")
EAGER = Timings(first_delay_s=0.01, longest_delay_s=0.02, steady_after_s=0.0)


class Agents:
    """Agents that talk all the time, and note down every message that they were given."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()
        self.quiet = asyncio.Event()
        self.said = 0

    async def talk(self, run: Run, mail: tuple[MailItem, ...]) -> str:
        self._hear(mail)
        while not self.quiet.is_set():
            for _ in range(5):
                self.said += 1
                await run.say(f"{run.name} {self.said}")
            self._hear(await run.checkpoint())
            await run.sleep(0.003)
        self._hear(await run.checkpoint())
        return "done"

    def _hear(self, mail: Sequence[MailItem]) -> None:
        self.heard.update(item.text for item in mail)


class Screen:
    """What a console makes of what arrives: each event once, and the outcomes of each command."""

    def __init__(self) -> None:
        self.events: dict[str, dict[int, Event]] = {}
        self.outcomes: dict[str, list[Outcome]] = {}
        self.contacts: list[ContactChange] = []
        self.repeated = 0
        self.unreadable = 0
        self.pages = 0
        self._news = asyncio.Event()

    def take(self, items: Sequence[Item]) -> None:
        for item in items:
            match item:
                case ContactChange():
                    self.contacts.append(item)
                case Received(frame=Events() | Page() as frame):
                    self.pages += isinstance(frame, Page)
                    of = self.events.setdefault(frame.session, {})
                    for event in frame.events:
                        if event.seq is not None:
                            self.repeated += event.seq in of
                            of[event.seq] = event
                case Received(frame=Outcome() as frame):
                    self.outcomes.setdefault(frame.id, []).append(frame)
                case Received():
                    pass
                case _:
                    self.unreadable += 1
        self._news.set()

    def beyond(self, pos: int) -> int:
        """How many of the events come after `pos`."""
        return sum((event.pos or 0) > pos for events in self.events.values() for event in events.values())

    async def until(self, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not condition():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            held = {session: len(events) for session, events in self.events.items()}
            pytest.fail(f"still not so after {PATIENCE_S:g} s, with {held} events and {len(self.outcomes)} outcomes")


class Operator:
    """Sends numbered messages, and notes which of them certainly never left."""

    def __init__(self, supervisor: Supervisor, rng: random.Random) -> None:
        self._supervisor = supervisor
        self._rng = rng
        self.sent: list[str] = []
        self.kept: list[str] = []
        self.rests = False

    async def work(self) -> None:
        number = 0
        while not self.rests:
            number += 1
            id = f"c{number}"
            command = Command(id=id, session=self._rng.choice(AGENTS), do=DoSend(text=id))
            try:
                await self._supervisor.send(command)
                self.sent.append(id)
            except ConnectionLost:
                self.kept.append(id)
            await asyncio.sleep(0.004)


@asynccontextmanager
async def busy_host(agents: Agents, log: MemoryLog | None = None) -> AsyncIterator[Host]:
    async with Host(name="busy", heartbeat_s=0.2, log=log) as host:
        for name in AGENTS:
            host.add(FunctionHarness(agents.talk, grace_s=2), name=name, id=name, text="start")
        await host.serve()
        yield host
        agents.quiet.set()


@asynccontextmanager
async def console(
    url: str, screen: Screen, seed: int, timings: Timings = EAGER, **how: object
) -> AsyncIterator[tuple[Supervisor, NativeConnector]]:
    connectors: list[NativeConnector] = []

    def make(target: Target) -> NativeConnector:
        connectors.append(NativeConnector(target, timeout_s=10))
        return connectors[-1]

    target = Target("busy", url, user="ann", **how)  # type: ignore[arg-type]
    supervisor = Supervisor(
        make, target, screen.take, lambda: time.time_ns() // 1_000_000, random.Random(seed), timings=timings
    )
    running = asyncio.create_task(supervisor.run())
    await screen.until(lambda: bool(connectors) and supervisor.contact is Contact.LIVE)
    yield supervisor, connectors[0]
    await supervisor.close()
    await running


def held(host: Host, session: str) -> list[Event]:
    """What the host's log has of a session."""
    return host.core.log.read(session, after=0, limit=10_000_000)


def is_complete(host: Host, screen: Screen) -> bool:
    log = host.core.log
    return not host.core.wants_flush and all(len(screen.events.get(name, ())) == log.head(name) for name in AGENTS)


async def quieten(agents: Agents, host: Host) -> None:
    """Let the agents finish, so that the log grows no more."""
    agents.quiet.set()
    await asyncio.wait_for(asyncio.gather(*(host.wait(name) for name in AGENTS)), PATIENCE_S)


@pytest.mark.parametrize("seed", [1, 2])
async def test_nothing_is_lost_and_no_command_is_doubled_over_many_cuts(seed: int) -> None:
    faults = Faults(
        cut_after=(3, 60),
        duplicate=0.1,
        reorder=0.3,
        window=4,
        repeat_command=0.2,
        lose_command=0.03,
        lose_outcome=0.06,
    )
    agents, screen = Agents(), Screen()
    async with busy_host(agents) as host, FaultProxy(host.url, faults, seed=seed) as proxy:
        async with console(proxy.url, screen, seed) as (supervisor, connector):
            operator = Operator(supervisor, random.Random(seed))
            working = asyncio.create_task(operator.work())
            tally = proxy.tally
            await screen.until(lambda: tally.cuts >= 60 and tally.lost_outcomes >= 5 and tally.lost_commands >= 3)
            await screen.until(lambda: min(tally.duplicated, tally.reordered) > 20 and tally.repeated_commands > 5)
            await screen.until(lambda: len(operator.sent) > 100)
            proxy.faults = Faults()
            operator.rests = True
            await working
            proxy.cut()
            await quieten(agents, host)
            await screen.until(lambda: is_complete(host, screen) and not connector.core.pending())

        assert screen.repeated > 0, "cuts and duplicates did repeat events"
        assert screen.unreadable == 0
        for name in AGENTS:
            there = held(host, name)
            assert len(there) > 200
            assert [screen.events[name][event.seq] for event in there if event.seq] == there
        commands_in_the_log = Counter(
            event.command for name in AGENTS for event in held(host, name) if isinstance(event, Intervention)
        )

    assert {*screen.outcomes} ^ {*operator.sent} == set()
    for id, outcomes in screen.outcomes.items():
        kinds = {outcome.outcome for outcome in outcomes}
        assert len(kinds) == 1, f"{id} was told {kinds}"
        done = kinds == {OutcomeKind.APPLIED}
        assert done or kinds == {OutcomeKind.UNDELIVERED}
        assert commands_in_the_log[id] == agents.heard[id] == int(done)
    assert not any(agents.heard[id] or commands_in_the_log[id] for id in operator.kept)
    assert any(outcomes[0].outcome is OutcomeKind.UNDELIVERED for outcomes in screen.outcomes.values())


async def test_one_watched_session_loses_nothing_either() -> None:
    agents, screen = Agents(), Screen()
    # A single session makes few frames: they have to wait for one another to change places.
    faults = Faults(cut_after=(3, 20), duplicate=0.2, reorder=0.6, linger_s=0.05)
    async with (
        busy_host(agents) as host,
        FaultProxy(host.url, faults, seed=3) as proxy,
        console(proxy.url, screen, 3, record=Record.WATCHED) as (supervisor, _),
    ):
        await supervisor.send(Watch(session="bee", start="start"))
        await screen.until(lambda: proxy.tally.cuts >= 30 and proxy.tally.reordered > 50)
        proxy.faults = Faults()
        proxy.cut()
        await quieten(agents, host)
        log = host.core.log
        await screen.until(lambda: not host.core.wants_flush and len(screen.events["bee"]) == log.head("bee"))
        assert set(screen.events) == {"bee"}
        there = held(host, "bee")
        assert [screen.events["bee"][event.seq] for event in there if event.seq] == there


async def test_a_host_that_forgets_is_resumed_without_being_read_again_from_the_start() -> None:
    """The client is away for longer than the host remembers, so that it comes back to a hole."""
    agents, screen = Agents(), Screen()
    log = MemoryLog(lambda: "e", 400)
    again = 0
    with socket.socket() as nowhere:
        nowhere.bind(("127.0.0.1", 0))  # and nobody listens
        async with (
            busy_host(agents, log) as host,
            FaultProxy(host.url) as proxy,
            console(proxy.url, screen, 4) as (supervisor, connector),
        ):
            for _ in range(5):
                await passes(screen, connector, log.pos)
                proxy.upstream = f"ws://127.0.0.1:{nowhere.getsockname()[1]}"
                proxy.cut()
                await screen.until(lambda: screen.contacts[-1].contact is Contact.LOST)
                await forgets(screen, log, connector.core.pos or 0)
                again += screen.beyond(min(log.lost(name) for name in AGENTS))
                proxy.upstream = host.url
            await passes(screen, connector, log.pos)
            await quieten(agents, host)
            await screen.until(lambda: all(max(screen.events[name]) == log.head(name) for name in AGENTS))
            await screen.until(lambda: connector.core.pos == log.pos)
            before = len(screen.contacts)
            proxy.cut()
            await screen.until(lambda: [change.contact for change in screen.contacts[before:]][-1:] == [Contact.LIVE])
            # What answers a watch has come when the outcome of a later command has.
            await supervisor.send(Command(id="last", session="ant", do=DoSend(text="last")))
            await screen.until(lambda: "last" in screen.outcomes)
    assert screen.repeated <= again, "nothing before where the client stands is read again"
    for name in AGENTS:
        assert len(screen.events[name]) < log.head(name), "there were holes"


async def passes(screen: Screen, connector: NativeConnector, pos: int) -> None:
    """Wait until the client stands behind `pos`, whatever holes there are before it."""
    await screen.until(lambda: (connector.core.pos or 0) >= pos)


async def forgets(screen: Screen, log: MemoryLog, pos: int) -> None:
    """Wait until the host has forgotten some of what comes after `pos`, of every session."""
    await screen.until(lambda: all(log.lost(name) > pos for name in AGENTS))


async def test_another_host_at_the_same_address_makes_commands_unknown_and_starts_over() -> None:
    """The proxy stays, the host behind it is replaced while a command's outcome is lost."""
    agents, screen = Agents(), Screen()

    async def start(host: Host, name: str) -> str:
        host.add(FunctionHarness(agents.talk, grace_s=2), name=name, id=name, text="start")
        return await host.serve()

    async with (
        Host(name="first") as first,
        Host(name="second") as second,
        FaultProxy(await start(first, "ant"), Faults(lose_outcome=1.0), seed=5) as proxy,
        console(proxy.url, screen, 5) as (supervisor, connector),
    ):
        await screen.until(lambda: len(screen.events.get("ant", ())) > 50)
        proxy.upstream = await start(second, "dragonfly")
        await supervisor.send(Command(id="c1", session="ant", do=DoSend(text="c1")))
        await screen.until(lambda: "c1" in screen.outcomes)
        [outcome] = screen.outcomes["c1"]
        assert (outcome.outcome, outcome.session) == (OutcomeKind.UNKNOWN, "ant")
        assert connector.core.pending() == ()
        await screen.until(lambda: len(screen.events.get("dragonfly", ())) > 50)
        assert min(screen.events["dragonfly"]) == 1
        agents.quiet.set()
    assert agents.heard["c1"] == 1, "it was done, and only nobody could say so any more"


async def test_the_proxy_hands_refusals_back_as_they_came() -> None:
    principal = Principal("ann", Role.OPERATOR)
    async with Host(tokens={"good-token": principal}) as host, FaultProxy(await host.serve()) as proxy:
        bad = NativeConnector(Target("h", proxy.url, token="bad-token"))
        with pytest.raises(Denied, match="401"):
            await bad.connect()
        good = NativeConnector(Target("h", proxy.url, token="good-token"))
        link = await good.connect()
        assert good.core.welcome is not None
        assert good.core.welcome.principal == "ann"
        await link.close()
        assert proxy.tally.connections == 1


async def test_the_proxy_says_when_nothing_is_behind_it() -> None:
    async with Host() as host:
        url = await host.serve()
    async with FaultProxy(url) as proxy:
        with pytest.raises(Unreachable, match="502"):
            await NativeConnector(Target("h", proxy.url)).connect()


async def test_a_real_host_without_our_subprotocol_in_the_offer_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchfloor.dial.PROTOCOL", "watchfloor.v9")
    async with Host() as host:
        with pytest.raises(NoCommonProtocol):
            await NativeConnector(Target("h", await host.serve())).connect()
