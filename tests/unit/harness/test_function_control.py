"""An operator's hand on an agent function: pause, resume, interrupt, stop, kill."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.unit.harness.fake_port import FakePort
from tests.unit.harness.kit import started
from watchfloor.errors import Interrupted, Stopped
from watchfloor.harness.base import Interrupt, MailItem, Pause, Resume, Stop, Wake
from watchfloor.harness.function import Run
from watchfloor.protocol.events import Message, Notice

HARD = [Interrupt(), Pause(interrupt=True), Stop(kill=True)]
LANDED = {Interrupt: "interrupted", Pause: "paused", Stop: "stopped"}


async def sleeper(run: Run, mail: tuple[MailItem, ...]) -> None:
    await run.say("asleep")
    await run.sleep(3600)


async def test_a_pause_lands_at_the_checkpoint_and_resume_goes_on_from_there() -> None:
    steps: list[str] = []
    go = asyncio.Event()

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        await go.wait()
        steps.append("before")
        mail = await run.checkpoint()
        steps.append("after " + ",".join(item.text for item in mail))

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    port.pausing = True
    await session.intervene(Pause())
    go.set()
    await port.until_log("parked")
    assert steps == ["before"]
    port.pausing = False
    port.post("queued meanwhile")
    await session.intervene(Resume())
    await port.until_log("ended")
    assert steps == ["before", "after queued meanwhile"]
    assert port.log == ["started", "checkpoint", "parked", "resumed", "checkpoint", "ended"]


async def test_a_resume_of_something_that_is_not_paused_changes_nothing() -> None:
    port = FakePort()
    session = await started(sleeper, port)
    await session.intervene(Resume())
    await session.intervene(port.wake("go"))
    await port.until(lambda: port.all(Message))
    await session.intervene(Resume())
    assert port.log == ["started"]
    await session.close()


@pytest.mark.parametrize("signal", HARD, ids=lambda s: LANDED[type(s)])
async def test_a_hard_signal_cancels_the_step_and_the_agent_sees_why(signal: Interrupt | Pause | Stop) -> None:
    seen: list[BaseException] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        try:
            await sleeper(run, mail)
        except BaseException as error:
            seen.append(error)
            raise

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until(lambda: port.all(Message))
    await session.intervene(signal)
    await port.until_log(LANDED[type(signal)])
    assert type(seen[0]) is (Stopped if isinstance(signal, Stop) else Interrupted)
    assert "an operator" in str(seen[0])
    assert port.log == ["started", LANDED[type(signal)]]


@pytest.mark.parametrize("signal", HARD, ids=lambda s: LANDED[type(s)])
async def test_a_hard_signal_reaches_an_agent_that_awaits_something_of_its_own(
    signal: Interrupt | Pause | Stop,
) -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        await run.say("here")
        await asyncio.Event().wait()

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until(lambda: port.all(Message))
    await session.intervene(signal)
    await port.until_log(LANDED[type(signal)])


async def test_a_turn_that_is_interrupted_before_its_first_line_never_runs() -> None:
    ran: list[str] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        ran.append("ran")

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await session.intervene(Interrupt())
    await port.until_log("interrupted")
    assert ran == []
    assert port.events == []


async def test_after_a_pause_at_once_the_function_is_called_again_with_the_mail_of_the_wake() -> None:
    calls: list[str] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        calls.append(mail[0].text)
        await run.say(f"call {len(calls)}")
        if len(calls) == 1:
            await run.sleep(3600)
        return "finished"

    port = FakePort()
    session = await started(agent, port)
    wake = port.wake("go")
    await session.intervene(wake)
    await port.until(lambda: port.all(Message))
    await session.intervene(Pause(interrupt=True))
    await port.until_log("paused")
    await session.intervene(Wake(wake.turn, wake.mail))
    await port.until_log("ended")
    assert calls == ["go", "go"]
    assert [m.text for m in port.conversation.messages] == ["go", "call 1", "call 2", "finished"]


async def test_an_agent_that_swallows_the_interruption_is_ended_at_its_next_call() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        try:
            await asyncio.sleep(3600)
        except BaseException:
            run.messages.clear()
        await run.say("still here")

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await asyncio.sleep(0)
    await session.intervene(Interrupt())
    await port.until_log("interrupted")
    assert port.all(Message) == []


async def test_an_agent_that_catches_everything_in_a_loop_is_given_up_and_starves_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rounds = 0

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        nonlocal rounds
        while True:
            rounds += 1
            try:
                await run.checkpoint()
            except Exception:  # noqa: S112 - what a careless author writes
                continue

    port = FakePort()
    session = await started(agent, port, grace_s=0.05)
    await session.intervene(port.wake("go"))
    await port.until_log("checkpoint")
    with caplog.at_level(logging.WARNING, "watchfloor.harness"):
        await session.intervene(Interrupt())
        await port.until_log("interrupted")
    assert port.one(Notice).code == "given_up"
    assert "did not end within 0.05 s" in caplog.text
    # It hangs in its next step now; neither does it turn in circles nor does it say anything more.
    for _ in range(3):
        await asyncio.sleep(0)
    before = rounds
    for _ in range(10):
        await asyncio.sleep(0)
    assert rounds == before
    # The session itself goes on.
    await session.intervene(port.wake("again", turn="t2"))
    await port.until(lambda: port.log.count("checkpoint") > 5)
    await session.close()


async def test_what_an_agent_that_was_given_up_returns_is_nobodys_result() -> None:
    hold = asyncio.Event()
    left = asyncio.Event()

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        try:
            await run.sleep(3600)
        except Stopped:
            while not hold.is_set():
                try:
                    await hold.wait()
                except asyncio.CancelledError:
                    continue
        left.set()
        return "too late"

    port = FakePort()
    session = await started(agent, port, grace_s=0.02)
    await session.intervene(port.wake("go"))
    await asyncio.sleep(0)
    await session.intervene(Stop(kill=True))
    await port.until_log("stopped")
    hold.set()
    async with asyncio.timeout(60):
        await left.wait()
    assert port.log == ["started", "stopped"]
    assert port.all(Message) == []


async def test_words_that_an_agent_returns_after_an_interruption_are_kept() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        try:
            await run.sleep(3600)
        except Interrupted:
            return "got as far as 3"
        return "done"

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await asyncio.sleep(0)
    await session.intervene(Interrupt())
    await port.until_log("interrupted")
    assert port.one(Message).text == "got as far as 3"
    assert port.result is None


async def test_a_stop_waits_for_the_boundary() -> None:
    done: list[str] = []
    go = asyncio.Event()

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        await go.wait()
        done.append("step")
        await run.checkpoint()
        done.append("too far")

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    port.stopping = True
    await session.intervene(Stop())
    assert "stopped" not in port.log
    go.set()
    await port.until_log("stopped")
    assert done == ["step"]


async def test_a_stop_ends_a_sleep_and_a_pause_at_once() -> None:
    port = FakePort()
    session = await started(sleeper, port)
    await session.intervene(port.wake("go"))
    await port.until(lambda: port.all(Message))
    await session.intervene(Stop())
    await port.until_log("stopped")

    async def parked(run: Run, mail: tuple[MailItem, ...]) -> None:
        await run.checkpoint()

    port = FakePort()
    port.pausing = True
    session = await started(parked, port)
    await session.intervene(port.wake("go"))
    await port.until_log("parked")
    await session.intervene(Stop())
    await port.until_log("stopped")


async def test_a_turn_that_ends_by_itself_while_it_is_stopped_leaves_its_result() -> None:
    go = asyncio.Event()

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        await go.wait()
        return "all of it"

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await session.intervene(Stop())
    go.set()
    await port.until_log("stopped")
    assert port.result is not None
    assert port.result.text == "all of it"


async def test_a_kill_overtakes_an_interrupt_that_hangs() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        try:
            await run.sleep(3600)
        except Interrupted:
            await asyncio.Event().wait()

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await asyncio.sleep(0)
    await session.intervene(Interrupt())
    for _ in range(3):
        await asyncio.sleep(0)
    await session.intervene(Stop(kill=True))
    await port.until_log("stopped")
    assert port.log == ["started", "stopped"]


async def test_a_stop_of_an_idle_session_is_reported_at_once() -> None:
    port = FakePort()
    session = await started(sleeper, port)
    await session.intervene(Stop())
    assert port.log == ["started", "stopped"]


async def test_what_runs_beside_the_function_is_interrupted_too() -> None:
    seen: list[str] = []

    async def beside(run: Run) -> None:
        try:
            await run.sleep(3600)
        except Interrupted:
            seen.append("beside")
            raise

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        task = asyncio.create_task(beside(run))
        await run.say("both")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.wait({task})
            assert isinstance(task.exception(), Interrupted)

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until(lambda: port.all(Message))
    await session.intervene(Interrupt())
    await port.until_log("interrupted")
    assert seen == ["beside"]


async def test_a_task_group_that_is_interrupted_ends_the_turn_and_not_the_attempt() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run.sleep(3600))
            group.create_task(run.sleep(3600))
            await run.say("three at once")
            await run.sleep(3600)

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until(lambda: port.all(Message))
    await session.intervene(Interrupt())
    await port.until_log("interrupted")
    assert port.error is None


async def test_a_time_out_of_the_agents_own_stays_a_time_out() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        try:
            async with asyncio.timeout(0.01):
                await run.sleep(3600)
        except TimeoutError:
            return "timed out"
        return "slept"

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until_log("ended")
    assert port.result is not None
    assert port.result.text == "timed out"


async def test_a_time_out_around_an_interruption_still_is_one() -> None:
    seen: list[str] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        try:
            async with asyncio.timeout(None) as limit:
                try:
                    await run.say("asleep")
                    await run.sleep(3600)
                finally:
                    seen.append("interrupted")
                    limit.reschedule(asyncio.get_running_loop().time())
                    await asyncio.Event().wait()
        except TimeoutError:
            seen.append("timed out")

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until(lambda: port.all(Message))
    await session.intervene(Interrupt())
    await port.until_log("interrupted")
    assert seen == ["interrupted", "timed out"]


async def test_a_stream_that_is_interrupted_is_recorded_as_cut() -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        async with run.stream() as out:
            await out.write("half a sen")
            await run.sleep(3600)

    port = FakePort()
    session = await started(agent, port)
    await session.intervene(port.wake("go"))
    await port.until(lambda: port.deltas)
    await session.intervene(Interrupt())
    await port.until_log("interrupted")
    message = port.one(Message)
    assert (message.text, message.cut) == ("half a sen", True)
