"""Live agents: their state, their mail and their verbs, as the table has them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.agent.kit import Writer, built, says, writes
from watchfloor.agent.agent import Agent
from watchfloor.agent.builder import AgentBuilder
from watchfloor.agent.session import PLAN_MODE
from watchfloor.agent.turn import Turn
from watchfloor.errors import (
    Deadlock,
    LimitReached,
    NotDelivered,
    NotPossible,
    NotSuspended,
    SessionBusy,
    StaleTarget,
    Unsupported,
)
from watchfloor.harness.base import ConversationMessage, MailItem
from watchfloor.host.log.sqlite import SqliteLog
from watchfloor.host.serving.live import LiveAgent
from watchfloor.host.serving.server import Host
from watchfloor.host.sessions.mailbox import NoSuchRef
from watchfloor.words import Delivery, Lifecycle


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with Host(name="floor") as running:
        yield running


class Gate:
    """An agent function that waits, at a step boundary after that, and then says what it was told."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()

    async def __call__(self, turn: Turn, mail: tuple[MailItem, ...]) -> str:
        self.entered.set()
        await self.leave.wait()
        more = await turn.checkpoint()
        return "heard " + " ".join(item.text for item in (*mail, *more))


@pytest.fixture
def builder(tmp_path: Path, host: Host) -> AgentBuilder:
    return built(tmp_path).host(host)


async def test_it_begins_with_what_the_session_remembers(builder: AgentBuilder, host: Host) -> None:
    agent = builder.model("large").function(says).build()
    session = agent.open("s")
    await agent.run(session, "before")
    live = agent.spawn(session, name="worker")
    assert live.handle != "s"
    assert live.handle in host.core.roster
    assert (live.name, live.state, live.error) == ("worker", Lifecycle.IDLE, None)
    seed = live.snapshot
    assert [message.text for message in seed.messages] == ["before", "you said before"]
    message = live.send("hello")
    # The number goes on from those that it remembers, so that each is one message's.
    assert message.ref == "#2"
    assert await message.delivery is Delivery.STARTED
    assert await message.response == "you said hello"
    assert await message.response == "you said hello"
    assert await live.wait() is Lifecycle.IDLE
    # What was taken before stays as it was, and so does the session that it came from.
    assert len(seed.messages) == 2
    assert len(session.messages) == 2
    assert [m.text for m in agent.session_history(live.handle)][2:] == ["hello", "you said hello"]
    other = agent.spawn(agent.open(live.handle).branch())
    assert other.snapshot.messages == live.snapshot.messages
    assert (host.live(live.handle).name, repr(live)) == ("worker", f"<LiveAgent 'worker' {live.handle} idle>")


async def test_the_first_message_to_a_fork_is_none_of_those_it_remembers(builder: AgentBuilder, host: Host) -> None:
    live = builder.function(says).build().spawn()
    await live.send("one").response
    fork = host.live(host.fork(live.handle))
    assert await fork.send("two").response == "you said two"
    assert [m.text for m in fork.snapshot.messages] == ["one", "you said one", "two", "you said two"]


async def test_a_host_must_be_there(tmp_path: Path) -> None:
    agent = built(tmp_path).function(says).build()
    with pytest.raises(Unsupported, match="needs a host"):
        agent.spawn()


async def test_there_is_a_difference_between_no_such_message_and_no_such_session(
    builder: AgentBuilder, host: Host
) -> None:
    live = builder.function(says).build().spawn(name="w")
    await live.send("hi").response
    assert live.message("1").text == live.message("#1").text == "hi"
    with pytest.raises(NoSuchRef, match="#1 to #1"):
        live.message("#7")
    with pytest.raises(StaleTarget):
        host.live("nobody")
    await live.stop()
    host.remove(live.handle)
    assert live.state is Lifecycle.UNKNOWN
    for verb in (live.pause, live.resume, live.interrupt, lambda: live.message("#1"), lambda: live.send("x")):
        with pytest.raises(StaleTarget):
            verb()


async def test_a_message_to_one_that_runs_joins_its_turn_and_one_to_a_paused_one_waits(builder: AgentBuilder) -> None:
    gate = Gate()
    live = builder.function(gate).build().spawn()
    first = live.send("one")
    await gate.entered.wait()
    assert live.state is Lifecycle.RUNNING
    second = live.send("two")
    gate.leave.set()
    assert await second.delivery is Delivery.STEERED
    assert await first.response == await second.response == "heard one two"
    live.pause()
    third = live.send("three")
    assert await third.delivery is Delivery.QUEUED
    live.resume()
    assert await third.response == "heard three"


