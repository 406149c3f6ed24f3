"""What the app-server tells of a thread besides its items, as events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from console.connectors.web.reading import Json, each, flag, part, text, word
from watchfloor.protocol.events import Event, Level, Notice, Plan, PlanStep, Progress, Raw
from watchfloor.protocol.model import Usage

_STEPS: Final = {"pending": "open", "inProgress": "running", "completed": "done"}

IGNORED: Final = frozenset(
    {
        # Of the account, the machine or other clients, and not of a thread's work.
        "account/gatewayOAuth/changed",
        "account/login/completed",
        "account/rateLimits/updated",
        "account/updated",
        "app/list/updated",
        "command/exec/outputDelta",
        "externalAgentConfig/import/completed",
        "externalAgentConfig/import/progress",
        "fs/changed",
        "fuzzyFileSearch/sessionCompleted",
        "fuzzyFileSearch/sessionUpdated",
        "mcpServer/event/stream/notification",
        "mcpServer/oauthLogin/completed",
        "process/exited",
        "process/outputDelta",
        "project/changed",
        "remoteControl/status/changed",
        "skills/changed",
        "thread/attachment/updated",
        "thread/environment/connected",
        "thread/environment/disconnected",
        "thread/prediction/updated",
        "thread/project/updated",
        "thread/readState/changed",
        "thread/search/partial",
        "thread/section/changed",
        # Said again, and better, by the items.
        "hook/started",
        "item/autoApprovalReview/started",
        "item/fileChange/outputDelta",
        "rawResponse/completed",
        "rawResponseItem/completed",
        "thread/compacted",
        "thread/realtime/item/transcript/delta",
        "thread/realtime/outputAudio/delta",
        "thread/realtime/sdp",
        "thread/realtime/transcript/delta",
        "turn/diff/updated",
        "turn/moderationMetadata",
    }
)


def events_of(method: str, params: Json, at: int) -> list[Event]:
    """The events for a notification about a thread, one that this console does not know kept as it came."""
    if method in IGNORED:
        return []
    told = _TOLD.get(method)
    if told is not None:
        event = told(params, at)
        return [] if event is None else [event]
    return [Raw(at=at, data={"method": method, "params": dict(params)}, note=method)]


def usage_event(thread_usage: Usage, params: Json, at: int) -> Progress:
    """The totals after an answer of the model."""
    tokens = part(params, "tokenUsage", "total").get("totalTokens")
    return Progress(at=at, usage=thread_usage, key=f"{text(params, 'turnId')}/tokens/{tokens}")


def failure(error: Json, *, retrying: bool, at: int, key: str | None = None) -> Notice:
    """An error of a turn."""
    level = Level.WARNING if retrying else Level.ERROR
    code = word(error, "codexErrorInfo") or None
    return Notice(at=at, level=level, code=code, text=failure_text(error), retrying=retrying, key=key)


def failure_text(error: Json) -> str:
    message, more = text(error, "message") or "an error without a text", text(error, "additionalDetails")
    return f"{message} ({more})" if more else message


def _error(params: Json, at: int) -> Event:
    return failure(part(params, "error"), retrying=flag(params, "willRetry") is True, at=at)


def _warning(params: Json, at: int) -> Event:
    return Notice(at=at, level=Level.WARNING, code="server", text=text(params, "message") or "")


def _plan(params: Json, at: int) -> Event:
    steps = [
        PlanStep(text=text(step, "step") or "", status=_STEPS.get(text(step, "status") or "", "open"))
        for step in each(params, "plan")
    ]
    return Plan(at=at, steps=tuple(steps))


def _rerouted(params: Json, at: int) -> Event:
    models = f"{text(params, 'fromModel') or '?'} -> {text(params, 'toModel') or '?'}"
    return Notice(at=at, level=Level.WARNING, code="rerouted", text=f"the server changed the model: {models}")


def _reviewed(params: Json, at: int) -> Event:
    """Somebody else than an operator has decided about an approval."""
    review, action = part(params, "review"), part(params, "action")
    verdict = text(review, "status") or "decided"
    what = text(action, "command") or text(action, "toolName") or text(action, "type") or "an action"
    why = text(review, "rationale")
    told = f"automatic review: {verdict}: {what}" + (f" ({why})" if why else "")
    return Notice(at=at, code="auto review", text=told)


def _hooked(params: Json, at: int) -> Event | None:
    run = part(params, "run")
    if text(run, "status") in (None, "completed"):
        return None
    name = text(run, "eventName") or "?"
    told = f"hook {name}: {text(run, 'status')}: {text(run, 'statusMessage') or ''}".rstrip(": ")
    return Notice(at=at, level=Level.WARNING, code="hook", text=told)


def _server_start(params: Json, at: int) -> Event | None:
    fault = text(params, "error")
    if fault is None:
        return None
    name = text(params, "name") or "?"
    return Notice(at=at, level=Level.WARNING, code="mcp", text=f"MCP server {name} does not start: {fault}")


def _progress(params: Json, at: int) -> Event:
    return Progress(at=at, note=text(params, "message") or "")


def _typed(params: Json, at: int) -> Event:
    return Progress(at=at, note=f"typed into a running command: {text(params, 'stdin') or ''}")


def _strict(params: Json, at: int) -> Event:
    return Notice(at=at, code="auto review", text="every further command of this turn is reviewed")


_TOLD: Final[dict[str, Callable[[Json, int], Event | None]]] = {
    "autoApprovalReview/strictReviewRequired": _strict,
    "error": _error,
    "guardianWarning": _warning,
    "hook/completed": _hooked,
    "item/autoApprovalReview/completed": _reviewed,
    "item/commandExecution/terminalInteraction": _typed,
    "item/mcpToolCall/progress": _progress,
    "mcpServer/startupStatus/updated": _server_start,
    "model/rerouted": _rerouted,
    "turn/plan/updated": _plan,
    "warning": _warning,
}
