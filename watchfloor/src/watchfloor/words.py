"""The vocabulary of Watchfloor, and the lifecycle table as data.

Standard library only: the library, the console's fleet and its widgets all speak these words,
and none of them should have to load a protocol library to do so.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

PROTOCOL: Final = "watchfloor.v1"
"""WebSocket subprotocol name and the value of `welcome.protocol`."""
WENT_BACK: Final = " (went back "
"""What stands behind the epoch of a log whose source was set back to an older state of it, before how often it was."""


class Lifecycle(StrEnum):
    """What a session is doing, as far as its source tells."""

    STARTING = "starting"
    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


TERMINAL: Final = frozenset({Lifecycle.COMPLETED, Lifecycle.FAILED, Lifecycle.STOPPED})
"""States in which the attempt has its result; only a new attempt can follow."""


class Overlay(StrEnum):
    """A change that was asked for and has not landed yet; drawn over the lifecycle state."""

    PAUSING = "pausing"
    RESUMING = "resuming"
    STOPPING = "stopping"
    INTERRUPTING = "interrupting"
    RESEEDING = "reseeding"


class Primitive(StrEnum):
    """A kind of intervention. Approve covers allow and deny options."""

    SEND = "send"
    PAUSE = "pause"
    RESUME = "resume"
    INTERRUPT = "interrupt"
    STOP = "stop"
    RESEED = "reseed"
    FORK = "fork"
    BUDGET = "budget"
    APPROVE = "approve"
    ANSWER = "answer"
    NOTIFY = "notify"
    DELETE = "delete"
    ACT = "act"


OVERLAY_OF: Final[Mapping[Primitive, Overlay]] = MappingProxyType(
    {
        Primitive.PAUSE: Overlay.PAUSING,
        Primitive.RESUME: Overlay.RESUMING,
        Primitive.STOP: Overlay.STOPPING,
        Primitive.INTERRUPT: Overlay.INTERRUPTING,
        Primitive.RESEED: Overlay.RESEEDING,
    }
)


class OutcomeKind(StrEnum):
    """What became of a command."""

    APPLIED = "applied"
    CAPABILITY_NOT_SUPPORTED = "capability_not_supported"
    STALE_TARGET = "stale_target"
    ALREADY_DECIDED = "already_decided"
    INVALID = "invalid"
    NOT_PERMITTED = "not_permitted"
    UNDELIVERED = "undelivered"
    UNKNOWN = "unknown"
    REFUSED = "refused"


EXIT_CODE: Final[Mapping[OutcomeKind, int]] = MappingProxyType(
    {
        OutcomeKind.APPLIED: 0,
        OutcomeKind.CAPABILITY_NOT_SUPPORTED: 3,
        OutcomeKind.STALE_TARGET: 4,
        OutcomeKind.ALREADY_DECIDED: 5,
        OutcomeKind.INVALID: 6,
        OutcomeKind.NOT_PERMITTED: 7,
        OutcomeKind.UNDELIVERED: 8,
        OutcomeKind.UNKNOWN: 9,
        OutcomeKind.REFUSED: 10,
    }
)
"""Exit status of the command line for each outcome (1 is our own bug, 2 is usage)."""


class EffectState(StrEnum):
    """Has the effect of an applied command been seen on the session?"""

    PENDING = "pending"
    SEEN = "seen"
    OVERDUE = "overdue"
    CONTRARY = "contrary"
    UNOBSERVABLE = "unobservable"


EFFECT_TIMEOUT_S: Final = 10.0
RESEED_TIMEOUT_S: Final = 30.0
"""Seconds after which an effect that was not seen is overdue (stop: its grace time plus 5)."""


class Delivery(StrEnum):
    """How a sent message reached its session."""

    STARTED = "started"
    STEERED = "steered"
    QUEUED = "queued"


class Priority(StrEnum):
    """Normal steers at the next checkpoint, queue waits for the turn's end, interrupt ends the turn first."""

    NORMAL = "normal"
    INTERRUPT = "interrupt"
    QUEUE = "queue"


class ReseedMode(StrEnum):
    REPLACE = "replace"
    REWIND = "rewind"
    COMPACT = "compact"
    CLEAR = "clear"
    MODEL = "model"


class RequestKind(StrEnum):
    APPROVAL = "approval"
    QUESTION = "question"


class RequestState(StrEnum):
    OPEN = "open"
    UNCONFIRMED = "unconfirmed"
    UNREAD = "unread"
    RESOLVED = "resolved"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


