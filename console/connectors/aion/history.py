"""A workflow as its history tells it: its runs, the activities of each, the attempts of each.

History is one sequence over all runs of a workflow, numbered from 1 without holes, and its events name no run: an
activity event belongs to the last `WorkflowStarted` before it. Activities and attempts begin anew in every run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from console.connectors.aion.reading import ELIDED, Elided, Json, millis, number, obj, text, unpacked

ENDED: Final = {
    "WorkflowCompleted": "Completed",
    "WorkflowFailed": "Failed",
    "WorkflowCancelled": "Cancelled",
    "WorkflowTimedOut": "TimedOut",
}
_STATUS: Final = {
    **ENDED,
    "WorkflowStarted": "Running",
    "WorkflowReopened": "Running",
    "WorkflowPaused": "Paused",
    "WorkflowResumed": "Running",
    "WorkflowContinuedAsNew": "ContinuedAsNew",
    "LoopRetired": "Completed",
}
OVER: Final = frozenset(ENDED.values())
RETRYABLE: Final = "Retryable"


@dataclass(slots=True)
class Attempt:
    """One attempt of an activity. `worker`: who took it last; `leased`: when it was taken, each time; `end`: the event
    that ended it.

    `recorded`: the history has a start of it; one that is only known from a transcript or a worker has none.
    """

    number: int
    at: int = 0
    worker: str = ""
    leased: list[int] = field(default_factory=list)
    end: str = ""
    ended_at: int = 0
    error_kind: str = ""
    error: str = ""
    result: JsonValue | Elided = None
    result_seq: int = 0
    recorded: bool = True

    @property
    def leases(self) -> int:
        return len(self.leased)


@dataclass(slots=True)
class Activity:
    run: str
    id: int
    type: str = ""
    queue: str = ""
    attempts: dict[int, Attempt] = field(default_factory=dict)

    @property
    def latest(self) -> Attempt | None:
        return self.attempts[max(self.attempts)] if self.attempts else None

    def attempt(self, number: int) -> Attempt:
        """The attempt with that number, made where there was none."""
        return self.attempts.setdefault(number, Attempt(number, recorded=False))


@dataclass(slots=True)
class Workflow:
    """`head` is the number of the last event read; `status` is aion's word."""

    namespace: str
    id: str
    type: str = ""
    name: str = ""
    status: str = "Running"
    run: str = ""
    parent: str = ""
    why: str = ""
    head: int = 0
    runs: list[str] = field(default_factory=list)
    activities: dict[tuple[str, int], Activity] = field(default_factory=dict)
    children: dict[str, str] = field(default_factory=dict)
    """Workflow id of a child -> its type."""
    updated: str = ""
    """When the server last changed it, in its own words."""
    since: int = 0
    """When its status became what it is."""
    unread: str = ""
    """Why its history cannot be read now."""

    @property
    def over(self) -> bool:
        return self.status in OVER

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.id}"

    @property
    def short(self) -> str:
        """Enough of its id to tell it from others of its type."""
        return self.id[:8]

    @property
    def title(self) -> str:
        return self.name or (f"{self.type} {self.short}" if self.type else self.id)

    def activity(self, run: str, id: int) -> Activity:
        return self.activities.setdefault((run, id), Activity(run, id))

    def summarised(self, summary: Json) -> None:
        """What a list or description says of it. Its status stands until the history says more."""
        self.type = text(summary.get("workflow_type")) or self.type
        self.name = text(summary.get("display_name")) or self.name
        self.parent = text(summary.get("parent")) or text(obj(summary.get("parent")).get("workflow_id")) or self.parent
        self.why = text(summary.get("failure_reason")) or self.why
        if not self.head:
            self.status = text(summary.get("status")) or self.status
            self.since = millis(summary.get("ended_at")) or millis(summary.get("started_at"))
            self.run = text(summary.get("run_id")) or self.run

    def take(self, event: object) -> bool:
        """The next event of the history. False for one that is not the next: seen before, or with others missing."""
        body, data = obj(event), obj(obj(event).get("data"))
        seq = seq_of(body)
        if seq != self.head + 1:
            return False
        self.head = seq
        kind, at = text(body.get("type")), millis(obj(data.get("envelope")).get("recorded_at"))
        if kind in _STATUS:
            self._moved(kind, data, at)
        elif kind.startswith("Activity"):
            self._of_activity(kind, data, at, seq)
        elif kind == "ChildWorkflowStarted":
            self.children[text(data.get("child_workflow_id"))] = text(data.get("workflow_type"))
        return True

    def _moved(self, kind: str, data: Json, at: int) -> None:
        self.status, self.since = _STATUS[kind], at
        if kind == "WorkflowStarted":
            self.run = text(data.get("run_id")) or self.run
            self.runs.append(self.run)
            self.type = text(data.get("workflow_type")) or self.type
            self.parent = text(data.get("parent_workflow_id")) or self.parent
        if kind in ENDED:
            self.why = text(data.get("reason")) or _failure(data) or self.why
        elif kind in ("WorkflowStarted", "WorkflowReopened", "WorkflowResumed"):
            self.why = ""
        elif kind == "WorkflowPaused":
            self.why = text(data.get("reason"))

    def _of_activity(self, kind: str, data: Json, at: int, seq: int) -> None:
        id = number(data.get("activity_id"))
        if id is None:
            return
        activity = self.activity(self.run, id)
        if kind == "ActivityScheduled":
            activity.type = text(data.get("activity_type"))
            activity.queue = text(data.get("task_queue"))
            return
        # History from before attempts were kept says none: aion counts that as attempt 0.
        attempt = activity.attempt(number(data.get("attempt")) or 0)
        attempt.recorded = True
        match kind:
            case "ActivityStarted":
                attempt.at = at
            case "ActivityLeased":
                attempt.worker = text(obj(data.get("worker")).get("identity"))
                attempt.leased.append(at)
            case "ActivityCompleted":
                attempt.end, attempt.ended_at, attempt.result_seq = kind, at, seq
                attempt.result = unpacked(data.get("result"))
            case "ActivityFailed":
                error = obj(data.get("error"))
                attempt.end, attempt.ended_at = kind, at
                attempt.error_kind, attempt.error = text(error.get("kind")), text(error.get("message"))
            case "ActivityCancelled":
                attempt.end, attempt.ended_at = kind, at
            case _:
                pass


def seq_of(event: Json) -> int | None:
    return number(obj(obj(event.get("data")).get("envelope")).get("seq"))


def _failure(data: Json) -> str:
    """What a failed workflow says: its own words are in the details."""
    error = obj(data.get("error"))
    details = unpacked(error.get("details"))
    return (text(obj(details).get("message")) if details is not ELIDED else "") or text(error.get("message"))
