"""What is known of a server's workflows and their agents, told to the mirror as it changes. No I/O.

A session is one activity of one run of a workflow, with its attempts inside; the workflow is the group above it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from console.connectors.aion import approvals, narration, offers, status
from console.connectors.aion.history import Activity, Attempt, Workflow, seq_of
from console.connectors.aion.outcomes import failure, lacking, record
from console.connectors.aion.reading import Elided, Json, millis, number, obj, text
from console.connectors.aion.server import Axes
from console.connectors.aion.steps import Asked, CutShort, NoLongerAsked, Piece, Step, Tell, Used
from console.connectors.aion.transcript import Transcript
from console.connectors.aion.workers import Workers
from watchfloor.foreign import Mirror
from watchfloor.protocol.events import Level, Notice, Raw, ResultEvent, ToolCall, ToolResult
from watchfloor.protocol.model import Decision, InFlight, SessionKind
from watchfloor.words import RequestState

RUNS: Final = 20
LONG_MS: Final = 10_000
"""An attempt that waits this long for a worker is said to be left by one that is there."""
"""Runs of an endless workflow whose sessions are kept."""
MOST_IN_FLIGHT: Final = 8


@dataclass(slots=True)
class Session:
    """One activity. `transcripts` by attempt; `open`: our request ids -> the agent's call and its attempt."""

    id: str
    workflow: Workflow
    activity: Activity
    transcripts: dict[int, Transcript] = field(default_factory=dict)
    open: dict[str, tuple[str, int]] = field(default_factory=dict)
    refused: dict[tuple[int, int], set[str]] = field(default_factory=dict)
    """What the agent of an attempt (and lease) has refused to do."""
    taken: dict[int, int] = field(default_factory=dict)
    """Leases of each attempt that were told."""

    @property
    def latest(self) -> Attempt | None:
        return self.activity.latest

    def axes(self, attempt: int) -> Axes:
        return Axes(self.workflow.namespace, self.workflow.id, self.activity.run, self.activity.id, attempt)

    def transcript(self, attempt: int) -> Transcript:
        return self.transcripts.setdefault(attempt, Transcript(attempt))


