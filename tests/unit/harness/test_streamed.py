"""The smaller seam: an attempt that tells its events as a stream and has one result, on a real host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.sockets.host_kit import until
from watchfloor import Agent, RunState
from watchfloor.errors import ContractError, HarnessFailure, Interrupted, RunFailed, TransportError
from watchfloor.harness.base import AttemptSpec, Decided, Interrupt, Signal, Stop, Wake
from watchfloor.harness.streamed import OneResult, Streamed, Told
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import Mail, MailState, Message, Progress, ResultEvent, ToolCall, ToolResult, ToolStatus
from watchfloor.protocol.frames import DoApprove, DoInterrupt, DoResume
from watchfloor.protocol.model import (
    Action,
    Capabilities,
    NoOptions,
    Option,
    RequestModel,
    Result,
    SendOptions,
    StopOptions,
    Subject,
    Usage,
)
from watchfloor.testing.check_harness import HarnessFault, check_harness
from watchfloor.words import Lifecycle, OptionKind, RequestKind, StopReason

OPTIONS = (
    Option(id="yes", label="Yes", kind=OptionKind.ALLOW),
    Option(id="no", label="No", kind=OptionKind.DENY),
)


def ends(text: str = "", reason: StopReason = StopReason.END_TURN) -> Result:
    return Result(text=text, stop_reason=reason, session_id="mine")


class Plain:
    """Does what it is told by one word; nothing of it knows a host."""

    capabilities = Capabilities(send=SendOptions(), interrupt=NoOptions(), stop=StopOptions(kill=True))

    async def start(self, spec: AttemptSpec) -> PlainSession:
        return PlainSession(spec, self.capabilities)


class PlainSession:
    def __init__(self, spec: AttemptSpec, capabilities: Capabilities) -> None:
        self.spec = spec
        self.capabilities = capabilities
        self.told: asyncio.Queue[Told | None] = asyncio.Queue()
        self.result = OneResult()
        self.busy = False

    @property
    async def events(self) -> AsyncIterator[Told]:
        while (told := await self.told.get()) is not None:
            yield told

    def tell(self, *events: Told) -> None:
        for event in events:
            self.told.put_nowait(event)

    def over(self, result: Result | None = None, error: Exception | None = None) -> None:
        self.result.fail(error) if error is not None else self.result.give(result)
        self.told.put_nowait(None)

    async def intervene(self, signal: Signal) -> None:
        match signal:
            case Wake(mail=mail):
                self.word(mail[-1].text if mail else "")
            case Interrupt() if self.busy:
                self.busy = False
                self.tell(ResultEvent(at=0, result=ends(reason=StopReason.CANCELLED)))
            case Decided(option=option):
                self.tell(ResultEvent(at=0, result=ends(str(option))))
            case Stop():
                self.over()

    def word(self, word: str) -> None:
        match word:
            case "long":
                self.busy = True
            case "ask":
                action = Action(tool="deploy", text="to production")
                kind = RequestKind.APPROVAL
                asked = Subject(
                    session=self.spec.session_id,
                    attempt=self.spec.attempt,
                    id="r1",
                    kind=kind,
                    actions=(action,),
                    options=OPTIONS,
                )
                self.tell(RequestModel.ask(asked, asked_at=1))
            case "done":
                self.over(ends("all of it"))
            case "lost":
                self.over(error=TransportError("the line is dead"))
            case "failed":
                self.over(error=HarnessFailure("out of memory"))
            case "nothing":
                self.over()
            case "foreign":
                self.tell(Mail(at=0, ref="#1", state=MailState.CONSUMED))
            case "twice":
                self.tell(ResultEvent(at=0, result=ends("one")), ResultEvent(at=0, result=ends("two")))
            case _:
                self.tell(
                    ToolCall(at=0, call="c1", name="look"),
                    ToolResult(at=0, call="c1", status=ToolStatus.OK, text="seen"),
                    Message(at=0, text=f"heard {word}"),
                    Progress(at=0, usage=Usage(input_tokens=3, output_tokens=4)),
                    ResultEvent(at=0, result=ends(f"heard {word}")),
                )

    async def wait_result(self) -> Result | None:
        return await self.result.wait()

    async def close(self) -> None:
        return


class Floor:
    """One session on a host."""

    def __init__(self, host: Host, harness: Plain | None = None) -> None:
        self.host = host
        self.id = host.add(Streamed(harness or Plain()), name="plain", id="plain")

    async def becomes(self, lifecycle: Lifecycle) -> None:
        await until(lambda: self.host.core.session(self.id).lifecycle is lifecycle)

    def kinds(self) -> list[str]:
        return [str(getattr(event, "kind", "")) for event in self.host.core.log.read(self.id)]

    @property
    def error(self) -> str:
        return str(self.host.core.session(self.id).error)


@pytest.fixture
async def floor() -> AsyncIterator[Floor]:
    async with Host() as host:
        yield Floor(host)


async def test_it_passes_the_kit() -> None:
    done = await check_harness(lambda: Streamed(Plain()), short="short", long="long", settle_s=0.05)
    assert len(done) == 8
    assert "a result is taken once" in done


async def test_its_events_are_those_of_the_session(floor: Floor) -> None:
    floor.host.send(floor.id, "hello")
    core = await floor.host.wait(floor.id)
    assert core.last_words() == "heard hello"
    assert core.usage is not None
    assert core.usage.output_tokens == 4
    assert core.in_flight == {}
    assert [m.text for m in core.conversation.messages] == ["hello", "heard hello"]
    floor.host.flush()
    said = [kind for kind in floor.kinds() if kind not in ("lifecycle", "mail")]
    assert said == ["tool_call", "tool_result", "message", "progress", "result"]
    assert core.result is not None
    assert core.result.session_id == "plain", "whatever it calls itself"


async def test_what_it_asks_is_decided(floor: Floor) -> None:
    floor.host.send(floor.id, "ask")
    await floor.becomes(Lifecycle.WAITING)
    (request,) = floor.host.core.session(floor.id).requests.open()
    do = DoApprove(request="r1", option="yes", digest=request.digest)
    assert floor.host.command(floor.id, do).applied
    assert (await floor.host.wait(floor.id)).last_words() == "yes"


async def test_its_result_completes_it_and_a_new_attempt_can_follow(floor: Floor) -> None:
    floor.host.send(floor.id, "done")
    await floor.becomes(Lifecycle.COMPLETED)
    floor.host.send(floor.id, "again")
    await floor.becomes(Lifecycle.IDLE)
    assert floor.host.core.session(floor.id).attempt == 2


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("lost", "TransportError: the line is dead"),
        ("failed", "HarnessFailure: out of memory"),
        ("nothing", "ContractError: the attempt has ended without a result, and nobody has stopped it"),
        ("foreign", "ContractError: an attempt does not tell of mail: its host does"),
        ("twice", "ContractError: a turn ends once, and none runs"),
    ],
)
async def test_how_it_fails_is_said_and_nothing_tries_again_by_itself(floor: Floor, word: str, error: str) -> None:
    floor.host.send(floor.id, word)
    await floor.becomes(Lifecycle.FAILED)
    assert floor.error == error
    core = floor.host.core.session(floor.id)
    assert core.attempt == 1
    floor.host.command(floor.id, DoResume())
    await until(lambda: core.attempt == 2)


async def test_an_interrupt_ends_the_turn_and_not_the_next_one(floor: Floor) -> None:
    floor.host.send(floor.id, "long")
    await floor.becomes(Lifecycle.RUNNING)
    floor.host.command(floor.id, DoInterrupt())
    await floor.becomes(Lifecycle.IDLE)
    floor.host.send(floor.id, "hello")
    assert (await floor.host.wait(floor.id)).last_words() == "heard hello"


class CannotBeInterrupted(Plain):
    capabilities = Capabilities(send=SendOptions(), stop=StopOptions(kill=True))


async def test_what_it_does_not_advertise_is_refused_before_it_sees_it() -> None:
    done = await check_harness(lambda: Streamed(CannotBeInterrupted()), short="short", long="long", settle_s=0.05)
    assert "what is not advertised is refused" in done


class GivesItsResultTwice(Plain):
    async def start(self, spec: AttemptSpec) -> PlainSession:
        return Twice(spec, self.capabilities)


class Twice(PlainSession):
    async def wait_result(self) -> Result | None:
        return None


class LosesInterrupts(Plain):
    async def start(self, spec: AttemptSpec) -> PlainSession:
        return Deaf(spec, self.capabilities)


class Deaf(PlainSession):
    async def intervene(self, signal: Signal) -> None:
        if not isinstance(signal, Interrupt):
            await super().intervene(signal)


@pytest.mark.parametrize(
    ("harness", "fault"),
    [
        (GivesItsResultTwice, "a result is taken once: it gives its result twice"),
        (LosesInterrupts, "no interrupt is lost: an interrupt was lost"),
    ],
)
async def test_the_kit_names_what_is_wrong(harness: type[Plain], fault: str) -> None:
    with pytest.raises(HarnessFault, match=fault):
        await check_harness(lambda: Streamed(harness()), short="short", long="long", patience_s=1.0, settle_s=0.05)


async def test_a_result_is_given_and_taken_once() -> None:
    result = OneResult()
    result.give(None)
    with pytest.raises(ContractError, match="one result"):
        result.give(ends())
    with pytest.raises(ContractError, match="one result"):
        result.fail(HarnessFailure("too late"))
    assert await result.wait() is None
    with pytest.raises(ContractError, match="taken once"):
        await result.wait()


class StartsNothing(Plain):
    async def start(self, spec: AttemptSpec) -> PlainSession:
        return None  # type: ignore[return-value]


class EventsByAMethod(Plain):
    async def start(self, spec: AttemptSpec) -> PlainSession:
        return ByAMethod(spec, self.capabilities)


class ByAMethod(PlainSession):
    async def events(self) -> AsyncIterator[Told]:  # type: ignore[override]
        yield Message(at=0, text="never read")


class EndsInWords(Plain):
    async def start(self, spec: AttemptSpec) -> PlainSession:
        return InWords(spec, self.capabilities)


class InWords(PlainSession):
    async def wait_result(self) -> Result | None:
        return "done"  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("harness", "error"),
    [
        (
            StartsNothing,
            "could not be started: ContractError: its harness started NoneType, which has no `capabilities`",
        ),
        (EventsByAMethod, "ContractError: `events` is method, not an async iterator: make it a property that yields"),
        (EndsInWords, "ContractError: the result of an attempt is a Result, not str"),
    ],
)
async def test_what_breaks_the_contract_is_named(harness: type[Plain], error: str) -> None:
    async with Host() as host:
        floor = Floor(host, harness())
        host.send(floor.id, "done")
        await floor.becomes(Lifecycle.FAILED)
        assert floor.error == error


class Larger:
    """A harness of the larger seam that starts what is no attempt."""

    capabilities, traits, starts_itself, grace_s = Plain.capabilities, Streamed(Plain()).traits, False, 0.1

    async def start(self, spec: AttemptSpec, port: object) -> None:
        return None


async def test_what_is_no_attempt_fails_its_session() -> None:
    async with Host() as host:
        session = host.add(Larger(), name="x", text="go")  # type: ignore[arg-type]
        core = await host.wait(session)
        assert core.error == (
            "could not be started: ContractError: its harness started NoneType, which is no AgentSession"
        )


async def test_what_is_no_harness_of_the_seam_is_told_at_once() -> None:
    wrong: Any = object()
    with pytest.raises(TypeError, match="object has no `capabilities`"):
        Streamed(wrong)
    wrong = Plain
    with pytest.raises(TypeError, match=r"not its class: Plain\(\.\.\.\)"):
        Streamed(wrong)
    with pytest.raises(TypeError, match=r"added as Streamed\(\.\.\.\)"):
        await check_harness(wrong, short="a", long="b")
    wrong = Streamed(Plain())
    with pytest.raises(TypeError, match=r"called for each check: lambda: Streamed\(\.\.\.\)"):
        await check_harness(wrong, short="a", long="b")


async def test_it_is_suspended_where_it_asks_and_goes_on_as_a_stored_session(tmp_path: Path) -> None:
    agent = Agent.builder().data_folder(tmp_path).harness(Streamed(Plain())).build()
    session = agent.open("s")
    await agent.run(session, "ask")
    assert session.state is RunState.SUSPENDED
    await agent.answer("s", "yes")
    await agent.resume(session)
    assert session.result is not None
    assert (session.state, session.result.text) == (RunState.IDLE, "yes")
    with pytest.raises(RunFailed, match="TransportError: the line is dead"):
        await agent.run(session, "lost")
    stream = agent.run_stream(session, "long")
    stream.cancel.cancel(now=True)
    with pytest.raises(Interrupted):
        await stream.wait()
