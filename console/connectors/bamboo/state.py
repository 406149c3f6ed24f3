"""What is known of one session, and the state in which that shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from console.connectors.web.reading import Json, flag, millis, number, text
from watchfloor.protocol.events import PlanStep
from watchfloor.protocol.model import Result
from watchfloor.words import Lifecycle, StopReason

FRESH_MS: Final = 60_000
"""How long a session whose run is to begin may say so before that counts as old."""
WAITS_FOR_CHILDREN: Final = "waiting for children"
_BEGINNING: Final = frozenset({"pending", "queued", "started", "created", "initializing"})
FAILED: Final = frozenset({"error", "failed", "timeout", "timed_out", "lost"})
DONE: Final = frozenset({"completed", "success", "done", "skipped"})
CANCELLED: Final = frozenset({"cancelled", "canceled"})
ENDED: Final = FAILED | DONE | CANCELLED
_LOST: Final = "it is said to run, and nothing runs it: the server has ended meanwhile"


class Want(StrEnum):
    """What has to be asked of the server, about a session."""

    READ = "read"
    """The session, and what it waits for."""
    SETTLE = "settle"
    """The same, until it has come to rest: a run has just ended."""
    PAST = "past"
    RESULTS = "results"
    """What tools said, from the history, while the run goes on."""
    TASKS = "tasks"
    CHANNEL = "channel"
    """Its channel is to be opened, after its history where that is followed."""
    ALL = "all"
    """Everything anew: events were lost."""


@dataclass(slots=True)
class Gate:
    """A tool call of a child that waits for somebody else's decision. `asks`: a person is asked, so it is a request."""

    child: str
    parent: str
    request: str
    tool: str
    permission: str
    resource: str
    attempt: int | None = None
    version: int | None = None
    since: int | None = None
    asks: bool = False
    known_at: int = 0
    """When we heard of it, in milliseconds by our clock."""

    @property
    def id(self) -> str:
        """Ours, unique for ever."""
        return f"child/{self.request}/{self.attempt or 0}"


@dataclass(slots=True)
class Ended:
    """How often a request ended, and when last (by our clock, in milliseconds)."""

    times: int = 0
    at: int = 0


@dataclass(slots=True)
class Told:
    """What was told of the conversation as it happened, and not yet found in the history."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Session:
    """One session. `info` is as the server told it last; `moves` counts what made older answers worthless."""

    id: str
    info: Json = field(default_factory=dict)
    moves: int = 0
    run: str | None = None
    """The id of the run that goes on, None where none does."""
    channel_run: str | None = None
    """The run that was told on the session's channel last."""
    channel: bool = False
    """Its channel is open."""
    quiet: bool = True
    """The run that its channel told of has ended there."""
    partial: bool = False
    """What is being said may have begun before we came."""
    stale: bool = False
    """What it said of itself last is of before its run ended."""
    settling: bool = False
    """Its run has ended, and what it says of itself may be of before."""
    expects: frozenset[str] | None = None
    """How it will say that this run has ended, as far as that follows from what was told."""
    pending: Json | None = None
    """What it waits for, as the server words it."""
    asked: str | None = None
    """The id of our request for that."""
    ended: dict[str, Ended] = field(default_factory=dict)
    """What was asked and is no longer open, by the server's ids."""
    deciding: bool = False
    """A decision on what it waits for is on its way."""
    unsure: dict[str, set[str]] = field(default_factory=dict)
    """Decisions that were sent and of which no word came back: what was asked -> the options or words."""
    gates: dict[str, Gate] = field(default_factory=dict)
    permission_calls: set[str] = field(default_factory=set)
    """Tool calls of which the server said that they need a permission."""
    watched: bool = False
    read: bool = False
    """Its history was read; from then on it is followed."""
    cursor: str | None = None
    """The newest message of the history up to which nothing can change."""
    known: set[str] = field(default_factory=set)
    """Keys of what the history holds and that was told."""
    told: Told = field(default_factory=Told)
    item: int = 0
    text: str = ""
    thought: str = ""
    plan: tuple[PlanStep, ...] = ()
    plan_version: int = 0
    """The newest version of its list of tasks: a channel that is opened anew tells the older ones again."""
    tasks: dict[str, PlanStep] = field(default_factory=dict)
    in_flight: dict[str, tuple[str, int]] = field(default_factory=dict)
    context: str | None = None
    usage: Json | None = None
    interrupting: tuple[str, int] | None = None
    """Who ended the run that still goes on, and when."""
    refs: dict[str, str] = field(default_factory=dict)
    """Message or command id -> its ref."""
    sending: dict[str, bool] = field(default_factory=dict)
    """Ids of our messages that are on their way -> whether a run was seen to take them up already."""
    unread_mail: dict[str, str] = field(default_factory=dict)
    """Ids of our messages that no run has taken up yet -> their text."""

    def ref(self, id: str) -> str:
        """The ref of a message, a new one where it has none."""
        return self.refs.setdefault(id, f"#{len(set(self.refs.values())) + 1}")

    @property
    def status(self) -> str | None:
        return text(self.info, "last_run_status")

    @property
    def running(self) -> bool:
        return self.run is not None or flag(self.info, "is_running") is True

    @property
    def settled(self) -> bool:
        """What it says of itself fits what was told of its run."""
        if self.stale or flag(self.info, "is_running") is True or self.status == "running":
            return False
        return self.expects is None or self.status in self.expects

    @property
    def talks(self) -> bool:
        """Words of its run are coming, or may be on their way."""
        return self.channel and not self.quiet

    @property
    def children_run(self) -> bool:
        return (number(self.info, "running_child_count") or 0) > 0

    @property
    def unread(self) -> bool:
        """It is said to ask something, and what that is was not read."""
        return self.pending is None and flag(self.info, "has_pending_question") is True

    @property
    def asks(self) -> bool:
        """A person is asked."""
        return self.pending is not None or any(gate.asks for gate in self.gates.values())


