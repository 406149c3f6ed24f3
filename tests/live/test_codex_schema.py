"""The installed app-server prints its own schema: what the connector uses must be in it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from console.connectors.codex import notes
from tests.live.codex_kit import PROGRAM, needs_codex

pytestmark = [pytest.mark.live, needs_codex]

SOURCES = Path(notes.__file__).parent
_METHOD = re.compile(r'"((?:thread|turn|item|mcpServer|serverRequest|model|hook|autoApprovalReview)/[A-Za-z/]+)"')
_PLAIN = {"error", "warning", "guardianWarning", "initialize"}
NOT_TOLD = {
    # Not about a thread, or said only to clients that asked for it.
    "configWarning",
    "deprecationNotice",
    "windows/worldWritableWarning",
    "windowsSandbox/setupCompleted",
    # Kept as they come: nothing here has a better word for them.
    "model/safetyBuffering/updated",
    "model/verification",
    "modelProvider/authRecoveryCompleted",
    "modelProvider/authRecoveryStarted",
    "thread/realtime/closed",
    "thread/realtime/error",
    "thread/realtime/item/completed",
    "thread/realtime/item/started",
    "thread/realtime/itemAdded",
    "thread/realtime/started",
    "thread/realtime/transcript/done",
}

CALLS: Mapping[str, tuple[str, ...]] = {
    "initialize": ("clientInfo", "capabilities"),
    "thread/archive": ("threadId",),
    "thread/backgroundTerminals/clean": ("threadId",),
    "thread/backgroundTerminals/list": ("threadId", "limit", "cursor"),
    "thread/compact/start": ("threadId",),
    "thread/delete": ("threadId",),
    "thread/fork": ("threadId", "excludeTurns"),
    "thread/goal/clear": ("threadId", "origin"),
    "thread/goal/get": ("threadId",),
    "thread/goal/set": ("threadId", "objective", "status", "tokenBudget", "origin"),
    "thread/items/list": ("threadId", "limit", "cursor", "sortDirection"),
    "thread/list": ("limit", "cursor", "archived", "sourceKinds", "modelProviders"),
    "thread/loaded/list": ("limit",),
    "thread/name/set": ("threadId", "name"),
    "thread/queue/add": ("threadId", "input", "clientUserMessageId"),
    "thread/queue/delete": ("threadId", "queuedSubmissionId"),
    "thread/queue/list": ("threadId", "limit", "cursor"),
    "thread/read": ("threadId",),
    "thread/resume": ("threadId", "excludeTurns"),
    "thread/revert": ("threadId", "beforeTurnId"),
    "thread/settings/update": ("threadId", "model"),
    "thread/turns/list": ("threadId", "limit", "cursor"),
    "thread/unarchive": ("threadId",),
    "thread/unsubscribe": ("threadId",),
    "turn/interrupt": ("threadId", "turnId"),
    "turn/start": ("threadId", "input", "clientUserMessageId"),
    "turn/steer": ("threadId", "input", "clientUserMessageId", "expectedTurnId"),
}

READ: Mapping[str, tuple[str, ...]] = {
    "Thread": (
        "id", "name", "preview", "cwd", "status", "parentThreadId", "forkedFromId", "canAcceptDirectInput",
        "agentNickname", "agentRole", "model", "modelProvider", "source", "gitInfo",
    ),
    "Turn": ("id", "status", "error", "completedAt"),
    "TurnError": ("message", "codexErrorInfo", "additionalDetails"),
    "ThreadGoal": ("objective", "status", "tokenBudget"),
    "QueuedSubmission": ("id", "input", "clientUserMessageId"),
    "ThreadBackgroundTerminal": ("itemId", "processId", "command", "cwd"),
    "FileUpdateChange": ("path", "kind", "diff"),
    "TokenUsageBreakdown": ("totalTokens", "inputTokens", "outputTokens"),
    "ServerRequestResolvedNotification": ("threadId", "requestId"),
    "ThreadNameUpdatedNotification": ("threadId", "threadName"),
    "ItemCompletedNotification": ("threadId", "turnId", "item", "completedAtMs"),
    "ItemStartedNotification": ("threadId", "turnId", "item", "startedAtMs"),
    "AgentMessageDeltaNotification": ("threadId", "turnId", "itemId", "delta"),
    "CommandExecutionOutputDeltaNotification": ("threadId", "turnId", "itemId", "delta"),
    "ReasoningSummaryTextDeltaNotification": ("itemId", "delta", "summaryIndex"),
    "TurnPlanStep": ("step", "status"),
    "ErrorNotification": ("error", "willRetry", "threadId", "turnId"),
    "CommandExecutionRequestApprovalParams": (
        "kind", "threadId", "turnId", "itemId", "startedAtMs", "reason", "command", "cwd", "networkApprovalContext",
        "additionalPermissions", "availableDecisions",
    ),
    "FileChangeRequestApprovalParams": ("threadId", "turnId", "itemId", "startedAtMs", "reason", "grantRoot"),
    "PermissionsRequestApprovalParams": ("threadId", "turnId", "itemId", "cwd", "reason", "permissions"),
    "PermissionsRequestApprovalResponse": ("permissions", "scope"),
    "ToolRequestUserInputParams": ("threadId", "turnId", "itemId", "questions", "isBlocking", "autoResolutionMs"),
    "ToolRequestUserInputQuestion": ("id", "header", "question", "isOther", "isSecret", "options"),
    "ToolRequestUserInputResponse": ("answers",),
    "McpServerElicitationRequestParams": ("threadId", "turnId", "serverName"),
    "McpServerElicitationRequestResponse": ("action", "content", "_meta"),
}  # fmt: skip

WORDS: Mapping[str, frozenset[str]] = {
    "ThreadActiveFlag": frozenset({"waitingOnApproval", "waitingOnUserInput"}),
    "TurnStatus": frozenset({"completed", "interrupted", "failed", "inProgress"}),
    "CommandExecutionStatus": frozenset({"inProgress", "completed", "failed", "declined"}),
    "PatchApplyStatus": frozenset({"inProgress", "completed", "failed", "declined"}),
    "McpToolCallStatus": frozenset({"inProgress", "completed", "failed"}),
    "FileChangeApprovalDecision": frozenset({"accept", "acceptForSession", "decline", "cancel"}),
    "McpServerElicitationAction": frozenset({"accept", "decline", "cancel"}),
    "PermissionGrantScope": frozenset({"turn", "session"}),
    "ThreadGoalStatus": frozenset({"active", "paused", "blocked", "usageLimited", "budgetLimited", "complete"}),
}


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All definitions of the installed server, by name."""
    folder = tmp_path_factory.mktemp("schema")
    words = [str(PROGRAM), "app-server", "generate-json-schema", "--experimental", "--out", str(folder)]
    subprocess.run(words, check=True, capture_output=True, env={"CODEX_HOME": str(folder)}, timeout=120)
    found: dict[str, Any] = {}
    for name in ("codex_app_server_protocol.schemas.json", "codex_app_server_protocol.v2.schemas.json"):
        bundle = json.loads((folder / name).read_text())
        definitions = bundle.get("definitions") or bundle["$defs"]
        found |= {**definitions.get("v2", {}), **definitions}
    return found


