"""Runs of stored sessions: what drives them, how they end, what is stored."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from tests.unit.agent.kit import Writer, built, kind, reopened, said, says
from watchfloor.agent.agent import Agent
from watchfloor.agent.request import CancelToken, ExecuteRequest
from watchfloor.agent.runs import RunStream
from watchfloor.agent.session import RunState
from watchfloor.agent.storage import MemoryStorage
from watchfloor.agent.turn import Turn
from watchfloor.errors import (
    Interrupted,
    NoSuchTool,
    NothingToRun,
    RunFailed,
    SessionBusy,
    SessionNotFound,
    Unsupported,
)
from watchfloor.harness.base import ConversationMessage, MailItem
from watchfloor.protocol.events import Event


async def read(stream: RunStream, into: list[Event]) -> None:
    """Read a stream to its end."""
    async for event in stream:
        into.append(event)


async def test_a_message_is_answered_and_the_session_is_stored(tmp_path: Path) -> None:
    agent = built(tmp_path).instruction("Repeat.").model("large").function(says).build()
    session = agent.open("s")
    assert await agent.run(session, "hello") is None  # type: ignore[func-returns-value]  # that is the promise
    assert said(session) == [("user", "hello"), ("assistant", "you said hello")]
    assert (session.state, session.instruction, session.model) == (RunState.IDLE, "Repeat.", "large")
    reopened(agent)
    again = built(tmp_path).function(says).build()
    stored = again.get_session("s")
    assert stored is not None
    assert stored == session


async def test_the_last_message_drives_once(tmp_path: Path) -> None:
    agent = built(tmp_path).function(says).build()
    session = agent.open("s")
    with pytest.raises(NothingToRun):
        await agent.run_session(session)
    session.messages.append(ConversationMessage("user", "by hand"))
    await agent.run_session(session)
    assert said(session) == [("user", "by hand"), ("assistant", "you said by hand")]
    with pytest.raises(NothingToRun):
        await agent.run_session(session)
    with pytest.raises(NothingToRun):
        await agent.resume("s")
    assert len(session.messages) == 2


async def test_a_failure_is_one_line_and_resume_tries_the_turn_again(tmp_path: Path) -> None:
    tries = 0

    async def agent_function(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ValueError("no\nluck")
        return f"try {tries} of {mail[0].text}"

    agent = built(tmp_path).function(agent_function).build()
    session = agent.open("s")
    with pytest.raises(RunFailed, match=r"^ValueError: no luck$"):
        await agent.run(session, "go")
    assert (session.state, session.error) == (RunState.FAILED, "ValueError: no luck")
    await agent.resume(session)
    assert said(session) == [("user", "go"), ("assistant", "try 2 of go")]
    assert session.error is None


async def test_what_the_agent_is_not_built_with_is_named(tmp_path: Path) -> None:
    async def lost(turn: Turn, mail: tuple[MailItem, ...]) -> None:
        with pytest.raises(NoSuchTool, match=r"no tool 'fly', it was built with: write$"):
            await turn.call("fly")

    agent = built(tmp_path).function(lost).build()
    await agent.run(agent.open("s"), "go")


async def test_sessions_are_listed_read_and_deleted(tmp_path: Path) -> None:
    agent = built(tmp_path).function(says).build()
    for name in ("a", "b", "c"):
        await agent.run(agent.open(name), name)
    await agent.run(agent.open("a"), "again")
    assert [session.id for session in agent.list_sessions()] == ["a", "c", "b"]
    assert [message.text for message in agent.session_history("b")] == ["b", "you said b"]
    assert agent.delete_session("b") is True
    assert agent.delete_session("b") is False
    assert agent.get_session("b") is None
    with pytest.raises(SessionNotFound):
        agent.session_history("b")
    with pytest.raises(SessionNotFound):
        await agent.resume("b")


async def test_a_storage_that_cannot_list_says_so() -> None:
    agent = Agent.builder().storage(MemoryStorage(lists=False)).function(says).build()
    await agent.run(agent.open("s"), "x")
    with pytest.raises(Unsupported, match="ask for them by their ids"):
        agent.list_sessions()
    assert [m.text for m in agent.session_history("s")] == ["x", "you said x"]


async def test_a_session_runs_once_at_a_time(tmp_path: Path) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(turn: Turn, mail: tuple[MailItem, ...]) -> None:
        entered.set()
        await leave.wait()

    agent = built(tmp_path).function(slow).build()
    session = agent.open("s")
    stream = agent.run_stream(session, "go")
    await entered.wait()
    before = list(session.messages)
    for attempt in (agent.run(session, "x"), agent.run_session(session), agent.resume("s")):
        with pytest.raises(SessionBusy):
            await attempt
    with pytest.raises(SessionBusy):
        agent.delete_session("s")
    assert session.messages == before
    running = agent.get_session("s")
    assert running is not None
    assert running.state is RunState.RUNNING
    leave.set()
    await stream.wait()


async def test_a_stream_tells_what_happens_and_how_it_ended(tmp_path: Path) -> None:
    async def talks(turn: Turn, mail: tuple[MailItem, ...]) -> None:
        async with turn.stream() as out:
            await out.write("one ")
            await out.write("two")
        raise RuntimeError("over")

    agent = built(tmp_path).function(talks).build()
    session = agent.open("s")
    events: list[Event] = []
    stream = agent.run_stream(session, "go")
    with pytest.raises(RunFailed, match="over"):
        await read(stream, events)
    assert [kind(event) for event in events] == ["delta", "delta", "message"]
    assert [event.seq for event in events] == [None, None, 1]
    assert {event.turn for event in events if kind(event) == "message"} == {"t1"}
    with pytest.raises(RunFailed):
        await stream.wait()


async def test_a_stream_that_nobody_reads_does_not_end_its_run(tmp_path: Path) -> None:
    done = asyncio.Event()

    async def works(turn: Turn, mail: tuple[MailItem, ...]) -> None:
        await turn.sleep(0)
        done.set()

    agent = built(tmp_path).function(works).build()
    wait = agent.run_stream(agent.open("s"), "go").wait
    gc.collect()
    await done.wait()
    await wait()
    session = agent.get_session("s")
    assert session is not None
    assert session.state is RunState.IDLE


async def test_a_token_cancels_at_the_next_check_point(tmp_path: Path) -> None:
    steps: list[str] = []
    entered, leave = asyncio.Event(), asyncio.Event()

    async def tool() -> str:
        entered.set()
        await leave.wait()
        steps.append("tool")
        return "done"

    async def works(turn: Turn, mail: tuple[MailItem, ...]) -> None:
        await turn.call("tool")
        await turn.checkpoint()
        steps.append("never")

    agent = built(tmp_path).tool(tool, gated=False).function(works).build()
    session = agent.open("s")
    stream = agent.run_stream(session, "go")
    await entered.wait()
    stream.cancel.cancel()
    leave.set()
    with pytest.raises(Interrupted):
        await stream.wait()
    # What was under way has ended by itself, and its output is there.
    assert steps == ["tool"]
    assert session.messages[-1] == ConversationMessage("tool", "done", session.messages[-1].ref)
    assert session.state is RunState.CANCELLED
    with pytest.raises(Interrupted, match="before it began"):
        await agent.resume(session, cancel=stream.cancel)


async def test_a_token_cancels_at_once_where_that_is_asked_for(tmp_path: Path) -> None:
    entered = asyncio.Event()

    async def hangs(turn: Turn, mail: tuple[MailItem, ...]) -> None:
        entered.set()
        await asyncio.Event().wait()

    token = CancelToken()
    agent = built(tmp_path).function(hangs).build()
    running = asyncio.create_task(agent.run(agent.open("s"), "go", cancel=token))
    await entered.wait()
    token.cancel(now=True)
    with pytest.raises(Interrupted):
        await running


async def test_execute_applies_nothing_of_the_builder(tmp_path: Path) -> None:
    seen: list[tuple[str | None, str | None, ExecuteRequest]] = []

    async def looks(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        seen.append((turn.instruction, turn.model, turn.request))
        return mail[-1].text

    agent = built(tmp_path).instruction("role").model("large").function(looks).build()
    bare = Agent.from_runtime(agent.runtime)
    session = bare.open("s")
    events: list[Event] = []
    request = (
        ExecuteRequest.build().input("one").model("mine").fast_model("f").background_model("b")
        .summarization_model("z").provider("p").skills("x", "y").events(events.append).done()
    )  # fmt: skip
    await agent.execute(session, request)
    assert session.instruction is None
    assert session.model == "mine"
    assert seen[0][1:] == ("mine", request)
    assert (request.fast_model, request.background_model, request.summarization_model) == ("f", "b", "z")
    assert (request.provider, request.skills) == ("p", ("x", "y"))
    assert [kind(event) for event in events] == ["result"]
    with pytest.raises(NothingToRun):
        await agent.execute(session, ExecuteRequest())
    await agent.run(session, "two")
    after = agent.get_session("s")
    assert after is not None
    assert (after.instruction, after.model) == ("role", "large")


async def test_a_run_that_was_cut_comes_back_as_cut(tmp_path: Path) -> None:
    agent = built(tmp_path).function(says).build()
    session = agent.open("s")
    await agent.run(session, "before")
    session.add_user("go")
    session.state = RunState.RUNNING
    agent.persistence.save(session)
    reopened(agent)
    again = built(tmp_path).function(says).build()
    cut = again.get_session("s")
    assert cut is not None
    assert (cut.state, cut.error) == (RunState.CUT, "its process ended while it ran")
    assert [one.state for one in again.list_sessions()] == [RunState.CUT]
    await again.resume(cut)
    assert said(cut)[-1] == ("assistant", "you said go")


async def test_what_others_added_to_a_session_is_merged(tmp_path: Path) -> None:
    agent = built(tmp_path).function(says).build()
    session = agent.open("s")
    await agent.run(session, "one")
    mine = session.copy()
    await agent.run(session, "two")
    mine.messages.append(ConversationMessage("user", "from afar"))
    merged = agent.sessions.load_merged(mine)
    assert [m.text for m in merged.messages] == ["one", "you said one", "two", "you said two", "from afar"]
    agent.sessions.save_and_cache(merged)
    assert agent.sessions.load("s") is merged


def test_an_agent_needs_something_that_runs_it(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="a function or a harness"):
        built(tmp_path).build()
    with pytest.raises(ValueError, match="'write' is taken"):
        built(tmp_path).tool(Writer().write)
