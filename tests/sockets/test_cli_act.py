"""What only a source can do, from the command line: through the gate, and knowingly where it destroys something."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.peers.aion_desk import group_of
from tests.peers.aion_server import AionServer
from tests.sockets.cli_kit import Program


@pytest.fixture
async def server() -> AsyncIterator[AionServer]:
    async with AionServer() as made:
        yield made


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


async def test_acts_are_listed_and_done_with_their_fields(server: AionServer, program: Program) -> None:
    session = group_of(server.world.flow())
    acts = {act["id"]: act for act in (await program("sessions", server.url, "--json")).record["acts"]}
    assert acts["signal"]["danger"] is False
    assert [(field["name"], field["type"], field["required"]) for field in acts["signal"]["fields"]] == [
        ("name", "text", True),
        ("payload", "text", False),
    ]
    words = ("act", server.url, session, "signal")
    done = await program(*words, "--field", "name=go", "--field", 'payload={"approved": true}', "--json")
    assert (done.code, done.record["outcome"]) == (0, "applied")
    assert server.routes.acts[-1][1]["payload"] == {"approved": True}
    assert "this means: " in done.err, "a script says what it does, as the console asks"
    given = await program(*words, "--fields", "-", "--json", stdin='{"name": "again"}')
    assert given.code == 0
    assert len(server.routes.acts) == 2
    assert [line["primitive"] for line in program.audit() if line["what"] == "requested"] == ["act", "act"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("fly",), 3, "the session does not offer the act fly; it offers "),
        (("signal",), 6, "Name of the signal: an answer is required"),
        (("signal", "--field", "name=go", "--field", "speed=3"), 6, "the act has no field speed"),
        (("signal", "--field", "name=go", "--field", "name=on"), 6, "the field name was given twice"),
        (("cancel_workflow", "--field", "reason=x"), 6, "--yes does it all the same"),
        (("signal", "--fields", "[]"), 2, "--fields must be a JSON object"),
    ],
)
async def test_what_does_not_fit_is_not_sent(
    server: AionServer, program: Program, words: tuple[str, ...], code: int, says: str
) -> None:
    session = group_of(server.world.flow())
    done = await program("act", server.url, session, *words)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert server.routes.acts == []


async def test_what_destroys_something_is_done_knowingly(server: AionServer, program: Program) -> None:
    session = group_of(server.world.flow())
    done = await program("act", server.url, session, "cancel_workflow", "--field", "reason=late", "--yes", "--json")
    assert (done.code, done.record["outcome"]) == (0, "applied")
    assert len(server.routes.acts) == 1