def methods(schema: Mapping[str, Any], name: str) -> dict[str, str]:
    """The methods of a kind of message, each with the name of its parameters."""
    found = {}
    for variant in schema[name].get("oneOf") or schema[name]["anyOf"]:
        properties = variant["properties"]
        params = str(properties.get("params", {}).get("$ref", "")).rsplit("/", 1)[-1]
        found[properties["method"]["enum"][0]] = params
    return found


def properties(schema: Mapping[str, Any], name: str) -> set[str]:
    return set(schema[name].get("properties", {}))


def used() -> set[str]:
    """Every method that the connector's sources name."""
    text = "\n".join(path.read_text() for path in sorted(SOURCES.glob("*.py")))
    return set(_METHOD.findall(text))


def test_every_method_that_is_named_is_one_of_the_server(schema: Mapping[str, Any]) -> None:
    known = {
        method for kind in ("ClientRequest", "ServerRequest", "ServerNotification") for method in methods(schema, kind)
    }
    assert used() - known == set()
    assert used() > {"thread/list", "turn/start", "item/completed"}


@pytest.mark.parametrize("method", sorted(CALLS))
def test_every_call_has_the_parameters_that_we_give(schema: Mapping[str, Any], method: str) -> None:
    params = methods(schema, "ClientRequest")[method]
    assert set(CALLS[method]) - properties(schema, params) == set()
    assert set(schema[params].get("required", ())) <= set(CALLS[method])


def test_every_call_is_in_the_table(schema: Mapping[str, Any]) -> None:
    calls = set(methods(schema, "ClientRequest"))
    assert (used() & calls) - set(CALLS) == set()


@pytest.mark.parametrize("name", sorted(READ))
def test_every_field_that_we_read_is_there(schema: Mapping[str, Any], name: str) -> None:
    assert set(READ[name]) - properties(schema, name) == set()


@pytest.mark.parametrize("name", sorted(WORDS))
def test_every_word_that_we_know_is_all_that_there_are(schema: Mapping[str, Any], name: str) -> None:
    assert words(schema[name]) == WORDS[name]


def words(definition: Mapping[str, Any]) -> set[str]:
    """The words of an enumeration, however it is written."""
    found = set(definition.get("enum", ()))
    for variant in definition.get("oneOf", ()):
        found |= set(variant.get("enum", ()))
    return found


def test_no_notification_is_new(schema: Mapping[str, Any]) -> None:
    told = set(methods(schema, "ServerNotification"))
    known = used() | _PLAIN | notes.IGNORED | NOT_TOLD
    assert told - known == set()


def test_no_request_of_the_server_is_new(schema: Mapping[str, Any]) -> None:
    from console.connectors.codex.requests import ASKS, NOT_FOR_US

    old = {"applyPatchApproval", "execCommandApproval"}
    assert set(methods(schema, "ServerRequest")) == ASKS | NOT_FOR_US | old


def test_no_kind_of_item_is_new(schema: Mapping[str, Any]) -> None:
    text = (SOURCES / "items.py").read_text()
    kinds = {
        variant["properties"]["type"]["enum"][0]
        for variant in schema["ThreadItem"].get("oneOf") or schema["ThreadItem"]["anyOf"]
    }
    assert {kind for kind in kinds if f'"{kind}"' not in text} == set()
