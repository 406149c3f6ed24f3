"""The connector of a Dagger engine's session."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from console.connectors.dagger import abilities, queries
from console.connectors.dagger.abilities import Abilities
from console.connectors.dagger.feed import LOGS, TRACES, Feed, SessionEnded
from console.connectors.dagger.graph import Graph
from console.connectors.dagger.lost import Lost, look
from console.connectors.dagger.reading import text
from console.connectors.dagger.roster import Roster
from console.connectors.dagger.session import HERE, Session
from console.connectors.dagger.telemetry import records, spans
from console.connectors.dagger.verbs import Verbs
from console.connectors.web.address import Address, address_of
from watchfloor.connector import Record, Target
from watchfloor.errors import ConfigError, ConnectionFailed, ConnectionLost, NotAHost
from watchfloor.foreign import ForeignConnector, Handled, Mirror
from watchfloor.protocol.events import Level, Notice
from watchfloor.protocol.frames import Command

SCHEMES: Final = {"dagger+http": "http", "dagger+https": "https"}
CHILD: Final = "dagger+session"
"""The session that this process was started in: `dagger run watchfloor connect dagger+session://here`."""
PORT_VARIABLE: Final = "DAGGER_SESSION_PORT"
TOKEN_VARIABLE: Final = "DAGGER_SESSION_TOKEN"  # noqa: S105 - the name of a variable
POLL_S: Final = 2.0
LATE_MS: Final = 60_000
"""For how long a message that did not arrive is looked for."""
SPOKEN_S: Final = 2.0
"""Seconds that conversations may be read before the roster is shown."""
GATHER_S: Final = 0.05
FEED_AGAIN_S: Final = 5.0
GONE_TRIES: Final = 3
ANSWERS_IN_S: Final = 300.0
"""A stop is answered when the step in flight has ended, and compacting asks the model."""


class DaggerFactory:
    schemes: Final = frozenset({*SCHEMES, CHILD})

    def __call__(self, target: Target) -> ForeignConnector:
        return ForeignConnector(target, DaggerSource, name="dagger", answers_in_s=ANSWERS_IN_S)


def place_of(target: Target, environment: Mapping[str, str]) -> tuple[Address, str | None]:
    """Where the session is, and its token. Raises ConfigError.

    A token of the environment goes to the port that the environment names, on this machine, and nowhere else.
    """
    port, token = environment.get(PORT_VARIABLE, ""), environment.get(TOKEN_VARIABLE)
    if target.url.partition("://")[0] != CHILD:
        address = address_of(target, SCHEMES)
        parts = urlsplit(address.base)
        ours = parts.hostname in ("127.0.0.1", "localhost", "::1") and port.isdigit() and parts.port == int(port)
        return address, target.token if target.token is not None else token if ours else None
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536 and token):
        raise ConfigError(
            f"{CHILD}:// is the session that this console was started in, and {PORT_VARIABLE} and {TOKEN_VARIABLE} "
            f"do not name one: start it with dagger run, or write {next(iter(SCHEMES))}://HOST:PORT"
        )
    here = Target(target.name, f"dagger+http://127.0.0.1:{port}", token=token)
    return address_of(here, SCHEMES), token


class DaggerSource:
    """One session of an engine (a `watchfloor.foreign.ForeignSource`)."""

    def __init__(self, target: Target, mirror: Mirror) -> None:
        self._place = place_of(target, os.environ)
        self._mirror = mirror
        child = target.url.partition("://")[0] == CHILD
        self.session: Final = Session(mirror, everything=target.record is Record.ALL, ends_with_us=child)
        self._verbs = Verbs(self.session, self._note_lost)
        self._lost: list[Lost] = []
        self._late: set[Lost] = set()
        """Those of them that were looked up and may still arrive."""
        self._feeds: list[Feed] = []
        self._reading: list[asyncio.Task[None]] = []
        self._graph: Graph | None = None

    async def open(self) -> None:
        self._graph = graph = Graph(*self._place)
        can = await self._abilities(graph)
        if not can.knows_agents:
            raise NotAHost(f"{graph.where} has no agents: they need Dagger v1.0.0-beta.14 or newer")
        name = "Dagger session"
        if can.has("Query.version"):
            name = f"Dagger {text((await graph.ask(queries.VERSION)).get('version'))}".rstrip()
        before = self.session.roster
        self.session.begin(graph, can, name)
        self._feeds = [
            Feed(graph.streams, TRACES, "spans", self._spans, self.session.doubt),
            Feed(graph.streams, LOGS, "logs", self._logs, self.session.doubt),
        ]
        self._reading = [_task(self._follow(feed)) for feed in self._feeds]
        past = asyncio.get_running_loop().create_task(self._past())
        # A stream that cannot be read says so at once: nothing has to be waited for then.
        await asyncio.wait({past, *self._reading}, return_when=asyncio.FIRST_COMPLETED)
        whole = past.done() and past.result()
        past.cancel()
        await self.session.poll(self.session.agents)
        self.session.caught_up(before if whole else Roster())
        reading = zip(self._feeds, self._reading, strict=True)
        if not whole and not all(feed.answered or task.done() for feed, task in reading):
            self._missing("telemetry_silent", "its telemetry gives no answer, so agents may be missing here")
        await self.session.look_for_unproven()
        with suppress(TimeoutError):
            # Of many agents the rest is read while the console shows them.
            await asyncio.wait_for(self.session.catch_up(), SPOKEN_S)
        for agent in self.session.agents.values():
            for sent in () if agent.over else agent.ledger.open:
                self.session.awaiting.begin(graph, sent)

    async def _abilities(self, graph: Graph) -> Abilities:
        told, errors = await graph.ask_all(abilities.ASK)
        if errors:
            told = {}
            for part in abilities.ASK_EACH:
                told |= (await graph.ask_all(part))[0]
        return Abilities.read(told)

    async def run(self) -> None:
        ours = [_task(self._poll()), _task(self._read_conversations())]
        try:
            await asyncio.gather(*ours, *self._reading)
        except SessionEnded:
            self.session.ended()
        finally:
            for task in ours:
                task.cancel()

    async def execute(self, command: Command, by: str) -> Handled:
        return await self._verbs.execute(command, by)

    async def watch(self, session: str) -> None:
        self.session.watched.add(session)
        agent = self.session.agents.get(session)
        if agent is not None and agent.id is not None and not agent.over:
            await self.session.find_refs(agent)
            await self.session.follow(agent)

    async def unwatch(self, session: str) -> None:
        self.session.watched.discard(session)

    async def close(self) -> None:
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        self._reading = []
        await self.session.close()
        if self._graph is not None:
            await self._graph.close()
            self._graph = None

    # --- reading

    async def _past(self) -> bool:
        """Was all read that had happened before?"""
        return all(await asyncio.gather(*(feed.past() for feed in self._feeds)))

    async def _follow(self, feed: Feed) -> None:
        while True:
            try:
                await feed.run()
            except NotAHost as fault:
                note = f"it gives out no telemetry, so only agents that this console knows of are shown: {fault}"
                self._missing("no_telemetry", note)
                return
            except SessionEnded:
                # That it tells no more is not yet that there is no more: a proxy may end what takes long.
                if await self._gone():
                    raise
                note = "its telemetry ends although the session answers, so agents may be missing here"
                self._missing("telemetry_ends", note)
                await asyncio.sleep(FEED_AGAIN_S)

    async def _gone(self) -> bool:
        """Is the session over? Asked a few times: who is ending may break connections. Raises ConnectionFailed."""
        for _ in range(GONE_TRIES - 1):
            with suppress(ConnectionLost):
                return await self._asked.gone()
            await asyncio.sleep(GATHER_S)
        return await self._asked.gone()

    @property
    def _asked(self) -> Graph:
        if self._graph is None:
            raise ConnectionLost("the session is not connected")
        return self._graph

    def _missing(self, code: str, note: str) -> None:
        """Something keeps agents from being seen."""
        self._mirror.emit(HERE, Notice(at=0, level=Level.WARNING, code=code, text=note, key=f"telemetry/{code}"))

    def _spans(self, data: str) -> None:
        self._mirror.heard()
        self.session.heard_of(self.session.roster.take_spans(spans(data)))

    def _logs(self, data: str) -> None:
        self._mirror.heard()
        self.session.heard_of(self.session.roster.take_records(records(data)))

    async def _poll(self) -> None:
        """Read every agent's state from time to time, and at once where something is said to have happened."""
        session, failures, all_at = self.session, 0, 0.0
        clock = asyncio.get_running_loop().time
        while True:
            try:
                await self._look_up()
                dirty = session.dirty & session.agents.keys()
                session.dirty.clear()
                if clock() >= all_at:
                    await session.poll()
                    all_at = clock() + POLL_S
                    self._mirror.heard()
                else:
                    await session.poll(dirty)
                failures = 0
            except ConnectionFailed as fault:
                failures += 1
                if failures > 1 or not fault.retry:
                    raise ConnectionLost(str(fault)) from None
                await asyncio.sleep(POLL_S)
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(session.wake.wait(), max(all_at - clock(), 0))
                # What happens within this time is read together.
                await asyncio.sleep(GATHER_S)
            session.wake.clear()

    async def _read_conversations(self) -> None:
        """By themselves: a long one must not hold up what is known of the agents' states."""
        while True:
            await self.session.said.wait()
            try:
                await self.session.catch_up()
            except ConnectionFailed:
                # Whether contact is lost is for the states to tell.
                self.session.said.set()
                await asyncio.sleep(POLL_S)

    async def _look_up(self) -> None:
        now = self._mirror.now()
        for lost in list(self._lost):
            # What did not arrive may still be on its way.
            late = lost in self._late
            if await look(self.session, lost, late=late) or now - lost.at > LATE_MS:
                self._lost.remove(lost)
                self._late.discard(lost)
            else:
                self._late.add(lost)

    def _note_lost(self, lost: Lost) -> None:
        self._lost.append(lost)
        self.session.wake.set()


def _task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)
