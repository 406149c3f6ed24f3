"""A workflow's history as its session tells it: one event for each of aion's."""

from __future__ import annotations

import json
from typing import Final

from pydantic import JsonValue

from console.connectors.aion.history import seq_of
from console.connectors.aion.reading import ELIDED, Elided, Json, millis, number, obj, shown, text, unpacked
from watchfloor.protocol.events import Child, Event, Level, Notice, Raw

LONGEST: Final = 2000
_BAD: Final = frozenset({"WorkflowFailed", "WorkflowTimedOut", "ActivityFailed", "ChildWorkflowFailed"})
_CHILD: Final = {
    "ChildWorkflowStarted": "opened",
    "ChildWorkflowCompleted": "completed",
    "ChildWorkflowFailed": "failed",
    "ChildWorkflowCancelled": "stopped",
}
_PLAIN: Final = {
    "WorkflowCompleted": "the workflow is complete",
    "WorkflowTimedOut": "the workflow ran out of time",
    "WorkflowContinuedAsNew": "this run is over; the workflow goes on with a new one",
    "WorkflowResumed": "the workflow was resumed",
    "WorkflowReopened": "the workflow was reopened",
}


def told(event: Json, namespace: str, children: dict[str, str]) -> Event | None:
    """What to tell of a history event; None for bookkeeping. Nothing that is not known is left out."""
    kind, data = text(event.get("type")), obj(event.get("data"))
    fill: dict[str, object] = {
        "at": millis(obj(data.get("envelope")).get("recorded_at")),
        "key": f"history/{seq_of(event)}",
    }
    if kind == "SearchAttributesUpdated":
        return None
    if kind in _CHILD:
        child = text(data.get("child_workflow_id"))
        named = Child(at=0, session=f"{namespace}/{child}", name=children.get(child, ""), state=_CHILD[kind])
        return named.model_copy(update=fill)
    words = _PLAIN.get(kind) or _words(kind, data)
    if words is None:
        kept: JsonValue = {name: value for name, value in data.items() if name != "envelope"}
        return Raw(at=0, data=kept, note=kind or "aion event without a type").model_copy(update=fill)
    level = Level.WARNING if kind in _BAD else Level.INFO
    return Notice(at=0, level=level, code=kind, text=words).model_copy(update=fill)


def _words(kind: str, data: Json) -> str | None:
    if kind.startswith("Activity"):
        return _of_activity(kind, data)
    match kind:
        case "WorkflowStarted":
            return f"a run began: {_value(data.get('input'))}"
        case "WorkflowFailed":
            error = obj(data.get("error"))
            said = unpacked(error.get("details"))
            return f"the workflow failed: {text(obj(said).get('message')) or text(error.get('message'))}"
        case "WorkflowCancelled":
            return f"the workflow was cancelled: {text(data.get('reason'))}"
        case "WorkflowPaused":
            return f"the workflow was paused: {text(data.get('reason'))}"
        case "SignalReceived":
            return f"signal {text(data.get('name'))}: {_value(data.get('payload'))}"
        case "LoopRetired":
            return f"the endless work was retired: {text(data.get('reason'))}"
        case _:
            return None


def _of_activity(kind: str, data: Json) -> str | None:
    id, attempt = number(data.get("activity_id")), number(data.get("attempt"))
    which = f"activity {id}" + (f", attempt {attempt}" if attempt is not None else "")
    match kind:
        case "ActivityScheduled":
            return f"{which}: {text(data.get('activity_type'))} is scheduled for {text(data.get('task_queue'))}"
        case "ActivityStarted":
            return f"{which}: handed out"
        case "ActivityLeased":
            return f"{which}: taken by {text(obj(data.get('worker')).get('identity'))}"
        case "ActivityCompleted":
            return f"{which}: complete"
        case "ActivityFailed":
            error = obj(data.get("error"))
            return f"{which}: failed ({text(error.get('kind'))}): {text(error.get('message'))}"
        case "ActivityCancelled":
            return f"{which}: cancelled"
        case "ActivityAdoptionOffered":
            return f"{which}: offered to a new worker after a restart"
        case _:
            return None


def _value(payload: object) -> str:
    value: JsonValue | Elided = unpacked(payload)
    if value is ELIDED or isinstance(value, Elided):
        return "too large to be shown here"
    written = shown(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return written if len(written) <= LONGEST else f"{written[:LONGEST]}…"
