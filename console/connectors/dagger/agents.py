"""One agent as it is known here, and how it is shown."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from console.connectors.dagger.ledger import Ledger, Sent
from console.connectors.dagger.reading import Json, count, down, text
from console.connectors.dagger.roster import Roster
from console.connectors.dagger.transcript import Transcript, tokens
from watchfloor.protocol.model import Mailbox, Pending, Usage
from watchfloor.words import Lifecycle, Overlay

LIFECYCLE: Final = {
    "IDLE": Lifecycle.IDLE,
    "RUNNING": Lifecycle.RUNNING,
    "WAITING_INPUT": Lifecycle.WAITING,
    "PAUSED": Lifecycle.PAUSED,
    "FAILED": Lifecycle.FAILED,
    "STOPPED": Lifecycle.STOPPED,
}
BUSY: Final = ("RUNNING", "WAITING_INPUT")
SESSION_ENDED: Final = "the session ended"
_STOPPED_BY: Final = {"SESSION": SESSION_ENDED, "EXPLICIT": "a client stopped it"}
_NOT_SEEN: Final = "not seen in this session yet: an agent that never was reads idle as well"
_RESUME: Final = {"PAUSED": "Resume", "FAILED": "Retry", "STOPPED": "Relaunch"}
_UNKNOWN_HERE: Final = ("has no runtime", "no object with id", "no record of")
_CONTROLLED: Final = ("pause", "resume", "stop", "reseed", "fork", "notify")


def unknown_here(reason: str) -> bool:
    """Does this error say that the engine knows no such agent, or no such message?"""
    return any(words in reason for words in _UNKNOWN_HERE)


@dataclass(slots=True)
class Agent:
    """`id` addresses it in this connection; None: not found out yet. `read` is what was last read of it.

    `proven`: something showed that the session has it. `over`: its session is gone, for the reason in `why_over`.
    """

    handle: str
    name: str = ""
    id: str | None = None
    owned: bool = False
    proven: bool = False
    over: bool = False
    why_over: str = SESSION_ENDED
    unreachable: str = ""
    read: Json = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    pending: Pending | None = None
    question: str | None = None
    """The request that is open while it waits for input."""
    unheard: list[Sent] = field(default_factory=list)
    """Messages whose answer came and was not looked for in the conversation yet."""
    answered: bool = False
    """Was it read in this connection?"""
    vanished: bool = False
    """The engine knew it in this connection, and then did not."""
    paused_at: tuple[object, ...] | None = None
    """What was read of it when a pause was asked for that has not landed."""
    ran_on: int = 0
    """How often it was read running since the step ended in which the pause was asked for."""
    asked: int = 0
    """Which reading of its state was the latest."""
    reading_on: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while its conversation is read or replaced: an older one that came late would look like a cut."""
    transcript: Transcript = field(init=False)

    def __post_init__(self) -> None:
        self.transcript = Transcript(self.handle)

    @property
    def state(self) -> str:
        """The engine's own word, "" where none was read."""
        return text(self.read.get("state"))

    def forget(self, reason: str) -> None:
        """The engine does not know it, or no more: nothing that was read of it holds."""
        if unknown_here(reason):
            self.proven = False
        self.id, self.unreachable, self.read, self.answered = None, reason, {}, False

    def pause_is_over(self) -> bool:
        """Has the pause landed, or been called off? The step that it waits for ends once, and then it lands.

        State and conversation are read side by side, so that once is not enough to tell.
        """
        if self.state != "RUNNING":
            return True
        self.ran_on = self.ran_on + 1 if self.reading != self.paused_at else 0
        return self.ran_on > 1

    @property
    def reading(self) -> tuple[object, ...]:
        """What changes when the conversation has."""
        snapshot = self.read.get("snapshot")
        return (
            self.state,
            down(snapshot, "lastReply"),
            down(snapshot, "contextTokens"),
            down(snapshot, "hasPending"),
            down(snapshot, "model"),
            tokens(down(snapshot, "tokenUsage")),
        )


def state_of(agent: Agent, roster: Roster) -> str:
    """The engine's word for its state; what telemetry says where nothing can be read, or the session has ended."""
    if agent.over:
        return "STOPPED"
    seen = roster.agents.get(agent.handle)
    record = seen.record if seen is not None else None
    if record is not None and record.state is not None and (record.stop_reason == "SESSION" or not agent.state):
        return record.state
    return agent.state


