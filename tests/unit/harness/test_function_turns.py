"""Turns of an agent function: how they begin, end, and what they leave behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from tests.unit.harness.fake_port import FakePort
from tests.unit.harness.kit import started
from watchfloor.errors import ContractError, Interrupted, StaleTarget
from watchfloor.harness.base import ConversationMessage, MailItem
from watchfloor.harness.function import FULL_CONTROL, FunctionHarness, Run
from watchfloor.protocol.events import Level, Message, Notice, Progress, Reasoning
from watchfloor.protocol.model import Capabilities, NoOptions, Result
from watchfloor.words import Primitive, ReseedMode, StopReason


async def test_a_turn_gets_the_mail_that_woke_it_and_ends_with_what_the_function_returns() -> None:
    seen: list[tuple[str, ...]] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        seen.append(tuple(item.text for item in mail))
        return f"done in {run.turn}"

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("one", "two", turn="t7"))
    await port.until_log("ended")
    assert seen == [("one", "two")]
    assert port.log == ["started", "ended"]
    assert port.result == Result(text="done in t7", stop_reason=StopReason.END_TURN, session_id="s1")


async def test_with_once_the_attempt_is_completed() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        return "the one answer"

    port = FakePort()
    session = await started(agent, port, once=True)
    await session.intervene(port.wake("go"))
    await port.until_log("completed")
    assert port.result is not None
    assert port.result.text == "the one answer"


async def test_without_a_return_the_last_words_are_the_final_message() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        await run.say("first")
        await run.say("last")

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("ended")
    assert port.result == Result(final_message="last", stop_reason=StopReason.END_TURN, session_id="s1")
    assert [message.text for message in port.all(Message)] == ["first", "last"]
    assert {message.turn for message in port.all(Message)} == {"t1"}


async def test_a_result_of_the_functions_own_keeps_its_reason_and_gets_our_session() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> Result:
        return Result(text="cut short", stop_reason=StopReason.LIMIT_REACHED, session_id="of the framework")

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("ended")
    assert port.result == Result(text="cut short", stop_reason=StopReason.LIMIT_REACHED, session_id="s1")


async def test_a_return_that_is_no_result_fails_the_attempt_instead_of_being_made_up() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        return 42  # type: ignore[return-value]

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("failed")
    assert port.error == "ContractError: an agent returns a text, a Result or None, not int"


async def test_the_conversation_outlives_the_turn_and_holds_both_sides_once() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        if len(run.messages) == 1:
            await run.say("thinking")
        return f"seen {len(run.messages)}"

    port = FakePort()
    session = await started(agent, port)
    first = port.wake("hello")
    await session.intervene(first)
    await port.until_log("ended")
    port.log.clear()
    await session.intervene(port.wake("again"))
    await port.until_log("ended")
    assert port.conversation.messages == [
        ConversationMessage("user", "hello", "#1"),
        ConversationMessage("assistant", "thinking"),
        ConversationMessage("assistant", "seen 2"),
        ConversationMessage("user", "again", "#2"),
        ConversationMessage("assistant", "seen 4"),
    ]


async def test_a_retry_goes_on_with_the_same_conversation_and_does_not_repeat_the_mail_in_it() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        if run.attempt == 1:
            raise RuntimeError("no luck")
        return f"{mail[0].text} at attempt {run.attempt}"

    harness = FunctionHarness(agent)
    port = FakePort()
    session = await harness.start(port.spec(), port)
    wake = port.wake("try")
    await session.intervene(wake)
    await port.until_log("failed")
    again = FakePort(attempt=2)
    again.conversation.messages[:] = port.conversation.messages
    session = await harness.start(again.spec(), again)
    await session.intervene(wake)
    await again.until_log("ended")
    assert again.result is not None
    assert again.result.text == "try at attempt 2"
    assert [m.text for m in again.conversation.messages] == ["try", "try at attempt 2"]


async def test_a_failure_is_one_line_for_operators_and_a_traceback_for_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(broken())

    async def broken() -> None:
        raise ValueError("line one\nline two " + "x" * 1000)

    port = FakePort()
    session = await started(agent, port)
    with caplog.at_level(logging.ERROR, "watchfloor.harness"):
        await session.intervene(port.wake("go"))
        await port.until_log("failed")
    assert port.error is not None
    assert port.error.startswith("ValueError: line one line two xxx")
    assert len(port.error) == 300
    assert "Traceback" not in port.error
    assert "in broken" in caplog.text


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()], ids=["exit", "cancelled"])
async def test_an_agent_that_exits_ends_itself_and_not_the_host(error: BaseException) -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        raise error

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("failed")
    assert port.error in ("SystemExit: 3", "CancelledError")


async def test_an_interruption_of_its_own_leaves_the_session_idle() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        raise Interrupted("enough")

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("interrupted")
    assert port.log == ["started", "interrupted"]


async def test_steered_mail_arrives_at_the_checkpoint() -> None:
    seen: list[str] = []
    posted = asyncio.Event()

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        await posted.wait()
        seen.extend(item.text for item in await run.checkpoint())
        seen.extend(item.text for item in await run.checkpoint())

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    port.post("more")
    posted.set()
    await port.until_log("ended")
    assert seen == ["more"]
    assert [m.text for m in port.conversation.messages] == ["go", "more"]


async def test_mail_that_a_boundary_inside_of_a_call_brought_is_not_lost_when_the_function_returns() -> None:
    calls: list[tuple[str, ...]] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        calls.append(tuple(item.text for item in mail))
        if len(calls) == 1:
            port.post("wait, one more")
            await run.tool("look", {}, lambda: "seen", gate=False)
        return f"answer {len(calls)}"

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("ended")
    assert calls == [("go",), ("wait, one more",)]
    assert port.log.count("ended") == 1
    assert port.result is not None
    assert port.result.text == "answer 2"
    assert [message.text for message in port.all(Message)] == ["answer 1"]


async def test_a_streamed_message_is_shown_in_pieces_and_recorded_whole() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        async with run.stream("reasoning") as out:
            await out.write("hm")
        async with run.stream() as out:
            for piece in ("Hel", "lo"):
                await out.write(piece)

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("ended")
    thought, message = port.one(Reasoning), port.one(Message)
    assert (thought.text, message.text, message.cut) == ("hm", "Hello", False)
    assert port.deltas == [
        (thought.item, "reasoning", "hm"),
        (message.item, "message", "Hel"),
        (message.item, "message", "lo"),
    ]
    assert [m.text for m in port.conversation.messages if m.role == "assistant"] == ["Hello"]


async def test_notices_progress_and_usage() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        run.notice("disk nearly full", Level.WARNING, code="disk")
        run.progress("3 of 7")
        run.usage(input_tokens=100, output_tokens=5)
        run.usage(output_tokens=2)

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("ended")
    await session.intervene(port.wake("again", turn="t2"))
    await port.until(lambda: port.log.count("ended") == 2)
    assert (port.all(Notice)[0].level, port.all(Notice)[0].code) == (Level.WARNING, "disk")
    assert port.all(Progress)[0].note == "3 of 7"
    assert [(u.input_tokens, u.output_tokens, u.turns) for u in port.usages] == [
        (100, 5, 1),
        (100, 7, 1),
        (200, 12, 2),
        (200, 14, 2),
    ]


async def test_text_that_cannot_be_written_as_utf8_is_mended() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        await run.say("a\ud800b")
        run.notice("c\udfffd")
        return "e\ud800f"

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("ended")
    assert [message.text for message in port.all(Message)] == ["a?b"]
    assert port.one(Notice).text == "c?d"
    assert port.result is not None
    assert port.result.text == "e?f"


async def test_children_share_the_kind_of_their_parent_or_bring_their_own() -> None:
    async def child(run: Run, mail: tuple[MailItem, ...]) -> None:
        return None

    approve_only = Capabilities(approve=NoOptions())
    own = FunctionHarness(child)

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        return " ".join([run.spawn(child, "kid", "do this"), run.spawn(own, "other")])

    port = FakePort()
    session = await started(agent, port, capabilities=approve_only)
    await session.intervene(port.wake("go"))
    await port.until_log("ended")
    assert port.result is not None
    assert port.result.text == "child-1 child-2"
    (first, second) = port.children
    assert (first[0], first[1], first[2].capabilities) == ("kid", "do this", approve_only)
    assert second == ("other", None, own)


async def test_a_run_is_of_no_use_after_its_turn() -> None:
    kept: list[Run] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        kept.append(run)

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("ended")
    with pytest.raises(StaleTarget, match="turn t1 is over"):
        await kept[0].say("still here")
    with pytest.raises(StaleTarget):
        kept[0].notice("still here")
    assert port.events == []


async def test_a_second_turn_beside_the_first_is_a_broken_contract() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        await run.sleep(60)

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    with pytest.raises(ContractError):
        await session.intervene(port.wake("again", turn="t2"))
    await session.close()


async def test_closing_ends_a_running_turn_without_a_word() -> None:
    ended: list[str] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        try:
            await run.sleep(60)
        finally:
            ended.append("ended")

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await asyncio.sleep(0)
    await session.close()
    assert ended == ["ended"]
    assert port.log == ["started"]


def test_what_is_advertised() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        return None

    async def compact(messages: Sequence[ConversationMessage]) -> Sequence[ConversationMessage]:
        return messages[-1:]

    def modes(harness: FunctionHarness) -> set[ReseedMode]:
        return set(harness.capabilities.reseed.modes) if harness.capabilities.reseed is not None else set()

    assert FunctionHarness(agent).capabilities == FULL_CONTROL
    assert set(FULL_CONTROL.advertised()) == set(Primitive) - {Primitive.ACT}
    assert modes(FunctionHarness(agent)) == {ReseedMode.CLEAR, ReseedMode.REPLACE, ReseedMode.REWIND}
    assert set(ReseedMode) - modes(FunctionHarness(agent, model="small")) == {ReseedMode.COMPACT}
    assert set(ReseedMode) - modes(FunctionHarness(agent, compact=compact)) == {ReseedMode.MODEL}
    none = FULL_CONTROL.model_copy(update={"reseed": None})
    assert FunctionHarness(agent, capabilities=none, model="small").capabilities == none
    assert not FunctionHarness(agent).starts_itself
    assert FunctionHarness(agent, starts_itself=True).starts_itself


async def test_a_budget_that_is_used_up_ends_the_turn_at_its_next_boundary() -> None:
    port = FakePort()
    reached = 0

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        nonlocal reached
        await run.say("half way")
        run.usage(input_tokens=9)
        reached += 1
        await run.checkpoint()
        reached += 1

    port.limit = "the budget of 5 tokens is used up (9)"
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("limited")
    assert reached == 1
    assert port.result is not None
    assert (port.result.stop_reason, port.result.final_message) == (StopReason.LIMIT_REACHED, "half way")
    port.limit = None
    await session.intervene(port.wake("go", turn="t1"))
    await port.until(lambda: reached == 3)
    await session.close()


async def test_the_model_is_what_operators_chose_or_what_the_agent_was_given() -> None:
    port = FakePort()
    seen: list[str | None] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        seen.append(run.model)

    session = await FunctionHarness(agent, model="small").start(port.spec(), port)
    await session.intervene(port.wake("one"))
    await port.until(lambda: len(seen) == 1 and "ended" in port.log)
    port.conversation.model = "large"
    await session.intervene(port.wake("two", turn="t2"))
    await port.until(lambda: len(seen) == 2)
    assert seen == ["small", "large"]
    await session.close()
