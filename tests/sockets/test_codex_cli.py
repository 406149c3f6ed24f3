"""Codex threads from the command line, through the same gate as the keys."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.peers.codex_server import FakeCodex, fake_codex
from tests.sockets.cli_kit import Program


@pytest.fixture
async def server() -> AsyncIterator[FakeCodex]:
    async with fake_codex() as made:
        yield made


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


async def waiting(server: FakeCodex) -> int:
    server.thread("t1", info={"name": "worker"})
    await server.begin_turn("t1")
    return await server.ask_command("t1")


async def test_threads_and_their_requests_are_listed(server: FakeCodex, program: Program) -> None:
    await waiting(server)
    server.thread("t2", status={"type": "notLoaded"})
    sessions = (await program("sessions", server.url, "--json")).records
    assert [(one["session"], one["name"], one["lifecycle"]) for one in sessions] == [
        ("t1", "worker", "waiting"),
        ("t2", "t2", "idle"),
    ]
    request = (await program("requests", server.url, "--json")).record
    assert (request["session"], request["request"], request["state"]) == ("t1", "turn-1.0", "open")
    assert [option["id"] for option in request["options"]] == ["accept", "decline", "cancel"]
    untold = await program("mailbox", server.url, "t1")
    assert (untold.code, "does not answer 'messages'" in untold.err) == (3, True), untold.err


@pytest.mark.parametrize(
    ("verb", "decision", "status"), [("approve", "accept", "completed"), ("deny", "decline", "declined")]
)
async def test_a_decision_is_carried_out(
    server: FakeCodex, program: Program, verb: str, decision: str, status: str
) -> None:
    number = await waiting(server)
    words = (verb, server.url, "t1", "turn-1.0", "--option", decision, "--current", "--json")
    async with program.running(*words) as process:
        assert await server.answered(number) == {"decision": decision}
        await server.end_command("t1", status)
        output, _ = await process.communicate()
    assert process.returncode == 0
    assert json.loads(output)["outcome"] == "applied"
    assert any(verb in json.dumps(line) for line in program.audit())


async def test_the_past_of_a_thread_that_is_not_loaded(server: FakeCodex, program: Program) -> None:
    thread = server.thread("t1", status={"type": "notLoaded"})
    for n in range(3):
        thread.past.append({"turnId": "u", "item": {"type": "agentMessage", "id": f"m{n}", "text": f"said {n}"}})
    done = await program("events", server.url, "--session", "t1", "--json")
    events = [record["event"] for record in done.records]
    assert [event["text"] for event in events if event["kind"] == "message"] == ["said 0", "said 1", "said 2"]
    assert "thread/resume" not in [method for method, _ in server.calls]


async def test_what_a_thread_does_not_offer_is_not_sent(server: FakeCodex, program: Program) -> None:
    server.thread("t1")
    assert (await program("stop", server.url, "t1", "--json")).code == 3
    assert (await program("interrupt", server.url, "t1", "--json")).code == 6
    assert (await program("send", server.url, "nobody", "hello", "--json")).code == 4
    assert not {"turn/start", "turn/interrupt"} & {method for method, _ in server.calls}


async def test_a_refused_connection_says_why(program: Program) -> None:
    async with fake_codex(token="right") as server:
        refused = await program("sessions", server.url, "--json")
        assert refused.code == 7
        assert "missing websocket bearer token" in refused.err
        trusted = program.but(WATCHFLOOR_TOKEN="right")
        assert (await trusted("sessions", server.url, "--json")).code == 0
