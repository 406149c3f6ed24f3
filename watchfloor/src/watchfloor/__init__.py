"""Watchfloor: let operators watch and steer running AI agents.

The names below are what the author of an agent needs. Each is loaded when it is first used, so that a program
which needs only `watchfloor.words` or `watchfloor.text` pays for nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchfloor.errors import (
        AddressInUse,
        AgentError,
        CapabilityNotSupported,
        ConnectionFailed,
        ContractError,
        Deadlock,
        Interrupted,
        LimitReached,
        NotDelivered,
        StaleTarget,
        Stopped,
        StorageError,
        WatchfloorError,
    )
    from watchfloor.harness.function import FunctionHarness, Run
    from watchfloor.harness.program import ProgramHarness
    from watchfloor.host.server import Host
    from watchfloor.host.sqlite_log import SqliteLog

__all__ = [
    "AddressInUse",
    "AgentError",
    "CapabilityNotSupported",
    "ConnectionFailed",
    "ContractError",
    "Deadlock",
    "FunctionHarness",
    "Host",
    "Interrupted",
    "LimitReached",
    "NotDelivered",
    "ProgramHarness",
    "Run",
    "SqliteLog",
    "StaleTarget",
    "Stopped",
    "StorageError",
    "WatchfloorError",
]

_HOME = {
    "FunctionHarness": "watchfloor.harness.function",
    "Host": "watchfloor.host.server",
    "ProgramHarness": "watchfloor.harness.program",
    "Run": "watchfloor.harness.function",
    "SqliteLog": "watchfloor.host.sqlite_log",
}

# Hidden from the type checker, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_HOME.get(name, "watchfloor.errors")), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