async def test_what_the_state_forbids_is_said(builder: AgentBuilder) -> None:
    gate = Gate()
    live = builder.function(gate).build().spawn()
    with pytest.raises(NotPossible, match="interrupt: "):
        live.interrupt()
    live.send("one")
    await gate.entered.wait()
    with pytest.raises(NotPossible, match="reseed: "):
        live.reseed([])
    await live.stop(kill=True, reason="enough")
    assert live.state is Lifecycle.STOPPED
    with pytest.raises(NotPossible):
        live.pause()
    with pytest.raises(NotPossible):
        live.reseed([ConversationMessage("user", "x")])
    # What was refused left nothing behind for later.
    handle = live.handle
    gate.leave.set()
    await live.send("again").response
    assert (live.handle, live.state) == (handle, Lifecycle.IDLE)
    # What was stopped had ended, and stays part of the conversation.
    assert [m.text for m in live.snapshot.messages] == ["one", "again", "heard again"]


async def test_an_interrupted_turn_ends_its_messages_and_keeps_those_that_wait(builder: AgentBuilder) -> None:
    gate = Gate()
    live = builder.function(gate).build().spawn()
    first = live.send("one")
    await gate.entered.wait()
    second = live.send("two")
    live.interrupt()
    with pytest.raises(NotDelivered, match="interrupted") as ended:
        await first.response
    assert ended.value.permanent
    assert await live.wait() is Lifecycle.IDLE
    gate.leave.set()
    live.send("three")
    assert await second.response == "heard two three"


