"""Agents of the Agent Client Protocol as sessions, with a real one as a process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.unit.harness.fake_port import FakePort
from tests.unit.harness.programs import eventually, state
from watchfloor.errors import AgentError, ContractError, ProtocolError
from watchfloor.harness.acp import AcpHarness
from watchfloor.harness.acp_session import AcpSession
from watchfloor.harness.base import Interrupt, MailArrived, Pause, Stop, Withdrawn
from watchfloor.protocol.events import (
    Diff,
    Message,
    Notice,
    Plan,
    Progress,
    Raw,
    Reasoning,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStatus,
)
from watchfloor.protocol.model import Action
from watchfloor.words import OptionKind, Scope, StopReason

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the tests read the process table")

AGENT = [sys.executable, str(Path(__file__).parents[2] / "peers" / "acp_agent.py")]

Start = Callable[..., Awaitable[AcpSession]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    begun: list[AcpSession] = []

    async def start(
        port: FakePort, *words: str, harness: AcpHarness | None = None, grace_s: float = 30.0
    ) -> AcpSession:
        harness = harness or AcpHarness([*AGENT, *words], cwd=str(tmp_path), grace_s=grace_s)
        session = await harness.start(port.spec(), port)
        begun.append(session)
        return session

    yield start
    for session in begun:
        await session.intervene(Stop(kill=True))
        await session.close()


def notices(port: FakePort, code: str = "agent") -> list[str]:
    return [notice.text for notice in port.all(Notice) if notice.code == code]


# --- turns


async def test_a_turn_is_streamed_and_recorded_whole(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    assert port.log == ["started"]
    await session.intervene(port.wake("think hmm\nsay one two\nplan look, leap\nsay three"))
    await port.until_log("ended")
    assert [(message.text, message.cut) for message in port.all(Message)] == [("one two ", False), ("three ", False)]
    assert port.one(Reasoning).text == "hmm"
    assert [(step.text, step.status) for step in port.one(Plan).steps] == [("look", "running"), ("leap", "running")]
    assert [text for _, of, text in port.deltas if of == "message"] == ["one ", "two ", "three "]
    items = {item for item, _, _ in port.deltas}
    assert items == {event.item for event in port.events if event.item}
    assert all(event.turn == "t1" for event in port.all(Message))
    assert port.result is not None
    assert (port.result.final_message, port.result.stop_reason) == ("three ", StopReason.END_TURN)
    said = [(message.role, message.text) for message in port.conversation.messages]
    assert said[1:] == [("assistant", "one two "), ("assistant", "three ")]
    assert said[0][0] == "user"


async def test_several_messages_are_one_prompt_and_the_next_turn_is_another(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("say first", "prompts"))
    await port.until_log("ended")
    assert port.all(Message)[-1].text == "first 1 prompts "
    port.log.clear()
    await session.intervene(port.wake("prompts", turn="t2"))
    await port.until_log("ended")
    assert port.all(Message)[-1].text == "2 prompts "
    assert port.all(Message)[-1].turn == "t2"


async def test_a_message_while_it_is_busy_stays_in_the_mailbox(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("say begun\nhang"))
    await port.until(lambda: port.deltas)
    port.post("say later")
    await session.intervene(MailArrived())
    with pytest.raises(ContractError, match="t1 still runs"):
        await session.intervene(port.wake("say never", turn="t2"))
    await session.intervene(Interrupt())
    await port.until_log("interrupted")
    assert [item.text for item in port.mailbox] == ["say later"]
    assert [message.text for message in port.all(Message)] == ["begun "]


async def test_a_turn_without_mail_ends_without_a_prompt(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake())
    await port.until_log("ended")
    port.log.clear()
    await session.intervene(port.wake("prompts", turn="t2"))
    await port.until_log("ended")
    assert port.one(Message).text == "1 prompts "


async def test_usage_is_told_where_the_agent_tells_it(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("usage"))
    await port.until_log("ended")
    assert [(usage.input_tokens, usage.output_tokens) for usage in port.usages] == [(10, 5)]
    assert port.one(Progress).note == "120 of 1000 tokens of context"


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("max_tokens", StopReason.LIMIT_REACHED),
        ("max_turn_requests", StopReason.LIMIT_REACHED),
        ("refusal", StopReason.OTHER),
        ("cancelled", StopReason.CANCELLED),
        ("made_up", StopReason.OTHER),
    ],
)
async def test_stop_reasons_have_one_meaning(start: Start, word: str, reason: StopReason) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake(f"reason {word}"))
    await port.until_log("ended")
    assert port.result is not None
    assert port.result.stop_reason is reason


async def test_an_error_of_the_agent_fails_the_attempt_and_ends_the_process(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("error"))
    await port.until_log("failed")
    assert port.error == "Internal error: the model is gone"
    assert state(session.pid) == ""
    assert port.log.count("failed") == 1


# --- calls and permissions


async def test_a_call_is_told_with_its_output(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("free echo hello"))
    await port.until_log("ended")
    call = port.one(ToolCall)
    assert (call.name, call.text, call.arguments, call.gated) == (
        "echo hello",
        "echo hello",
        {"command": "echo hello"},
        False,
    )
    assert port.one(ToolOutput).text == "hello\n"
    result = port.one(ToolResult)
    assert (result.call, result.status, result.text) == (call.call, ToolStatus.OK, "")
    assert port.log[1:] == ["begin echo hello", "end echo hello", "ended"]


async def test_a_permission_is_asked_with_the_options_as_offered_and_runs_once_when_allowed(
    start: Start, tmp_path: Path
) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("run echo x >> out"))
    subject = await port.open_request()
    assert subject.actions == (
        Action(
            tool="echo x >> out",
            text="echo x >> out",
            arguments={"command": "echo x >> out"},
            call="call-1",
            complete=True,
        ),
    )
    offered = [(o.id, o.label, o.kind, o.scope, o.persists) for o in subject.options]
    assert offered == [
        ("once", "Allow once", OptionKind.ALLOW, Scope.ONCE, False),
        ("always", "Always allow", OptionKind.ALLOW, Scope.SESSION, True),
        ("no", "Reject", OptionKind.DENY, Scope.ONCE, False),
    ]
    assert port.requests[subject.id].about == "because it was asked for"
    assert port.one(ToolCall).gated
    assert not (tmp_path / "out").exists()
    decided = port.decide(subject, "once")
    await session.intervene(decided)
    await session.intervene(decided)
    await port.until_log("ended")
    assert (tmp_path / "out").read_text() == "x\n"
    assert port.one(ToolResult).status is ToolStatus.OK
    assert len(port.all(ToolCall)) == 1


async def test_what_is_denied_is_not_done(start: Start, tmp_path: Path) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("run touch out"))
    await session.intervene(port.decide(await port.open_request(), "no"))
    await port.until_log("ended")
    assert not (tmp_path / "out").exists()
    assert port.one(ToolResult).status is ToolStatus.DECLINED
    assert port.one(Message).text == "not done "


async def test_a_withdrawn_request_is_answered_as_cancelled(start: Start, tmp_path: Path) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("run touch out"))
    subject = await port.open_request()
    await session.intervene(Withdrawn(subject.id, "its time is over"))
    await port.until_log("ended")
    assert port.result is not None
    assert port.result.stop_reason is StopReason.CANCELLED
    assert not (tmp_path / "out").exists()
    assert port.one(ToolResult).status is ToolStatus.DECLINED


async def test_a_change_of_a_file_is_shown_before_it_is_decided_on(start: Start, tmp_path: Path) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("edit note.txt hello"))
    subject = await port.open_request()
    (action,) = subject.actions
    assert (action.tool, action.complete) == ("Edit note.txt", True)
    assert action.diff is not None
    assert action.diff.splitlines()[-1] == "+hello"
    assert port.one(Diff).path == "note.txt"
    await session.intervene(port.decide(subject, "once"))
    await port.until_log("ended")
    assert (tmp_path / "note.txt").read_text() == "hello"
    assert len(port.all(ToolCall)) == 1


async def test_it_has_no_files_and_no_terminal_of_ours(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("tools"))
    await port.until_log("ended")
    assert port.one(Message).text == "refused -32601 refused -32601 "


async def test_what_is_asked_between_two_turns_is_for_operators_too(start: Start, tmp_path: Path) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("later touch out"))
    await port.until_log("ended")
    subject = await port.open_request()
    assert port.requests[subject.id].blocks is False
    await session.intervene(port.wake("say meanwhile", turn="t2"))
    await port.until(lambda: port.log.count("ended") == 2)
    assert subject.id in port.requests
    await session.intervene(port.decide(subject, "once"))
    await port.until(lambda: port.all(ToolResult))
    assert (tmp_path / "out").exists()


async def test_a_permission_that_nobody_could_decide_is_refused(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("odd"))
    await port.until_log("ended")
    assert port.requests == {}
    assert port.one(Message).text == "refused -32602 "
    assert notices(port) == ["a permission request of the agent was refused: no options are offered"]


# --- interrupt


@pytest.mark.parametrize("way", ["hang", "fault"])
async def test_an_interrupt_ends_the_turn_also_where_the_agent_answers_with_an_error(start: Start, way: str) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake(f"say begun\n{way}"))
    await port.until(lambda: port.deltas)
    await session.intervene(Interrupt())
    await session.intervene(Interrupt())
    await port.until_log("interrupted")
    assert port.one(Message).cut
    assert port.log == ["started", "interrupted"]
    port.log.clear()
    await session.intervene(port.wake("say again", turn="t2"))
    await port.until_log("ended")


async def test_an_interrupt_right_after_the_prompt_is_not_lost(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("run touch out"))
    await session.intervene(Interrupt())
    await port.until_log("interrupted")


async def test_an_interrupt_answers_open_permissions_as_cancelled(start: Start, tmp_path: Path) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("run touch out"))
    subject = await port.open_request()
    await session.intervene(Interrupt())
    await session.intervene(Withdrawn(subject.id, "interrupted"))
    await port.until_log("interrupted")
    assert not (tmp_path / "out").exists()
    assert port.one(ToolResult).status is ToolStatus.CANCELLED


async def test_an_agent_that_does_not_heed_an_interrupt_has_failed(start: Start) -> None:
    port = FakePort()
    session = await start(port, grace_s=0.2)
    await session.intervene(port.wake("say begun\ndeaf"))
    await port.until(lambda: port.deltas)
    await session.intervene(Interrupt())
    await port.until_log("failed")
    assert port.error == "the agent did not end its turn within 0.2 s of being told to"
    assert state(session.pid) == ""


async def test_what_is_not_advertised_does_nothing(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    assert session.capabilities.pause is None
    await session.intervene(Pause())
    await session.intervene(Interrupt())
    assert port.log == ["started"]
    await session.intervene(port.wake("say on"))
    await port.until_log("ended")


# --- ends


async def test_a_crash_fails_with_the_exit_words_and_the_last_line_of_its_errors(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("stderr oh no\nsay half\ncrash 3"))
    await port.until_log("failed")
    assert port.error == "exit status 3: oh no"
    assert notices(port, "stderr") == ["oh no"]
    assert [(message.text, message.cut) for message in port.all(Message)] == [("half ", True)]
    assert port.log == ["started", "failed"]


async def test_an_agent_that_closes_its_output_is_ended(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("mute"))
    await port.until_log("failed")
    assert port.error == "killed by SIGTERM"
    assert state(session.pid) == ""


async def test_an_agent_that_leaves_in_peace_has_completed(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("leave"))
    await port.until_log("completed")
    assert port.log == ["started", "ended", "completed"]


@pytest.mark.parametrize(("prompt", "kill"), [("", False), ("", True), ("hang", False), ("hang", True), ("deaf", True)])
async def test_a_stop_ends_the_process(start: Start, prompt: str, kill: bool) -> None:
    port = FakePort()
    session = await start(port)
    if prompt:
        await session.intervene(port.wake(f"say begun\n{prompt}"))
        await port.until(lambda: port.deltas)
    await session.intervene(Stop(kill=kill))
    await port.until_log("stopped")
    assert state(session.pid) == ""
    assert port.result is not None
    assert port.result.stop_reason is StopReason.CANCELLED
    assert port.log == ["started", "stopped"]


async def test_closing_ends_everything_without_a_word(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("say begun\nhang"))
    await port.until(lambda: port.deltas)
    await session.close()
    assert state(session.pid) == ""
    assert port.log == ["started"]


# --- beginning


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--auth"], r"the agent wants its user to log in first \(Log in on the web\)"),
        (["--version", "7"], "the agent speaks version 7 of the Agent Client Protocol, and only version 1"),
        (["--nonsense"], "the agent ended before a session began: exit status 2: .*unrecognized arguments"),
    ],
)
async def test_an_agent_that_will_not_begin_says_why(start: Start, words: list[str], error: str) -> None:
    port = FakePort()
    with pytest.raises((AgentError, ProtocolError), match=error):
        await start(port, *words)
    assert "started" not in port.log


async def test_an_agent_that_does_not_begin_is_ended(start: Start, tmp_path: Path) -> None:
    argv = [*AGENT, "--late", str(tmp_path / "never")]
    with pytest.raises((AgentError, ProtocolError), match=r"began no session within 0\.5 s"):
        await start(FakePort(), harness=AcpHarness(argv, patience_s=0.5))


async def test_a_start_that_is_cancelled_leaves_nothing(start: Start, tmp_path: Path) -> None:
    port = FakePort()
    starting = asyncio.ensure_future(start(port, "--late", str(tmp_path / "never")))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(starting, 0.3)
    assert port.log == []


async def test_a_program_that_is_not_there() -> None:
    port = FakePort()
    with pytest.raises((AgentError, ProtocolError), match="there is no such program"):
        await AcpHarness(["no-such-agent"]).start(port.spec(), port)


@pytest.mark.parametrize("way", ["--load", "--resume"])
async def test_a_new_attempt_takes_up_the_session_where_the_agent_can(start: Start, tmp_path: Path, way: str) -> None:
    def harness() -> AcpHarness:
        # A new one each time, as after a restart of the host: what it needs is in the conversation.
        return AcpHarness([*AGENT, way, str(tmp_path / "kept")], cwd=str(tmp_path))

    first, second = FakePort(attempt=1), FakePort(attempt=2)
    session = await start(first, harness=harness())
    await session.intervene(first.wake("crash 1"))
    await first.until_log("failed")
    second.conversation.notes.update(first.conversation.notes)
    session = await start(second, harness=harness())
    await session.intervene(second.wake("prompts"))
    await second.until_log("ended")
    assert [message.text for message in second.all(Message)] == ["2 prompts "], "and nothing that was said before"


async def test_an_agent_that_cannot_take_up_a_session_begins_anew_and_says_so(start: Start, tmp_path: Path) -> None:
    harness = AcpHarness([*AGENT, "--load", str(tmp_path / "kept")], cwd=str(tmp_path))
    first, second = FakePort(attempt=1), FakePort(attempt=2)
    await (await start(first, harness=harness)).close()
    second.conversation.notes.update(first.conversation.notes)
    session = await start(second, harness=harness)
    (told,) = notices(second)
    assert told.startswith("the agent did not take up its session (Resource not found")
    await session.intervene(second.wake("prompts"))
    await second.until_log("ended")
    assert second.one(Message).text == "1 prompts "


# --- hostile agents


async def test_garbage_on_its_output_is_told_and_left_out(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("garbage\nsay still here"))
    await port.until_log("ended")
    assert port.one(Message).text == "still here "
    told = notices(port)
    assert told[0] == "the agent printed what is no message of the protocol: hello?"
    assert told[-1] == "the agent prints more that is no message of the protocol; it is left out"
    assert len(told) == 6


async def test_a_line_without_end_is_left_out(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("long 10000000\nsay still here"))
    await port.until_log("ended")
    assert port.one(Message).text == "still here "
    assert notices(port) == ["the agent printed what is no message of the protocol: a line of more than 4194304 bytes"]


async def test_unknown_updates_are_kept_as_they_came(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    await session.intervene(port.wake("unknown\nsay still here"))
    await port.until_log("ended")
    assert len(port.all(Raw)) == 4
    data = port.all(Raw)[0].data
    assert isinstance(data, dict)
    assert data["update"] == {"sessionUpdate": "made_up", "n": 1}
    assert port.one(Message).text == "still here "


async def test_a_superseded_attempt_is_heard_no_more(start: Start) -> None:
    port = FakePort()
    session = await start(port)
    port.superseded = True
    await session.intervene(port.wake("say hello\nrun touch out"))
    await eventually(lambda: port.result is not None or session._turn is None)
    assert port.events == [event for event in port.events if isinstance(event, Notice)]
