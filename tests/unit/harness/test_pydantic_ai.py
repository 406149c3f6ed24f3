"""Agents of Pydantic AI as sessions, with models that are functions: no network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic_ai import Agent, CallDeferred, RunContext
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from watchfloor.agent.agent import Agent as WatchfloorAgent
from watchfloor.agent.session import RunState
from watchfloor.harness.pydantic_ai import ROLE, PydanticAiHarness
from watchfloor.host.log.sqlite import SqliteLog
from watchfloor.host.serving.live import LiveAgent
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import Event, Message, ToolCall, ToolResult
from watchfloor.protocol.frames import DoAnswer, DoApprove, DoReseed
from watchfloor.protocol.model import RequestModel
from watchfloor.testing.check_harness import check_harness
from watchfloor.words import Lifecycle, RequestKind, ReseedMode

PATIENCE_S = 60.0
Reply = str | list[tuple[str, dict[str, Any]]]


async def until(holds: Callable[[], object]) -> None:
    """Wait for what the host brings about."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - whatever the host does meanwhile
            await asyncio.sleep(0)


class Scripted:
    """A model that says and calls what the test has written, one reply a time it is asked."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[list[ModelMessage]] = []
        self.model = FunctionModel(stream_function=self.stream)

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        self.asked.append(messages)
        reply = self.replies.pop(0)
        if isinstance(reply, str):
            for word in reply.split(" "):
                yield word + " "
            return
        for index, (name, arguments) in enumerate(reply):
            call = f"call-{len(self.asked)}-{index}"
            yield {index: DeltaToolCall(name=name, json_args=json.dumps(arguments), tool_call_id=call)}

    def returned(self) -> list[str]:
        """What the tools returned, as the model saw it last."""
        parts = [part for message in self.asked[-1] for part in message.parts]
        return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


class Deployer:
    """A tool that counts what it did."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def agent(self, model: FunctionModel) -> Agent[None, Any]:
        """An agent that may deploy where somebody allows it, and look by itself."""
        agent: Agent[None, Any] = Agent(model)

        @agent.tool_plain(requires_approval=True)
        def deploy(place: str) -> str:
            self.did.append(place)
            return f"deployed to {place}"

        @agent.tool_plain
        def look() -> str:
            return "all quiet"

        @agent.tool
        def measure(context: RunContext[None], what: str) -> str:
            raise CallDeferred

        return agent


def events(host: Host, kind: type[Event]) -> list[Any]:
    """What the session "s" has told of this kind."""
    host._flush_now()
    return [entry.event for entry in host.core.log.after(0, 999, "s") if isinstance(entry.event, kind)]


async def asked(host: Host, count: int = 1) -> list[RequestModel]:
    """The open requests, once there are so many."""
    await until(lambda: len(host.core.session("s").requests.open()) == count)
    return host.core.session("s").requests.open()


def decide(host: Host, request: RequestModel, option: str, note: str | None = None) -> None:
    """Take an option."""
    do = DoApprove(request=request.read().id, option=option, digest=request.digest, note=note)
    assert host.command("s", do).applied


def hosted(host: Host, agent: Agent[None, Any], **rest: Any) -> LiveAgent:
    """The agent as the session "s"."""
    host.add(PydanticAiHarness(agent, **rest), name="s", id="s")
    return host.live("s")


async def test_it_answers_and_remembers() -> None:
    script = Scripted("hello there", "and again")
    async with Host() as host:
        live = hosted(host, Deployer().agent(script.model))
        assert await live.send("hi").response == "hello there "
        assert await live.send("more").response == "and again "
        assert [message.text for message in events(host, Message)] == ["hello there ", "and again "]
        assert len(script.asked[1]) == 3
        usage = host.core.session("s").usage
        assert usage is not None
        assert usage.output_tokens > 0


async def test_a_call_that_needs_nobody_is_told() -> None:
    script = Scripted([("look", {})], "quiet")
    async with Host() as host:
        live = hosted(host, Deployer().agent(script.model))
        await live.send("look").response
        (call,) = events(host, ToolCall)
        (result,) = events(host, ToolResult)
        assert (call.name, call.gated, result.call, result.text, result.status) == (
            "look", False, call.call, "all quiet", "ok",
        )  # fmt: skip
        assert script.returned() == ["all quiet"]
        assert host.core.session("s").in_flight == {}


