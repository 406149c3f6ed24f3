"""Agent functions on a real host, watched and steered over a real socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.sockets.harness_kit import S, operated
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import AgentFunction, FunctionHarness, Run


def toucher(folder: Path) -> AgentFunction:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        path = folder / mail[-1].text
        outcome = await run.tool("touch", {"path": str(path)}, path.touch, cwd=str(folder))
        return f"{outcome.status.value} {outcome.note or ''}".strip()

    return agent


async def test_what_is_approved_happens_and_what_is_denied_does_not(tmp_path: Path) -> None:
    async with operated(FunctionHarness(toucher(tmp_path)), "yes") as client:
        request = await client.request()
        await client.in_state("waiting")
        await client.decide(request, "approve", option="allow")
        await client.in_state("idle")
        assert (tmp_path / "yes").exists()
        assert client.result == "ok"

        assert (await client.do("send", text="no")).info["delivery"] == "started"
        request = await client.request()
        await client.decide(request, "approve", option="deny", note="rather not")
        await client.until(lambda: client.result == "declined rather not")
        assert not (tmp_path / "no").exists()
        await client.until(lambda: len(client.events("result")) == 2)
        kinds = client.kinds()
        call = kinds.index("tool_call")
        assert kinds.index("request_opened") > call
        assert [event.status for event in client.events("tool_result")] == ["ok", "declined"]


async def test_a_pause_while_waiting_lands_after_the_decision_and_before_the_call(tmp_path: Path) -> None:
    async with operated(FunctionHarness(toucher(tmp_path)), "file") as client:
        request = await client.request()
        await client.in_state("waiting")
        await client.do("pause")
        await client.decide(request, "approve", option="allow")
        await client.in_state("paused")
        assert not (tmp_path / "file").exists()
        await client.do("resume")
        await client.in_state("idle")
        assert (tmp_path / "file").exists()


async def test_an_interrupt_while_waiting_withdraws_and_queued_mail_waits_for_resume(tmp_path: Path) -> None:
    async with operated(FunctionHarness(toucher(tmp_path)), "first") as client:
        request = await client.request()
        await client.do("send", text="second", priority="queue")
        await client.do("interrupt")
        await client.in_state("idle")
        assert client.requests[request].state == "withdrawn"
        assert client.summary["mailbox"]["queued"] == 1
        await client.do("resume")
        await client.until(lambda: client.summary.get("requests"))
        again = await client.request()
        await client.decide(again, "approve", option="allow")
        await client.in_state("idle")
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
    async with operated(FunctionHarness(echo), "one") as client:
        await client.until(lambda: client.messages() == ["begun one"])
        assert (await client.do("send", text="two")).info["delivery"] == "steered"
        await client.do("send", text="enough")
        await client.in_state("idle")
        assert client.result == "one,two,enough"
        assert client.summary["mailbox"]["queued"] == 0


async def test_pause_and_resume_of_a_running_turn() -> None:
    async with operated(FunctionHarness(echo), "one") as client:
        await client.until(lambda: client.messages())
        await client.do("pause")
        await client.in_state("paused")
        assert (await client.do("send", text="enough")).info["delivery"] == "queued"
        assert client.lifecycle == "paused"
        await client.do("resume")
        await client.in_state("idle")
        assert client.result == "one,enough"
        assert client.messages() == ["begun one"]


async def test_pause_at_once_calls_the_function_again_with_all_mail_of_its_turn() -> None:
    async with operated(FunctionHarness(echo), "one") as client:
        await client.until(lambda: client.messages())
        await client.do("send", text="two")
        await client.until(lambda: any(m.state == "consumed" and m.ref == "#2" for m in client.events("mail")))
        await client.do("pause", interrupt=True)
        await client.in_state("paused")
        await client.do("send", text="enough")
        await client.do("resume")
        await client.in_state("idle")
        await client.until(lambda: client.messages() == ["begun one", "begun one,two,enough"])
        assert client.result == "one,two,enough"


async def test_pause_at_once_taken_back_at_once_goes_on() -> None:
    async with operated(FunctionHarness(echo), "one") as client:
        await client.until(lambda: client.messages())
        await client.send("pause", interrupt=True)
        await client.do("resume")
        await client.do("send", text="enough")
        await client.in_state("idle")
        assert client.result == "one,enough"


async def test_interrupt_priority_ends_the_turn_and_starts_one_with_the_message() -> None:
    async with operated(FunctionHarness(echo), "one") as client:
        await client.until(lambda: client.messages())
        await client.do("send", text="enough", priority="interrupt")
        await client.until(lambda: client.result)
        assert client.result == "enough"
        await client.until(lambda: client.messages() == ["begun one", "begun enough"])


@pytest.mark.parametrize("kill", [False, True])
async def test_stop_and_relaunch_take_the_turn_up_again(kill: bool) -> None:
    async with operated(FunctionHarness(echo), "one") as client:
        await client.until(lambda: client.messages())
        await client.do("stop", kill=kill, reason="lunch")
        await client.in_state("stopped")
        assert client.summary["why"] == "by ann (unverified): lunch"
        await client.do("send", text="enough")
        await client.in_state("idle")
        assert client.summary["attempt"] == 2


async def test_an_agent_that_cannot_be_stopped_gently_is_killed_after_its_grace_time() -> None:
    async def deaf(run: Run, mail: tuple[MailItem, ...]) -> None:
        await run.say("deaf")
        await asyncio.Event().wait()

    async with operated(FunctionHarness(deaf, grace_s=0.1), "go") as client:
        await client.until(lambda: client.messages())
        await client.do("stop")
        await client.in_state("stopped")


async def test_a_failure_is_one_line_and_a_retry_has_mail_and_conversation(caplog: pytest.LogCaptureFixture) -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        await run.say(f"attempt {run.attempt}")
        if run.attempt == 1:
            raise OSError("disk full\nreally")
        return f"{mail[0].text} after {len(run.messages)} messages"

    async with operated(FunctionHarness(agent), "build") as client:
        await client.in_state("failed")
        assert client.summary["error"] == "OSError: disk full really"
        assert client.summary["controls"] == {"resume": "Retry (attempt 2)"}
        assert "Traceback" in caplog.text
        await client.do("resume")
        await client.in_state("idle")
        assert client.result == "build after 3 messages"
        assert client.summary["attempt"] == 2
        assert client.summary["error"] is None


async def test_clearing_the_conversation_and_completing_at_once() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        return f"{len(run.messages)} messages"

    async with operated(FunctionHarness(agent), "a") as client:
        await client.until(lambda: client.result)
        await client.do("send", text="b")
        await client.until(lambda: client.result == "3 messages")
        await client.do("reseed", mode="clear")
        await client.do("send", text="c")
        await client.until(lambda: client.result == "1 messages")

    async with operated(FunctionHarness(agent, once=True), "a") as client:
        await client.in_state("completed")
        await client.do("send", text="b")
        await client.until(lambda: client.summary["attempt"] == 2 and client.lifecycle == "completed")


async def test_a_question_is_answered_in_words_and_a_stream_arrives() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        answer = await run.ask("Which colour?", ["red", "blue"], free_text=True)
        async with run.stream() as out:
            for letter in str(answer.text):
                await out.write(letter)
        return str(answer.text)

    async with operated(FunctionHarness(agent), "go") as client:
        request = await client.request()
        await client.decide(request, "answer", text="mauve")
        await client.in_state("idle")
        assert client.result == "mauve"
        await client.until(lambda: client.messages() == ["mauve"])


async def test_children_ask_for_themselves(tmp_path: Path) -> None:
    async def parent(run: Run, mail: tuple[MailItem, ...]) -> str:
        run.spawn(toucher(tmp_path), "kid", "by-the-kid")
        return "delegated"

    async with operated(FunctionHarness(parent), "go") as client:
        await client.until(lambda: any(s.get("parent") == S for s in client.sessions.values()))
        kid = next(s for s in client.sessions.values() if s.get("parent") == S)
        await client.decide(await client.request(kid["id"]), "approve", option="allow")
        await client.until(lambda: client.sessions[kid["id"]].get("result"))
        assert (tmp_path / "by-the-kid").exists()
        assert client.lifecycle == "idle"


async def test_closing_the_host_ends_a_turn_that_waits(tmp_path: Path) -> None:
    async with operated(FunctionHarness(toucher(tmp_path)), "never") as client:
        await client.request()
    assert not (tmp_path / "never").exists()