class Feed:
    """All workflows that are shown. `deploys`: may workers be restarted by us?"""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.deploys = False
        self.workflows: dict[str, Workflow] = {}
        self.sessions: dict[str, Session] = {}
        self.live: dict[str, dict[tuple[str, int, int], frozenset[str]]] = {}
        """By workflow: what may be done to each attempt that lives."""
        self._deciding: dict[str, NoLongerAsked | None] = {}
        """Our decisions under way, each with what ended its request meanwhile."""
        self.blind: dict[str, str] = {}
        """By workflow: why it cannot be read who lives."""
        self._missed: set[str] = set()
        """Workflows of which that could not be read once."""
        self._unlooked: set[str] = set()
        """Workflows of which an attempt was taken since we looked who lives."""
        self.workers: Final = Workers()

    # --- workflows

    def workflow(self, namespace: str, id: str) -> Workflow:
        workflow = Workflow(namespace, id)
        return self.workflows.setdefault(workflow.key, workflow)

    def took(self, workflow: Workflow, events: Iterable[Json]) -> bool:
        """Events of its history, in order. True where an attempt began, was taken or ended: what lives has changed."""
        moved = False
        taken = [event for event in events if workflow.take(event)]
        if taken:
            # What a history that is read at once went through did not happen now.
            self._show_workflow(workflow)
        for event in taken:
            kind = text(event.get("type"))
            moved = moved or kind.startswith(("Activity", "Workflow"))
            said = narration.told(event, workflow.namespace, workflow.children)
            if said is not None:
                self._mirror.emit(workflow.key, said)
            if kind == "ActivityLeased":
                self._leased(workflow, obj(event.get("data")))
        if moved:
            self.show(workflow)
        return moved

    def forget(self, workflow: Workflow) -> list[str]:
        """The workflow is shown no more; returns its sessions."""
        gone = [session.id for session in self.sessions_of(workflow)]
        for id in gone:
            del self.sessions[id]
        self.workflows.pop(workflow.key, None)
        self.live.pop(workflow.key, None)
        self.blind.pop(workflow.key, None)
        self._missed.discard(workflow.key)
        self._unlooked.discard(workflow.key)
        self._mirror.gone(*gone, workflow.key)
        return gone

    def knows(self, session: Session) -> bool:
        """Is the session still shown?"""
        return self.sessions.get(session.id) is session

    def _leased(self, workflow: Workflow, data: Json) -> None:
        """A worker took an attempt: it answers, and an attempt that was taken before has a new agent now."""
        worker = text(obj(data.get("worker")).get("identity"))
        self._unlooked.add(workflow.key)
        at = millis(obj(data.get("envelope")).get("recorded_at"))
        if self.workers.leased((workflow.namespace, worker), at):
            self.show_all()

    def completed(self, workflow: Workflow, attempt: Attempt, event: Json) -> None:
        """The event whose result was too large for a page."""
        if seq_of(event) == attempt.result_seq:
            other = Workflow(workflow.namespace, workflow.id, head=attempt.result_seq - 1)
            other.take(event)
            for activity in other.activities.values():
                for known in activity.attempts.values():
                    attempt.result = known.result
        self.show(workflow)

    def retained(self, workflow: Workflow, run: str, streams: Iterable[Json]) -> None:
        """The transcripts that are kept of a run: each stands for an attempt, in its history or not."""
        for row in streams:
            id, attempt = number(row.get("activity_id")), number(row.get("attempt"))
            if id is not None and attempt is not None:
                workflow.activity(text(row.get("run_id")) or run, id).attempt(attempt)
        self.show(workflow)

    def lives(self, workflow: Workflow, rows: Iterable[Json]) -> None:
        """The attempts that live now; a row that does not say which is dropped."""
        found: dict[tuple[str, int, int], frozenset[str]] = {}
        for row in rows:
            id, attempt = number(row.get("activity_id")), number(row.get("attempt"))
            if id is None or attempt is None:
                continue
            run = text(row.get("run_id")) or workflow.run
            found[(run, id, attempt)] = offers.supported(row.get("capabilities"))
            workflow.activity(run, id).attempt(attempt)
        self.live[workflow.key] = found
        self._unlooked.discard(workflow.key)
        self._missed.discard(workflow.key)
        self.blind.pop(workflow.key, None)
        self.show(workflow)

    def lives_unread(self, workflow: Workflow, why: str) -> None:
        """It cannot be read who lives. What was known holds for once."""
        if workflow.key not in self.live or workflow.key in self._missed:
            self.live.setdefault(workflow.key, {})
            self.blind[workflow.key] = why
            self.show(workflow)
        self._missed.add(workflow.key)

    def unread(self, workflow: Workflow, why: str) -> None:
        """Its history cannot be read now, or (an empty `why`) again."""
        if workflow.unread != why:
            workflow.unread = why
            self.show(workflow)

    def unreadable(self, session: Session, attempt: int, why: str) -> None:
        """The transcript of an attempt cannot be read."""
        if self.knows(session):
            words = f"what attempt {attempt} said cannot be read: {why}"
            key = f"{session.transcript(attempt).name}/unreadable"
            notice = Notice(at=0, attempt=attempt, level=Level.WARNING, code="unreadable", text=words, key=key)
            self._mirror.emit(session.id, notice)

    def not_followed(self, session: Session, attempt: int, most: int) -> None:
        """As many transcripts are followed as may be; this one is none of them."""
        words = f"its transcript is read when you look at it: {most} others are followed, and that is the most"
        key = f"{attempt}/not_followed"
        notice = Notice(at=0, attempt=attempt, level=Level.INFO, code="not_followed", text=words, key=key)
        self._mirror.emit(session.id, notice)

    def unserved_now(self, namespace: str, rows: Iterable[Json]) -> None:
        if self.workers.unserved_now(namespace, rows):
            for workflow in self.workflows.values():
                if workflow.namespace == namespace and not workflow.over:
                    self.show(workflow)

    # --- interventions

    def worker_of(self, session: Session) -> tuple[str, str]:
        attempt = session.latest
        return session.workflow.namespace, attempt.worker if attempt is not None else ""

    def wedge(self, worker: tuple[str, str], why: str) -> None:
        """The worker has not answered an intervention, and will answer none."""
        self.workers.wedge(worker, why)
        self.show_all()

    def refuse(self, session: Session, attempt: int, primitive: str) -> None:
        """The agent does not do what its worker offers."""
        if not self.knows(session):
            return
        leases = session.activity.attempt(attempt).leases
        session.refused.setdefault((attempt, leases), set()).add(primitive)
        self.show(session.workflow)

    def alive(self, session: Session, attempt: int) -> bool:
        return (session.activity.run, session.activity.id, attempt) in self.live.get(session.workflow.key, {})

    def deciding(self, request: str) -> None:
        """Our decision is on its way: what the agent makes of it may be heard before the server's answer."""
        self._deciding[request] = None

    def decided(self, session: Session, request: str, decision: Decision | None) -> None:
        """The server has answered our decision: it counts, or (None) it does not."""
        ended = self._deciding.pop(request, None)
        if not self.knows(session):
            return
        if decision is None:
            self.apply(session, session.open.get(request, ("", 0))[1], [ended] if ended is not None else [])
            return
        self._mirror.end_request(session.id, request, RequestState.RESOLVED, decision=decision)
        call, attempt = session.open.pop(request, ("", 0))
        if call:
            session.transcript(attempt).decided(call)
        self.show(session.workflow)

    # --- transcripts

    def said(self, session: Session, attempt: int, events: Iterable[object]) -> None:
        """Events of an attempt's transcript, from a page or a socket."""
        transcript = session.transcript(attempt)
        for event in events:
            self.apply(session, attempt, transcript.take(event))

    def apply(self, session: Session, attempt: int, steps: Iterable[Step]) -> None:
        if not self.knows(session):
            return
        again = False
        for step in steps:
            again = self._apply(session, attempt, step) or again
        if again:
            self._show_session(session)

    def _apply(self, session: Session, attempt: int, step: Step) -> bool:
        match step:
            case Tell(event=event):
                self._mirror.emit(session.id, event)
                return isinstance(event, ToolCall | ToolResult)
            case Piece(item=item, of=of, text=piece):
                self._mirror.stream(session.id, item, of, piece)
            case CutShort(items=cut):
                self._mirror.cut_streams(session.id, *cut)
            case Asked():
                session.open[step.id] = (step.call, attempt)
                self._mirror.ask(session.id, approvals.request(step, session.id, attempt))
                return True
            case NoLongerAsked(id=id) if id in self._deciding:
                self._deciding[id] = step
            case NoLongerAsked(id=id, why=why):
                session.open.pop(id, None)
                state = RequestState.WITHDRAWN if why else RequestState.RESOLVED
                self._mirror.end_request(session.id, id, state, why=why or "its call went on: decided elsewhere")
                return True
            case Used():
                return True
        return False

    def finish(self, session: Session, attempt: Attempt) -> None:
        """An attempt is over and all that it said was told: say how it ended."""
        if not self.knows(session):
            return
        self.apply(session, attempt.number, session.transcript(attempt.number).ended())
        fill: dict[str, object] = {"attempt": attempt.number, "at": attempt.ended_at or self._mirror.now()}
        key = f"{attempt.number}/end"
        if attempt.end == "ActivityFailed":
            failed = failure(attempt)
            level = Level.ERROR if failed.final else Level.WARNING
            code = failed.code or attempt.error_kind
            notice = Notice(at=0, level=level, code=code, text=failed.text, retrying=not failed.final, key=key)
            self._mirror.emit(session.id, notice.model_copy(update=fill))
        elif attempt.end == "ActivityCompleted":
            self._tell_result(session, attempt, key, fill)

    def _tell_result(self, session: Session, attempt: Attempt, key: str, fill: dict[str, object]) -> None:
        value = attempt.result
        if (result := record(value)) is not None:
            self._mirror.emit(session.id, ResultEvent(at=0, result=result, key=key).model_copy(update=fill))
            return
        missing = lacking(value)
        if missing:
            words = f"its outcome is no record: it lacks {', '.join(missing)}"
            notice = Notice(at=0, level=Level.ERROR, code="contract", text=words, key=f"{key}/contract")
            self._mirror.emit(session.id, notice.model_copy(update=fill))
        data = "too large to be read" if isinstance(value, Elided) else value
        raw = Raw(at=0, data=data, note="the activity's result, which is no outcome record", key=key)
        self._mirror.emit(session.id, raw.model_copy(update=fill))

    # --- telling

    def show_all(self) -> None:
        for workflow in self.workflows.values():
            self.show(workflow)

    def sessions_of(self, workflow: Workflow) -> list[Session]:
        ids = (_id_of(workflow, activity) for activity in workflow.activities.values())
        return [session for id in ids if (session := self.sessions.get(id)) is not None]

    def show(self, workflow: Workflow) -> None:
        """Tell what is so of a workflow and its sessions; of these nothing until it is known who lives."""
        if self.workflows.get(workflow.key) is not workflow:
            return
        self._show_workflow(workflow)
        if workflow.key not in self.live:
            return
        kept = set(workflow.runs[-RUNS:]) | {run for run, _, _ in self.live.get(workflow.key, {})}
        for activity in list(workflow.activities.values()):
            id = _id_of(workflow, activity)
            if workflow.runs and activity.run not in kept:
                self.sessions.pop(id, None)
                self._mirror.gone(id)
            elif activity.attempts:
                # What is only scheduled is no session yet.
                session = self.sessions.setdefault(id, Session(id, workflow, activity))
                self._show_session(session)
                self._tell_leases(session)

    def _show_workflow(self, workflow: Workflow) -> None:
        told = status.of_workflow(workflow)
        self._mirror.put(
            workflow.key,
            capabilities=told.capabilities,
            traits=offers.WORKFLOW_TRAITS,
            name=workflow.title,
            kind=SessionKind.GROUP,
            parent=f"{workflow.namespace}/{workflow.parent}" if workflow.parent else None,
            lifecycle=told.lifecycle,
            native_state=told.native,
            why=told.why,
            error=told.error,
            **_since(told.since),
            labels=_labels(namespace=workflow.namespace, workflow=workflow.type, id=workflow.id, run=workflow.run),
        )

    def _show_session(self, session: Session) -> None:
        workflow, activity, attempt = session.workflow, session.activity, session.latest
        if attempt is None:
            return
        told = status.of_activity(workflow, activity, attempt, self._facts(session, attempt))
        transcript = session.transcripts.get(attempt.number)
        running = transcript.running if transcript is not None and not attempt.end else {}
        result = record(attempt.result) if attempt.end == "ActivityCompleted" else None
        self._mirror.put(
            session.id,
            capabilities=told.capabilities,
            traits=offers.AGENT_TRAITS,
            name=f"{activity.type or 'activity'} #{activity.id} {workflow.short}",
            kind=SessionKind.AGENT,
            parent=workflow.key,
            attempt=attempt.number,
            lifecycle=told.lifecycle,
            native_state=told.native,
            why=told.why,
            error=told.error,
            blocked=told.blocked,
            controls=told.controls,
            **_since(told.since),
            result=result,
            usage=transcript.usage if transcript is not None else None,
            in_flight=tuple(
                InFlight(id=call, name=name, since=since)
                for call, (name, since) in list(running.items())[:MOST_IN_FLIGHT]
            ),
            labels=_labels(
                namespace=workflow.namespace,
                workflow=workflow.name or workflow.type,
                run=activity.run,
                activity=str(activity.id),
                queue=activity.queue,
                worker=attempt.worker,
                attempts=", ".join(_numbered(each) for each in activity.attempts.values()),
            ),
        )

    def _facts(self, session: Session, attempt: Attempt) -> status.Facts:
        activity, namespace = session.activity, session.workflow.namespace
        all_live = self.live.get(session.workflow.key, {})
        live = all_live.get((activity.run, activity.id, attempt.number))
        left = {
            number: all_live[(activity.run, activity.id, number)]
            for number in sorted(activity.attempts)
            if (activity.run, activity.id, number) in all_live
            and (activity.attempts[number].end or number != attempt.number)
        }
        return status.Facts(
            live=live,
            left=left,
            taken=session.workflow.key in self._unlooked,
            refused=frozenset(session.refused.get((attempt.number, attempt.leases), ())),
            asked=any(number == attempt.number for _, number in session.open.values()),
            asked_at=max((asked.asked_at for asked in session.transcript(attempt.number).asked.values()), default=0),
            unserved="" if attempt.leases else self.workers.unserved(namespace, activity.queue),
            served=self.workers.served(namespace, activity.queue) and 0 < attempt.at < self._mirror.now() - LONG_MS,
            blind=self.blind.get(session.workflow.key, ""),
            wedged=self.workers.wedged((namespace, attempt.worker)),
            restart=attempt.worker if self.deploys and attempt.worker in self.workers.managed else "",
        )

    def _tell_leases(self, session: Session) -> None:
        """A second lease of an attempt is a new agent in the same session."""
        for attempt in session.activity.attempts.values():
            before = session.taken.get(attempt.number, 0)
            session.taken[attempt.number] = attempt.leases
            if attempt.leases > 1 and attempt.leases > before:
                words = f"attempt {attempt.number} was handed to a new agent, which begins from the start"
                key = f"{attempt.number}/lease/{attempt.leases}"
                at = attempt.leased[-1]
                notice = Notice(
                    at=at, attempt=attempt.number, level=Level.WARNING, code="new_agent", text=words, key=key
                )
                self._mirror.emit(session.id, notice)


def _id_of(workflow: Workflow, activity: Activity) -> str:
    return f"{workflow.key}/{activity.run or '-'}/{activity.id}"


def _numbered(attempt: Attempt) -> str:
    return f"{attempt.number} (legacy)" if attempt.number == 0 else str(attempt.number)


def _since(at: int) -> dict[str, object]:
    return {"since": at} if at else {}


def _labels(**named: str) -> dict[str, str]:
    return {name: value for name, value in named.items() if value}
