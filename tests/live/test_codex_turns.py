"""Interventions on the threads of a real app-server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from tests.live.codex_kit import Peer, needs_codex, peer
from tests.peers.codex_client import Frame, script
from tests.peers.codex_desk import Desk, desk
from watchfloor.protocol.events import (
    Child,
    Delta,
    Event,
    Mail,
    MailState,
    Message,
    Notice,
    Reseeded,
    ToolResult,
    ToolStatus,
)
from watchfloor.protocol.frames import (
    DoAct,
    DoBudget,
    DoDelete,
    DoFork,
    DoInterrupt,
    DoPause,
    DoReseed,
    DoResume,
    DoSend,
)
from watchfloor.words import Lifecycle, OutcomeKind, Priority, ReseedMode

pytestmark = [pytest.mark.live, needs_codex]

LONG: Frame = {"run": "echo begun; sleep 60", "with": {"yield_time_ms": 500}}
SLOW: Frame = {"say": "slowly, slowly, and still more slowly", "over_s": 30}


@pytest.fixture
async def live() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


def said(seen: Desk, thread: str) -> list[str]:
    return [event.text for event in seen.of(thread, Message)]


async def idle(seen: Desk, thread: str) -> None:
    await seen.until(lambda: seen.summary(thread).lifecycle is Lifecycle.IDLE and seen.summary(thread).turn is None)


async def start(seen: Desk, live: Peer, *steps: Frame) -> str:
    """A thread on which a turn with these steps runs."""
    thread = await live.other.thread(live.work)
    await seen.until(lambda: thread in seen.sessions)
    sent = await seen.do(thread, DoSend(text=script(*steps)))
    assert sent.outcome is OutcomeKind.APPLIED, sent
    return thread


async def finish(seen: Desk, live: Peer, word: str) -> str:
    """A thread on which a turn has ended in which the agent said the word."""
    thread = await start(seen, live, {"say": word})
    await seen.until(lambda: word in said(seen, thread))
    await idle(seen, thread)
    return thread


def streaming(seen: Desk, thread: str) -> Callable[[], object]:
    return lambda: seen.of(thread, Delta)


async def test_a_running_turn_is_steered(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await start(seen, live, {"run": "sleep 2"}, {"say": "done"})
        await seen.until(lambda: seen.summary(thread).turn is not None)
        turn = seen.summary(thread).turn
        sent = await seen.do(thread, DoSend(text="mind the step"), turn=turn)
        assert (sent.outcome, sent.info["delivery"], sent.info["turn"]) == (OutcomeKind.APPLIED, "steered", turn)
        await idle(seen, thread)
        await seen.until(lambda: "done [mind the step]" in said(seen, thread))
        consumed = [mail.ref for mail in seen.of(thread, Mail) if mail.state is MailState.CONSUMED]
        assert consumed == ["#1", "#2"]
        # The server cuts between turns: to go on before the second message would take away the first as well.
        back = await seen.do(thread, DoReseed(mode=ReseedMode.REWIND, to="#2"))
        assert back.outcome is OutcomeKind.INVALID
        assert back.reason is not None
        assert "this message steered one" in back.reason


async def test_a_message_waits_in_the_queue_or_is_taken_from_it(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await start(seen, live, {"run": "sleep 3"}, {"say": "first"})
        queued = [
            await seen.do(thread, DoSend(text=script({"say": word}), priority=Priority.QUEUE))
            for word in ("second", "never")
        ]
        assert [(sent.outcome, sent.info["delivery"]) for sent in queued] == [(OutcomeKind.APPLIED, "queued")] * 2
        await seen.until(lambda: seen.summary(thread).mailbox.queued == 2)
        assert "first" not in said(seen, thread)
        act = DoAct(act="unqueue", fields={"ref": str(queued[1].info["ref"])})
        assert (await seen.do(thread, act)).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: "second" in said(seen, thread))
        await seen.until(lambda: seen.summary(thread).mailbox.queued == 0)
        await idle(seen, thread)
        assert "never" not in said(seen, thread)


async def test_an_interrupt_says_what_lives_on_and_an_act_ends_it(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await start(seen, live, LONG, SLOW)
        await seen.until(streaming(seen, thread))
        await asyncio.wait_for(live.model.asked_again(1), 60)
        stopped = await seen.do(thread, DoInterrupt())
        assert stopped.outcome is OutcomeKind.APPLIED
        assert stopped.info["processes"] == ["echo begun; sleep 60"]
        await idle(seen, thread)
        flying = seen.summary(thread).in_flight
        assert len(flying) == 1
        assert flying[0].name.startswith("lives on: ")
        assert any(notice.code == "interrupted" for notice in seen.of(thread, Notice))
        again = await seen.do(thread, DoInterrupt())
        assert (again.outcome, again.reason) == (OutcomeKind.INVALID, "no turn runs")
        ended = await seen.do(thread, DoAct(act="end_processes", fields={}))
        assert (ended.outcome, ended.info["ended"]) == (OutcomeKind.APPLIED, 1)
        await seen.until(lambda: not seen.summary(thread).in_flight)
        assert [result.status for result in seen.of(thread, ToolResult)] == [ToolStatus.ERROR]


async def test_a_message_that_streams_is_closed_where_an_interrupt_cuts_it(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await start(seen, live, SLOW)
        await seen.until(streaming(seen, thread))
        assert (await seen.do(thread, DoInterrupt())).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: any(message.cut for message in seen.of(thread, Message)))
        cut = next(message for message in seen.of(thread, Message) if message.cut)
        assert cut.text.removeprefix("… ")
        assert cut.text.removeprefix("… ") in str(SLOW["say"])


async def test_compacting_cuts_a_running_turn_and_says_so_before(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await start(seen, live, SLOW)
        await seen.until(streaming(seen, thread))
        assert seen.summary(thread).controls["reseed"] == "Reseed (cuts the running turn)"
        assert (await seen.do(thread, DoReseed(mode=ReseedMode.COMPACT))).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: [event.mode for event in seen.of(thread, Reseeded)] == [ReseedMode.COMPACT])
        assert any(notice.code == "interrupted" for notice in seen.of(thread, Notice))


async def test_a_fork_is_a_thread_of_its_own_and_leaves_the_running_turn(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await start(seen, live, {"run": "sleep 2"}, {"say": "the end"})
        forked = await seen.do(thread, DoFork(name="the other way"))
        assert forked.outcome is OutcomeKind.APPLIED
        new = str(forked.info["session"])
        await seen.until(lambda: new in seen.sessions and seen.summary(new).name == "the other way")
        assert seen.summary(new).labels["forked from"] == thread
        await seen.until(lambda: "the end" in said(seen, thread))


def _said_it(seen: Desk, thread: str, word: str) -> bool:
    return word in said(seen, thread)


async def test_rewinding_drops_the_turn_that_a_message_began_and_those_after_it(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await finish(seen, live, "one")
        for word in ("two", "three"):
            await seen.do(thread, DoSend(text=script({"say": word})))
            await seen.until(partial(_said_it, seen, thread, word))
            await idle(seen, thread)
        nowhere = await seen.do(thread, DoReseed(mode=ReseedMode.REWIND, to="#9"))
        assert (nowhere.outcome, nowhere.reason) == (
            OutcomeKind.INVALID,
            "name a turn, or a message, that the thread has",
        )
        back = await seen.do(thread, DoReseed(mode=ReseedMode.REWIND, to="#2"))
        assert (back.outcome, back.info["turns_dropped"]) == (OutcomeKind.APPLIED, 2)
        await seen.until(lambda: [event.mode for event in seen.of(thread, Reseeded)] == [ReseedMode.REWIND])
        await seen.do(thread, DoSend(text=script({"say": "four"})))
        await seen.until(lambda: "four" in said(seen, thread))
        told = json.dumps(live.model.asked[-1]["input"])
        assert '\\"say\\": \\"one\\"' in told
        assert '\\"say\\": \\"two\\"' not in told
        assert '\\"say\\": \\"three\\"' not in told


async def test_rewinding_to_the_first_message_leaves_nothing(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await finish(seen, live, "one")
        back = await seen.do(thread, DoReseed(mode=ReseedMode.REWIND, to="#1"))
        assert (back.outcome, back.info["turns_dropped"]) == (OutcomeKind.APPLIED, 1)
        await seen.do(thread, DoSend(text=script({"say": "two"})))
        await seen.until(lambda: "two" in said(seen, thread))
        assert '\\"say\\": \\"one\\"' not in json.dumps(live.model.asked[-1]["input"])


async def test_another_model_is_used(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await finish(seen, live, "one")
        assert (await seen.do(thread, DoReseed(mode=ReseedMode.MODEL, to="another"))).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: seen.summary(thread).labels["model"] == "another")
        assert [event.mode for event in seen.of(thread, Reseeded)] == [ReseedMode.MODEL]
        await seen.do(thread, DoSend(text=script({"say": "two"})))
        await seen.until(lambda: "two" in said(seen, thread))
        assert live.model.asked[-1]["model"] == "another"


async def test_a_goal_can_be_paused_and_resumed(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await finish(seen, live, "one")
        assert seen.capabilities(thread).pause is None
        set_ = DoAct(act="set_goal", fields={"objective": script({"say": "on it", "wait_s": 1})})
        assert (await seen.do(thread, set_)).outcome is OutcomeKind.APPLIED
        await seen.until(
            lambda: seen.capabilities(thread).pause is not None and "pause" not in seen.summary(thread).blocked
        )
        assert (await seen.do(thread, DoBudget(tokens=100_000))).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: (usage := seen.summary(thread).usage) is not None and usage.budget_tokens == 100_000)
        assert (await seen.do(thread, DoPause())).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: seen.summary(thread).lifecycle is Lifecycle.PAUSED)
        asked = len(live.model.asked)
        assert (await seen.do(thread, DoPause())).outcome is OutcomeKind.INVALID
        assert (await seen.do(thread, DoResume())).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: seen.summary(thread).lifecycle is Lifecycle.RUNNING)
        await asyncio.wait_for(live.model.asked_again(asked), 60)
        assert (await seen.do(thread, DoAct(act="clear_goal", fields={}))).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: seen.capabilities(thread).pause is None)
        await idle(seen, thread)


async def test_a_thread_is_named_archived_and_deleted(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await finish(seen, live, "one")
        await seen.do(thread, DoAct(act="name", fields={"name": "the first"}))
        await seen.until(lambda: seen.summary(thread).name == "the first")
        assert (await seen.do(thread, DoAct(act="archive", fields={}))).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: seen.summary(thread).native_state == "archived")
        assert seen.summary(thread).lifecycle is Lifecycle.IDLE
        refused = await seen.do(thread, DoSend(text="hello"))
        assert refused.outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
        assert (await seen.do(thread, DoAct(act="unarchive", fields={}))).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: seen.summary(thread).native_state != "archived")
        await seen.do(thread, DoSend(text=script({"say": "still here"})))
        await seen.until(lambda: "still here" in said(seen, thread))
        assert (await seen.do(thread, DoDelete())).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: thread not in seen.sessions)
        gone = await seen.do(thread, DoSend(text="hello"))
        assert gone.outcome is OutcomeKind.STALE_TARGET


async def test_a_failing_model_is_told_and_the_next_turn_heals_the_thread(live: Peer) -> None:
    async with desk(live.url) as seen:
        thread = await start(seen, live, {"fail": 500})
        await seen.until(lambda: seen.summary(thread).lifecycle is Lifecycle.FAILED)
        await seen.until(lambda: seen.summary(thread).error)
        notices = [notice for notice in seen.of(thread, Notice) if notice.code != "server"]
        assert [notice.retrying for notice in notices] == [True, False, False]
        await seen.do(thread, DoSend(text=script({"say": "well again"})))
        await seen.until(lambda: "well again" in said(seen, thread))
        await idle(seen, thread)
        assert seen.summary(thread).error is None


async def test_a_sub_agent_stands_below_its_parent(live: Peer) -> None:
    async with desk(live.url) as seen:
        task = script({"say": "small work done"}, about="a small work")
        spawn = {"call": "spawn_agent", "in": "multi_agent_v1", "with": {"message": task}}
        thread = await start(seen, live, spawn, {"run": "sleep 2"}, {"say": "delegated"})
        await seen.until(lambda: any(row.get("parent") == thread for row in seen.sessions.values()))
        child = next(id for id, row in seen.sessions.items() if row.get("parent") == thread)
        await seen.until(lambda: any(text.startswith("delegated") for text in said(seen, thread)))
        await seen.until(lambda: "small work done" in said(seen, child))
        children: list[Event] = [event for event in seen.of(thread, Child) if event.session == child]
        assert children