ANSWERABLE: Final = frozenset({RequestState.OPEN, RequestState.UNCONFIRMED, RequestState.UNREAD})
"""Request states that still wait for a human."""


class OptionKind(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ANSWER = "answer"
    EDIT = "edit"


DECIDED: Final[Mapping[OptionKind | None, str]] = MappingProxyType(
    {
        OptionKind.ALLOW: "approved",
        OptionKind.DENY: "denied",
        OptionKind.ANSWER: "answered",
        OptionKind.EDIT: "approved with changes",
        None: "decided",
    }
)
"""What somebody has done who took an option of that kind; None: the kind is not known."""


def verb(primitive: str, option: OptionKind | None) -> str:
    """What a command does, in one word: the primitive `approve` covers denying as well."""
    return OptionKind.DENY.value if option is OptionKind.DENY else primitive


class Scope(StrEnum):
    ONCE = "once"
    TURN = "turn"
    SESSION = "session"
    WORKSPACE = "workspace"
    AGENT = "agent"
    GLOBAL = "global"


class Then(StrEnum):
    """What the agent does once an option was chosen."""

    CONTINUES = "continues"
    ENDS_TURN = "ends_turn"
    ENDS_ATTEMPT = "ends_attempt"
    WAITS_FOR_RESUME = "waits_for_resume"


class StopReason(StrEnum):
    """Why a run ended, in the one vocabulary that every harness maps to."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    LIMIT_REACHED = "limit_reached"
    CANCELLED = "cancelled"
    ERROR = "error"
    OTHER = "other"


class Contact(StrEnum):
    """Is the source heard? Lost contact shows the last known state, never "stopped"."""

    CONNECTING = "connecting"
    LIVE = "live"
    SILENT = "silent"
    LOST = "lost"
    UNATTACHED = "unattached"
    REFUSED = "refused"


class Continuity(StrEnum):
    """Does the console hold every event of a session?"""

    WHOLE = "whole"
    GAP = "gap"
    GAP_UNKNOWN = "gap of unknown size"
    BEYOND_RETENTION = "beyond retention"
    ARRIVAL_ORDER = "arrival order"
    TAIL_ONLY = "tail only"
    NOT_FOLLOWED = "not followed"


class Role(StrEnum):
    """What a connected principal may do."""

    OBSERVER = "observer"
    OPERATOR = "operator"
    AGENT = "agent"


# --- the lifecycle table -------------------------------------------------------------------


class Row(StrEnum):
    """A row of the state x operation table: the lifecycle states, two of them split."""

    NEVER_STARTED = "never started"
    STARTING = "starting"
    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    PAUSED_OPEN = "paused with open request"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


class Op(StrEnum):
    """A column of the table: an operation, two of them with their harder form."""

    SEND = "send"
    PAUSE = "pause"
    PAUSE_INTERRUPT = "pause(interrupt)"
    INTERRUPT = "interrupt"
    RESUME = "resume"
    STOP = "stop"
    STOP_KILL = "stop(kill)"
    RESEED = "reseed"
    WAIT = "wait"


class Verdict(StrEnum):
    OK = "ok"
    NOOP = "no-op"
    ERROR = "error"
    BLOCKS = "blocks"


class Consequence(StrEnum):
    """What an operation does besides moving the state."""

    NEW_ATTEMPT = "new attempt"
    AT_STEP = "lands at the next step boundary"
    AFTER_DECISION = "lands after the decision is recorded"
    CANCELS_STEP = "the step is cancelled"
    ABANDONS_TURN = "the suspended turn is abandoned"
    CANCELS_PAUSE = "a pause asked for before is cancelled"
    WITHDRAWS_REQUESTS = "open requests are withdrawn"
    ENDS_MAIL = "consumed and queued messages end with an error"


class Cell(NamedTuple):
    """One cell of the table.

    `to` holds the states that the session may settle in; where there are several, the first whose
    condition holds: pending input -> running (or waiting when a request is still open), else idle.
    An empty `to` means that the state stays as it is. A no-op with states is one unless input waits.
    """

    verdict: Verdict
    to: tuple[Lifecycle, ...] = ()
    delivery: Delivery | None = None
    also: frozenset[Consequence] = frozenset()
    why: str = ""


def _ok(*to: Lifecycle, also: tuple[Consequence, ...] = (), delivery: Delivery | None = None) -> Cell:
    return Cell(Verdict.OK, to, delivery, frozenset(also))


def _no(why: str) -> Cell:
    return Cell(Verdict.ERROR, why=why)


_L, _C, _D = Lifecycle, Consequence, Delivery
_NOOP, _BLOCKS, _RETURNS = Cell(Verdict.NOOP), Cell(Verdict.BLOCKS), Cell(Verdict.OK)
_NOTHING_RUNS = "nothing runs"
_HARD = (_C.CANCELS_STEP, _C.WITHDRAWS_REQUESTS)
_END = (_C.ENDS_MAIL, _C.WITHDRAWS_REQUESTS)
_KILL = (_C.CANCELS_STEP, *_END)

TABLE: Final[Mapping[Row, Mapping[Op, Cell]]] = MappingProxyType(
    {
        Row.NEVER_STARTED: {
            Op.SEND: _ok(_L.RUNNING, delivery=_D.STARTED),
            Op.PAUSE: _ok(_L.PAUSED),
            Op.PAUSE_INTERRUPT: _ok(_L.PAUSED),
            Op.INTERRUPT: _no(_NOTHING_RUNS),
            Op.RESUME: _ok(_L.RUNNING, _L.IDLE),
            Op.STOP: _ok(_L.STOPPED, also=_END),
            Op.STOP_KILL: _ok(_L.STOPPED, also=_KILL),
            Op.RESEED: _ok(_L.IDLE),
            Op.WAIT: _RETURNS,
        },
        Row.STARTING: {
            Op.SEND: _ok(delivery=_D.QUEUED),
            Op.PAUSE: _ok(_L.PAUSED, also=(_C.AT_STEP,)),
            Op.PAUSE_INTERRUPT: _ok(_L.PAUSED, also=(_C.AT_STEP,)),
            Op.INTERRUPT: _ok(_L.IDLE, also=(_C.AT_STEP,)),
            Op.RESUME: Cell(Verdict.NOOP, also=frozenset({_C.CANCELS_PAUSE})),
            Op.STOP: _ok(_L.STOPPED, also=_END),
            Op.STOP_KILL: _ok(_L.STOPPED, also=_KILL),
            Op.RESEED: _no("the session is starting"),
            Op.WAIT: _BLOCKS,
        },
        Row.IDLE: {
            Op.SEND: _ok(_L.RUNNING, delivery=_D.STARTED),
            Op.PAUSE: _ok(_L.PAUSED),
            Op.PAUSE_INTERRUPT: _ok(_L.PAUSED),
            Op.INTERRUPT: _no(_NOTHING_RUNS),
            # Mail that an interrupt left in the queue is what a resume takes up; without any it does nothing.
            Op.RESUME: Cell(Verdict.NOOP, (_L.RUNNING, _L.IDLE)),
            Op.STOP: _ok(_L.STOPPED, also=_END),
            Op.STOP_KILL: _ok(_L.STOPPED, also=_KILL),
            Op.RESEED: _ok(_L.IDLE),
            Op.WAIT: _RETURNS,
        },
        Row.RUNNING: {
            Op.SEND: _ok(_L.RUNNING, delivery=_D.STEERED),
            Op.PAUSE: _ok(_L.PAUSED, also=(_C.AT_STEP,)),
            Op.PAUSE_INTERRUPT: _ok(_L.PAUSED, also=_HARD),
            Op.INTERRUPT: _ok(_L.IDLE, also=_HARD),
            Op.RESUME: Cell(Verdict.NOOP, also=frozenset({_C.CANCELS_PAUSE})),
            Op.STOP: _ok(_L.STOPPED, also=(_C.AT_STEP, *_END)),
            Op.STOP_KILL: _ok(_L.STOPPED, also=_KILL),
            Op.RESEED: _no("a turn is running: interrupt or pause it first"),
            Op.WAIT: _BLOCKS,
        },
        Row.WAITING: {
            Op.SEND: _ok(_L.WAITING, delivery=_D.STEERED),
            Op.PAUSE: _ok(_L.PAUSED, also=(_C.AFTER_DECISION,)),
            Op.PAUSE_INTERRUPT: _ok(_L.PAUSED, also=_HARD),
            Op.INTERRUPT: _ok(_L.IDLE, also=_HARD),
            Op.RESUME: Cell(Verdict.NOOP, also=frozenset({_C.CANCELS_PAUSE})),
            Op.STOP: _ok(_L.STOPPED, also=_END),
            Op.STOP_KILL: _ok(_L.STOPPED, also=_KILL),
            Op.RESEED: _no("a request is open: decide it, or interrupt the turn first"),
            Op.WAIT: _BLOCKS,
        },
        Row.PAUSED: {
            Op.SEND: _ok(_L.PAUSED, delivery=_D.QUEUED),
            Op.PAUSE: _NOOP,
            Op.PAUSE_INTERRUPT: _NOOP,
            Op.INTERRUPT: _ok(_L.PAUSED, also=(_C.ABANDONS_TURN,)),
            Op.RESUME: _ok(_L.RUNNING, _L.IDLE),
            Op.STOP: _ok(_L.STOPPED, also=_END),
            Op.STOP_KILL: _ok(_L.STOPPED, also=_KILL),
            Op.RESEED: _ok(_L.PAUSED, also=(_C.ABANDONS_TURN,)),
            Op.WAIT: _BLOCKS,
        },
        Row.PAUSED_OPEN: {
            Op.SEND: _ok(_L.PAUSED, delivery=_D.QUEUED),
            Op.PAUSE: _NOOP,
            Op.PAUSE_INTERRUPT: _ok(_L.PAUSED, also=_HARD),
            Op.INTERRUPT: _ok(_L.PAUSED, also=(_C.WITHDRAWS_REQUESTS, _C.ABANDONS_TURN)),
            Op.RESUME: _ok(_L.WAITING, _L.RUNNING),
            Op.STOP: _ok(_L.STOPPED, also=_END),
            Op.STOP_KILL: _ok(_L.STOPPED, also=_KILL),
            Op.RESEED: _ok(_L.PAUSED, also=(_C.WITHDRAWS_REQUESTS, _C.ABANDONS_TURN)),
            Op.WAIT: _BLOCKS,
        },
        Row.COMPLETED: {
            Op.SEND: _ok(_L.RUNNING, delivery=_D.STARTED, also=(_C.NEW_ATTEMPT,)),
            Op.PAUSE: _no("the attempt is completed"),
            Op.PAUSE_INTERRUPT: _no("the attempt is completed"),
            Op.INTERRUPT: _no(_NOTHING_RUNS),
            Op.RESUME: _ok(_L.RUNNING, _L.IDLE, also=(_C.NEW_ATTEMPT,)),
            Op.STOP: _ok(_L.STOPPED, also=_END),
            Op.STOP_KILL: _ok(_L.STOPPED, also=_KILL),
            Op.RESEED: _ok(_L.COMPLETED),
            Op.WAIT: _RETURNS,
        },
        Row.FAILED: {
            Op.SEND: _ok(_L.FAILED, delivery=_D.QUEUED),
            Op.PAUSE: _NOOP,
            Op.PAUSE_INTERRUPT: _NOOP,
            Op.INTERRUPT: _no(_NOTHING_RUNS),
            Op.RESUME: _ok(_L.RUNNING, also=(_C.NEW_ATTEMPT,)),
            Op.STOP: _ok(_L.STOPPED, also=_END),
            Op.STOP_KILL: _ok(_L.STOPPED, also=_KILL),
            Op.RESEED: _ok(_L.FAILED),
            Op.WAIT: _RETURNS,
        },
        Row.STOPPED: {
            Op.SEND: _ok(_L.RUNNING, delivery=_D.STARTED, also=(_C.NEW_ATTEMPT,)),
            Op.PAUSE: _no("the session is stopped"),
            Op.PAUSE_INTERRUPT: _no("the session is stopped"),
            Op.INTERRUPT: _no(_NOTHING_RUNS),
            Op.RESUME: _ok(_L.RUNNING, _L.IDLE, also=(_C.NEW_ATTEMPT,)),
            Op.STOP: _NOOP,
            Op.STOP_KILL: _NOOP,
            Op.RESEED: _no("the session is stopped: resume it first"),
            Op.WAIT: _RETURNS,
        },
    }
)
"""Every state x every operation, as the native host follows it. A session that a host does not know
has no row: each verb on it is `stale_target`."""

DELETABLE: Final = frozenset({Row.NEVER_STARTED, Row.IDLE, Row.COMPLETED, Row.FAILED, Row.STOPPED})
"""Rows in which a session can be deleted: nothing of it runs, is suspended, or waits for a decision."""
