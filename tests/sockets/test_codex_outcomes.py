"""What became of a decision on a Codex thread, where others decide as well, and where the thread itself goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from console.connectors.codex import deciding
from tests.peers.codex_desk import desk
from tests.peers.codex_server import FakeCodex, fake_codex
from tests.sockets.codex_kit import deciding_on, outcome, statuses, waiting
from watchfloor.connector import Record
from watchfloor.protocol.events import (
    Mail,
    ToolStatus,
)
from watchfloor.protocol.frames import DoSend
from watchfloor.words import OptionKind, OutcomeKind, RequestState

ELICITATION = "mcpServer/elicitation/request"


@pytest.fixture
async def server() -> AsyncIterator[FakeCodex]:
    async with fake_codex() as made:
        yield made


# --- whose answer counted


async def test_a_command_that_outlives_its_turn_was_not_denied_by_anybody(server: FakeCodex) -> None:
    number = await waiting(server)
    async with desk(server.url) as seen:
        id = await deciding_on(seen, "t1", "accept")
        await server.answered(number)
        # It runs, in silence, and the turn is interrupted before that was seen.
        server.threads["t1"].running = [{"itemId": "call-1", "processId": "7", "command": "make"}]
        await server.end_turn("t1", "interrupted")
        assert (await outcome(seen, id)).outcome is OutcomeKind.APPLIED
        assert [work.name for work in seen.summary("t1").in_flight] == ["lives on: make"]


async def test_an_interrupt_that_came_first_is_no_decision_of_another_client(server: FakeCodex) -> None:
    number = await waiting(server)
    async with desk(server.url) as seen:
        await seen.asked("t1")
        await server.answer_for_another("t1", number, {})
        id = await deciding_on(seen, "t1", "accept")
        await server.dropped()
        await server.end_turn("t1", "interrupted")
        done = await outcome(seen, id)
        assert (done.outcome, done.reason) == (
            OutcomeKind.STALE_TARGET,
            "its turn was interrupted before this counted",
        )
        assert seen.requests[str(done.request)].state is RequestState.WITHDRAWN
        await seen.until(lambda: not seen.summary("t1").in_flight)


async def test_a_cancel_that_lost_against_a_refusal_was_not_allowed_by_anybody(server: FakeCodex) -> None:
    number = await waiting(server)
    async with desk(server.url) as seen:
        await seen.asked("t1")
        await server.answer_for_another("t1", number, {"decision": "decline"})
        id = await deciding_on(seen, "t1", "cancel")
        await server.dropped()
        await server.tell("t1", "serverRequest/resolved", requestId=number)
        await server.end_command("t1", "declined")
        await server.end_turn("t1")
        done = await outcome(seen, id)
        assert done.outcome is OutcomeKind.ALREADY_DECIDED
        assert done.decided is not None
        assert done.decided.kind is OptionKind.DENY


@pytest.mark.parametrize("status", ["failed", "transcended"])
async def test_a_command_that_ended_in_a_way_that_shows_nothing_proves_nothing(
    server: FakeCodex, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    monkeypatch.setattr(deciding, "PROOF_S", 0.3)
    number = await waiting(server)
    async with desk(server.url) as seen:
        id = await deciding_on(seen, "t1", "accept")
        await server.answered(number)
        # As the server ends a command to which it was given an answer that it cannot read.
        await server.end_command("t1", status)
        assert (await outcome(seen, id)).outcome is OutcomeKind.UNKNOWN


async def test_a_refusal_that_is_not_told_shows_by_the_agent_going_on(server: FakeCodex) -> None:
    number = await waiting(server)
    async with desk(server.url) as seen:
        id = await deciding_on(seen, "t1", "decline")
        await server.answered(number)
        await server.item("t1", {"type": "agentMessage", "id": "m1", "text": ""}, ended=False)
        assert (await outcome(seen, id)).outcome is OutcomeKind.APPLIED
        await server.end_turn("t1")
        await seen.until(lambda: statuses(seen, "t1") == [ToolStatus.DECLINED])


async def tool_waits(server: FakeCodex) -> int:
    server.thread("t1")
    await server.begin_turn("t1")
    await asyncio.wait_for(server.joined("t1"), 60)
    call = {"type": "mcpToolCall", "id": "c1", "server": "s", "tool": "t", "arguments": {}, "status": "inProgress"}
    await server.item("t1", call, ended=False)
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_name": "t", "tool_params": {}}
    return await server.ask("t1", ELICITATION, serverName="s", mode="form", message="?", _meta=meta)


async def tool_ends(server: FakeCodex, fault: str) -> None:
    call = {"type": "mcpToolCall", "id": "c1", "server": "s", "tool": "t", "status": "failed"}
    await server.item("t1", {**call, "error": {"message": fault}}, ended=True)


@pytest.mark.parametrize(
    ("option", "fault"),
    [("decline", "user rejected MCP tool call"), ("cancel", "user cancelled MCP tool call")],
)
async def test_a_refused_tool_is_known_to_be_refused_by_us(server: FakeCodex, option: str, fault: str) -> None:
    async with desk(server.url) as seen:
        number = await tool_waits(server)
        id = await deciding_on(seen, "t1", option)
        await server.answered(number)
        await tool_ends(server, fault)
        assert (await outcome(seen, id)).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: statuses(seen, "t1") == [ToolStatus.DECLINED])


async def test_a_tool_that_runs_in_silence_is_taken_to_run_and_the_outcome_says_why(
    server: FakeCodex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "REFUSED_S", 0.3)
    async with desk(server.url) as seen:
        number = await tool_waits(server)
        id = await deciding_on(seen, "t1", "accept")
        await server.answered(number)
        done = await outcome(seen, id)
        assert done.outcome is OutcomeKind.APPLIED
        assert "goes on" in str(done.info["proof"])
        assert [work.name for work in seen.summary("t1").in_flight] == ["s.t"]


async def test_a_tool_that_tells_of_its_progress_runs(server: FakeCodex) -> None:
    async with desk(server.url) as seen:
        number = await tool_waits(server)
        id = await deciding_on(seen, "t1", "accept")
        await server.answered(number)
        await server.tell("t1", "item/mcpToolCall/progress", itemId="c1", message="half")
        done = await outcome(seen, id)
        assert (done.outcome, done.info) == (OutcomeKind.APPLIED, {})


async def test_an_allowed_tool_that_another_client_refused_says_so(server: FakeCodex) -> None:
    async with desk(server.url) as seen:
        number = await tool_waits(server)
        await seen.asked("t1")
        await server.answer_for_another("t1", number, {"action": "cancel"})
        id = await deciding_on(seen, "t1", "accept")
        await server.dropped()
        await server.tell("t1", "serverRequest/resolved", requestId=number)
        await tool_ends(server, "user cancelled MCP tool call")
        assert (await outcome(seen, id)).outcome is OutcomeKind.ALREADY_DECIDED


async def test_the_reason_of_a_refusal_reaches_the_agent(server: FakeCodex) -> None:
    number = await waiting(server)
    async with desk(server.url) as seen:
        id = await deciding_on(seen, "t1", "decline", note="not on a Friday")
        await server.answered(number)
        await server.end_command("t1", "declined")
        done = await outcome(seen, id)
        assert (done.outcome, done.reason) == (OutcomeKind.APPLIED, None)
        steered = [params for method, params in server.calls if method == "turn/steer"]
        assert [params["input"][0]["text"] for params in steered] == ["not on a Friday"]
        await seen.until(lambda: [mail.text for mail in seen.of("t1", Mail)] == ["not on a Friday"])


async def test_a_reason_that_does_not_reach_the_agent_is_told_as_such(server: FakeCodex) -> None:
    number = await waiting(server)
    async with desk(server.url) as seen:
        id = await deciding_on(seen, "t1", "cancel", note="not on a Friday")
        await server.answered(number)
        await server.end_command("t1", "declined")
        await server.end_turn("t1", "interrupted")
        done = await outcome(seen, id)
        assert (done.outcome, done.reason) == (
            OutcomeKind.APPLIED,
            "the agent was not told why: its turn is over",
        )


# --- a thread that is deleted


async def test_a_thread_that_is_deleted_while_an_answer_is_on_its_way(server: FakeCodex) -> None:
    number = await waiting(server)
    async with desk(server.url) as seen:
        id = await deciding_on(seen, "t1", "accept")
        await server.answered(number)
        await server.delete("t1")
        done = await outcome(seen, id)
        assert (done.outcome, done.reason) == (
            OutcomeKind.UNKNOWN,
            "the thread was deleted before it showed what became of this",
        )
        assert "t1" not in seen.sessions


@pytest.mark.parametrize(
    "slow",
    ["thread/resume", "thread/items/list", "thread/turns/list", "thread/queue/list", "thread/backgroundTerminals/list"],
)
async def test_a_thread_that_is_deleted_while_it_is_read_does_not_come_back(server: FakeCodex, slow: str) -> None:
    server.thread("t1")
    async with desk(server.url, record=Record.WATCHED) as seen:
        server.slow[slow] = asyncio.Event()
        await seen.watch("t1")
        await asyncio.wait_for(server.called(slow), 60)
        await server.tell_all("thread/deleted", threadId="t1")
        await seen.until(lambda: "t1" not in seen.sessions)
        server.slow[slow].set()
        # What is told of another thread comes after whatever the answer has led to.
        server.thread("t2")
        await server.tell_all("thread/started", thread=server.threads["t2"].json())
        await seen.until(lambda: "t2" in seen.sessions)
        await asyncio.wait_for(server.called("thread/loaded/list"), 60)
        assert "t1" not in seen.sessions


async def test_a_message_to_a_thread_that_is_deleted_meanwhile(server: FakeCodex) -> None:
    server.thread("t1")
    async with desk(server.url) as seen:
        turn = await server.begin_turn("t1")
        await seen.until(lambda: seen.summary("t1").turn == turn)
        server.slow["turn/steer"] = asyncio.Event()
        id = await seen.send("t1", DoSend(text="hello"))
        await asyncio.wait_for(server.called("turn/steer"), 60)
        await server.delete("t1")
        await seen.until(lambda: "t1" not in seen.sessions)
        server.slow["turn/steer"].set()
        # The server took it before the thread went.
        assert (await outcome(seen, id)).outcome is OutcomeKind.APPLIED
