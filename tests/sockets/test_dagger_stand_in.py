"""The stand-in for a Dagger engine: its agents do what the table says, and it answers as the engine's proxy does."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.peers.dagger_cells import CELLS, NAMES, Told, check
from tests.peers.dagger_server import DaggerServer


class Plain:
    """A client that sends plain documents."""

    own_words = False

    def __init__(self, server: DaggerServer, http: httpx.AsyncClient) -> None:
        self._server, self._http = server, http

    async def query(self, document: str, **variables: Any) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self._server.port}/query"
        answer = await self._http.post(
            url, json={"query": document, "variables": variables}, auth=(self._server.token, ""), timeout=60
        )
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    async def on(self, id: str, what: str, type: str = "Agent") -> dict[str, Any]:
        return await self.query(f"query($id: ID!) {{ node(id: $id) {{ ... on {type} {{ {what} }} }} }}", id=id)

    async def do(self, verb: str, handle: str) -> Told:
        word, _, how = verb.partition(".")
        arguments = {"interrupt": "(interrupt: true)", "kill": "(kill: true)"}.get(how, "")
        if word == "send":
            arguments = '(message: "more")'
        elif word == "reseed":
            empty = await self.on(f"agent-{handle}", "snapshot { withoutMessageHistory { id } }")
            arguments = f'(conversation: "{empty["data"]["node"]["snapshot"]["withoutMessageHistory"]["id"]}")'
        done = await self.on(f"agent-{handle}", word + arguments)
        if "errors" in done:
            return Told(done["errors"][0]["message"])
        if word != "send":
            return Told()
        told = await self.on(done["data"]["node"]["send"], "delivery", "AgentMessage")
        return Told(delivery=told["data"]["node"]["delivery"])

    async def state(self, handle: str) -> str:
        read = await self.on(f"agent-{handle}", "state")
        return str(read["data"]["node"]["state"])


@pytest.mark.parametrize(("state", "verb"), CELLS, ids=NAMES)
async def test_every_state_and_verb(state: str, verb: str) -> None:
    async with DaggerServer() as server, httpx.AsyncClient(trust_env=False) as http:
        await check(server.engine, Plain(server, http), state, verb)


async def test_a_wrong_token_gets_an_empty_401() -> None:
    async with DaggerServer() as server, httpx.AsyncClient(trust_env=False) as http:
        answer = await http.post(f"http://127.0.0.1:{server.port}/query", json={"query": "{ version }"})
        assert (answer.status_code, answer.content) == (401, b"")
        assert "basic" in answer.headers["www-authenticate"].lower()


async def test_what_the_schema_lacks_is_a_422() -> None:
    async with DaggerServer(without=("Agent.reseed",)) as server, httpx.AsyncClient(trust_env=False) as http:
        client = Plain(server, http)
        with pytest.raises(httpx.HTTPStatusError, match="422"):
            await client.on("agent-x", 'reseed(conversation: "llm-1")')


async def test_a_wait_ends_with_its_request_and_leaves_the_agent_alone() -> None:
    async with DaggerServer() as server, httpx.AsyncClient(trust_env=False) as http:
        agent = server.engine.spawn("held up")
        agent.pause(False)
        mail = agent.send("later")
        client = Plain(server, http)
        asked = asyncio.create_task(client.on(f"agent-{agent.handle}!#1", "response", "AgentMessage"))
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        agent.resume()
        await agent.until(lambda it: it.state == "IDLE")
        assert await mail.answer == "echo: later"


async def test_who_subscribed_is_sent_an_event_that_starts_it() -> None:
    async with DaggerServer() as server:
        worker, chief = server.engine.spawn("worker"), server.engine.spawn("chief")
        worker.notify(chief, ["IDLE", "FAILED"])
        worker.send("go")
        await chief.until(lambda it: it.state == "IDLE" and it.mail)
        told = chief.conversation.turns[0]
        assert told.text == 'Agent "worker" is now idle.\n\nIts final reply:\n\necho: go'
        assert told.origin is not None
        assert (told.origin.kind, told.origin.agent, told.origin.ref) == ("EVENT", "worker", "#1")