async def test_messages_of_a_failed_turn_and_messages_that_wait_in_a_failed_agent(builder: AgentBuilder) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()
    fails = True

    async def function(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        entered.set()
        await leave.wait()
        if fails:
            raise ValueError("broken")
        return "well"

    live = builder.function(function).build().spawn()
    first = live.send("one")
    await entered.wait()
    leave.set()
    with pytest.raises(NotDelivered) as ended:
        await first.response
    assert ended.value.permanent
    assert (live.state, live.error) == (Lifecycle.FAILED, "ValueError: broken")
    waits = live.send("two")
    assert await waits.delivery is Delivery.QUEUED
    with pytest.raises(NotDelivered) as waiting:
        await waits.response
    assert not waiting.value.permanent
    fails = False
    live.resume()
    assert await waits.response == "well"


async def test_an_explicit_reply_comes_first(builder: AgentBuilder) -> None:
    async def function(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        await turn.reply(mail[0], "mine")
        return "last words"

    live = builder.function(function).build().spawn()
    assert await live.send("x", reply_to="#9").response == "mine"


async def test_a_conversation_is_replaced_by_another_one(builder: AgentBuilder) -> None:
    agent = builder.function(says).build()
    live, other = agent.spawn(), agent.spawn()
    await live.send("one").response
    await other.send("two").response
    live.reseed(other.snapshot)
    assert [m.text for m in live.snapshot.messages] == [m.text for m in other.snapshot.messages]
    live.pause()
    waits = live.send("three")
    assert waits.ref == "#2"
    live.reseed(other.snapshot)
    live.reseed([ConversationMessage("user", "new"), ConversationMessage("assistant", "start")])
    assert live.state is Lifecycle.PAUSED
    live.resume()
    assert await waits.response == "you said three"
    assert [m.text for m in live.snapshot.messages] == ["new", "start", "three", "you said three"]


async def test_a_budget_is_reached_raised_and_gone_on_with(builder: AgentBuilder) -> None:
    async def function(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        turn.usage(output_tokens=60)
        await turn.checkpoint()
        return mail[-1].text

    live = builder.function(function).build().spawn()
    live.budget(tokens=50)
    message = live.send("one")
    while live.state is not Lifecycle.PAUSED:  # noqa: ASYNC110 - whatever the host does meanwhile
        await asyncio.sleep(0)
    with pytest.raises(LimitReached, match="raise it first"):
        live.resume()
    live.budget(tokens=1000)
    live.resume()
    assert await message.response == "one"


async def test_one_is_told_of_another(builder: AgentBuilder) -> None:
    heard: list[tuple[str, str | None]] = []

    async def listens(turn: Turn, mail: tuple[MailItem, ...]) -> None:
        heard.extend((item.by, item.event) for item in mail)

    agent = builder.function(says).build()
    worker = agent.spawn(name="worker")
    subscriber = _other(agent, listens).spawn(name="listener")
    worker.notify(subscriber)
    await worker.send("work").response
    await worker.wait()
    await subscriber.wait()
    assert heard == [(worker.handle, "idle")]
    # It has been reached already: told at once.
    worker.notify(subscriber, on={Lifecycle.IDLE})
    await subscriber.wait()
    assert len(heard) == 2
    worker.notify(subscriber, on=())
    await worker.send("more").response
    await worker.wait()
    await subscriber.wait()
    assert len(heard) == 2


def _other(agent: Agent, function: object) -> Agent:
    """An agent of another function on the same runtime."""
    return replace(agent, runtime=replace(agent.runtime, function=function))  # type: ignore[arg-type]  # a function


async def test_a_subscription_that_never_ends_is_refused_by_its_circle(builder: AgentBuilder) -> None:
    agent = builder.function(says).build()
    a, b, c = (agent.spawn(name=name) for name in "abc")
    a.notify(b)
    b.notify(c)
    with pytest.raises(Deadlock, match=f"{c.handle} tells {a.handle}") as circle:
        c.notify(a)
    assert all(live.handle in str(circle.value) for live in (a, b, c))
    with pytest.raises(NotPossible, match="not told of itself"):
        a.notify(a)
    with pytest.raises(NotPossible, match="nobody can be told of 'bored'"):
        a.notify(b, on={"bored"})
    with pytest.raises(TypeError, match="must be a LiveAgent"):
        a.notify(b.handle)  # type: ignore[arg-type]  # what an author may try
    async with Host(name="other") as elsewhere:
        with pytest.raises(Unsupported, match="another host"):
            a.notify(agent.spawn(host=elsewhere))


async def test_a_wait_in_a_turn_that_would_never_end_is_refused(builder: AgentBuilder) -> None:
    lives: dict[str, LiveAgent] = {}
    errors: list[str] = []

    async def function(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        other = lives["b" if turn.name == "a" else "a"]
        try:
            if turn.name == "a":
                return await other.send("and you?").response
            await other.wait()
        except Deadlock as error:
            errors.append(str(error))
        return "never mind"

    agent = builder.function(function).build()
    lives |= {name: agent.spawn(name=name) for name in "ab"}
    assert await lives["a"].send("go").response == "never mind"
    a, b = lives["a"].handle, lives["b"].handle
    assert errors == [f"waiting would never end: {b} waits for {a} waits for {b}"]


async def test_a_live_session_is_not_run_besides(builder: AgentBuilder) -> None:
    agent = builder.function(says).build()
    live = agent.spawn()
    record = agent.open(live.handle)
    with pytest.raises(SessionBusy, match="send to it instead"):
        await agent.run(record, "x")
    with pytest.raises(SessionBusy):
        agent.delete_session(live.handle)


async def test_a_live_agent_is_answered_by_the_same_call(tmp_path: Path, host: Host) -> None:
    writer = Writer()
    agent = built(tmp_path, writer).host(host).function(writes).build()
    live = agent.spawn(name="w")
    message = live.send("one")
    while live.state is not Lifecycle.WAITING:  # noqa: ASYNC110 - whatever the host does meanwhile
        await asyncio.sleep(0)
    outcome = await agent.answer(live.handle, "allow_session")
    assert [grant.session for grant in outcome.grants] == [live.handle]
    assert await message.response == "wrote one"
    assert await live.send("two").response == "wrote two"
    with pytest.raises(NotSuspended):
        await agent.answer(live.handle, "allow")
    assert writer.wrote == ["one", "two"]


async def test_plan_mode_of_a_live_agent_is_kept_in_its_record(builder: AgentBuilder) -> None:
    async def plans(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        await turn.enter_plan("why")
        return (await turn.call("write", {"text": "x"})).note or "written"

    agent = builder.function(plans).build()
    live = agent.spawn()
    message = live.send("go")
    while live.state is not Lifecycle.WAITING:  # noqa: ASYNC110 - whatever the host does meanwhile
        await asyncio.sleep(0)
    outcome = await agent.answer(live.handle, "enter")
    assert outcome.plan_mode == PLAN_MODE
    assert "plan" in await message.response
    assert agent.open(live.handle).mode == PLAN_MODE


async def test_it_comes_back_under_its_handle(tmp_path: Path) -> None:
    storage = built(tmp_path).function(says)
    async with Host(name="one", log=SqliteLog(tmp_path / "log.db")) as first:
        agent = storage.host(first).build()
        live = agent.spawn(name="w")
        handle = live.handle
        await live.send("one").response
        await live.wait()
    async with Host(name="two", log=SqliteLog(tmp_path / "log.db")) as second:
        live = agent.spawn(agent.open(handle), host=second)
        assert live.handle == handle
        assert [m.text for m in live.snapshot.messages] == ["one", "you said one"]
        assert await live.send("two").response == "you said two"
