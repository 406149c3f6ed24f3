"""A real aion server with agents that follow a script: watched, steered, cancelled, lost and found again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.fixtures.aion.peer import Peer
from tests.live.aion_kit import VERSION, console, needs_aion, server
from watchfloor.errors import ConnectionLost
from watchfloor.protocol.events import Delta, Message, Notice, Reasoning, ResultEvent, Speaker, ToolResult, ToolStatus
from watchfloor.protocol.frames import DoSend, DoStop
from watchfloor.words import Lifecycle, OutcomeKind, Priority, StopReason

pytestmark = [pytest.mark.live, needs_aion]
APPLIED = OutcomeKind.APPLIED


@pytest.fixture(scope="module")
def live() -> Iterator[Peer]:
    with server("scripted") as peer:
        yield peer


async def test_an_agent_is_watched_and_steered_to_its_end(live: Peer) -> None:
    script = "think about it\nstream a longer text in pieces\ntool ls {}\ntoolfail rm no\nuntil finish\nsay thank you"
    async with console(live) as seen:
        id = await seen.begin(script)
        await seen.until(lambda: "a longer text in pieces" in seen.texts(id))
        await seen.until(lambda: len(seen.of(id, ToolResult)) == 2)
        assert [result.status for result in seen.of(id, ToolResult)] == [ToolStatus.OK, ToolStatus.ERROR]
        assert [reasoning.text for reasoning in seen.of(id, Reasoning)] == ["about it"]
        assert seen.connector.core.info.version == VERSION
        assert (await seen.do(id, DoSend(text="look"))).outcome is APPLIED
        await seen.until(lambda: "heard (normal): look" in seen.texts(id))
        (ours,) = [event for event in seen.of(id, Message) if event.role is Speaker.OPERATOR]
        assert ours.text == "look"
        sent = await seen.do(id, DoSend(text="please finish", priority=Priority.INTERRUPT))
        assert sent.outcome is APPLIED
        await seen.reads(id, "completed")
        await seen.until(lambda: seen.of(id, ResultEvent))
        result = seen.summary(id).result
        assert result is not None
        assert (result.text, result.stop_reason) == ("thank you", StopReason.END_TURN)
        numbers = [int(str(event.key).partition("/")[2]) for event in seen.of(id, Message)]
        assert numbers == sorted(numbers)


async def test_a_cancelled_agent_gets_a_second_attempt_and_the_first_is_stale(live: Peer) -> None:
    async with console(live) as seen:
        id = await seen.begin("say ready\nuntil finish")
        await seen.until(lambda: "ready" in seen.texts(id))
        assert (await seen.do(id, DoStop(reason="wrong branch"))).outcome is APPLIED
        await seen.until(lambda: seen.told[id].get("attempt") == 2)
        await seen.reads(id, "running")
        await seen.until(lambda: any("wrong branch" in text for text in seen.notices(id)))
        stale = await seen.do(id, DoSend(text="are you there"), attempt=1)
        assert stale.outcome is OutcomeKind.STALE_TARGET
        # What the server itself says of it, when asked for the attempt that is over.
        session = seen.source.feed.sessions[id]
        answer = await seen.source.server.intervene(
            session.axes(1), {"kind": "InjectMessage", "text": "x", "priority": {"priority": "Normal"}}
        )
        assert "no live owner" in str(answer)
        assert (await seen.do(id, DoSend(text="finish"))).outcome is APPLIED
        await seen.reads(id, "completed")
        assert {event.attempt for event in seen.of(id, Message)} == {1, 2}


async def test_an_agent_that_answers_with_an_error_refuses_and_lives_on(live: Peer) -> None:
    async with console(live) as seen:
        id = await seen.begin("say ready\ndeaf\nsleep 3\nsay done")
        await seen.until(lambda: "ready" in seen.texts(id))
        refused = await seen.do(id, DoSend(text="hello"))
        assert refused.outcome is OutcomeKind.REFUSED
        assert "between two turns" in (refused.reason or "")
        await seen.reads(id, "completed")


async def test_a_flood_cuts_the_reader_off_and_costs_no_stored_event(live: Peer) -> None:
    async with console(live) as seen:
        id = await seen.begin("say ready\nuntil flood\nburst 30000\nsay after the flood\nuntil finish")
        await seen.until(lambda: "ready" in seen.texts(id))
        assert (await seen.do(id, DoSend(text="flood"))).outcome is APPLIED
        await seen.until(lambda: "after the flood" in seen.texts(id))
        await seen.until(lambda: any(event.code == "transcript_lagged" for event in seen.of(id, Notice)))
        assert seen.of(id, Delta)
        assert (await seen.do(id, DoSend(text="finish"))).outcome is APPLIED
        await seen.reads(id, "completed")
        await seen.until(lambda: seen.of(id, ResultEvent))
        spoken = ["ready", "flood", "heard (normal): flood", "after the flood", "finish", "heard (normal): finish"]
        # The server writes down what it was told once the agent has it, perhaps after the agent's answer.
        assert sorted(event.text for event in seen.of(id, Message) if not event.cut) == sorted(spoken)


async def test_a_server_that_is_killed_and_started_again_is_taken_up_where_it_was_left() -> None:
    with server("scripted") as peer:
        async with console(peer) as seen:
            id = await seen.begin("say one\nuntil finish\nsay two")
            await seen.until(lambda: "one" in seen.texts(id))
            await asyncio.to_thread(peer.stop, kill=True)
            await seen.until(lambda: seen.over)
            assert isinstance(seen.fault, ConnectionLost)
            await seen.close()
            assert seen.summary(id).lifecycle is Lifecycle.RUNNING, "silence is not the end"
            await asyncio.to_thread(peer.start)
            await seen.connect()
            await seen.until(lambda: any(event.code == "new_agent" for event in seen.of(id, Notice)))
            await seen.until(lambda: seen.texts(id).count("one") == 2)
            assert (await seen.do(id, DoSend(text="please finish"))).outcome is APPLIED
            await seen.reads(id, "completed")
            assert seen.summary(id).attempt == 1
