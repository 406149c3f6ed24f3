"""Puts an agent together. What is not said has a default; tools are fixed once it is built."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from watchfloor.agent.permissions import PermissionChecker, Permissions
from watchfloor.agent.runtime import Runtime
from watchfloor.agent.sqlite_storage import SqliteStorage
from watchfloor.agent.storage import Persistence, Storage
from watchfloor.agent.tools import ENTER_PLAN, LEAVE_PLAN, Tool
from watchfloor.agent.turn import AgentTurn
from watchfloor.errors import StorageReadOnly, Unsupported
from watchfloor.harness.base import AgentHarness
from watchfloor.harness.calls import taking
from watchfloor.host.serving.server import Host, wall_clock

if TYPE_CHECKING:
    from watchfloor.agent.agent import Agent

FILE: Final = "sessions.db"
_OURS: Final = (ENTER_PLAN, LEAVE_PLAN)


class StoresAll(Storage, Persistence, Protocol):
    """A storage that is written as well."""


class AgentBuilder:
    """See `Agent.builder`."""

    def __init__(self, make: Callable[[Runtime, str | None, str | None], Agent]) -> None:
        self._make = make
        self._instruction: str | None = None
        self._model: str | None = None
        self._tools: dict[str, Tool] = {}
        self._function: AgentTurn | None = None
        self._harness: AgentHarness | None = None
        self._storage: Storage | None = None
        self._persistence: Persistence | None = None
        self._permissions: PermissionChecker | None = None
        self._folder: Path | None = None
        self._host: Host | None = None
        self._now: Callable[[], int] = wall_clock
        self._grace_s = 5.0

    def instruction(self, text: str) -> Self:
        """What the agent is told about its role; each run sets it on its session."""
        self._instruction = text
        return self

    def model(self, label: str) -> Self:
        """The label of the model; each run sets it on its session."""
        self._model = label
        return self

    def tool(
        self, call: Callable[..., Any] | Tool, *, name: str | None = None, reads: bool = False, gated: bool = True
    ) -> Self:
        """A function that the agent may call, a coroutine function or one that may block.

        `reads`: it changes nothing, and is free in plan mode. `gated`: it is asked for. Raises ValueError for a name
        that is taken, TypeError for what cannot be called.
        """
        if not isinstance(call, Tool):
            if not callable(call):
                raise TypeError(f"a tool is a function, not {type(call).__name__}")
            name = name or str(getattr(call, "__name__", type(call).__name__))
            call = Tool(name, call, reads, gated, inspect.getdoc(call) or "")
        if call.name in self._tools or call.name in _OURS:
            raise ValueError(f"the name {call.name!r} is taken by another tool")
        self._tools[call.name] = call
        return self

    def function(self, turn: AgentTurn) -> Self:
        """What thinks: an async function of a `Turn` and its mail, called once for each turn. Raises TypeError."""
        taking(turn, "a Turn", "its mail")
        self._function = turn
        return self

    def harness(self, harness: AgentHarness) -> Self:
        """What runs the agent, in place of a function. Its own tools are its own affair."""
        self._harness = harness
        return self

    def storage(self, storage: StoresAll) -> Self:
        """Where sessions are stored, in place of a file in the data folder."""
        self._storage = self._persistence = storage
        return self

    def persistence(self, persistence: Persistence) -> Self:
        """What is written during runs, where it is not the storage itself."""
        self._persistence = persistence
        return self

    def permissions(self, checker: PermissionChecker) -> Self:
        """What decides whether a call is asked for; by default every call of a gated tool is."""
        self._permissions = checker
        return self

    def data_folder(self, folder: str | os.PathLike[str]) -> Self:
        """Where the file of sessions is: by default `watchfloor` in the data folder of the user."""
        self._folder = Path(folder)
        return self

    def host(self, host: Host) -> Self:
        """Where live agents are spawned."""
        self._host = host
        return self

    def clock(self, now: Callable[[], int]) -> Self:
        """Milliseconds since 1970 UTC."""
        self._now = now
        return self

    def grace(self, seconds: float) -> Self:
        """Seconds that the function has to end once it was told to."""
        self._grace_s = seconds
        return self

    def build(self) -> Agent:
        """Raises Unsupported where nothing runs the agent, StorageError where its file cannot be used."""
        if (self._function is None) == (self._harness is None):
            raise Unsupported("an agent needs a function or a harness, and one of them only")
        storage, persistence = self._storage, self._persistence
        if storage is None:
            ours = SqliteStorage(self._file())
            storage, persistence = ours, persistence or ours
        assert persistence is not None  # noqa: S101 - whoever gave a storage gave that, too
        runtime = Runtime(
            storage,
            persistence,
            self._permissions or Permissions(),
            function=self._function,
            harness=self._harness,
            tools=dict(self._tools),
            host=self._host,
            now=self._now,
            grace_s=self._grace_s,
        )
        return self._make(runtime, self._instruction, self._model)

    def _file(self) -> Path:
        folder = self._folder or data_folder()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = error.strerror or str(error)
            raise StorageReadOnly(f"{folder} cannot be made ({why}): name another data_folder") from None
        return folder / FILE


def data_folder() -> Path:
    """The data folder of the user, for this library."""
    if named := os.environ.get("XDG_DATA_HOME"):
        return Path(named) / "watchfloor"
    return Path("~/.local/share/watchfloor").expanduser()
