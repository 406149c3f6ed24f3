"""What the harness tests share."""

from __future__ import annotations

from tests.unit.harness.fake_port import FakePort
from watchfloor.harness.function import FULL_CONTROL, AgentFunction, FunctionHarness, FunctionSession
from watchfloor.protocol.model import Capabilities


async def started(
    agent: AgentFunction,
    port: FakePort,
    *,
    once: bool = False,
    capabilities: Capabilities = FULL_CONTROL,
    grace_s: float = 5.0,
) -> FunctionSession:
    """An attempt of the agent on the port."""
    harness = FunctionHarness(agent, once=once, capabilities=capabilities, grace_s=grace_s)
    return await harness.start(port.spec(cwd="/srv/work"), port)
