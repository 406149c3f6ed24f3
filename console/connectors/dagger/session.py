"""The agents of one Dagger session: what telemetry and the engine say of them, told to the mirror."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import count, islice
from typing import Final

from console.connectors.dagger import queries
from console.connectors.dagger.abilities import Abilities
from console.connectors.dagger.agents import SESSION_ENDED, Agent, fields, state_of
from console.connectors.dagger.awaiting import Awaiting
from console.connectors.dagger.graph import Graph, Refused
from console.connectors.dagger.ledger import Sent, Stage
from console.connectors.dagger.reading import Json, down, text
from console.connectors.dagger.roster import Roster
from console.connectors.dagger.transcript import Turn, turns
from watchfloor.errors import ConnectionFailed, StaleTarget, WatchfloorError
from watchfloor.foreign import Mirror
from watchfloor.protocol.events import Level, Notice
from watchfloor.protocol.model import (
    Capabilities,
    FieldType,
    FormField,
    RequestModel,
    RequestsTrait,
    SessionKind,
    Subject,
    Traits,
)
from watchfloor.protocol.model import Replay as ReplayTrait
from watchfloor.words import Lifecycle, Overlay, RequestKind, RequestState

HERE: Final = "dagger-session"
"""The row of the session itself, on which an agent can be started."""
AT_ONCE: Final = 25
"""Agents that one query reads."""
PROBED: Final = 8
"""Messages that one query looks for."""
MOST_PARKED: Final = 24
"""Running agents whose end of turn is waited for; the others are read from time to time."""


class Session:
    """`everything`: the conversations of all agents are followed, not only of those that are looked at."""

    def __init__(self, mirror: Mirror, *, everything: bool, ends_with_us: bool) -> None:
        self.mirror: Final = mirror
        self.roster = Roster()
        self.agents: dict[str, Agent] = {}
        self.abilities = Abilities({}, frozenset())
        self.wake: Final = asyncio.Event()
        self.said: Final = asyncio.Event()
        """A conversation has changed."""
        self.dirty: set[str] = set()
        """Agents to which something may have happened since they were read."""
        self.watched: set[str] = set()
        self.awaiting: Final = Awaiting(self._delivered, self._answered, self._failed)
        self._everything = everything
        self._traits = Traits(
            requests=RequestsTrait.DERIVED,
            replay=ReplayTrait.KEY,
            ends_with_client=ends_with_us,
            pause_drops_mail=True,
        )
        self._graph: Graph | None = None
        self._parked: dict[str, asyncio.Task[None]] = {}
        self._offers = self._offers_waiting = Capabilities()
        self._name = ""
        self._live = False
        self._asked = count(1)
        self._unread: dict[str, None] = {}

    @property
    def graph(self) -> Graph:
        if self._graph is None:
            raise StaleTarget("the session is not connected")
        return self._graph

    # --- a connection begins and ends

    def begin(self, graph: Graph, abilities: Abilities, name: str) -> None:
        """A connection, to a session of which nothing is known yet: it may be another one than before."""
        self._graph, self.abilities, self._name = graph, abilities, name
        self._live = False
        self._offers, self._offers_waiting = abilities.of_agent(), abilities.of_agent(waits=True)
        before, self.roster = self.roster, Roster()
        for agent in self.agents.values():
            agent.id, agent.unreachable = None, ""
            agent.proven = agent.proven and not before.started(agent.handle)
        self.show_session(Lifecycle.IDLE, None)

    def caught_up(self, before: Roster) -> None:
        """The past was read: who was in the roster `before` and is not now is of a session that is gone."""
        self._live = True
        for handle in self.roster.agents:
            self.show(self.agents[handle])
        for handle in before.agents:
            if (agent := self.agents.get(handle)) is not None and handle not in self.roster.agents:
                agent.over, agent.why_over = True, "its session is gone: another one answers there now"
                self.show(agent)

    async def close(self) -> None:
        parked = list(self._parked.values())
        for task in parked:
            task.cancel()
        await asyncio.gather(*parked, return_exceptions=True)
        await self.awaiting.close()

    def ended(self) -> None:
        """The session is over: every agent has stopped with it."""
        for agent in self.agents.values():
            if not agent.over:
                agent.over, agent.why_over, agent.pending = True, SESSION_ENDED, None
                self.show(agent)
        self.show_session(Lifecycle.STOPPED, SESSION_ENDED)

    def show_session(self, lifecycle: Lifecycle, why: str | None) -> None:
        gone = lifecycle is Lifecycle.STOPPED
        self.mirror.put(
            HERE,
            capabilities=self.abilities.of_session(),
            traits=self._traits,
            name=self._name,
            kind=SessionKind.GROUP,
            lifecycle=lifecycle,
            native_state="ended" if gone else "open",
            why=why,
            blocked={"act": SESSION_ENDED} if gone else {},
        )

    # --- who there is

    def add(self, handle: str, name: str, *, owned: bool = False, id: str | None = None) -> Agent:
        """An agent of which somebody here knows; telemetry shows the others."""
        agent = self.agents.setdefault(handle, Agent(handle))
        agent.name = name or agent.name
        agent.owned = agent.owned or owned
        # To start one proves it as much as a span does.
        agent.proven = agent.proven or owned
        agent.id = id or agent.id
        return agent

    def heard_of(self, handles: Iterable[str]) -> None:
        """Telemetry has something new about these. What it tells of the past is shown as it ended, all at once."""
        for handle in handles:
            agent = self.agents.setdefault(handle, Agent(handle))
            agent.proven, agent.over = True, False
            agent.name = self.roster.agents[handle].name or agent.name
            if self._live:
                self.show(agent)
                self.wants(handle)

    def wants(self, handle: str) -> None:
        """Something may have happened to the agent: read it soon."""
        self.dirty.add(handle)
        self.wake.set()

    def known(self, handle: str) -> Agent:
        """Raises StaleTarget for one that is not there, or cannot be addressed."""
        agent = self.agents.get(handle)
        if agent is None:
            raise StaleTarget("there is no such agent in this session")
        if agent.over:
            raise StaleTarget(agent.why_over)
        if agent.id is None:
            raise StaleTarget(agent.unreachable or "it cannot be addressed yet")
        return agent

    # --- reading

    async def poll(self, handles: Iterable[str] | None = None) -> None:
        """Read the state of these agents, or of all. Raises ConnectionFailed."""
        named = list(self.agents) if handles is None else handles
        wanted = [agent for handle in named if not (agent := self.agents[handle]).over]
        for agent in wanted:
            if agent.id is None:
                await self._find(agent)
        found = iter([agent for agent in wanted if agent.id is not None])
        if not wanted and handles is None:
            # With nobody to read, this still tells whether the engine is there.
            await self.graph.ask(queries.ALIVE)
        while batch := list(islice(found, AT_ONCE)):
            asked = next(self._asked)
            variables: Json = {f"a{n}": agent.id for n, agent in enumerate(batch)}
            data, errors = await self.graph.ask_all(queries.poll(self.abilities, len(batch)), variables)
            for n, agent in enumerate(batch):
                read = data.get(f"a{n}")
                if asked < agent.asked:
                    # A later reading has come before this one.
                    continue
                agent.asked = asked
                if isinstance(read, dict) and read:
                    self._take(agent, read)
                else:
                    agent.id, agent.unreachable = None, "; ".join(errors[:1]) or "the engine does not know it"
                    self.show(agent)

    async def _find(self, agent: Agent) -> None:
        """Find out how the agent is addressed."""
        if not self.abilities.by_handle:
            agent.unreachable = "this engine finds no agent by its handle"
        else:
            # A label, whatever becomes of half characters in it.
            name = agent.name.encode("utf-8", "replace").decode()
            asked: Json = {"handle": agent.handle, "name": name}
            try:
                data = await self.graph.ask(queries.by_handle(self.abilities), asked)
            except Refused as refusal:
                agent.unreachable = str(refusal)
            else:
                agent.id = text(down(data, "llm", "agent", "id")) or None
                agent.unreachable = "" if agent.id is not None else "the engine gives it no id"
        if agent.id is None:
            self.show(agent)

    def _take(self, agent: Agent, read: Json) -> None:
        before, was = agent.reading, agent.state
        agent.read = read
        agent.name = text(read.get("name")) or agent.name
        agent.unreachable = ""
        agent.proven = agent.proven or agent.state not in ("IDLE", "")
        pending = agent.pending
        if pending is not None and agent.state != "RUNNING" and pending.overlay is Overlay.PAUSING:
            agent.pending = None
        if was == "FAILED" and agent.state != was:
            for sent in agent.ledger.open:
                self.awaiting.begin(self.graph, sent)
        self._question(agent)
        self.show(agent)
        self._park(agent)
        if (agent.reading != before or agent.unheard) and (self._everything or agent.handle in self.watched):
            self._unread[agent.handle] = None
            self.said.set()

    async def catch_up(self) -> None:
        """Read the conversations that have changed. Raises ConnectionFailed, and leaves the rest for another time."""
        self.said.clear()
        while self._unread:
            # Taken out first: what changes while it is read is to be read again.
            handle, _ = self._unread.popitem()
            try:
                await self.follow(self.agents[handle])
            except ConnectionFailed:
                self._unread[handle] = None
                raise

    async def follow(self, agent: Agent) -> list[Turn]:
        """Read the conversation and tell what of it is new."""
        async with agent.reading_on:
            return await self.follow_now(agent)

    async def follow_now(self, agent: Agent) -> list[Turn]:
        """The same for who holds `agent.reading_on`."""
        if not self.abilities.reads_messages or agent.id is None:
            return []
        try:
            data = await self.graph.ask(queries.transcript(self.abilities), {"id": agent.id})
        except Refused as refusal:
            note = f"its conversation cannot be read: {refusal}"
            self.mirror.emit(agent.handle, Notice(at=0, level=Level.WARNING, key=note, text=note))
            return []
        conversation = turns(down(data, "node", "snapshot", "messages"))
        self.mirror.emit(agent.handle, *agent.transcript.take(conversation, agent.ledger.ours))
        for sent in agent.ledger.read(agent.transcript.refs):
            self.mirror.emit(agent.handle, sent.mail())
        agent.proven = agent.proven or bool(agent.transcript.refs)
        for sent in agent.unheard:
            # An answer that was given to the message by name need not be the last word of a turn.
            if sent.response and not agent.transcript.said(sent.response):
                key, note = f"{agent.handle}/reply/{sent.ref}", f"{sent.ref} was answered: {sent.response}"
                self.mirror.emit(agent.handle, Notice(at=0, key=key, code="answered", text=note))
        agent.unheard.clear()
        self.show(agent)
        return conversation

    async def find_refs(self, agent: Agent) -> None:
        """Find out how many messages the agent was ever sent: they are numbered without a gap."""
        while self.abilities.looks_up and agent.id is not None:
            refs = agent.ledger.next_refs(PROBED)
            data, _ = await self.graph.ask_all(queries.look_up(refs), {"id": agent.id})
            there = [ref for n, ref in enumerate(refs) if down(data.get(f"m{n}"), "message", "ref")]
            for ref in there:
                agent.ledger.saw(ref)
            agent.proven = agent.proven or bool(there)
            if len(there) < len(refs):
                return

    async def message_id(self, agent: Agent, ref: str) -> str:
        data, _ = await self.graph.ask_all(queries.look_up([ref]), {"id": agent.id})
        return text(down(data.get("m0"), "message", "id"))

    def _park(self, agent: Agent) -> None:
        """Wait for the end of what runs, so that it shows at once."""
        if agent.state != "RUNNING" or agent.handle in self._parked or len(self._parked) >= MOST_PARKED:
            return
        if self.abilities.has("Agent.wait"):
            task = asyncio.get_running_loop().create_task(self._wait(agent))
            self._parked[agent.handle] = task
            task.add_done_callback(lambda _: self._parked.pop(agent.handle, None))

    async def _wait(self, agent: Agent) -> None:
        try:
            await self.graph.ask(queries.WAIT, {"id": agent.id}, waits=True)
        except (WatchfloorError, Refused):
            return
        self.wants(agent.handle)

    # --- showing

    def show(self, agent: Agent) -> None:
        told = fields(agent, self.roster)
        offers = self._offers if agent.question is None else self._offers_waiting
        self.mirror.put(agent.handle, capabilities=offers, traits=self._traits, **told)

    def _question(self, agent: Agent) -> None:
        """An agent that waits for input asks a question: the engine has no other word for it."""
        state = state_of(agent, self.roster)
        if state == "WAITING_INPUT" and agent.question is None and self.abilities.answers:
            now = self.mirror.now()
            agent.question = f"{agent.handle}/input/{now}"
            self.show(agent)
            label = "it waits for input; what you write is sent to it as a message"
            subject = Subject(
                session=agent.handle,
                id=agent.question,
                kind=RequestKind.QUESTION,
                fields=(FormField(name="text", type=FieldType.TEXT, label=label),),
            )
            about = text(down(agent.read, "snapshot", "lastReply")) or None
            request = RequestModel.ask(subject, asked_at=now, about=about, state=RequestState.UNCONFIRMED)
            self.mirror.ask(agent.handle, request)
        elif state != "WAITING_INPUT" and agent.question is not None:
            gone, agent.question = agent.question, None
            self.mirror.end_request(agent.handle, gone, RequestState.WITHDRAWN, why="it waits for input no more")

    # --- what becomes of messages

    def sent(self, agent: Agent, sent: Sent) -> asyncio.Task[None] | None:
        """A message was sent; returns the wait for its delivery. It is told with that, which mostly is at once."""
        agent.ledger.add(sent)
        agent.proven = True
        return self.awaiting.begin(self.graph, sent)

    def _delivered(self, sent: Sent, word: str) -> None:
        agent = self.agents[sent.handle]
        if agent.ledger.delivered(sent, word):
            self.mirror.emit(agent.handle, sent.mail())
            self.show(agent)
            self.wants(agent.handle)

    def _answered(self, sent: Sent, response: str) -> None:
        agent = self.agents[sent.handle]
        news = sent.stage is Stage.WAITS
        agent.ledger.answered(sent, response)
        if news:
            self.mirror.emit(agent.handle, sent.mail())
        agent.unheard.append(sent)
        self.show(agent)
        self.wants(agent.handle)

    def _failed(self, sent: Sent, error: str) -> None:
        agent = self.agents[sent.handle]
        if agent.ledger.failed(sent, error):
            self.awaiting.end(sent)
            self.mirror.emit(agent.handle, sent.mail())
            self.show(agent)
