"""Agent functions on a real host, watched and steered over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.sockets.plain_client import PlainClient
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import AgentFunction, FunctionHarness, Run
from watchfloor.host.server import Host

S = "s"


@asynccontextmanager
async def operated(agent: AgentFunction, *, text: str | None = None, **kwargs: Any) -> AsyncIterator[PlainClient]:
    """A host with the agent as session `s`, and an operator who follows it."""
    async with Host(name="test") as host:
        url = await host.serve()
        client = PlainClient(url, name="ann")
        await client.open()
        try:
            await client.watch("*")
            host.add(FunctionHarness(agent, **kwargs), name="tester", id=S, text=text)
            await client.until(lambda: S in client.sessions)
            yield client
        finally:
            await client.close()


def lifecycle(client: PlainClient) -> str:
    return str(client.sessions[S].get("lifecycle"))


def events(client: PlainClient, kind: str) -> list[dict[str, Any]]:
    return [event for _, event in client.arrived if event["kind"] == kind]


def texts(client: PlainClient) -> list[str]:
    return [event["text"] for event in events(client, "message")]


async def in_state(client: PlainClient, state: str) -> None:
    await client.until(lambda: lifecycle(client) == state)


async def the_request(client: PlainClient, session: str = S) -> str:
    def found() -> list[str]:
        return [
            id
            for (of, id), shown in client.requests.items()
            if of == session and "decision" not in shown and shown.get("state", "open") == "open"
        ]

    await client.until(found)
    return found()[-1]


async def did(client: PlainClient, primitive: str, **members: Any) -> dict[str, Any]:
    outcome = await client.command(S, primitive, **members)
    assert outcome["outcome"] == "applied", outcome
    return outcome


def toucher(folder: Path) -> AgentFunction:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        path = folder / mail[-1].text
        outcome = await run.tool("touch", {"path": str(path)}, path.touch, cwd=str(folder))
        return f"{outcome.status.value} {outcome.note or ''}".strip()

    return agent


async def test_what_is_approved_happens_and_what_is_denied_does_not(tmp_path: Path) -> None:
    async with operated(toucher(tmp_path), text="yes") as client:
        request = await the_request(client)
        await in_state(client, "waiting")
        outcome = await client.decide(S, request, "approve", option="allow")
        assert outcome["outcome"] == "applied"
        await in_state(client, "idle")
        assert (tmp_path / "yes").exists()
        assert client.sessions[S]["result"]["text"] == "ok"

        assert (await did(client, "send", text="no"))["info"]["delivery"] == "started"
        request = await the_request(client)
        await client.decide(S, request, "approve", option="deny", note="rather not")
        await client.until(lambda: client.sessions[S]["result"]["text"] == "declined rather not")
        assert not (tmp_path / "no").exists()
        await client.until(lambda: len(events(client, "result")) == 2)
        kinds = [event["kind"] for _, event in client.arrived]
        call = kinds.index("tool_call")
        assert kinds.index("request_opened") > call
        assert [event["status"] for event in events(client, "tool_result")] == ["ok", "declined"]


async def test_a_pause_while_waiting_lands_after_the_decision_and_before_the_call(tmp_path: Path) -> None:
    async with operated(toucher(tmp_path), text="file") as client:
        request = await the_request(client)
        await in_state(client, "waiting")
        await did(client, "pause")
        await client.decide(S, request, "approve", option="allow")
        await in_state(client, "paused")
        assert not (tmp_path / "file").exists()
        await did(client, "resume")
        await in_state(client, "idle")
        assert (tmp_path / "file").exists()


async def test_an_interrupt_while_waiting_withdraws_and_queued_mail_waits_for_resume(tmp_path: Path) -> None:
    async with operated(toucher(tmp_path), text="first") as client:
        request = await the_request(client)
        await did(client, "send", text="second", priority="queue")
        await did(client, "interrupt")
        await in_state(client, "idle")
        assert client.requests[S, request]["state"] == "withdrawn"
        assert client.sessions[S]["mailbox"]["queued"] == 1
        await did(client, "resume")
        await client.until(lambda: client.sessions[S].get("requests"))
        again = await the_request(client)
        await client.decide(S, again, "approve", option="allow")
        await in_state(client, "idle")
        assert (tmp_path / "second").exists()
        assert not (tmp_path / "first").exists()


async def echo(run: Run, mail: tuple[MailItem, ...]) -> str:
    """Works in steps until somebody says "enough"."""
    heard = [item.text for item in mail]
    await run.say("begun " + ",".join(heard))
    while "enough" not in heard:
        heard += [item.text for item in await run.checkpoint()]
        await run.sleep(0.005)
    return ",".join(heard)


async def test_mail_steers_a_running_turn() -> None:
    async with operated(echo, text="one") as client:
        await client.until(lambda: texts(client) == ["begun one"])
        assert (await did(client, "send", text="two"))["info"]["delivery"] == "steered"
        await did(client, "send", text="enough")
        await in_state(client, "idle")
        assert client.sessions[S]["result"]["text"] == "one,two,enough"
        assert client.sessions[S]["mailbox"]["queued"] == 0


async def test_pause_and_resume_of_a_running_turn() -> None:
    async with operated(echo, text="one") as client:
        await client.until(lambda: texts(client))
        await did(client, "pause")
        await in_state(client, "paused")
        assert (await did(client, "send", text="enough"))["info"]["delivery"] == "queued"
        assert lifecycle(client) == "paused"
        await did(client, "resume")
        await in_state(client, "idle")
        assert client.sessions[S]["result"]["text"] == "one,enough"
        assert texts(client) == ["begun one"]


async def test_pause_at_once_calls_the_function_again_with_all_mail_of_its_turn() -> None:
    async with operated(echo, text="one") as client:
        await client.until(lambda: texts(client))
        await did(client, "send", text="two")
        await client.until(lambda: any(m["state"] == "consumed" and m["ref"] == "#2" for m in events(client, "mail")))
        await did(client, "pause", interrupt=True)
        await in_state(client, "paused")
        await did(client, "send", text="enough")
        await did(client, "resume")
        await in_state(client, "idle")
        await client.until(lambda: texts(client) == ["begun one", "begun one,two,enough"])
        assert client.sessions[S]["result"]["text"] == "one,two,enough"


async def test_pause_at_once_taken_back_at_once_goes_on() -> None:
    async with operated(echo, text="one") as client:
        await client.until(lambda: texts(client))
        await client.tell("command", id="p", session=S, do={"primitive": "pause", "interrupt": True})
        await did(client, "resume")
        await did(client, "send", text="enough")
        await in_state(client, "idle")
        assert client.sessions[S]["result"]["text"] == "one,enough"


async def test_interrupt_priority_ends_the_turn_and_starts_one_with_the_message() -> None:
    async with operated(echo, text="one") as client:
        await client.until(lambda: texts(client))
        await did(client, "send", text="enough", priority="interrupt")
        await client.until(lambda: client.sessions[S].get("result"))
        assert client.sessions[S]["result"]["text"] == "enough"
        await client.until(lambda: texts(client) == ["begun one", "begun enough"])


@pytest.mark.parametrize("kill", [False, True])
async def test_stop_and_relaunch_take_the_turn_up_again(kill: bool) -> None:
    async with operated(echo, text="one") as client:
        await client.until(lambda: texts(client))
        await did(client, "stop", kill=kill, reason="lunch")
        await in_state(client, "stopped")
        assert client.sessions[S]["why"] == "by ann (unverified): lunch"
        await did(client, "send", text="enough")
        await in_state(client, "idle")
        assert client.sessions[S]["attempt"] == 2


async def test_an_agent_that_cannot_be_stopped_gently_is_killed_after_its_grace_time() -> None:
    async def deaf(run: Run, mail: tuple[MailItem, ...]) -> None:
        await run.say("deaf")
        await asyncio.Event().wait()

    async with operated(deaf, text="go", grace_s=0.1) as client:
        await client.until(lambda: texts(client))
        await did(client, "stop")
        await in_state(client, "stopped")


async def test_a_failure_is_one_line_and_a_retry_has_mail_and_conversation(caplog: pytest.LogCaptureFixture) -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        await run.say(f"attempt {run.attempt}")
        if run.attempt == 1:
            raise OSError("disk full\nreally")
        return f"{mail[0].text} after {len(run.messages)} messages"

    async with operated(agent, text="build") as client:
        await in_state(client, "failed")
        assert client.sessions[S]["error"] == "OSError: disk full really"
        assert client.sessions[S]["controls"] == {"resume": "Retry (attempt 2)"}
        assert "Traceback" in caplog.text
        await did(client, "resume")
        await in_state(client, "idle")
        assert client.sessions[S]["result"]["text"] == "build after 3 messages"
        assert client.sessions[S]["attempt"] == 2
        assert client.sessions[S]["error"] is None


async def test_clearing_the_conversation_and_completing_at_once() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        return f"{len(run.messages)} messages"

    async with operated(agent, text="a") as client:
        await client.until(lambda: client.sessions[S].get("result"))
        await did(client, "send", text="b")
        await client.until(lambda: client.sessions[S]["result"]["text"] == "3 messages")
        await did(client, "reseed", mode="clear")
        await did(client, "send", text="c")
        await client.until(lambda: client.sessions[S]["result"]["text"] == "1 messages")

    async with operated(agent, text="a", once=True) as client:
        await in_state(client, "completed")
        await did(client, "send", text="b")
        await client.until(lambda: client.sessions[S]["attempt"] == 2 and lifecycle(client) == "completed")


async def test_a_question_is_answered_in_words_and_a_stream_arrives() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        answer = await run.ask("Which colour?", ["red", "blue"], free_text=True)
        async with run.stream() as out:
            for letter in str(answer.text):
                await out.write(letter)
        return str(answer.text)

    async with operated(agent, text="go") as client:
        request = await the_request(client)
        outcome = await client.decide(S, request, "answer", text="mauve")
        assert outcome["outcome"] == "applied"
        await in_state(client, "idle")
        assert client.sessions[S]["result"]["text"] == "mauve"
        await client.until(lambda: texts(client) == ["mauve"])


async def test_children_ask_for_themselves(tmp_path: Path) -> None:
    async def parent(run: Run, mail: tuple[MailItem, ...]) -> str:
        run.spawn(toucher(tmp_path), "kid", "by-the-kid")
        return "delegated"

    async with operated(parent, text="go") as client:
        await client.until(lambda: any(s.get("parent") == S for s in client.sessions.values()))
        kid = next(s for s in client.sessions.values() if s.get("parent") == S)
        request = await the_request(client, kid["id"])
        await client.decide(kid["id"], request, "approve", option="allow")
        await client.until(lambda: client.sessions[kid["id"]].get("result"))
        assert (tmp_path / "by-the-kid").exists()
        assert lifecycle(client) == "idle"


async def test_closing_the_host_ends_a_turn_that_waits(tmp_path: Path) -> None:
    async with operated(toucher(tmp_path), text="never") as client:
        await the_request(client)
    assert not (tmp_path / "never").exists()
