"""Tool calls, approvals and questions of an agent function."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.unit.harness.fake_port import FakePort
from tests.unit.harness.kit import started
from watchfloor.canonical import subject_digest
from watchfloor.errors import CanonicalError
from watchfloor.harness.base import Interrupt, MailItem, Pause, Resume, Stop, Withdrawn
from watchfloor.harness.function import FULL_CONTROL, Answer, Approval, FunctionSession, Run, ToolOutcome
from watchfloor.protocol.events import Message, ToolCall, ToolResult, ToolStatus
from watchfloor.protocol.model import Action, Capabilities, Choice, FieldType, FormField, NoOptions, Option
from watchfloor.words import OptionKind, RequestKind, Scope

Step = Callable[[Run], Awaitable[object]]


async def running(
    step: Step, port: FakePort, capabilities: Capabilities = FULL_CONTROL
) -> tuple[FunctionSession, list[object]]:
    """An agent that takes one step and keeps what it came to."""
    kept: list[object] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        kept.append(await step(run))

    session = await started(agent, port, capabilities=capabilities)
    await session.intervene(port.wake("go"))
    return session, kept


def touching(path: Path, port: FakePort) -> Step:
    async def touch() -> str:
        port.log.append("touched")
        await asyncio.to_thread(path.write_text, "x")
        return f"made {path.name}"

    async def step(run: Run) -> object:
        args = {"path": str(path), "mode": 0o644}
        folder = str(path.parent)
        return await run.tool("touch", args, touch, text=f"touch {path}", cwd=folder, diff="+x", about="needed")

    return step


async def test_a_gated_call_is_announced_asked_executed_once_and_reported(tmp_path: Path) -> None:
    port = FakePort()
    session, kept = await running(touching(tmp_path / "f", port), port)
    subject = await port.open_request()
    call = port.one(ToolCall)
    assert (call.gated, call.name, call.text, call.cwd) == (True, "touch", f"touch {tmp_path}/f", str(tmp_path))
    assert subject.kind is RequestKind.APPROVAL
    assert subject.actions == (
        Action(
            tool="touch",
            text=f"touch {tmp_path}/f",
            arguments={"path": f"{tmp_path}/f", "mode": 0o644},
            cwd=str(tmp_path),
            diff="+x",
            call=call.call,
        ),
    )
    assert [(o.id, o.kind, o.scope) for o in subject.options] == [
        ("allow", OptionKind.ALLOW, Scope.ONCE),
        ("deny", OptionKind.DENY, Scope.ONCE),
    ]
    request = port.requests[subject.id]
    assert request.about == "needed"
    assert request.digest == subject_digest(request.subject)
    assert not (tmp_path / "f").exists()
    assert port.in_flight == {}

    await session.intervene(port.decide(subject, "allow", note="fine"))
    await port.until_log("ended")
    assert (tmp_path / "f").read_text() == "x"
    assert kept == [ToolOutcome(ToolStatus.OK, "made f", "fine", "allow")]
    result = port.one(ToolResult)
    assert (result.call, result.status, result.text, result.duration_ms) == (call.call, ToolStatus.OK, "made f", 7)
    assert port.log == ["started", "ask", "checkpoint", "begin touch", "touched", "end touch", "ended"]


async def test_a_denied_call_is_not_executed_and_the_agent_goes_on(tmp_path: Path) -> None:
    port = FakePort()
    session, kept = await running(touching(tmp_path / "f", port), port)
    await session.intervene(port.decide(await port.open_request(), "deny", note="not today"))
    await port.until_log("ended")
    assert kept == [ToolOutcome(ToolStatus.DECLINED, None, "not today", "deny")]
    assert not (tmp_path / "f").exists()
    result = port.one(ToolResult)
    assert (result.status, result.text) == (ToolStatus.DECLINED, "not today")
    assert port.log == ["started", "ask", "checkpoint", "ended"]


async def test_an_option_that_is_not_an_allowance_never_executes(tmp_path: Path) -> None:
    port = FakePort()
    edit = Option(id="edit", label="Edit first", kind=OptionKind.EDIT)

    async def step(run: Run) -> object:
        return await run.tool("touch", {}, (tmp_path / "f").touch, options=[edit])

    session, kept = await running(step, port)
    await session.intervene(port.decide(await port.open_request(), "edit"))
    await port.until_log("ended")
    assert kept == [ToolOutcome(ToolStatus.DECLINED, option="edit")]
    assert not (tmp_path / "f").exists()


async def test_a_withdrawn_request_counts_as_denied(tmp_path: Path) -> None:
    port = FakePort()
    session, kept = await running(touching(tmp_path / "f", port), port)
    subject = await port.open_request()
    del port.requests[subject.id]
    await session.intervene(Withdrawn(subject.id, "its deadline passed"))
    await port.until_log("ended")
    assert kept == [ToolOutcome(ToolStatus.DECLINED, None, "its deadline passed")]
    assert not (tmp_path / "f").exists()


async def test_a_decision_about_something_else_moves_nothing(tmp_path: Path) -> None:
    port = FakePort()
    session, _ = await running(touching(tmp_path / "f", port), port)
    subject = await port.open_request()
    await session.intervene(Withdrawn("req-other", "gone"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert port.log == ["started", "ask"]
    await session.intervene(port.decide(subject, "allow"))
    await port.until_log("ended")


async def test_a_pause_asked_for_while_waiting_lands_before_the_call(tmp_path: Path) -> None:
    port = FakePort()
    session, _ = await running(touching(tmp_path / "f", port), port)
    subject = await port.open_request()
    port.pausing = True
    await session.intervene(port.decide(subject, "allow"))
    await port.until_log("parked")
    assert not (tmp_path / "f").exists()
    port.pausing = False
    await session.intervene(Resume())
    await port.until_log("ended")
    assert (tmp_path / "f").exists()
    assert port.log.index("resumed") < port.log.index("begin touch")


async def test_a_stop_while_waiting_denies_and_ends_the_turn(tmp_path: Path) -> None:
    port = FakePort()
    session, kept = await running(touching(tmp_path / "f", port), port)
    await port.open_request()
    port.stopping = True
    await session.intervene(Stop())
    await port.until_log("stopped")
    assert kept == []
    assert not (tmp_path / "f").exists()
    assert port.one(ToolResult).status is ToolStatus.DECLINED


@pytest.mark.parametrize("signal", [Interrupt(), Pause(interrupt=True)])
async def test_an_interruption_while_waiting_withdraws_the_request(tmp_path: Path, signal: Interrupt | Pause) -> None:
    port = FakePort()
    session, kept = await running(touching(tmp_path / "f", port), port)
    subject = await port.open_request()
    await session.intervene(signal)
    await port.until(lambda: {"interrupted", "paused"} & set(port.log))
    assert subject.id in port.withdrawn
    assert port.one(ToolResult).status is ToolStatus.CANCELLED
    assert kept == []
    # A decision that crossed the interruption finds nobody.
    await session.intervene(Withdrawn(subject.id, "late"))
    assert not (tmp_path / "f").exists()


async def test_an_agent_that_gives_up_waiting_withdraws_its_request(tmp_path: Path) -> None:
    port = FakePort()

    async def step(run: Run) -> object:
        try:
            async with asyncio.timeout(0.01):
                return await run.approve(Action(tool="rm", text="rm -r build"))
        except TimeoutError:
            return "nobody came"

    _, kept = await running(step, port)
    await port.until_log("ended")
    assert kept == ["nobody came"]
    assert list(port.withdrawn.values()) == ["the agent no longer waits for it"]


async def test_an_ungated_call_asks_nobody_but_a_pause_lands_before_it() -> None:
    port = FakePort()
    port.pausing = True

    async def step(run: Run) -> object:
        return await run.tool("ls", ["-l"], lambda: ["a", "b"], gate=False)

    session, kept = await running(step, port)
    await port.until_log("parked")
    assert port.events == []
    port.pausing = False
    await session.intervene(Resume())
    await port.until_log("ended")
    assert kept == [ToolOutcome(ToolStatus.OK, ["a", "b"])]
    assert port.one(ToolCall).arguments == ["-l"]
    assert not port.one(ToolCall).gated
    assert port.one(ToolResult).text == '["a", "b"]'


async def test_what_a_call_raises_is_reported_and_raised() -> None:
    port = FakePort()

    def broken() -> None:
        raise OSError(28, "no space left")

    async def step(run: Run) -> object:
        with pytest.raises(OSError, match="no space left"):
            await run.tool("write", None, broken, gate=False)
        return "went on"

    _, kept = await running(step, port)
    await port.until_log("ended")
    assert kept == ["went on"]
    result = port.one(ToolResult)
    assert (result.status, result.text) == (ToolStatus.ERROR, "OSError: [Errno 28] no space left")
    assert port.in_flight == {}


@pytest.mark.parametrize("error", [SystemExit(1), StopIteration("no"), KeyboardInterrupt()])
async def test_a_tool_that_wants_to_exit_only_fails(error: BaseException) -> None:
    port = FakePort()

    def leave() -> None:
        raise error

    async def step(run: Run) -> object:
        with pytest.raises(RuntimeError):
            await run.tool("leave", None, leave, gate=False)
        return True

    _, kept = await running(step, port)
    await port.until_log("ended")
    assert kept == [True]


async def test_a_blocking_call_does_not_hold_up_the_event_loop_and_is_told_of_when_it_ends() -> None:
    port = FakePort()
    inside, leave = threading.Event(), threading.Event()

    def blocks() -> str:
        inside.set()
        leave.wait(60)
        return "done after all"

    async def step(run: Run) -> object:
        return await run.tool("copy", {"n": 1}, blocks, gate=False)

    session, kept = await running(step, port)
    await port.until_log("begin copy")
    await asyncio.to_thread(inside.wait, 60)
    await session.intervene(Interrupt())
    await port.until_log("interrupted")
    # It could not be cancelled, and nothing pretends that it was.
    assert list(port.in_flight.values()) == ["copy"]
    assert port.all(ToolResult) == []
    leave.set()
    await port.until(lambda: port.all(ToolResult))
    result = port.one(ToolResult)
    assert (result.status, result.text, result.turn) == (ToolStatus.OK, "done after all", "t1")
    assert port.in_flight == {}
    assert kept == []


async def test_a_blocking_call_that_ends_after_a_newer_attempt_began_disturbs_nobody() -> None:
    port = FakePort()
    leave = threading.Event()

    async def step(run: Run) -> object:
        return await run.tool("copy", {}, lambda: leave.wait(60), gate=False)

    session, _ = await running(step, port)
    await port.until_log("begin copy")
    await session.intervene(Stop(kill=True))
    await port.until_log("stopped")
    port.superseded = True
    leave.set()
    await asyncio.to_thread(_joined)
    await asyncio.sleep(0)
    assert port.all(ToolResult) == []


def _joined() -> None:
    for thread in threading.enumerate():
        if thread.name == "tool call":
            thread.join(10)


async def test_an_async_call_is_cancelled_and_says_so() -> None:
    port = FakePort()

    async def fetch() -> None:
        await asyncio.Event().wait()

    async def step(run: Run) -> object:
        return await run.tool("fetch", {}, fetch, gate=False)

    session, _ = await running(step, port)
    await port.until_log("begin fetch")
    await session.intervene(Interrupt())
    await port.until_log("interrupted")
    assert port.one(ToolResult).status is ToolStatus.CANCELLED
    assert port.log == ["started", "checkpoint", "begin fetch", "end fetch", "interrupted"]


async def test_a_lambda_around_a_coroutine_is_awaited() -> None:
    port = FakePort()

    async def fetch(n: int) -> int:
        return n + 1

    async def step(run: Run) -> object:
        return await run.tool("fetch", {"n": 1}, lambda: fetch(1), gate=False)

    _, kept = await running(step, port)
    await port.until_log("ended")
    assert kept == [ToolOutcome(ToolStatus.OK, 2)]


async def test_arguments_are_bound_as_they_were_announced() -> None:
    port = FakePort()
    args = {"paths": ["a"]}

    async def step(run: Run) -> object:
        return await run.tool("rm", args, lambda: None)

    session, _ = await running(step, port)
    subject = await port.open_request()
    args["paths"].append("b")
    assert port.one(ToolCall).arguments == {"paths": ["a"]}
    assert port.requests[subject.id].read().actions[0].arguments == {"paths": ["a"]}
    await session.close()


@pytest.mark.parametrize("args", [{"f": object()}, {"x": "\ud800"}, {1: 2}], ids=["object", "surrogate", "key"])
@pytest.mark.parametrize("gate", [True, False])
async def test_arguments_that_are_not_json_are_refused_before_anything_is_announced(args: object, gate: bool) -> None:
    port = FakePort()

    async def step(run: Run) -> object:
        with pytest.raises(CanonicalError):
            await run.tool("odd", args, lambda: None, gate=gate)
        return True

    _, kept = await running(step, port)
    await port.until_log("ended")
    assert kept == [True]
    assert port.events == []


@pytest.mark.parametrize("gate", [True, False])
async def test_a_command_line_that_cannot_be_shown_exactly_is_refused(gate: bool) -> None:
    port = FakePort()

    async def step(run: Run) -> object:
        with pytest.raises(CanonicalError):
            await run.tool("rm", {}, lambda: None, text="rm \udcff", gate=gate)
        return True

    _, kept = await running(step, port)
    await port.until_log("ended")
    assert kept == [True]
    assert port.events == []


async def test_a_long_result_is_cut_and_says_so() -> None:
    port = FakePort()

    async def step(run: Run) -> object:
        return await run.tool("cat", {}, lambda: "x" * 100_000, gate=False)

    _, kept = await running(step, port)
    await port.until_log("ended")
    assert kept == [ToolOutcome(ToolStatus.OK, "x" * 100_000)]
    assert (len(port.one(ToolResult).text), port.one(ToolResult).cut) == (65536, True)


async def test_calls_beside_each_other_ask_beside_each_other() -> None:
    port = FakePort()

    async def step(run: Run) -> object:
        outcomes = await asyncio.gather(run.tool("a", {}, lambda: "A"), run.tool("b", {}, lambda: "B"))
        return [outcome.value for outcome in outcomes]

    session, kept = await running(step, port)
    await port.until(lambda: len(port.requests) == 2)
    first, second = (request.read() for request in port.requests.values())
    await session.intervene(port.decide(second, "allow"))
    await port.until_log("end b")
    await session.intervene(port.decide(first, "allow"))
    await port.until_log("ended")
    assert kept == [["A", "B"]]


async def test_nobody_is_asked_what_nobody_may_answer(tmp_path: Path) -> None:
    port = FakePort()
    session, _ = await running(touching(tmp_path / "f", port), port, capabilities=Capabilities(answer=NoOptions()))
    await port.until_log("failed")
    assert port.error is not None
    assert port.error.startswith("CapabilityNotSupported: this session does not advertise approve")
    assert port.events == []
    assert not (tmp_path / "f").exists()
    await session.close()


async def test_an_approval_of_several_actions_is_returned_to_the_agent() -> None:
    port = FakePort()
    actions = [Action(tool="rm", text="rm a"), Action(tool="rm", text="rm b")]
    wide = Option(id="all", label="Allow for this session", kind=OptionKind.ALLOW, scope=Scope.SESSION)

    async def step(run: Run) -> object:
        return await run.approve(actions, options=[wide])

    session, kept = await running(step, port)
    subject = await port.open_request()
    assert subject.actions == tuple(actions)
    await session.intervene(port.decide(subject, "all", note="go"))
    await port.until_log("ended")
    assert kept == [Approval(True, "all", "op", "go")]


BLUE_RED = FormField(
    name="answer",
    type=FieldType.CHOICE,
    label="Which colour?",
    choices=(Choice(value="blue", label="blue"), Choice(value="r", label="Red")),
    free_text=True,
)


async def ask_for_a_colour(run: Run) -> object:
    return await run.ask("Which colour?", ["blue", Choice(value="r", label="Red")], free_text=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"option": "r"}, Answer("r", by="op")),
        ({"text": "green"}, Answer(text="green", by="op")),
        ({"fields": {"answer": "blue"}}, Answer("blue", by="op")),
        ({"fields": {"answer": "mauve"}}, Answer(text="mauve", by="op")),
    ],
    ids=["option", "text", "field", "field in words"],
)
async def test_a_question_with_options_and_free_text(given: dict[str, str], expected: Answer) -> None:
    port = FakePort()
    session, kept = await running(ask_for_a_colour, port)
    subject = await port.open_request()
    assert subject.kind is RequestKind.QUESTION
    assert subject.fields == (BLUE_RED,)
    assert [(o.id, o.label, o.kind) for o in subject.options] == [
        ("blue", "blue", OptionKind.ANSWER),
        ("r", "Red", OptionKind.ANSWER),
    ]
    await session.intervene(port.decide(subject, **given))  # type: ignore[arg-type]
    await port.until_log("ended")
    assert kept == [expected]
    assert expected.answered


async def test_a_question_in_words_and_one_with_a_form() -> None:
    port = FakePort()
    form = [FormField(name="n", type=FieldType.NUMBER, label="How many?")]

    async def step(run: Run) -> object:
        return [await run.ask("Why?"), await run.ask("Details", fields=form)]

    session, kept = await running(step, port)
    subject = await port.open_request()
    assert subject.fields == (FormField(name="answer", type=FieldType.TEXT, label="Why?"),)
    await session.intervene(port.decide(subject, text="because"))
    await port.until(lambda: subject.id not in port.requests and port.requests)
    subject = await port.open_request()
    assert subject.fields == tuple(form)
    assert port.requests[subject.id].about == "Details"
    await session.intervene(port.decide(subject, fields={"n": 3}))
    await port.until_log("ended")
    assert kept == [[Answer(text="because", by="op"), Answer(fields={"n": 3}, by="op")]]


async def test_a_question_that_was_withdrawn_has_no_answer() -> None:
    port = FakePort()
    session, kept = await running(ask_for_a_colour, port)
    subject = await port.open_request()
    await session.intervene(Withdrawn(subject.id, "its deadline passed"))
    await port.until_log("ended")
    assert kept == [Answer(note="its deadline passed")]
    assert isinstance(kept[0], Answer)
    assert not kept[0].answered
    assert port.all(Message) == []
