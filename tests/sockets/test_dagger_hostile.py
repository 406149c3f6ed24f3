"""A Dagger session that says what nobody expects: nothing of it ends the connection, or is taken for something else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fixtures.hostile import HOSTILE
from tests.peers.dagger_conversation import Block, Conversation, Turn, said
from tests.peers.dagger_desk import desk
from tests.peers.dagger_engine import in_state
from tests.peers.dagger_server import DaggerServer
from watchfloor.protocol.frames import DoPause, DoReseed, DoSend
from watchfloor.words import Lifecycle, OutcomeKind, ReseedMode

ODD_ROWS: list[Any] = [
    None,
    7,
    [],
    {"resourceSpans": {"a": 1}},
    {
        "resourceSpans": [
            {"scopeSpans": [{"spans": [{"spanId": 7, "attributes": {}}, {"spanId": "x", "parentSpanId": "x"}]}]}
        ]
    },
    {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"attributes": [{"key": "dagger.io/agent.state"}]}]}]}]},
    {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "9" * 5000, "attributes": None}]}]}]},
]


@pytest.mark.parametrize(
    "name", ["half \ud800 a character", "", HOSTILE[0], "x" * 100_000], ids=["half", "none", "csi", "long"]
)
async def test_names_of_every_kind(name: str) -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "IDLE", name)
        await seen.until(lambda: "send" not in seen.told.get(agent.handle, {}).get("blocked", {"send": ""}))
        assert (await seen.do(agent.handle, DoPause())).outcome is OutcomeKind.APPLIED
        await seen.reads(agent.handle, "paused")


async def test_conversations_of_every_kind() -> None:
    blocks = tuple(Block(text=text) for text in (*HOSTILE, "half \ud800 a character"))
    odd = Block("TOOL_CALL", tool="\x1b[2J", call_id="", arguments="[" * 100_000)
    talk = Conversation(turns=(said("go"), Turn("ASSISTANT", (*blocks, odd))))
    async with DaggerServer() as server, desk(server) as seen:
        agent = server.engine.spawn("odd", talk)
        agent.resume()
        await seen.until(lambda: len(seen.texts(agent.handle)) == len(blocks) + 1)
        refused = await seen.do(agent.handle, DoReseed(mode=ReseedMode.REWIND, to="-1"))
        assert refused.outcome is OutcomeKind.INVALID
        assert (await seen.do(agent.handle, DoSend(text="fine?"))).outcome is OutcomeKind.APPLIED


async def test_telemetry_of_every_kind() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        telemetry = server.engine.telemetry
        for cursor, row in enumerate(ODD_ROWS, 1_000):
            telemetry.traces.add(cursor, row)
            telemetry.logs.add(cursor, row)
        telemetry.traces.rows.append((1_100, "{broken"))
        telemetry._cursor = iter(range(2_000, 3_000))  # type: ignore[assignment]
        agent = await in_state(server.engine, "IDLE", "sane")
        await seen.reads(agent.handle, "idle")
        assert seen.fault is None


async def test_answers_of_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "IDLE", "odd")
        await seen.until(lambda: "send" not in seen.told.get(agent.handle, {}).get("blocked", {"send": ""}))
        answer = server.answer
        odd: list[Any] = [
            {"data": {"a0": {"state": 7, "error": [], "snapshot": "x"}}},
            {"data": {"a0": "x"}, "errors": "y"},
            {"data": {"a0": {"state": "DREAMING", "snapshot": {"tokenUsage": {"inputTokens": "many"}}}}},
            {"data": None},
            [],
        ]

        async def answers(body: bytes) -> tuple[int, Any]:
            if odd and "query Poll" in json.loads(body)["query"]:
                return 200, odd.pop(0)
            return await answer(body)

        monkeypatch.setattr(server, "answer", answers)
        states = set()
        while odd:
            left = len(odd)
            seen.source.session.wants(agent.handle)
            await seen.until(lambda: len(odd) < left)  # noqa: B023 - called at once
            states.add(seen.told[agent.handle]["lifecycle"].value)
            seen._move()
        monkeypatch.setattr(server, "answer", answer)
        seen.source.session.wants(agent.handle)
        await seen.until(lambda: "send" not in seen.summary(agent.handle).blocked)
        await seen.reads(agent.handle, "idle")
        assert states <= {"idle", "unknown"}


@pytest.mark.parametrize("words", [*HOSTILE, "half \ud800 a character"])
async def test_hostile_text_in_every_field(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with DaggerServer() as server:
        agent = await in_state(server.engine, "PAUSED", words)
        agent.send(words)
        assert agent.span is not None
        server.engine.telemetry.span(words, agent.span.id)
        server.engine.telemetry.state(agent.span, words, stop=words, failure=words, parent=words)
        server.engine.version = words
        answer = server.answer

        def spoilt(value: Any, name: str = "") -> Any:
            match value:
                case dict():
                    return {name: spoilt(inner, name) for name, inner in value.items()}
                case list():
                    return [spoilt(inner, name) for inner in value]
                case str() if name not in ("id", "handle", "role", "ref", "kind", "send", "pause"):
                    return words
                case _:
                    return value

        async def answers(body: bytes) -> tuple[int, Any]:
            status, told = await answer(body)
            return (status, told) if "query Abilities" in json.loads(body)["query"] else (status, spoilt(told))

        monkeypatch.setattr(server, "answer", answers)
        async with desk(server) as seen:
            await seen.until(lambda: seen.texts(agent.handle))
            # No word that an engine makes up is taken for a state.
            assert seen.summary(agent.handle).lifecycle is Lifecycle.UNKNOWN
            sent = await seen.do(agent.handle, DoSend(text="still there?"))
            assert (sent.outcome, sent.info["ref"]) == (OutcomeKind.APPLIED, "#3")
            paused = await seen.do(agent.handle, DoPause())
            assert paused.outcome is OutcomeKind.APPLIED
            assert [verb for verb, _ in server.engine.verbs if verb != "wait"] == ["send", "pause"]
            assert seen.fault is None


async def test_a_conversation_that_cannot_be_read_is_said() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        talk = Conversation(turns=(Turn("ASSISTANT", (Block("HOLOGRAM"),)),))
        agent = server.engine.spawn("odd", talk)
        agent.resume()
        await seen.until(lambda: any("cannot be read: Enum" in text for text in seen.notices(agent.handle)))
        assert seen.fault is None
