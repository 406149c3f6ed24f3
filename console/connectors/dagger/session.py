"""The agents of one Dagger session: what telemetry and the engine say of them, told to the mirror."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import count, islice
from typing import Final

from console.connectors.dagger import queries
from console.connectors.dagger.abilities import Abilities
from console.connectors.dagger.agents import SESSION_ENDED, Agent, fields, state_of, unknown_here
from console.connectors.dagger.awaiting import Awaiting
from console.connectors.dagger.graph import Graph, Refused
from console.connectors.dagger.ledger import Sent, Stage
from console.connectors.dagger.reading import Json, down, sendable, text
from console.connectors.dagger.roster import Roster
from console.connectors.dagger.transcript import Turn, turns
from watchfloor.errors import ConnectionFailed, ConnectionLost, StaleTarget, WatchfloorError
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
OF_ANOTHER: Final = "its id stands for another agent now"
QUIET: Final = ("", "IDLE", "PAUSED", "FAILED", "STOPPED")
MOST_QUIET: Final = 200
"""Agents at rest that are read in one round: telemetry tells where something happens."""
NO_MESSAGE: Final = "no record of message"
"""The engine's answer where the agent exists and has no such message."""
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
        self.roster = Roster()
        for agent in self.agents.values():
            agent.id, agent.unreachable, agent.proven = None, "", False
            agent.answered = agent.vanished = False
        self.show_session(Lifecycle.IDLE, None)

    def caught_up(self, before: Roster) -> None:
        """The past was read: who was in the roster `before` and is not now is of a session that is gone."""
        self._live = True
        for handle in self.roster.agents:
            self.show(self.agents[handle])
        for handle in before.agents:
            if (agent := self.agents.get(handle)) is not None and handle not in self.roster.agents:
                self._is_over(agent, "its session is gone: another one answers there now")

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
                self._is_over(agent, SESSION_ENDED)
        self.show_session(Lifecycle.STOPPED, SESSION_ENDED)

    def _is_over(self, agent: Agent, why: str) -> None:
        """The agent went with its session, and what it had not read with it."""
        agent.over, agent.why_over, agent.pending = True, why, None
        for sent in agent.ledger.waiting:
            self._failed(sent, why)
        self.show(agent)

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
        agent.id = id if id and sendable(id) else agent.id
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

    def doubt(self) -> None:
        """The connection broke somewhere: whoever answers now may be another session, and has to be looked at."""
        self.dirty.update(agent.handle for agent in self.agents.values() if not agent.over)
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

    def _due(self) -> list[str]:
        """Whom to read in this round: all that are busy or looked at, and some of the quiet ones by turns."""
        alive = [agent for agent in self.agents.values() if not agent.over]
        quiet = [agent.handle for agent in alive if agent.state in QUIET and agent.handle not in self.watched]
        if len(quiet) <= MOST_QUIET:
            return [agent.handle for agent in alive]
        quiet.sort(key=lambda handle: self.agents[handle].asked)
        later = set(quiet[MOST_QUIET:])
        return [agent.handle for agent in alive if agent.handle not in later]

    async def poll(self, handles: Iterable[str] | None = None) -> None:
        """Read the state of these agents, or of those that are due. Raises ConnectionFailed."""
        named = self._due() if handles is None else list(handles)
        wanted = [agent for handle in named if not (agent := self.agents[handle]).over]
        await self._find([agent for agent in wanted if agent.id is None])
        found = iter([agent for agent in wanted if agent.id is not None])
        if not wanted and handles is None:
            # With nobody to read, this still tells whether the engine is there.
            await self.graph.ask(queries.ALIVE)
        while batch := list(islice(found, AT_ONCE)):
            # One of which nothing can be had takes along all that was asked with it.
            if not await self._read(batch) and len(batch) > 1:
                for agent in batch:
                    await self._read([agent])
        alive = [agent for agent in self.agents.values() if not agent.over]
        if alive and all(agent.vanished for agent in alive):
            raise ConnectionLost("none of its agents is known there any more: another session may answer now")

    async def _read(self, batch: list[Agent]) -> bool:
        """Read the state of these at once; False, and nothing changed, where that gave nothing for several."""
        asked = next(self._asked)
        variables: Json = {f"a{n}": agent.id for n, agent in enumerate(batch)}
        data, errors = await self.graph.ask_all(queries.poll(self.abilities, len(batch)), variables)
        if not data and len(batch) > 1:
            return False
        for n, agent in enumerate(batch):
            if asked < agent.asked:
                # A later reading has come before this one.
                continue
            agent.asked = asked
            read, reason = data.get(f"a{n}"), "; ".join(errors)
            if isinstance(read, dict) and text(read.get("handle")) not in ("", agent.handle):
                # Ids are numbers of their session: the same one stands for another agent in the next.
                read, reason = None, OF_ANOTHER
            if isinstance(read, dict) and read:
                self._take(agent, read)
                continue
            agent.vanished = agent.vanished or (agent.answered and (unknown_here(reason) or reason == OF_ANOTHER))
            agent.forget(reason or "the engine does not know it")
            self.show(agent)
        return True

    async def _find(self, lost: list[Agent]) -> None:
        """Find out how these agents are addressed."""
        for agent in lost:
            if not sendable(agent.handle):
                agent.unreachable = "its handle holds half a character, which cannot be sent"
                self.show(agent)
        asked = iter([agent for agent in lost if sendable(agent.handle)])
        while batch := list(islice(asked, AT_ONCE)):
            if not await self._ids(batch) and len(batch) > 1:
                for agent in batch:
                    await self._ids([agent])

    async def _ids(self, agents: list[Agent]) -> bool:
        """Ask for the ids of these at once; False, and nothing changed, where that gave nothing for several."""
        data: Json = {}
        errors = ["this engine finds no agent by its handle"]
        if self.abilities.by_handle:
            asked: Json = {}
            for n, agent in enumerate(agents):
                # A label, whatever becomes of half characters in it.
                asked |= {f"h{n}": agent.handle, f"n{n}": agent.name.encode("utf-8", "replace").decode()}
            data, errors = await self.graph.ask_all(queries.by_handle(self.abilities, len(agents)), asked)
            if not data and len(agents) > 1:
                return False
        for n, agent in enumerate(agents):
            id = text(down(data, f"a{n}", "agent", "id"))
            agent.id = id if id and sendable(id) else None
            agent.unreachable = "" if agent.id else "; ".join(errors) or "the engine gives it no id"
            if agent.id is None:
                self.show(agent)
        return True

    async def look_for_unproven(self) -> None:
        """Find out of agents that nothing has shown yet whether they exist: their mailbox tells."""
        for agent in list(self.agents.values()):
            if not (agent.proven or agent.over):
                await self.find_refs(agent)
                self.show(agent)

    def _take(self, agent: Agent, read: Json) -> None:
        before, was = agent.reading, agent.state
        agent.read = read
        agent.name = text(read.get("name")) or agent.name
        agent.unreachable, agent.answered = "", True
        agent.proven = agent.proven or agent.state not in ("IDLE", "")
        if agent.pending is not None and agent.pending.overlay is Overlay.PAUSING and agent.pause_is_over():
            agent.pending = None
            if agent.state == "RUNNING":
                note = "the step has ended and it runs on: somebody called the pause off"
                self.mirror.emit(agent.handle, Notice(at=0, text=note, code="pause_called_off"))
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
            except (ConnectionFailed, asyncio.CancelledError):
                self._unread[handle] = None
                self.said.set()
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
        self._check_presumed(agent, conversation)
        agent.proven = agent.proven or bool(agent.transcript.refs)
        for sent in agent.unheard:
            # An answer that was given to the message by name need not be the last word of a turn.
            if sent.response and not agent.transcript.said(sent.response):
                key, note = f"{agent.handle}/reply/{sent.ref}", f"{sent.ref} was answered: {sent.response}"
                self.mirror.emit(agent.handle, Notice(at=0, key=key, code="answered", text=note))
        agent.unheard.clear()
        self.show(agent)
        return conversation

    async def find_refs(self, agent: Agent) -> str:
        """Find out how many messages the agent was ever sent: they are numbered without a gap.

        Returns why that cannot be told, "" where it can. Raises ConnectionFailed.
        """
        if agent.over or agent.id is None:
            return agent.why_over if agent.over else agent.unreachable or "it cannot be addressed"
        if not self.abilities.looks_up:
            return "this engine finds no message by its number"
        # The engine tells of one message at a time: each step goes twice as far, and half as far after a miss.
        step = 1
        while step:
            ref = agent.ledger.next_ref(step)
            data, errors = await self.graph.ask_all(queries.LOOK_UP, {"id": agent.id, "ref": ref})
            said = "; ".join(errors)
            if down(data, "node", "message", "ref"):
                agent.ledger.saw(ref)
                agent.proven = True
                step *= 2
            elif NO_MESSAGE in said or unknown_here(said):
                # A mailbox that says no is one all the same.
                agent.proven = agent.proven or NO_MESSAGE in said
                step //= 2
            else:
                return said or "the engine does not say"
        return ""

    async def message_id(self, agent: Agent, ref: str) -> str:
        data, _ = await self.graph.ask_all(queries.LOOK_UP, {"id": agent.id, "ref": ref})
        return text(down(data, "node", "message", "id"))

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

    def _check_presumed(self, agent: Agent, conversation: list[Turn]) -> None:
        """Of messages that were taken for ours by their number alone: are they?"""
        for turn in conversation:
            sent = agent.ledger.entries.get(turn.ref)
            if sent is None or not sent.presumed:
                continue
            sent.presumed = turn.said != sent.text
            if sent.presumed:
                del agent.ledger.entries[turn.ref]
                self.awaiting.end(sent)
                note = f"{turn.ref} is of somebody else; whether the message that was lost arrived is not known"
                self.mirror.emit(agent.handle, Notice(at=0, level=Level.WARNING, key=f"{turn.ref}/other", text=note))

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