async def test_a_deferred_call_is_a_request_and_runs_once_when_it_is_allowed() -> None:
    deployer, script = Deployer(), Scripted([("deploy", {"place": "prod"}), ("deploy", {"place": "test"})], "done")
    async with Host() as host:
        live = hosted(host, deployer.agent(script.model))
        message = live.send("deploy")
        first, second = await asked(host, 2)
        action = first.read().actions[0]
        assert (action.tool, action.arguments) == ("deploy", {"place": "prod"})
        assert deployer.did == []
        assert live.state is Lifecycle.WAITING
        decide(host, first, "allow")
        decide(host, second, "deny", "not there")
        assert await message.response == "done "
        assert deployer.did == ["prod"]
        assert script.returned() == ["deployed to prod", "not there"]
        ended = {result.call: (result.status.value, result.text) for result in events(host, ToolResult)}
        assert ended == {"call-1-0": ("ok", "deployed to prod"), "call-1-1": ("declined", "not there")}
        assert len(events(host, ToolCall)) == 2


async def test_a_call_that_is_answered_elsewhere_is_a_question() -> None:
    script = Scripted([("measure", {"what": "load"})], "thanks")
    async with Host() as host:
        live = hosted(host, Deployer().agent(script.model))
        message = live.send("how much?")
        (request,) = await asked(host)
        assert request.read().kind is RequestKind.QUESTION
        assert "measure" in str(request.read().fields[0].label)
        do = DoAnswer(request=request.read().id, digest=request.digest, text="0.7")
        assert host.command("s", do).applied
        assert await message.response == "thanks "
        assert script.returned() == ["0.7"]


async def test_a_host_that_is_killed_while_it_asks_goes_on_there(tmp_path: Path) -> None:
    deployer, script = Deployer(), Scripted([("deploy", {"place": "prod"})], "done")
    log = SqliteLog(tmp_path / "log.db")
    async with Host(log=log) as host:
        live = hosted(host, deployer.agent(script.model))
        live.send("deploy")
        await asked(host)
        host._flush_now()
        log._db.close()  # as a process does that is killed
        host._closed = True
    async with Host(log=SqliteLog(tmp_path / "log.db")) as host:
        live = hosted(host, deployer.agent(script.model))
        assert live.state is Lifecycle.PAUSED
        live.resume()
        (request,) = await asked(host)
        decide(host, request, "allow")
        assert await live.message("#1").response == "done "
        assert deployer.did == ["prod"]
        # The model was not asked again what it wanted.
        assert len(script.asked) == 2


async def test_an_interrupted_question_does_not_spoil_the_next_turn() -> None:
    deployer, script = Deployer(), Scripted([("deploy", {"place": "prod"})], "well then")
    async with Host() as host:
        live = hosted(host, deployer.agent(script.model))
        live.send("deploy")
        await asked(host)
        live.interrupt()
        await live.wait()
        assert await live.send("never mind").response == "well then "
        assert deployer.did == []
        assert script.returned() == ["The turn was ended before anybody decided."]


async def test_the_model_is_that_which_operators_chose() -> None:
    agent: Agent[None, Any] = Agent(TestModel(custom_output_text="mine"))
    async with Host() as host:
        live = hosted(host, agent, model="the usual one")
        assert await live.send("x").response == "mine"
        assert [message.role for message in live.snapshot.messages] == ["user", ROLE, "assistant"]
        assert host.command("s", DoReseed(mode=ReseedMode.MODEL, to="test")).applied
        assert await live.send("y").response == "success (no tool calls)"


async def test_a_model_that_fails_is_a_failure_of_one_line() -> None:
    async def breaks(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "so "
        raise RuntimeError("no\nquota")

    agent: Agent[None, Any] = Agent(FunctionModel(stream_function=breaks))
    async with Host() as host:
        live = hosted(host, agent)
        live.send("x")
        await until(lambda: live.state is Lifecycle.FAILED)
        assert live.error == "RuntimeError: no quota"
        # What it had said is there, and marked as cut.
        (said,) = events(host, Message)
        assert (said.text, said.cut) == ("so ", True)


async def test_it_is_held_to_what_hosts_rely_on() -> None:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "begun "
        if "long" in str(messages[-1]):
            await asyncio.Event().wait()

    checks = await check_harness(
        lambda: PydanticAiHarness(Agent(FunctionModel(stream_function=stream))), short="short", long="long"
    )
    assert checks


async def test_it_is_suspended_and_goes_on_as_a_stored_session(tmp_path: Path) -> None:
    deployer, script = Deployer(), Scripted([("deploy", {"place": "prod"})], "done")
    harness = PydanticAiHarness(deployer.agent(script.model))
    agent = WatchfloorAgent.builder().data_folder(tmp_path).harness(harness).build()
    session = agent.open("s")
    await agent.run(session, "deploy")
    assert session.state is RunState.SUSPENDED
    assert (deployer.did, len(script.asked)) == ([], 1)
    await agent.answer("s", "allow")
    await agent.resume(session)
    assert (session.state, session.messages[-1].text) == (RunState.IDLE, "done ")
    # It ran once, and the model was not asked anew what it wanted.
    assert (deployer.did, len(script.asked)) == (["prod"], 2)
