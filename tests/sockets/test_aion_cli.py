"""Agents of an aion server from the command line, through the same gate as the keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.peers.aion_desk import group_of, session_of
from tests.peers.aion_server import AionServer
from tests.peers.aion_world import ALL, Axes, Flow
from tests.sockets.cli_kit import Program


@pytest.fixture
async def server() -> AsyncIterator[AionServer]:
    async with AionServer() as made:
        yield made


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def agent(server: AionServer) -> tuple[Flow, Axes, str]:
    flow = server.world.flow()
    axes = flow.work(primitives=ALL)
    flow.say(axes, "hello")
    return flow, axes, session_of(flow, axes)


async def test_sessions_and_what_they_ask_are_listed(server: AionServer, program: Program) -> None:
    flow, axes, id = agent(server)
    flow.ask(axes, "call-7")
    sessions = (await program("sessions", server.url, "--json")).records
    assert {(one["session"], one["parent"], one["lifecycle"]) for one in sessions} == {
        (group_of(flow), None, "running"),
        (id, group_of(flow), "waiting"),
    }
    request = (await program("requests", server.url, "--json")).record
    assert (request["session"], request["request"], request["state"]) == (id, "1:1:call-7", "open")


async def test_an_agent_is_steered_and_cancelled(server: AionServer, program: Program) -> None:
    _, _, id = agent(server)
    sent = await program("send", server.url, id, "look twice", "--priority", "interrupt", "--json")
    assert (sent.code, sent.record["outcome"]) == (0, "applied")
    stopped = await program("stop", server.url, id, "--reason", "wrong branch", "--json")
    assert (stopped.code, stopped.record["outcome"]) == (0, "applied")
    kinds = [given["kind"] for given in server.interventions]
    assert [kind["kind"] for kind in kinds] == ["InjectMessage", "Cancel"]
    assert (kinds[0]["priority"], kinds[1]["reason"]) == ({"priority": "Interrupt"}, "wrong branch")
    stale = await program("send", server.url, id, "hello", "--attempt", "7", "--json")
    assert stale.code in (3, 4)
    assert len(server.interventions) == 2
    assert any("look twice" in str(line) for line in program.audit())


@pytest.mark.parametrize(("verb", "word"), [("approve", "Approve"), ("deny", "Deny")])
async def test_a_question_is_decided(server: AionServer, program: Program, verb: str, word: str) -> None:
    flow, axes, id = agent(server)
    flow.ask(axes, "call-7")
    done = await program(verb, server.url, id, "1:1:call-7", "--current", "--note", "as agreed", "--json")
    assert (done.code, done.record["outcome"]) == (0, "applied")
    assert server.interventions[-1]["kind"] == {
        "kind": "RespondToApproval", "call_id": "call-7", "decision": {"decision": word}, "note": "as agreed"
    }  # fmt: skip


async def test_an_agent_that_offers_nothing_is_sent_nothing(server: AionServer, program: Program) -> None:
    flow = server.world.flow()
    axes = flow.work(primitives=())
    refused = await program("send", server.url, session_of(flow, axes), "hello", "--json")
    assert (refused.code, refused.record["outcome"]) == (3, "capability_not_supported")
    assert not server.interventions
