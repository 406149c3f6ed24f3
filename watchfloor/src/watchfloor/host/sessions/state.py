"""The facts of one session and what follows from them: its row of the table, its lifecycle, its summary.

Nothing here changes a session: `changes` holds the steps of which `operations` and `session` make transitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from watchfloor.harness.base import Conversation, MailItem, Signal
from watchfloor.host.effects import SessionEffect
from watchfloor.host.sessions.budget import Budget
from watchfloor.host.sessions.kept import KeptAnswers
from watchfloor.host.sessions.mailbox import Mailbox
from watchfloor.host.sessions.requests import Requests
from watchfloor.host.sessions.streams import Streams
from watchfloor.protocol.frames import DoReseed
from watchfloor.protocol.model import Capabilities, InFlight, Pending, Result, Usage
from watchfloor.words import (
    DELETABLE,
    TABLE,
    TERMINAL,
    Consequence,
    Lifecycle,
    Op,
    Overlay,
    Primitive,
    RequestKind,
    Row,
    Verdict,
)


class Phase(Enum):
    """Where the current attempt stands."""

    NEVER_STARTED = "never started"
    STARTING = "starting"
    LIVE = "live"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


_OVER: Final[Mapping[Phase, Row]] = {
    Phase.COMPLETED: Row.COMPLETED,
    Phase.FAILED: Row.FAILED,
    Phase.STOPPED: Row.STOPPED,
}

LIFECYCLE_OF: Final[Mapping[Row, Lifecycle]] = {
    Row.NEVER_STARTED: Lifecycle.IDLE,
    Row.PAUSED_OPEN: Lifecycle.PAUSED,
    **{row: Lifecycle(row.value) for row in Row if row.value in Lifecycle._value2member_map_},
}
"""The lifecycle state that an operator sees in each row."""

OP_OF: Final[Mapping[Primitive, Op]] = {
    Primitive.SEND: Op.SEND,
    Primitive.PAUSE: Op.PAUSE,
    Primitive.INTERRUPT: Op.INTERRUPT,
    Primitive.RESUME: Op.RESUME,
    Primitive.STOP: Op.STOP,
    Primitive.RESEED: Op.RESEED,
}
"""The primitives that have a column in the table."""

_ASKS: Final[Mapping[Primitive, RequestKind]] = {
    Primitive.APPROVE: RequestKind.APPROVAL,
    Primitive.ANSWER: RequestKind.QUESTION,
}

RESTS: Final = frozenset({Lifecycle.IDLE, *TERMINAL})
"""States in which a session does nothing by itself, and waits for nobody's decision."""
UNLOADED: Final = "not loaded"
STOP_FIRST: Final = "stop it first"

_SHOWN_FIRST: Final = (
    Overlay.STOPPING,
    Overlay.INTERRUPTING,
    Overlay.RESEEDING,
    Overlay.PAUSING,
    Overlay.RESUMING,
)


@dataclass(slots=True)
class Asked:
    """A change that somebody asked for and that has not landed.

    `hard`: by force (pause at once, kill). `told`: the attempt knows. `force_at`: when patience ends.
    `resume`: go on as soon as it has landed.
    """

    by: str
    since: int
    hard: bool = False
    told: bool = True
    force_at: int | None = None
    reason: str | None = None
    resume: bool = False
    reseed: DoReseed | None = None


@dataclass(slots=True)
class Suspension:
    """How a paused session hangs.

    `parked`: the step waits for `Resume`. `cut`: the step was cancelled, the turn must be woken anew with
    the same mail. Neither: the attempt only waits for the signals in `held`, or no turn is open at all.
    """

    parked: bool = False
    cut: bool = False
    held: list[Signal] = field(default_factory=list)


