"""Watchfloor: let operators watch and steer running AI agents.

The names below are what the author of an agent needs. Each is loaded when it is first used, so that a program
which needs only `watchfloor.words` or `watchfloor.text` pays for nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchfloor.agent.agent import Agent
    from watchfloor.agent.answers import AnswerOutcome, Response
    from watchfloor.agent.permissions import Permissions
    from watchfloor.agent.request import CancelToken, ExecuteRequest
    from watchfloor.agent.runtime import Runtime
    from watchfloor.agent.session import RunState, Session
    from watchfloor.agent.sqlite_storage import SqliteStorage
    from watchfloor.agent.tools import Tool
    from watchfloor.agent.turn import Turn
    from watchfloor.errors import (
        AddressInUse,
        AgentError,
        CapabilityNotSupported,
        ConnectionFailed,
        ContractError,
        Deadlock,
        HarnessFailure,
        Interrupted,
        InvalidResponse,
        LimitReached,
        NoSuchTool,
        NotAnswered,
        NotDelivered,
        NothingToRun,
        NotPossible,
        NotSuspended,
        RunFailed,
        SessionBusy,
        SessionNotFound,
        StaleTarget,
        Stopped,
        StorageError,
        TransportError,
        Unsupported,
        WatchfloorError,
    )
    from watchfloor.harness.base import MailItem
    from watchfloor.harness.function import FunctionHarness, Run
    from watchfloor.harness.program import ProgramHarness
    from watchfloor.harness.streamed import OneResult, Streamed
    from watchfloor.host.log.sqlite import SqliteLog
    from watchfloor.host.principals import Principal
    from watchfloor.host.serving.joining import invited
    from watchfloor.host.serving.live import LiveAgent
    from watchfloor.host.serving.server import Host
    from watchfloor.protocol.model import Choice, FieldType, FormField

__all__ = [
    "AddressInUse",
    "Agent",
    "AgentError",
    "AnswerOutcome",
    "CancelToken",
    "CapabilityNotSupported",
    "Choice",
    "ConnectionFailed",
    "ContractError",
    "Deadlock",
    "ExecuteRequest",
    "FieldType",
    "FormField",
    "FunctionHarness",
    "HarnessFailure",
    "Host",
    "Interrupted",
    "InvalidResponse",
    "LimitReached",
    "LiveAgent",
    "MailItem",
    "NoSuchTool",
    "NotAnswered",
    "NotDelivered",
    "NotPossible",
    "NotSuspended",
    "NothingToRun",
    "OneResult",
    "Permissions",
    "Principal",
    "ProgramHarness",
    "Response",
    "Run",
    "RunFailed",
    "RunState",
    "Runtime",
    "Session",
    "SessionBusy",
    "SessionNotFound",
    "SqliteLog",
    "SqliteStorage",
    "StaleTarget",
    "Stopped",
    "StorageError",
    "Streamed",
    "Tool",
    "TransportError",
    "Turn",
    "Unsupported",
    "WatchfloorError",
    "invited",
]

_HOME = {
    "Agent": "watchfloor.agent.agent",
    "AnswerOutcome": "watchfloor.agent.answers",
    "CancelToken": "watchfloor.agent.request",
    "Choice": "watchfloor.protocol.model",
    "ExecuteRequest": "watchfloor.agent.request",
    "FieldType": "watchfloor.protocol.model",
    "FormField": "watchfloor.protocol.model",
    "FunctionHarness": "watchfloor.harness.function",
    "Host": "watchfloor.host.serving.server",
    "LiveAgent": "watchfloor.host.serving.live",
    "MailItem": "watchfloor.harness.base",
    "OneResult": "watchfloor.harness.streamed",
    "Permissions": "watchfloor.agent.permissions",
    "Principal": "watchfloor.host.principals",
    "ProgramHarness": "watchfloor.harness.program",
    "Response": "watchfloor.agent.answers",
    "Run": "watchfloor.harness.function",
    "RunState": "watchfloor.agent.session",
    "Runtime": "watchfloor.agent.runtime",
    "Session": "watchfloor.agent.session",
    "SqliteLog": "watchfloor.host.log.sqlite",
    "SqliteStorage": "watchfloor.agent.sqlite_storage",
    "Streamed": "watchfloor.harness.streamed",
    "Tool": "watchfloor.agent.tools",
    "Turn": "watchfloor.agent.turn",
    "invited": "watchfloor.host.serving.joining",
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
