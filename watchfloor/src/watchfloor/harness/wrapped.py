"""A harness around another one, for who has to see what passes between a host and it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchfloor.harness.base import AgentHarness, AgentSession, AttemptSpec, SessionPort
    from watchfloor.protocol.model import Capabilities, Traits


class WrappedHarness:
    """Does what the harness inside of it does; a subclass changes what it has to."""

    def __init__(self, harness: AgentHarness) -> None:
        self.harness = harness

    @property
    def capabilities(self) -> Capabilities:
        return self.harness.capabilities

    @property
    def traits(self) -> Traits:
        return self.harness.traits

    @property
    def starts_itself(self) -> bool:
        return self.harness.starts_itself

    @property
    def grace_s(self) -> float:
        return self.harness.grace_s

    async def start(self, spec: AttemptSpec, port: SessionPort) -> AgentSession:
        return await self.harness.start(spec, port)
