"""The kit for harnesses passes those that are right and names what is wrong with the others."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.unit.harness.programs import shell
from watchfloor.harness.acp import AcpHarness
from watchfloor.harness.base import AttemptSpec, Interrupt, MailItem, Pause, SessionPort, Signal, Stop, Wake
from watchfloor.harness.function import FunctionHarness, Run
from watchfloor.harness.program import ProgramHarness
from watchfloor.protocol.model import Capabilities, NoOptions, Result, SendOptions, StopOptions, Traits
from watchfloor.testing.check_harness import HarnessFault, check_harness
from watchfloor.words import StopReason

ACP_AGENT = [sys.executable, str(Path(__file__).parents[2] / "peers" / "acp_agent.py")]
STOPPED = [
    "capabilities are fixed for an attempt",
    "one result when it is stopped at rest",
    "one result when it is stopped at work",
    "one result when it is killed at work",
]


async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
    if mail[-1].text == "long":
        while True:
            await run.checkpoint()
            await run.sleep(0.01)
    return "done"


@pytest.mark.parametrize("once", [False, True])
async def test_functions_pass(once: bool) -> None:
    done = await check_harness(lambda: FunctionHarness(agent, once=once), short="short", long="long")
    assert done == (*STOPPED, "no interrupt is lost", "every message has an end")


async def test_a_function_with_few_capabilities_refuses_the_others() -> None:
    few = Capabilities(send=SendOptions(), stop=StopOptions(kill=True))
    done = await check_harness(lambda: FunctionHarness(agent, capabilities=few), short="short", long="long")
    assert done == (*STOPPED, "what is not advertised is refused", "every message has an end")


async def test_a_program_that_is_only_watched_refuses_all() -> None:
    done = await check_harness(lambda: ProgramHarness(shell("sleep 600"), observe=True), short=None, long=None)
    assert "what is not advertised is refused" in done


async def test_programs_pass() -> None:
    done = await check_harness(lambda: ProgramHarness(shell("sleep 600")), short=None, long=None)
    assert done == (STOPPED[0], *STOPPED[2:], "what is not advertised is refused")


async def test_agents_of_the_agent_client_protocol_pass() -> None:
    done = await check_harness(lambda: AcpHarness(ACP_AGENT), short="say short", long="hang")
    assert done == (*STOPPED, "what is not advertised is refused", "no interrupt is lost", "every message has an end")


class Right:
    """A harness in as few lines as it takes; the wrong ones differ in one place."""

    capabilities = Capabilities(send=SendOptions(), interrupt=NoOptions(), stop=StopOptions(kill=True))
    traits = Traits()
    starts_itself = False
    grace_s = 0.1

    async def start(self, spec: AttemptSpec, port: SessionPort) -> Right.Session:
        port.started()
        return self.Session(port)

    class Session:
        def __init__(self, port: SessionPort) -> None:
            self.port = port
            self.busy = False

        @property
        def capabilities(self) -> Capabilities:
            return Right.capabilities

        async def intervene(self, signal: Signal) -> None:
            match signal:
                case Wake(mail=mail):
                    self.busy = mail[-1].text == "long"
                    if not self.busy:
                        self.port.turn_ended(Result(stop_reason=StopReason.END_TURN, session_id=self.port.session_id))
                case Interrupt() if self.busy:
                    self.busy = False
                    self.port.interrupted()
                case Stop():
                    self.port.stopped()
                case _:
                    return

        async def close(self) -> None:
            await asyncio.sleep(0)


class TwoResults(Right):
    class Session(Right.Session):
        async def intervene(self, signal: Signal) -> None:
            await super().intervene(signal)
            if isinstance(signal, Stop):
                self.port.failed("and that too")


class AppliesWhatItDoesNotAdvertise(Right):
    class Session(Right.Session):
        async def intervene(self, signal: Signal) -> None:
            await super().intervene(signal)
            if isinstance(signal, Pause):
                self.port.paused()


class LosesAnInterrupt(Right):
    """One that comes before the turn has begun to work."""

    class Session(Right.Session):
        async def intervene(self, signal: Signal) -> None:
            if isinstance(signal, Wake):
                self.fresh = True
            elif isinstance(signal, Interrupt) and self.fresh:
                return
            await super().intervene(signal)


class ChangesItsCapabilities(Right):
    class Session(Right.Session):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities() if self.busy else Right.capabilities


async def check(harness: type[Right]) -> tuple[str, ...]:
    return await check_harness(harness, short="short", long="long", patience_s=1.0, settle_s=0.05)


async def test_the_small_one_is_right() -> None:
    assert len(await check(Right)) == 7


@pytest.mark.parametrize(
    ("harness", "fault"),
    [
        (TwoResults, r"capabilities .*: attempt 1 gave 2 results \(reported: stopped, failed\)"),
        (AppliesWhatItDoesNotAdvertise, "what is not advertised is refused: it does not advertise pause, and applied"),
        (LosesAnInterrupt, "no interrupt is lost: an interrupt was lost: the turn did not end within 1 s"),
        (ChangesItsCapabilities, "capabilities are fixed for an attempt: the capabilities changed while"),
    ],
)
async def test_a_wrong_one_is_named(harness: type[Right], fault: str) -> None:
    with pytest.raises(HarnessFault, match=fault):
        await check(harness)