class SessionState:
    """The facts; the base of `SessionCore`."""

    def __init__(
        self,
        session_id: str,
        *,
        capabilities: Capabilities,
        now: int,
        starts_itself: bool = False,
        grace_s: float = 5.0,
    ) -> None:
        self.id = session_id
        self.capabilities = capabilities
        self.starts_itself = starts_itself
        self.grace_ms = int(grace_s * 1000)
        self.attempt = 1
        self.phase = Phase.NEVER_STARTED
        self.turn: str | None = None
        self.paused = False
        self.suspension = Suspension()
        self.pending: dict[Overlay, Asked] = {}
        self.in_flight: dict[str, InFlight] = {}
        self.mailbox = Mailbox()
        self.requests = Requests(session_id)
        self.streams = Streams()
        self.conversation = Conversation()
        self.seed: Conversation | None = None
        """What takes the place of the conversation when it is replaced next, where that is more than a text."""
        self.usage: Usage | None = None
        self.budget = Budget()
        self.subscribers: dict[str, frozenset[str]] = {}
        """Sessions that are told when this one reaches one of these states."""
        self.result: Result | None = None
        self.error: str | None = None
        self.why: str | None = None
        self.since = now
        self.kept = KeptAnswers()
        """What was decided in the turn under way, for an agent that asks again after its host has ended."""
        self.calls: dict[str, bool] = {}
        """Tool calls without a result, and whether they are being carried out."""
        self.unloaded = False
        """It came back with its host, and no attempt of it was started since."""
        # Mail of the turn that the last attempt left: what a relaunch takes up again.
        self.carried: tuple[MailItem, ...] = ()
        # What the attempt that is starting takes up.
        self._again: tuple[MailItem, ...] = ()
        self.turns = 0
        self._wake_next = False
        # Of the current attempt.
        self.begun = 0
        # Work that was done, and how much of it subscribers were told of.
        self.worked = 0
        self._told = 0
        self._effects: list[SessionEffect] = []
        self._shown: dict[str, object] = {}
        self._shown = self._view()

    # --- what follows from the facts

    @property
    def alive(self) -> bool:
        """Is there an attempt that signals can reach?"""
        return self.phase in (Phase.STARTING, Phase.LIVE)

    def row(self) -> Row:
        """The row of the table in which the session is."""
        over = _OVER.get(self.phase)
        if over is not None:
            return over
        if self.paused:
            return Row.PAUSED_OPEN if self.requests else Row.PAUSED
        if self.phase is Phase.NEVER_STARTED:
            return Row.NEVER_STARTED
        if self.phase is Phase.STARTING:
            return Row.STARTING
        if self.turn is None:
            return Row.IDLE
        return Row.WAITING if self._waits() else Row.RUNNING

    def _waits(self) -> bool:
        return self.requests.blocking() and not (self.in_flight.keys() - self.requests.calls())

    @property
    def lifecycle(self) -> Lifecycle:
        return LIFECYCLE_OF[self.row()]

    @property
    def settled(self) -> bool:
        """Would `wait` return now? Not while something that was asked for has not landed."""
        return not self.pending and TABLE[self.row()][Op.WAIT].verdict is not Verdict.BLOCKS

    def blocked(self) -> dict[str, str]:
        """Advertised primitives that the current state forbids, with the reason."""
        cells = TABLE[self.row()]
        blocked = {
            primitive.value: cells[op].why
            for primitive, op in OP_OF.items()
            if self.capabilities.advertises(primitive) and cells[op].verdict is Verdict.ERROR
        }
        if self.capabilities.advertises(Primitive.RESUME) and (limit := self.limit()) is not None:
            blocked.setdefault(Primitive.RESUME.value, f"{limit}: raise it first")
        if self.capabilities.advertises(Primitive.DELETE) and self.row() not in DELETABLE:
            blocked[Primitive.DELETE.value] = STOP_FIRST
        for primitive, kind in _ASKS.items():
            if self.capabilities.advertises(primitive) and not self.requests.has(kind):
                blocked[primitive.value] = "no open request"
        return blocked

    @property
    def phase_is_live(self) -> bool:
        return self.phase is Phase.LIVE

    def limit(self) -> str | None:
        """The budget that keeps the session from going on, in words; None for none."""
        return self.budget.reached(self._used()) if self.paused and self.phase not in _OVER else None

    def _used(self) -> Usage:
        """What the attempt has used. Its turns are counted here, whatever it says of them."""
        used = self.usage or Usage()
        return used if used.turns >= self.begun else used.model_copy(update={"turns": self.begun})

    def reached(self) -> str | None:
        """What a subscriber would be told at once: the state in which the session rests after some work."""
        state = self.lifecycle
        if state is Lifecycle.IDLE and not self.worked:
            return None
        return state.value if state in RESTS else None

    def last_words(self) -> str:
        """What the session said last, as its result or in its conversation."""
        if self.result is not None and (self.result.final_message or self.result.text):
            return self.result.final_message or self.result.text
        return next((m.text for m in reversed(self.conversation.messages) if m.role == "assistant"), "")

    def controls(self) -> dict[str, str]:
        """What a control will do now, where its name does not say it."""
        if not self.capabilities.advertises(Primitive.RESUME):
            return {}
        row = self.row()
        if Consequence.NEW_ATTEMPT in TABLE[row][Op.RESUME].also:
            label = f"Retry (attempt {self.attempt + 1})" if row is Row.FAILED else "Relaunch"
            return {Primitive.RESUME.value: label}
        return {Primitive.RESUME.value: "Start"} if row is Row.NEVER_STARTED else {}

    def overlay(self) -> Pending | None:
        """The change under way that matters most."""
        for overlay in _SHOWN_FIRST:
            asked = self.pending.get(overlay)
            if asked is not None:
                return Pending(overlay=overlay, by=asked.by, since=asked.since)
        return None

    def summary(self) -> dict[str, object]:
        """The fields of a summary that this session knows; the log knows epoch, head and last."""
        return {**self._view(), "usage": self.usage}

    def _native_state(self, row: Row) -> str | None:
        if row is not Row.NEVER_STARTED:
            return None
        return UNLOADED if self.unloaded else row.value

    def _view(self) -> dict[str, object]:
        row = self.row()
        return {
            "attempt": self.attempt,
            "turn": self.turn,
            "lifecycle": LIFECYCLE_OF[row],
            "native_state": self._native_state(row),
            "why": self.why,
            "since": self.since,
            "blocked": self.blocked(),
            "controls": self.controls(),
            "pending": self.overlay(),
            "in_flight": tuple(self.in_flight.values()),
            "mailbox": self.mailbox.view,
            "requests": self.requests.refs(),
            "result": self.result,
            "error": self.error,
        }
