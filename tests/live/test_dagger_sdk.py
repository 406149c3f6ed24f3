"""Dagger's official SDK as the judge of the stand-in engine, and so of what the connector is tested against.

The SDK was made from the engine's own schema. What it and the connector do with the same stand-in is held against the
same table, and the documents that both send against each other.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from graphql import (
    FieldNode,
    GraphQLEnumType,
    GraphQLObjectType,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    parse,
)

from tests.peers.dagger_cells import TABLE, Told, check
from tests.peers.dagger_desk import desk
from tests.peers.dagger_engine import in_state
from tests.peers.dagger_server import DaggerServer, schema_of
from watchfloor.protocol.frames import DoPause, DoResume, DoSend, DoStop

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
"""Read before any test gives the process folders of its own."""
DRIVER = str(Path(__file__).resolve().parents[1] / "peers/dagger_sdk_driver.py")
VERSIONS = {14: "1.0.0b14", 21: "1.0.0b21"}
TYPES = ["Agent", "AgentMessage", "LLMMessage", "LLMMessageOrigin", "LLMContentBlock", "LLMTokenUsage", "LLM"]
ENUMS = ["AgentState", "AgentMessageDelivery", "LLMMessageRole", "LLMMessageOriginKind", "LLMContentBlockKind"]


def python_of(beta: int) -> Path:
    return CACHE / f"watchfloor/peers/dagger-io-{VERSIONS[beta]}/bin/python"


def _param(beta: int) -> Any:
    reason = f"dagger-io {VERSIONS[beta]} is not installed: run make peer-dagger"
    return pytest.param(beta, marks=pytest.mark.skipif(not python_of(beta).exists(), reason=reason))


pytestmark = pytest.mark.live
each_version = pytest.mark.parametrize("beta", [_param(beta) for beta in VERSIONS])


class Sdk:
    """The SDK in a process of its own, connected to the stand-in."""

    own_words = False

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            told = json.loads(line)
            if (waiting := self._waiting.pop(told.pop("id"), None)) is not None and not waiting.done():
                waiting.set_result(told)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(RuntimeError("the SDK has ended"))

    def _expect(self, id: int) -> asyncio.Future[dict[str, Any]]:
        return self._waiting.setdefault(id, asyncio.get_running_loop().create_future())

    async def ready(self) -> None:
        await self._expect(0)

    async def ask(self, do: str, **rest: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        id = next(self._numbers)
        told = self._expect(id)
        self._process.stdin.write(json.dumps({"id": id, "do": do, **rest}).encode() + b"\n")
        return await told

    async def do(self, verb: str, handle: str) -> Told:
        told = await self.ask("verb", verb=verb, handle=handle)
        return Told(told.get("error", ""), told.get("delivery", ""))

    async def state(self, handle: str) -> str:
        return str((await self.ask("state", handle=handle))["state"])

    async def close(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


@asynccontextmanager
async def sdk(server: DaggerServer) -> AsyncIterator[Sdk]:
    process = await asyncio.create_subprocess_exec(
        python_of(server.engine.beta),
        DRIVER,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "DAGGER_SESSION_PORT": str(server.port), "DAGGER_SESSION_TOKEN": server.token},
    )
    client = Sdk(process)
    try:
        async with asyncio.timeout(90):
            await client.ready()
        yield client
    finally:
        await client.close()


@each_version
async def test_every_state_and_verb(beta: int) -> None:
    async with DaggerServer(beta) as server, sdk(server) as client:
        for state, verbs in TABLE.items():
            for verb in verbs:
                async with asyncio.timeout(60):
                    await check(server.engine, client, state, verb)


@each_version
async def test_the_schema_is_the_one_that_the_sdk_was_made_from(beta: int) -> None:
    async with DaggerServer(beta) as server, sdk(server) as client:
        theirs = await client.ask("shape", types=TYPES, enums=ENUMS)
    schema = schema_of(beta)
    for name in TYPES:
        kind = schema.type_map[name]
        assert isinstance(kind, GraphQLObjectType)
        # The SDK spells names as Python does, which loses what was a capital.
        ours = {field.lower(): sorted(arg.lower() for arg in given.args) for field, given in kind.fields.items()}
        wanted = {field.lower(): [arg.lower() for arg in given] for field, given in theirs["types"][name].items()}
        assert ours == {field: wanted.get(field) for field in ours}, name
        if name != "LLM":
            # Of a conversation the fixture holds what reaches agents; of the rest all.
            assert set(wanted) == set(ours), name
    for name in ENUMS:
        enum = schema.type_map[name]
        assert isinstance(enum, GraphQLEnumType)
        assert theirs["enums"][name] == sorted(enum.values), name


@each_version
async def test_both_send_the_same_verbs_with_the_same_arguments(beta: int) -> None:
    commands = (DoSend(text="more"), DoPause(), DoPause(interrupt=True), DoResume(), DoStop(kill=True))
    async with DaggerServer(beta) as server, sdk(server) as client:
        agent = await in_state(server.engine, "IDLE")
        for verb in ("send", "pause", "pause.interrupt", "resume", "stop.kill"):
            server.engine.models.release(9)
            assert (await client.do(verb, agent.handle)).error == ""
        theirs = [leaf for asked in server.wire if (leaf := _verb(asked)) is not None]
    async with DaggerServer(beta) as server, desk(server) as seen:
        agent = await in_state(server.engine, "IDLE")
        await seen.until(lambda: "send" not in seen.told.get(agent.handle, {}).get("blocked", {"send": ""}))
        for command in commands:
            server.engine.models.release(9)
            await seen.do(agent.handle, command)
        ours = [leaf for asked in server.wire if (leaf := _verb(asked)) is not None]
    assert ours == theirs


def _verb(asked: dict[str, Any]) -> tuple[str, dict[str, object]] | None:
    """The verb that a query carries out, with its arguments that differ from their defaults."""
    request = asked["request"]
    found = [
        (field.name.value, _arguments(field, request.get("variables") or {}))
        for definition in parse(request["query"]).definitions
        if isinstance(definition, OperationDefinitionNode)
        for field in _leaves(definition.selection_set)
    ]
    verbs = [leaf for leaf in found if leaf[0] in ("send", "pause", "resume", "stop", "reseed", "notify")]
    assert len(verbs) <= 1
    assert not verbs or len(found) == 1, "a verb has no company"
    return verbs[0] if verbs else None


def _arguments(field: FieldNode, variables: dict[str, object]) -> dict[str, object]:
    values: dict[str, object] = {}
    for argument in field.arguments or ():
        value: Any = argument.value
        given = variables[value.name.value] if value.kind == "variable" else value.value
        if given not in (False, ""):
            values[argument.name.value] = given
    return values


def _leaves(selected: SelectionSetNode) -> Iterator[FieldNode]:
    for node in selected.selections:
        if isinstance(node, FieldNode) and node.selection_set is None:
            yield node
        elif isinstance(node, FieldNode | InlineFragmentNode) and node.selection_set is not None:
            yield from _leaves(node.selection_set)


@each_version
async def test_the_sdk_and_the_console_see_the_same_agents(beta: int) -> None:
    async with DaggerServer(beta) as server, sdk(server) as client, desk(server) as seen:
        handle = str((await client.ask("spawn", name="from the sdk", model="echo"))["handle"])
        assert handle not in seen.told, "nothing shows an agent that never ran"
        assert (await client.do("send", handle)).delivery == "STARTED"
        assert (await client.ask("response", handle=handle, ref="#1"))["response"] == "echo: more"
        await seen.until(lambda: seen.texts(handle) == ["more", "echo: more"])
        assert seen.summary(handle).name == "from the sdk"
        done = await seen.do(handle, DoSend(text="and from here"))
        assert done.info["ref"] == "#2"
        assert (await client.ask("response", handle=handle, ref="2"))["response"] == "echo: and from here"
        await seen.do(handle, DoPause())
        assert await client.state(handle) == "PAUSED"
        assert (await client.do("stop", handle)).error == ""
        await seen.reads(handle, "stopped")
        assert "is stopped" in (await client.do("pause", handle)).error


@each_version
async def test_the_sdk_is_refused_without_the_token(beta: int) -> None:
    async with DaggerServer(beta) as server:
        token, server.token = server.token, "another"
        process = await asyncio.create_subprocess_exec(
            python_of(beta),
            DRIVER,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "DAGGER_SESSION_PORT": str(server.port), "DAGGER_SESSION_TOKEN": token},
        )
        _, said = await asyncio.wait_for(process.communicate(), 90)
        assert process.returncode != 0
        assert b"401" in said
