"""Carrying out commands: each verb is sent once, and the state is read in a request of its own after it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from console.connectors.dagger import queries, reseeding
from console.connectors.dagger.abilities import ATTACH, SPAWN
from console.connectors.dagger.agents import Agent, unknown_here
from console.connectors.dagger.graph import HALF, Refused
from console.connectors.dagger.ledger import Sent
from console.connectors.dagger.lost import Lost
from console.connectors.dagger.reading import Json, down, obj, text
from console.connectors.dagger.rebuild import CannotRebuild
from console.connectors.dagger.session import HERE, Session
from watchfloor.errors import ConnectionLost, Unreachable, WatchfloorError
from watchfloor.foreign import Handled
from watchfloor.protocol.frames import (
    Command,
    DoAct,
    DoAnswer,
    DoFork,
    DoNotify,
    DoPause,
    DoReseed,
    DoResume,
    DoSend,
    DoStop,
)
from watchfloor.protocol.model import JsonObject, Pending
from watchfloor.words import OutcomeKind, Overlay, Primitive

DELIVERED_IN_S: Final = 0.5
"""Seconds that the outcome of a message waits for its delivery, which is mostly known at once."""
_FORBIDDEN: Final = (
    "has a suspended turn",
    HALF,
    "is stopped",
    "is mid-turn",
    "cannot subscribe",
    "cannot be re-hydrated",
    "already has",
)


def refused(reason: str) -> Handled:
    """What an error of the engine means. One that is not known says nothing of what was done before it."""
    if unknown_here(reason):
        return Handled(OutcomeKind.STALE_TARGET, reason=reason)
    known = any(word in reason for word in _FORBIDDEN)
    return Handled(OutcomeKind.INVALID if known else OutcomeKind.UNKNOWN, reason=reason)


class Verbs:
    """Over one session. `lost` takes what has to be looked up once the engine answers again."""

    def __init__(self, session: Session, lost: Callable[[Lost], None]) -> None:
        self._session = session
        self._lost = lost

    async def execute(self, command: Command, by: str) -> Handled:
        """See `ForeignSource.execute`."""
        if command.session == HERE:
            return await self._on_session(command, by)
        agent = self._session.known(command.session)
        try:
            match command.do:
                case DoSend(text=words, reply_to=reply_to):
                    return await self._send(agent, words, by, reply_to)
                case DoAnswer() as do:
                    return await self._answer(agent, do, by)
                case DoPause(interrupt=interrupt):
                    return await self._pause(agent, by, interrupt)
                case DoResume():
                    return await self._resume(agent, by)
                case DoStop(kill=kill):
                    return await self._stop(agent, by, kill)
                case DoReseed() as do:
                    return await self._reseed(agent, do, by)
                case DoFork(name=name):
                    return await self._fork(agent, name, by)
                case DoNotify() as do:
                    return await self._notify(agent, do, by)
                case do:
                    return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason=f"{do.primitive} is not offered here")
        except Refused as refusal:
            await self._read(agent)
            return refused(str(refusal))

    # --- the plain verbs

    async def _plain(
        self, agent: Agent, primitive: Primitive, document: str, by: str, *, noop: bool = False
    ) -> Handled:
        lost = Lost(primitive, agent.handle, by, self._session.mirror.now())
        await self._once(lost, self._session.graph.ask(document, {"id": agent.id}, waits=True))
        await self._read(agent, lost)
        info: JsonObject = {"state": agent.state.lower()}
        return Handled(OutcomeKind.APPLIED, info={**info, "noop": True} if noop else info)

    async def _pause(self, agent: Agent, by: str, interrupt: bool) -> Handled:
        noop = agent.state == "PAUSED" and not interrupt
        done = await self._plain(agent, Primitive.PAUSE, queries.pause(interrupt=interrupt), by, noop=noop)
        if agent.state == "RUNNING":
            agent.paused_at, agent.ran_on = agent.reading, 0
            self._overlay(agent, Overlay.PAUSING, by)
        return done

    async def _resume(self, agent: Agent, by: str) -> Handled:
        done = await self._plain(agent, Primitive.RESUME, queries.RESUME, by)
        # A pause that had not landed is called off by it.
        self._overlay(agent, None, by)
        return done

    async def _stop(self, agent: Agent, by: str, kill: bool) -> Handled:
        noop = agent.state == "STOPPED"
        if not noop:
            self._overlay(agent, Overlay.STOPPING, by)
        try:
            return await self._plain(agent, Primitive.STOP, queries.stop(kill=kill), by, noop=noop)
        finally:
            self._overlay(agent, None, by)

    def _overlay(self, agent: Agent, overlay: Overlay | None, by: str) -> None:
        now = self._session.mirror.now()
        agent.pending = Pending(overlay=overlay, by=by, since=now) if overlay is not None else None
        self._session.show(agent)

    # --- messages

    async def _send(
        self, agent: Agent, words: str, by: str, reply_to: str | None, primitive: Primitive = Primitive.SEND
    ) -> Handled:
        session = self._session
        replies = reply_to is not None
        if replies and not session.abilities.has("Agent.send", "replyTo"):
            return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason="this engine takes no answers to a message")
        # Should the answer be lost, only what came after this number can be the message.
        await self._before(session.find_refs(agent))
        lost = Lost(primitive, agent.handle, by, session.mirror.now(), text=words, highest=agent.ledger.highest)
        variables: Json = {"id": agent.id, "message": words}
        if replies:
            variables["replyTo"] = reply_to
        data = await self._once(lost, session.graph.ask(queries.send(replies=replies), variables))
        id = text(down(data, "node", "send"))
        ref = await self._ref(id) if session.abilities.has("AgentMessage.ref") else ""
        if not ref:
            if session.abilities.looks_up:
                self._lost(lost)
            await self._read(agent)
            return Handled(OutcomeKind.APPLIED, info={"message": id})
        sent = Sent(agent.handle, ref, id, words, by, lost.at, reply_to)
        if (delivery := session.sent(agent, sent)) is not None:
            await asyncio.wait({delivery}, timeout=DELIVERED_IN_S)
        session.mirror.emit(agent.handle, sent.mail())
        await self._read(agent)
        info: JsonObject = {"ref": ref}
        if sent.delivery is not None:
            info["delivery"] = sent.delivery.value
        return Handled(OutcomeKind.APPLIED, info=info)

    async def _ref(self, id: str) -> str:
        """The number of a message that was sent; asking changes nothing, so a lost answer is asked for again."""
        for _ in range(2):
            try:
                return text(down(await self._session.graph.ask(queries.REF, {"id": id}), "node", "ref"))
            except (Refused, WatchfloorError):
                continue
        return ""

    async def _answer(self, agent: Agent, do: DoAnswer, by: str) -> Handled:
        given = do.text or text((do.fields or {}).get("text"))
        if not given.strip():
            return Handled(OutcomeKind.INVALID, reason="there is nothing to send")
        await self._before(self._session.poll([agent.handle]))
        if agent.state != "WAITING_INPUT":
            return Handled(OutcomeKind.STALE_TARGET, reason=f"it waits for input no more: it is {agent.state.lower()}")
        return await self._send(agent, given, by, None, Primitive.ANSWER)

    # --- the conversation

    async def _reseed(self, agent: Agent, do: DoReseed, by: str) -> Handled:
        session = self._session
        await self._before(session.poll([agent.handle]))
        self._overlay(agent, Overlay.RESEEDING, by)
        try:
            try:
                built = await reseeding.build(session, agent, do)
            except CannotRebuild as reason:
                return Handled(OutcomeKind.INVALID, reason=str(reason))
            except ConnectionLost as fault:
                # Nothing was given to the agent yet.
                return Handled(OutcomeKind.UNDELIVERED, reason=str(fault))
            lost = Lost(
                Primitive.RESEED, agent.handle, by, session.mirror.now(),
                mode=do.mode, before=agent.transcript.spoken, target=built.target, model=built.model,
            )  # fmt: skip
            async with agent.reading_on:
                # Whatever comes of it: a cut that shows next is ours.
                agent.transcript.reseeded(do.mode, by, sure=False)
                await self._once(lost, session.graph.ask(queries.RESEED, {"id": agent.id, "llm": built.id}))
                agent.transcript.reseeded(do.mode, by)
            agent.pending = None
            await self._read(agent, lost, conversation=True)
            return Handled(OutcomeKind.APPLIED, info={"mode": do.mode.value, "state": agent.state.lower()})
        finally:
            self._overlay(agent, None, by)

    async def _fork(self, agent: Agent, name: str | None, by: str) -> Handled:
        session = self._session
        lost = Lost(Primitive.FORK, agent.handle, by, session.mirror.now())
        labels = session.abilities.has("LLM.fork", "label")
        variables: Json = {"id": agent.id, "name": name or f"{agent.name} (fork)"}
        if labels:
            variables["label"] = f"fork-{session.mirror.now()}"
        data = await self._once(lost, session.graph.ask(queries.fork(labels=labels), variables))
        path = ("node", "snapshot", "fork", "spawn") if labels else ("node", "snapshot", "spawn")
        return await self._born(text(down(data, *path)))

    async def _notify(self, agent: Agent, do: DoNotify, by: str) -> Handled:
        session = self._session
        subscriber = session.known(do.subscriber)
        states = [word.upper() for word in do.on]
        if unknown := [word for word in states if word not in session.abilities.states]:
            known = ", ".join(sorted(word.lower() for word in session.abilities.states))
            return Handled(OutcomeKind.INVALID, reason=f"there is no state {unknown[0].lower()}; there are {known}")
        lost = Lost(Primitive.NOTIFY, agent.handle, by, session.mirror.now(), subscriber=do.subscriber)
        variables: Json = {"id": agent.id, "subscriber": subscriber.id, "on": list(states)}
        await self._once(lost, session.graph.ask(queries.NOTIFY, variables))
        return Handled(OutcomeKind.APPLIED, info={"on": [word.lower() for word in states]})

    # --- the session's own acts

    async def _on_session(self, command: Command, by: str) -> Handled:
        do = command.do
        if not isinstance(do, DoAct):
            return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason="this is the session itself, and no agent")
        given = {name: text(value).strip() for name, value in do.fields.items()}
        try:
            if do.act == SPAWN:
                return await self._spawn(given, by)
            if do.act == ATTACH:
                return await self._attach(given.get("agent", ""), given.get("name", ""))
        except Refused as refusal:
            return refused(str(refusal))
        return Handled(OutcomeKind.INVALID, reason=f"there is no act {do.act}")

    async def _spawn(self, given: dict[str, str], by: str) -> Handled:
        model, system = given.get("model", ""), given.get("system", "")
        variables: Json = {"name": given.get("name") or None}
        if model:
            variables["model"] = model
        if system:
            variables["system"] = system
        lost = Lost(Primitive.ACT, HERE, by, self._session.mirror.now())
        asked = self._session.graph.ask(queries.spawn(model=bool(model), system=bool(system)), variables)
        data = await self._once(lost, asked)
        llm = obj(data.get("llm"))
        return await self._born(text(down(llm, "withSystemPrompt", "spawn") if system else llm.get("spawn")))

    async def _attach(self, who: str, name: str) -> Handled:
        """Show an agent by its handle, or by an id that somebody handed over."""
        session = self._session
        if not who:
            return Handled(OutcomeKind.INVALID, reason="name the agent by its handle or its id")
        try:
            named = obj((await session.graph.ask(queries.identity(session.abilities), {"id": who})).get("node"))
        except Refused:
            named = {}
        handle = text(named.get("handle")) or who
        agent = session.add(handle, name or text(named.get("name")), id=who if named else None)
        await session.poll([handle])
        await session.find_refs(agent)
        session.show(agent)
        return Handled(OutcomeKind.APPLIED, info={"session": handle, "seen": agent.proven})

    async def _born(self, id: str) -> Handled:
        """A new agent has this id. That nothing more can be read of it now takes nothing from that."""
        session = self._session
        for _ in range(2):
            try:
                named = obj((await session.graph.ask(queries.identity(session.abilities), {"id": id})).get("node"))
            except (Refused, WatchfloorError):
                continue
            if handle := text(named.get("handle")):
                await self._read(session.add(handle, text(named.get("name")), owned=True, id=id))
                return Handled(OutcomeKind.APPLIED, info={"session": handle})
        return Handled(OutcomeKind.APPLIED, info={"id": id})

    # --- what all have in common

    async def _once(self, lost: Lost, asked: Awaitable[Json]) -> Json:
        try:
            return await asked
        except ConnectionLost:
            self._lost(lost)
            raise
        except asyncio.CancelledError:
            # Given up waiting: what became of it is looked up like an answer that was lost.
            self._lost(lost)
            raise

    async def _before(self, asked: Awaitable[Any]) -> None:
        """What has to be read before a verb. Where that cannot be read, nothing was sent."""
        try:
            await asked
        except ConnectionLost as fault:
            raise Unreachable(f"not sent: {fault}") from None

    async def _read(self, agent: Agent, lost: Lost | None = None, *, conversation: bool = False) -> None:
        """The state after a verb. That it cannot be read now takes nothing from what the verb did."""
        try:
            await self._session.poll([agent.handle])
            if conversation:
                await self._session.follow(agent)
        except WatchfloorError:
            self._session.show(agent)
            self._session.wants(agent.handle)
        except asyncio.CancelledError:
            # Nobody is told any more that it was answered: to be looked up like one whose answer was lost.
            if lost is not None:
                self._lost(lost)
            raise
