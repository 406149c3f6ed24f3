"""What a stand-in for an aion server knows: workflows with their histories, transcripts, and the agents that live.

Everything is in aion's own JSON. Nothing happens by itself, but for the answers of agents to interventions.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]
Axes = tuple[str, int, int]
"""Run, activity, attempt."""
FIXTURES: Final = Path(__file__).resolve().parents[1] / "fixtures/aion"
NIL: Final = "00000000-0000-0000-0000-000000000000"
MAIN: Final = ("11111111-1111-4111-8111-111111111111", "orchestrator")
CHILD: Final = ("22222222-2222-4222-8222-222222222222", "reviewer")
NORN: Final = ("InjectMessage", "Cancel")
ALL: Final = (*NORN, "PauseResume", "UpdateBudget", "RespondToApproval")


def recording(name: str) -> list[Json]:
    return [json.loads(line) for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def packed(value: Any) -> Json:
    return {"content_type": "Json", "bytes": list(json.dumps(value, separators=(",", ":")).encode())}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


@dataclass
class Flow:
    """One workflow. `says` gets every event of its history, `speaks` every event of a transcript, as they happen."""

    namespace: str
    type: str
    says: Callable[[Flow, Json], None]
    speaks: Callable[[Flow, Json], None]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    run: str = field(default_factory=lambda: str(uuid.uuid4()))
    parent: str | None = None
    status: str = "Running"
    started: str = field(default_factory=now)
    updated: str = ""
    ended: str | None = None
    history: list[Json] = field(default_factory=list)
    transcripts: dict[Axes, list[Json]] = field(default_factory=dict)
    live: dict[Axes, tuple[str, ...]] = field(default_factory=dict)
    worker: dict[Axes, str] = field(default_factory=dict)
    spoken: dict[Axes, int] = field(default_factory=dict)
    more: Json = field(default_factory=dict)
    """Further fields of its summary."""

    # --- its history

    def record(self, kind: str, **data: Any) -> Json:
        at = now()
        self.updated = at
        envelope = {"seq": len(self.history) + 1, "recorded_at": at, "workflow_id": self.id}
        event = {"type": kind, "data": {"envelope": envelope, **data}}
        self.history.append(event)
        self.says(self, event)
        return event

    def begin(self, given: Any) -> None:
        self.record(
            "WorkflowStarted", workflow_type=self.type, input=packed(given), run_id=self.run, parent_run_id=None,
            parent_workflow_id=self.parent, package_version="0" * 64,
        )  # fmt: skip

    def schedule(self, activity: int = 0, type: str = "work", queue: str = "scripted") -> None:
        self.record(
            "ActivityScheduled", activity_id=activity, activity_type=type, input=packed({}), task_queue=queue, node=None
        )

    def hand_out(self, activity: int = 0, attempt: int = 1) -> Axes:
        self.record("ActivityStarted", activity_id=activity, attempt=attempt)
        return (self.run, activity, attempt)

    def lease(self, axes: Axes, primitives: Iterable[str] = NORN, worker: str = "auto/scripted") -> Axes:
        """A worker takes the attempt; a new process of the agent numbers what it says from 0."""
        _, activity, attempt = axes
        self.live[axes] = tuple(primitives)
        self.worker[axes] = worker
        self.spoken[axes] = 0
        taken = {"identity": worker, "task_queue": "scripted", "node": "worker-host", "deployment": None,
                 "instance_id": None, "transport": "Liminal"}  # fmt: skip
        self.record("ActivityLeased", activity_id=activity, attempt=attempt, worker=taken)
        return axes

    def work(
        self, activity: int = 0, primitives: Iterable[str] = NORN, worker: str = "auto/scripted", type: str = "work"
    ) -> Axes:
        """An activity that is scheduled, handed out and taken at once."""
        self.schedule(activity, type)
        return self.lease(self.hand_out(activity), primitives, worker)

    def complete(self, axes: Axes, result: Any = None) -> None:
        outcome = {"text": "done", "final_message": "done", "stop_reason": "end_turn", "session_id": "s-1"}
        self.live.pop(axes, None)
        given = packed(outcome if result is None else result)
        self.record("ActivityCompleted", activity_id=axes[1], result=given, attempt=axes[2])

    def fail(self, axes: Axes, message: str, kind: str = "Retryable") -> None:
        self.live.pop(axes, None)
        error = {"kind": kind, "message": message, "details": None}
        self.record("ActivityFailed", activity_id=axes[1], error=error, attempt=axes[2])

    def retry(self, axes: Axes, primitives: Iterable[str] = NORN) -> Axes:
        return self.lease(self.hand_out(axes[1], axes[2] + 1), primitives, self.worker.get(axes, "auto/scripted"))

    def end(self, status: str = "Completed", **data: Any) -> None:
        self.status, self.ended = status, now()
        self.record(f"Workflow{status}", **(data or {"result": packed({"outcome": "done"})}))

    def go_on_as_new(self) -> None:
        """This run ends, and the next one begins, with activities and attempts numbered anew."""
        self.record("WorkflowContinuedAsNew", input=packed({}), workflow_type=None, parent_run_id=self.run)
        self.run = str(uuid.uuid4())
        self.begin({})

    # --- what its agents say

    def event(self, axes: Axes, kind: Json, agent: tuple[str, str] = MAIN, *, store: bool = True) -> Json:
        """One event as it would be stored next. It is not told."""
        worker = 0
        if agent[0] != NIL:
            worker = self.spoken.get(axes, 0)
            self.spoken[axes] = worker + 1
        lines = self.transcripts.setdefault(axes, [])
        event = {
            "workflow_id": self.id, "run_id": axes[0], "activity_id": axes[1], "attempt": axes[2], "agent_id": agent[0],
            "agent_role": agent[1], "emitted_at": now(), "worker_seq": worker,
            "store_seq": len(lines) if store else None, "ephemeral": not store, "kind": kind,
        }  # fmt: skip
        if store:
            lines.append(event)
        return event

    def speak(self, axes: Axes, kind: Json, agent: tuple[str, str] = MAIN) -> Json:
        event = self.event(axes, kind, agent)
        self.speaks(self, event)
        return event

    def say(self, axes: Axes, text: str, agent: tuple[str, str] = MAIN) -> Json:
        return self.speak(axes, {"kind": "Message", "role": {"role": "Assistant"}, "text": text}, agent)

    def piece(self, axes: Axes, text: str, message: str = "m-1", agent: tuple[str, str] = MAIN) -> Json:
        kind = {"kind": "Delta", "message_id": message, "text_fragment": text}
        event = self.event(axes, kind, agent, store=False)
        self.speaks(self, event)
        return event

    def ask(self, axes: Axes, call: str, action: str = "deploy to staging") -> Json:
        value = {"call_id": call, "action": action, "options": ["approve", "deny"], "expires_at": None}
        return self.speak(axes, {"kind": "Raw", "source": "approval/request", "value": value})

    # --- as it is listed

    def summary(self) -> Json:
        return {
            "workflow_id": self.id, "run_id": self.run, "workflow_type": self.type, "status": self.status,
            "started_at": self.started, "updated_at": self.updated, "ended_at": self.ended, "parent": self.parent,
            "package_version": "0" * 64, **self.more,
        }  # fmt: skip


class World:
    """All workflows of a server."""

    def __init__(self) -> None:
        self.flows: dict[str, Flow] = {}
        self.namespaces: list[str] = []
        self.history_listeners: list[Callable[[Flow, Json], None]] = []
        self.speech_listeners: list[Callable[[Flow, Json], None]] = []
        self.unserved: list[Json] = []

    def _says(self, flow: Flow, event: Json) -> None:
        for listen in list(self.history_listeners):
            listen(flow, event)

    def _speaks(self, flow: Flow, event: Json) -> None:
        for listen in list(self.speech_listeners):
            listen(flow, event)

    def flow(self, type: str = "scripted", *, namespace: str = "default", parent: str | None = None) -> Flow:
        """A workflow that begins now."""
        flow = Flow(namespace, type, self._says, self._speaks, parent=parent)
        self._keep(flow)
        flow.begin({"script": "say hello"})
        return flow

    def _keep(self, flow: Flow) -> None:
        self.flows[flow.id] = flow
        if flow.namespace not in self.namespaces:
            self.namespaces.append(flow.namespace)

    def load(self, name: str) -> None:
        """Everything that a recording shows of its workflows, as it stood at its end."""
        for line in recording(name):
            if line["kind"] != "http" or line["response"]["status"] != 200:
                continue
            path, asked, body = line["request"]["path"], line["request"].get("body"), line["response"].get("body")
            if path == "/workflows/history" and asked.get("from_seq", 0) <= 1 and body["events"]:
                if "__elided" not in json.dumps(body) and body["next_from_seq"] is None:
                    self._load_history(asked, copy.deepcopy(body["events"]))
            elif path == "/workflows/transcript" and asked["workflow_id"] in self.flows:
                flow = self.flows[asked["workflow_id"]]
                axes = (asked["run_id"], asked["activity_id"], asked["attempt"])
                known = {event["store_seq"]: event for event in flow.transcripts.get(axes, [])}
                known |= {event["store_seq"]: event for event in body["events"]}
                if sorted(known) == list(range(len(known))):
                    flow.transcripts[axes] = [known[seq] for seq in sorted(known)]
            elif path == "/workflows/describe" and asked["workflow_id"] in self.flows:
                self._load_summary(self.flows[asked["workflow_id"]], body["summary"])
            elif path == "/workflows/attempts" and asked["workflow_id"] in self.flows:
                self._load_live(self.flows[asked["workflow_id"]], body["attempts"])

    def _load_history(self, asked: Json, events: list[Json]) -> None:
        flow = self.flows.get(asked["workflow_id"])
        if flow is None:
            started = events[0]["data"]
            flow = Flow(asked["namespace"], started["workflow_type"], self._says, self._speaks, id=asked["workflow_id"])
            flow.started = started["envelope"]["recorded_at"]
            self._keep(flow)
        flow.history = events
        for event in events:
            flow.run = event["data"].get("run_id") or flow.run
            flow.updated = event["data"]["envelope"]["recorded_at"]

    def _load_summary(self, flow: Flow, summary: Json) -> None:
        flow.status, flow.run, flow.updated = summary["status"], summary["run_id"], summary["updated_at"]
        flow.ended, flow.parent = summary["ended_at"], summary["parent"]
        named = ("failed_step", "failure_reason", "display_name", "current_worker", "package_version", "kind")
        flow.more = {name: summary[name] for name in named if name in summary}

    def _load_live(self, flow: Flow, rows: list[Json]) -> None:
        flow.live = {
            (row["run_id"], row["activity_id"], row["attempt"]): tuple(
                entry["primitive"] for entry in row["capabilities"]["supported"]
            )
            for row in rows
        }
