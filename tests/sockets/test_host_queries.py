"""Questions over a real connection, those that the host's program answers, and agents that wait for each other."""

from __future__ import annotations

import asyncio

from pydantic import JsonValue

from tests.sockets.host_kit import PATIENCE_S, until
from tests.sockets.plain_client import Obj, PlainClient
from watchfloor.errors import Deadlock, StaleTarget
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.host.serving.server import Host
from watchfloor.protocol.model import JsonObject
from watchfloor.words import Lifecycle


async def ask(client: PlainClient, what: str, session: str | None = None, **args: JsonValue) -> Obj:
    """The reply, or the error, to a question."""
    id = f"q{len(client.answers)}"
    await client.tell("query", id=id, what=what, session=session, args=args)
    await client.until(lambda: id in client.answers)
    return client.answers[id]


async def test_the_program_answers_what_it_said_it_would() -> None:
    async def stored(session: str | None, args: JsonObject) -> JsonValue:
        if session == "nobody":
            raise KeyError("no such session")
        if session == "broken":
            raise RuntimeError("the disk\nis gone")
        if session == "odd":
            return object()  # type: ignore[return-value]
        return {"session": session, **args}

    async with Host(queries={"stored": stored}) as host:
        host.add(FunctionHarness(_echo), name="echo", id="echo", text="hello")
        await host.serve(announce=False)
        client = PlainClient(host.url, name="ann")
        await client.open()
        assert (await ask(client, "stored", "x", limit=3))["data"] == {"session": "x", "limit": 3}
        assert (await ask(client, "stored", "nobody"))["code"] == "not_found"
        error = await ask(client, "stored", "broken")
        assert (error["code"], error["message"]) == ("other", "RuntimeError: the disk is gone")
        assert (await ask(client, "stored", "odd"))["code"] == "other"
        async with asyncio.timeout(PATIENCE_S):
            await host.wait("echo")
        snapshot = (await ask(client, "snapshot", "echo"))["data"]
        assert [message["text"] for message in snapshot["messages"]] == ["hello", "hello"]
        await client.ws.close()


async def _echo(run: Run, mail: tuple[MailItem, ...]) -> str:
    return mail[0].text


async def test_an_agent_waits_for_another_and_a_circle_is_refused_by_its_names() -> None:
    said: dict[str, object] = {}

    async def first(run: Run, mail: tuple[MailItem, ...]) -> str:
        rest = await run.wait("second")
        said["first"] = rest
        return "first is done"

    async def second(run: Run, mail: tuple[MailItem, ...]) -> str:
        await _waited(run, "first")
        try:
            await run.wait("first")
        except Deadlock as error:
            said["second"] = str(error)
        try:
            await run.wait("nobody")
        except StaleTarget as error:
            said["nobody"] = str(error)
        return "second is done"

    async def _waited(run: Run, session: str) -> None:
        while not host._waiting.waits(session):
            await run.sleep(0.001)

    async with Host() as host:
        host.add(FunctionHarness(first), name="first", id="first", text="go")
        host.add(FunctionHarness(second), name="second", id="second", text="go")
        await until(lambda: "first" in said)
        assert said["second"] == "waiting would never end: second waits for first waits for second"
        assert said["nobody"] == "this host has no session 'nobody'"
        rest = said["first"]
        assert (getattr(rest, "state", None), getattr(rest, "said", None)) == (Lifecycle.IDLE, "second is done")


async def test_an_agent_that_waits_can_be_interrupted() -> None:
    async def waits(run: Run, mail: tuple[MailItem, ...]) -> None:
        await run.wait("sleeper")

    async def sleeps(run: Run, mail: tuple[MailItem, ...]) -> None:
        await run.sleep(600)

    async with Host() as host:
        host.add(FunctionHarness(sleeps), name="sleeper", id="sleeper", text="go")
        host.add(FunctionHarness(waits), name="waiter", id="waiter", text="go")
        await until(lambda: host._waiting.waits("waiter"))
        host.perform(host.core.apply(host.core.session("waiter").interrupt("x", host.now()).effects))
        await until(lambda: host.core.session("waiter").lifecycle is Lifecycle.IDLE)
        assert host._waiting.waits("waiter") == ()
