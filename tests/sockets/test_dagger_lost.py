"""Answers of a Dagger engine that get lost: nothing is sent again, and what is there now is said after it."""

from __future__ import annotations

import pytest

from console.connectors.dagger.lost import CODE
from console.connectors.dagger.session import HERE
from tests.peers.dagger_conversation import Conversation, said
from tests.peers.dagger_desk import Desk, desk
from tests.peers.dagger_engine import in_state
from tests.peers.dagger_runtime import Runtime
from tests.peers.dagger_server import DaggerServer
from watchfloor.protocol.events import Notice, Reseeded
from watchfloor.protocol.frames import Do, DoAct, DoFork, DoNotify, DoPause, DoReseed, DoResume, DoSend, DoStop
from watchfloor.words import OutcomeKind, ReseedMode

UNKNOWN = OutcomeKind.UNKNOWN


async def ready(seen: Desk, agent: Runtime) -> str:
    await seen.until(lambda: seen.told.get(agent.handle, {}).get("native_state") == agent.state)
    await seen.until(lambda: "send" not in seen.summary(agent.handle).blocked)
    return agent.handle


async def found(seen: Desk, handle: str) -> str:
    """What was said after an answer was lost."""
    await seen.until(lambda: [n for n in seen.of(handle, Notice) if n.code == CODE])
    return next(n.text for n in seen.of(handle, Notice) if n.code == CODE)


def times(server: DaggerServer, verb: str) -> int:
    """How often the engine carried a verb out."""
    return sum(1 for done, _ in server.engine.verbs if done == verb)


@pytest.mark.parametrize(
    ("state", "do", "verb", "finds"),
    [
        ("IDLE", DoPause(), "pause", "it reads PAUSED now"),
        ("PAUSED", DoPause(interrupt=True), "pause", "it reads PAUSED now"),
        ("PAUSED", DoResume(), "resume", "it reads RUNNING now"),
        ("RUNNING", DoStop(kill=True), "stop", "it reads STOPPED now"),
        ("IDLE", DoStop(), "stop", "it reads STOPPED now"),
        ("IDLE", DoReseed(mode=ReseedMode.CLEAR), "reseed", "the conversation was replaced"),
        ("IDLE", DoReseed(mode=ReseedMode.REWIND, to="-1"), "reseed", "the conversation was replaced"),
        ("IDLE", DoReseed(mode=ReseedMode.MODEL, to="tools"), "reseed", "the conversation was replaced"),
        ("IDLE", DoFork(), "spawn", "a new one may wait there"),
    ],
    ids=lambda value: getattr(value, "primitive", None),
)
async def test_a_verb_that_was_carried_out(state: str, do: Do, verb: str, finds: str) -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, state)
        if isinstance(do, DoReseed):
            agent.conversation = Conversation(turns=(said("one"), said("two", role="ASSISTANT")) * 2)
            do = do.model_copy(update={"to": "-2"}) if do.mode is ReseedMode.REWIND else do
        handle = await ready(seen, agent)
        server.faults.lose.append(verb)
        done = await seen.do(handle, do)
        assert (done.outcome, times(server, verb)) == (UNKNOWN, 1)
        assert finds in await found(seen, handle)
        assert times(server, verb) == 1
        if isinstance(do, DoReseed) and do.mode is not ReseedMode.MODEL:
            assert seen.of(handle, Reseeded)[-1].by == "ann"


@pytest.mark.parametrize(
    ("do", "verb", "finds"),
    [
        (DoPause(), "pause", "it reads IDLE now"),
        (DoStop(), "stop", "it reads IDLE now"),
        (DoReseed(mode=ReseedMode.CLEAR), "reseed", "still the one from before"),
        (DoSend(text="hello"), "send", "no message #1 is there, so it has not arrived so far"),
    ],
    ids=lambda value: getattr(value, "primitive", None),
)
async def test_a_verb_that_never_arrived(do: Do, verb: str, finds: str) -> None:
    async with DaggerServer() as server, desk(server) as seen:
        handle = await ready(seen, await in_state(server.engine, "IDLE"))
        server.faults.swallow.append(verb)
        assert (await seen.do(handle, do)).outcome is UNKNOWN
        assert finds in await found(seen, handle)
        assert times(server, verb) == 0
        again = await seen.do(handle, do)
        assert (again.outcome, times(server, verb)) == (OutcomeKind.APPLIED, 1)


async def test_a_message_that_arrived_is_found_by_its_ref_and_text() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "IDLE")
        handle = await ready(seen, agent)
        server.engine.models.release(5)
        server.faults.lose.append("send")
        assert (await seen.do(handle, DoSend(text="only once"))).outcome is UNKNOWN
        said_then = await found(seen, handle)
        assert "#1" in said_then
        await seen.until(lambda: seen.mail(handle, "#1")[-1:] == ["consumed"])
        await seen.until(lambda: "echo: only once" in seen.texts(handle))
        assert [mail.text for mail in agent.mail] == ["only once"]
        assert (await seen.do(handle, DoSend(text="next"))).info["ref"] == "#2"


async def test_a_message_among_those_of_others_is_told_apart_or_not_at_all() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "PAUSED")
        handle = await ready(seen, agent)
        sent = agent.send

        def both(text: str, reply_to: str = "") -> object:
            sent("of somebody else")
            return sent(text, reply_to)

        agent.send = both  # type: ignore[assignment, method-assign]
        server.faults.lose.append("send")
        assert (await seen.do(handle, DoSend(text="mine"))).outcome is UNKNOWN
        assert "2 messages came in since, #2 to #3" in await found(seen, handle)
        assert len(agent.mail) == 3


async def test_a_subscription_is_looked_for_in_telemetry() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        worker = await ready(seen, await in_state(server.engine, "IDLE", "worker"))
        chief = await ready(seen, await in_state(server.engine, "IDLE", "chief"))
        server.faults.lose.append("notify")
        assert (await seen.do(worker, DoNotify(subscriber=chief))).outcome is UNKNOWN
        assert "telemetry shows" in await found(seen, worker)
        assert times(server, "notify") == 1


async def test_a_start_whose_answer_is_lost_is_not_tried_again() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        server.faults.lose.append("spawn")
        done = await seen.do(HERE, DoAct(act="spawn", fields={"name": "once"}))
        assert (done.outcome, times(server, "spawn")) == (UNKNOWN, 1)
        said_then = await found(seen, HERE)
        assert "the start of an agent was lost; nothing was sent again: an agent that never ran" in said_then
        assert times(server, "spawn") == 1


async def test_what_was_lost_with_the_connection_is_looked_up_with_the_next() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "PAUSED")
        handle = await ready(seen, agent)
        server.faults.lose.append("send")
        server.faults.falls = True
        assert (await seen.do(handle, DoSend(text="through the break"))).outcome is UNKNOWN
        server.drop()
        await seen.until(lambda: seen.over)
        await seen.close()
        assert not [n for n in seen.of(handle, Notice) if n.code == CODE]
        server.faults.down = False
        await seen.connect()
        assert "#2" in await found(seen, handle)
        assert len(agent.mail) == 2