@dataclass(frozen=True, slots=True)
class Shown:
    """`error` is why it failed."""

    lifecycle: Lifecycle
    native: str
    why: str | None = None
    error: str | None = None


def shown(session: Session, now: int) -> Shown:
    """The state of a session. What it asks of a person comes first, whatever else is said."""
    status = session.status
    if session.pending is not None:
        kind = text(session.pending, "interaction_kind")
        return Shown(Lifecycle.WAITING, "waiting for permission" if kind == "permission" else "waiting for an answer")
    if flag(session.info, "has_pending_question") and not session.running:
        return Shown(Lifecycle.WAITING, "waiting", why="what it asks has not been read yet")
    if any(gate.asks for gate in session.gates.values()):
        return Shown(Lifecycle.WAITING, "waiting for permission")
    if session.gates:
        tool = next(iter(session.gates.values())).tool
        return Shown(Lifecycle.RUNNING, "awaiting permission", why=f"its parent's model decides whether {tool} may run")
    if session.running:
        return Shown(Lifecycle.RUNNING, "running")
    if session.settling and not session.settled:
        return Shown(Lifecycle.RUNNING, "ending")
    if status in _BEGINNING and now - (millis(session.info, "last_activity_at") or 0) < FRESH_MS:
        return Shown(Lifecycle.RUNNING, status or "")
    if status == "suspended":
        if session.children_run:
            return Shown(Lifecycle.RUNNING, WAITS_FOR_CHILDREN, why="it goes on by itself when they are done")
        return Shown(Lifecycle.RUNNING, "suspended", why="it waits for nothing that a person is asked")
    if status == "running":
        return Shown(Lifecycle.FAILED, "lost", error=_LOST)
    if status in FAILED:
        return Shown(Lifecycle.FAILED, status or "", error=text(session.info, "last_run_error") or status)
    if status in CANCELLED:
        return Shown(Lifecycle.IDLE, "cancelled", why="its last run was interrupted")
    return Shown(Lifecycle.IDLE, status or ("never run" if "last_run_status" not in session.info else "idle"))


def result_of(session: Session) -> Result | None:
    """The record of the last run; None while one goes on, and where none was."""
    status = session.status
    if session.running or session.asks or status is None or status == "suspended":
        return None
    reason = StopReason.OTHER
    if status in DONE:
        reason = StopReason.END_TURN
    elif status in CANCELLED:
        reason = StopReason.CANCELLED
    elif status in FAILED or status == "running":
        reason = StopReason.ERROR
    return Result(stop_reason=reason, session_id=session.id, text=text(session.info, "last_run_error") or "")
