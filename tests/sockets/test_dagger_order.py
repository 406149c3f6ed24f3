"""Answers of a Dagger engine that overtake each other: what is older never undoes what is newer."""

from __future__ import annotations

import asyncio

from tests.peers.dagger_conversation import Conversation
from tests.peers.dagger_desk import desk
from tests.peers.dagger_engine import in_state
from tests.peers.dagger_server import DaggerServer
from watchfloor.protocol.events import LifecycleChanged, Message, Reseeded
from watchfloor.protocol.frames import DoPause, DoReseed, DoSend
from watchfloor.words import OutcomeKind, ReseedMode


async def test_an_old_conversation_that_comes_late_is_no_cut() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = server.engine.spawn("talker", Conversation())
        agent.resume()
        await seen.until(lambda: "send" not in seen.told.get(agent.handle, {}).get("blocked", {"send": ""}))
        go_on = server.faults.hold["Transcript"] = asyncio.Event()
        await seen.do(agent.handle, DoSend(text="one"))
        await server.until(lambda: "Transcript" in server.held)
        await seen.do(agent.handle, DoSend(text="two"))
        await agent.until(lambda it: it.conversation.last_reply == "echo: two")
        assert seen.texts(agent.handle) == [], "what is held back holds up no verb"
        go_on.set()
        await seen.until(lambda: "echo: two" in seen.texts(agent.handle))
        assert seen.texts(agent.handle) == ["one", "echo: one", "two", "echo: two"]
        assert seen.of(agent.handle, Reseeded) == []


async def test_an_old_state_that_comes_late_is_passed_over() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "RUNNING")
        await seen.until(lambda: "send" not in seen.told.get(agent.handle, {}).get("blocked", {"send": ""}))
        go_on = server.faults.hold["Poll"] = asyncio.Event()
        await server.until(lambda: "Poll" in server.held)
        assert (await seen.do(agent.handle, DoPause(interrupt=True))).outcome is OutcomeKind.APPLIED
        await seen.reads(agent.handle, "paused")
        go_on.set()
        assert (await seen.do(agent.handle, DoSend(text="waits"))).info["delivery"] == "queued"
        changes = [event.lifecycle.value for event in seen.of(agent.handle, LifecycleChanged)]
        assert changes[-1] == "paused"
        assert changes.count("paused") == 1


async def test_a_reseed_that_is_seen_before_its_answer_comes_is_ours() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "PAUSED")
        await seen.until(lambda: "send" not in seen.told.get(agent.handle, {}).get("blocked", {"send": ""}))
        await seen.until(lambda: seen.of(agent.handle, Message))
        go_on = server.faults.hold["Reseed"] = asyncio.Event()
        asked = await seen.start(agent.handle, DoReseed(mode=ReseedMode.CLEAR))
        await server.until(lambda: "Reseed" in server.held)
        before = len(server.wire)

        def read_twice() -> bool:
            return len([d for d in server.wire[before:] if d["request"]["query"].startswith("query Poll")]) > 1

        # With the second reading what the first one showed has been followed up, had it not to wait.
        await server.until(read_twice)
        go_on.set()
        assert (await seen.outcome(asked)).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: seen.of(agent.handle, Reseeded))
        assert [(event.mode, event.by) for event in seen.of(agent.handle, Reseeded)] == [(ReseedMode.CLEAR, "ann")]