def fields(agent: Agent, roster: Roster) -> dict[str, object]:
    """Its summary."""
    state = state_of(agent, roster)
    lifecycle = LIFECYCLE.get(state, Lifecycle.UNKNOWN)
    unsure = not agent.proven and not agent.over
    if unsure and lifecycle is Lifecycle.IDLE:
        lifecycle = Lifecycle.UNKNOWN
    seen = roster.agents.get(agent.handle)
    record = seen.record if seen is not None else None
    told: dict[str, object] = {
        "name": agent.name or (seen.name if seen is not None else ""),
        "owned": agent.owned,
        "parent": text(down(agent.read, "parent", "handle")) or roster.parent(agent.handle),
        "lifecycle": lifecycle,
        "native_state": state or None,
        "why": _why(agent, roster, state, lifecycle),
        "error": _error(agent, roster) if state == "FAILED" else None,
        "blocked": blocked(agent, state, unsure=unsure),
        "controls": controls(agent, roster, state),
        "pending": agent.pending,
        "in_flight": roster.in_flight(agent.handle) if state == "RUNNING" else (),
        "mailbox": Mailbox(queued=len(agent.ledger.waiting), refs=agent.ledger.highest),
        "labels": labels(agent),
    }
    if agent.read.get("snapshot"):
        went_in, came_out = tokens(down(agent.read, "snapshot", "tokenUsage"))
        told["usage"] = Usage(input_tokens=went_in, output_tokens=came_out, turns=agent.transcript.turns)
    if record is not None and record.state == state and record.at:
        told["since"] = record.at
    return told


def _error(agent: Agent, roster: Roster) -> str:
    seen = roster.agents.get(agent.handle)
    failure = seen.record.failure if seen is not None and seen.record is not None else ""
    return text(agent.read.get("error")) or failure or "the engine gives no reason"


def _why(agent: Agent, roster: Roster, state: str, lifecycle: Lifecycle) -> str | None:
    seen = roster.agents.get(agent.handle)
    record = seen.record if seen is not None else None
    if agent.over:
        return agent.why_over
    if state == "FAILED":
        return _error(agent, roster)
    if state == "STOPPED" and record is not None and record.state == state:
        return _STOPPED_BY.get(record.stop_reason)
    if state and state not in LIFECYCLE:
        return f"the engine calls it {state}, which is not known here"
    if lifecycle is Lifecycle.UNKNOWN:
        return agent.unreachable or (None if agent.proven else _NOT_SEEN)
    if state in BUSY and record is not None and record.waiting_on:
        return f"waits for {record.waiting_on}"
    return None


def blocked(agent: Agent, state: str, *, unsure: bool) -> dict[str, str]:
    """What the engine would refuse now. Its answer is the truth: this only spares the operator a try."""
    if agent.over:
        return dict.fromkeys((*_CONTROLLED, "send"), agent.why_over)
    if agent.id is None:
        reason = agent.unreachable or "it cannot be addressed yet"
        return dict.fromkeys((*_CONTROLLED, "send"), reason)
    if unsure and state in ("IDLE", ""):
        # A message is refused where nobody is; some engines make an agent up for every other verb.
        return dict.fromkeys(_CONTROLLED, _NOT_SEEN)
    if state in BUSY:
        return {"reseed": "a turn runs: pause it at once first"}
    if state == "STOPPED":
        return {"pause": "it is stopped", "reseed": "it is stopped: relaunch it first"}
    return {}


def controls(agent: Agent, roster: Roster, state: str) -> dict[str, str]:
    """What a control does now."""
    told: dict[str, str] = {}
    if state in _RESUME:
        told["resume"] = _RESUME[state]
    elif state == "IDLE" and not roster.started(agent.handle):
        told["resume"] = "Start"
    elif state == "RUNNING" and agent.pending is not None and agent.pending.overlay is Overlay.PAUSING:
        told["resume"] = "Call the pause off"
    if state == "STOPPED":
        told["send"] = "relaunches it with this message"
    elif state == "WAITING_INPUT":
        told["send"] = "answers what it waits for"
    return told


def labels(agent: Agent) -> dict[str, str]:
    snapshot = agent.read.get("snapshot")
    told = {
        "model": text(down(snapshot, "model")),
        "provider": text(down(snapshot, "provider")),
        "effort": text(down(snapshot, "reasoningEffort")),
    }
    used, window = count(down(snapshot, "contextTokens")), count(down(snapshot, "contextWindow"))
    if snapshot and used:
        told["context"] = f"{used:,} of {window:,} tokens" if window else f"{used:,} tokens"
    return {name: value for name, value in told.items() if value}
