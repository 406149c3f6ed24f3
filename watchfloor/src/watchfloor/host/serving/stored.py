"""What stands for the program of a session that only the log of its host keeps."""

from __future__ import annotations

from typing import ClassVar, Final

from watchfloor.errors import Unsupported
from watchfloor.harness.base import AgentSession, AttemptSpec, SessionPort
from watchfloor.protocol.model import Capabilities, NoOptions, Traits

OF_THE_LOG: Final = "stored"
"""The label of such a session."""


class StoredHarness:
    """Runs nothing: the session can be read, and deleted."""

    capabilities: ClassVar = Capabilities(delete=NoOptions())
    traits: ClassVar = Traits()
    starts_itself: ClassVar = False
    grace_s: ClassVar = 0.0

    async def start(self, spec: AttemptSpec, port: SessionPort) -> AgentSession:
        raise Unsupported(f"nothing here runs {spec.session_id!r}: add it to the host, by this id, with its harness")
