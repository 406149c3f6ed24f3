"""What the agents of a program share: storage, tools, permissions, and what runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from watchfloor.agent.permissions import Grant, PermissionChecker
from watchfloor.agent.runs import Runs
from watchfloor.agent.session import DEFAULT_MODE, Session
from watchfloor.agent.storage import Persistence, Sessions, Storage
from watchfloor.agent.tools import Tool
from watchfloor.agent.turn import AgentTurn
from watchfloor.harness.base import AgentHarness
from watchfloor.host.serving.server import Host, wall_clock


class SessionKeeper:
    """Keeps the permission mode and the grants of sessions in their stored records."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def mode(self, session: str) -> tuple[str, str | None]:
        found = self._runs.stored(session)
        return (found.mode, found.mode_before) if found is not None else (DEFAULT_MODE, None)

    def set_mode(self, session: str, mode: str, before: str | None) -> None:
        found = self._found(session)
        found.mode, found.mode_before = mode, before
        self._runs.sessions.save(found)

    def grant(self, session: str, grants: list[Grant]) -> None:
        found = self._found(session)
        found.grants += [grant for grant in grants if grant.session is not None and grant not in found.grants]
        self._runs.sessions.save(found, grants)

    def _found(self, session: str) -> Session:
        return self._runs.stored(session) or self._runs.sessions.load_or_create(session)


@dataclass(eq=False)
class Runtime:
    """Made by `AgentBuilder.build`; `Agent.from_runtime` makes further agents of it.

    `grants` that the storage has are handed to the permission checker. `grace_s`: seconds that a function has to end
    once it was told to.
    """

    storage: Storage
    persistence: Persistence
    permissions: PermissionChecker
    function: AgentTurn | None = None
    harness: AgentHarness | None = None
    tools: Mapping[str, Tool] = field(default_factory=dict)
    host: Host | None = None
    now: Callable[[], int] = wall_clock
    grace_s: float = 5.0

    def __post_init__(self) -> None:
        self.runs = Runs(Sessions(self.storage, self.persistence, self.now), self.permissions, self.now)
        self.keeper = SessionKeeper(self.runs)
        for grant in self.storage.grants():
            self.permissions.grant(grant)
