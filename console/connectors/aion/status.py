"""What is said of a session: its state, why, and what can be done."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from console.connectors.aion import offers
from console.connectors.aion.history import RETRYABLE, Activity, Attempt, Workflow
from console.connectors.aion.outcomes import failure
from watchfloor.protocol.model import Capabilities
from watchfloor.words import Lifecycle

LEGACY: Final = "legacy attempt (recorded before attempts were kept)"
WORKFLOW_STATES: Final = {
    "Running": Lifecycle.RUNNING,
    "Paused": Lifecycle.PAUSED,
    "Completed": Lifecycle.COMPLETED,
    "Failed": Lifecycle.FAILED,
    "TimedOut": Lifecycle.FAILED,
    "Cancelled": Lifecycle.STOPPED,
    "ContinuedAsNew": Lifecycle.RUNNING,
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What else is known of a session.

    `live`: what may be done to its newest attempt, None where nobody runs it; `blind`: why that cannot be read.
    `taken`: a worker has just taken it, and nobody has looked since. `refused`: what the agent has refused to do
    although its worker offers it. `asked`: does it wait for a decision, since `asked_at`? `unserved`: why no worker
    takes it; `served`: a worker is there for its queue. `left`: what may be done to the agents of attempts that are
    over, where they live on. `wedged`: why its worker answers nobody; `restart`: that worker's name, where we may
    restart it.
    """

    live: frozenset[str] | None = None
    taken: bool = False
    refused: frozenset[str] = frozenset()
    asked: bool = False
    asked_at: int = 0
    unserved: str = ""
    served: bool = False
    blind: str = ""
    left: dict[int, frozenset[str]] = field(default_factory=dict)
    wedged: str = ""
    restart: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """`since`: when it became so, in milliseconds since 1970 UTC; 0 where nobody has said."""

    lifecycle: Lifecycle
    native: str
    why: str | None = None
    error: str | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)
    blocked: dict[str, str] = field(default_factory=dict)
    controls: dict[str, str] = field(default_factory=dict)
    since: int = 0


def of_activity(workflow: Workflow, activity: Activity, attempt: Attempt, facts: Facts) -> Status:
    told = _of_attempt(workflow, activity, attempt, facts)
    if not facts.left:
        return told
    one = len(facts.left) == 1
    which = f"attempt {', '.join(map(str, facts.left))} {'is' if one else 'are'} over"
    why = f"{which}, and the server still has {'its agent' if one else 'their agents'} at work"
    ends = [number for number, primitives in facts.left.items() if offers.CANCEL in primitives and not facts.wedged]
    return replace(
        told,
        why=f"{told.why}; {why}" if told.why else why,
        capabilities=offers.cancels(told.capabilities, ends),
    )


def _of_attempt(workflow: Workflow, activity: Activity, attempt: Attempt, facts: Facts) -> Status:
    if attempt.end:
        return _ended(workflow, attempt)
    if facts.blind:
        return Status(Lifecycle.UNKNOWN, "not read", f"the server does not say who runs it: {facts.blind}")
    if facts.live is not None:
        return _alive(workflow, attempt, facts)
    if workflow.over or activity.run != workflow.run:
        why = f"its workflow ended ({workflow.status}); the end of this attempt was never recorded"
        return Status(Lifecycle.STOPPED, "gone", why, since=workflow.since)
    if attempt.number == 0:
        return Status(Lifecycle.UNKNOWN, "legacy", LEGACY)
    if facts.unserved:
        return Status(Lifecycle.STARTING, "unserved", facts.unserved, since=attempt.at)
    if attempt.leases and facts.taken:
        return Status(Lifecycle.STARTING, "leased", f"taken by {attempt.worker}")
    if attempt.leases:
        why = "no worker holds it now: it is taken again under the same number, by a new agent"
        return Status(Lifecycle.STARTING, "no live owner", why)
    why = f"waits for a worker of the queue {activity.queue}"
    if facts.served:
        why += ": one is there and does not take it; it is busy, or answers nobody any more"
    return Status(Lifecycle.STARTING, "dispatched", why, since=attempt.at)


def _alive(workflow: Workflow, attempt: Attempt, facts: Facts) -> Status:
    primitives = (facts.live or frozenset()) - facts.refused
    lifecycle = Lifecycle.WAITING if facts.asked else Lifecycle.RUNNING
    why = f"its workflow is {workflow.status.lower()}; the agent works on" if workflow.over else None
    capabilities = offers.of_attempt(primitives, restart=facts.restart if facts.wedged else "")
    blocked = {}
    native = "live"
    if facts.wedged:
        why, native = facts.wedged, "its worker does not answer"
        blocked = {primitive.value: facts.wedged for primitive in capabilities.advertised() if primitive != "act"}
    elif not primitives and not why:
        why = "observe only: its worker advertises no interventions"
        if facts.refused:
            why = "observe only: the agent refuses what its worker advertises"
    since = facts.asked_at if facts.asked else (attempt.leased or [attempt.at])[-1]
    return Status(lifecycle, native, why, None, capabilities, blocked, offers.controls(primitives), since)


def _ended(workflow: Workflow, attempt: Attempt) -> Status:
    match attempt.end:
        case "ActivityCompleted":
            return Status(Lifecycle.COMPLETED, attempt.end, since=attempt.ended_at)
        case "ActivityCancelled":
            return Status(Lifecycle.STOPPED, attempt.end, since=attempt.ended_at)
        case _:
            failed = failure(attempt)
            if attempt.error_kind == RETRYABLE and not workflow.over:
                why = f"attempt {attempt.number} failed, the next one follows: {failed.text}"
                return Status(Lifecycle.STARTING, RETRYABLE, why, since=attempt.ended_at)
            native = failed.code or attempt.error_kind
            return Status(Lifecycle.FAILED, native, failed.text, failed.text, since=attempt.ended_at)


def of_workflow(workflow: Workflow) -> Status:
    lifecycle = WORKFLOW_STATES.get(workflow.status, Lifecycle.UNKNOWN)
    failed = workflow.why if lifecycle is Lifecycle.FAILED else None
    why = workflow.why
    if workflow.unread:
        why = f"its history cannot be read, so its agents may be missing here: {workflow.unread}"
    can = offers.of_workflow(workflow.status)
    return Status(lifecycle, workflow.status, why or None, failed, can, since=workflow.since)
