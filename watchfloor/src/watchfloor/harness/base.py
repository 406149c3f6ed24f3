"""The seam between a host and whatever runs an agent.

A harness starts attempts. An attempt (`AgentSession`) is told things by `Signal`s and reports through
the `SessionPort` that it was given; the host's session core owns every lifecycle transition, so that
harnesses cannot disagree about the table in `watchfloor.words`.

Everything here is called on the host's event loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from watchfloor.protocol.events import Event
from watchfloor.protocol.model import Capabilities, RequestModel, Result, Traits, Usage
from watchfloor.words import Lifecycle, OptionKind, ReseedMode


@dataclass(frozen=True, slots=True)
class MailItem:
    """A message for the agent. `ref` is "#n" in the session's mailbox."""

    ref: str
    text: str
    by: str
    reply_to: str | None = None
    event: str | None = None
    """What another session has reached, where the message is news of that one (`by` is its id)."""


@dataclass(slots=True)
class Conversation:
    """What the session remembers across turns and attempts; a list of role and text. Reseed replaces its content.

    `model`: the label of the model that operators chose; None where they did not.
    """

    messages: list[ConversationMessage] = field(default_factory=list)
    model: str | None = None
    notes: dict[str, str] = field(default_factory=dict)
    """What its harness has to know again when the host was started anew. No part of what was said."""


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    role: str
    text: str
    ref: str | None = None


# --- from the host to the attempt ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wake:
    """Begin a turn with this mail (none: the conversation has something pending, or the attempt was relaunched)."""

    turn: str
    mail: tuple[MailItem, ...] = ()


@dataclass(frozen=True, slots=True)
class MailArrived:
    """A message waits in the mailbox; `SessionPort.checkpoint` hands it over at the next step boundary."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Suspend: at the next step boundary, or with `interrupt` at once, the step being cancelled. `by`: who asked."""

    interrupt: bool = False
    by: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with the suspended turn. `by`: who asked."""

    by: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Cancel the step and end the turn."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the attempt: at the step boundary, or with `kill` at once."""

    kill: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """A request was decided. `text`, `fields`: the answer of a question, which may be secret; no `repr` shows it."""

    request: str
    option: str | None
    kind: OptionKind
    by: str
    note: str | None = None
    text: str | None = field(default=None, repr=False)
    fields: Mapping[str, JsonValue] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A request was withdrawn or expired: whoever waits for it must take it as denied."""

    request: str
    why: str


@dataclass(frozen=True, slots=True)
class Reseed:
    """The conversation was replaced; `mode` says how."""

    mode: ReseedMode


Signal = Wake | MailArrived | Pause | Resume | Interrupt | Stop | Decided | Withdrawn | Reseed


# --- from the attempt to the host ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Boundary:
    """What a step boundary brought: new mail, and whether the attempt is suspended until `Resume` or `Stop`."""

    mail: tuple[MailItem, ...] = ()
    paused: bool = False
    stopped: bool = False
    limit: str | None = None
    """Which budget is used up: the turn is to end with `SessionPort.limited`."""


@dataclass(frozen=True, slots=True)
class Rest:
    """How a session came to rest: its state, what it said last, and its error where it failed."""

    state: Lifecycle
    said: str = ""
    error: str | None = None


class SessionPort(Protocol):
    """What an attempt reports through. Calls for an attempt that was superseded raise `StaleTarget`."""

    @property
    def session_id(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def conversation(self) -> Conversation: ...

    def now(self) -> int:
        """Milliseconds since 1970 UTC by the host's clock."""
        ...

    def emit(self, event: Event) -> None:
        """Record an event; the host numbers it and fills in attempt, turn and `at` (a 0 means "now")."""
        ...

    def stream(self, item: str, of: str, text: str, *, call: str | None = None) -> None:
        """Append to a streamed item; the whole item must be emitted with the same `item` at its end."""
        ...

    def started(self) -> None:
        """The attempt runs (leaves `starting`)."""
        ...

    def begin(self, work: str, name: str) -> None:
        """Work is in flight."""
        ...

    def end(self, work: str) -> None: ...

    def ask(self, request: RequestModel) -> None:
        """Open a request. Its end arrives as `Decided` or `Withdrawn`. Ids must be unique for ever."""
        ...

    def withdraw(self, request: str, why: str) -> None: ...

    def checkpoint(self) -> Boundary:
        """A step boundary: consumes steered mail and lets a pause or stop that was asked for land."""
        ...

    def paused(self) -> None:
        """A pause landed outside a step boundary (a process was stopped, a step was cancelled)."""
        ...

    def resumed(self) -> None: ...

    def usage(self, usage: Usage) -> None: ...

    def turn_ended(self, result: Result) -> None:
        """The turn is over, the session takes more input."""
        ...

    def completed(self, result: Result) -> None: ...

    def failed(self, error: str, result: Result | None = None) -> None: ...

    def limited(self, result: Result) -> None:
        """The turn ended at a boundary that named a limit; it is taken up again once the budget was raised."""
        ...

    def interrupted(self) -> None:
        """The step was cancelled after `Interrupt`."""
        ...

    def stopped(self, result: Result | None = None) -> None:
        """The attempt wound down after `Stop`."""
        ...

    def reply(self, ref: str, text: str) -> None:
        """Answer a message of this session by its ref: whoever waits for its response gets this, unless it has one.

        Raises KeyError where there is no such message.
        """
        ...

    async def wait(self, session: str) -> Rest:
        """Until nothing of another session of this host runs or waits. A paused one blocks until somebody resumes it.

        Raises Deadlock where that one waits for this one, StaleTarget where it is not there.
        """
        ...

    def spawn(self, harness: AgentHarness, *, name: str, text: str | None = None) -> str:
        """Add a child session, running at once when `text` is given; returns its id."""
        ...


@dataclass(frozen=True, slots=True)
class AttemptSpec:
    """What an attempt is started with."""

    session_id: str
    attempt: int
    name: str
    cwd: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


class AgentSession(Protocol):
    """One attempt."""

    @property
    def capabilities(self) -> Capabilities:
        """Fixed for the attempt."""
        ...

    async def intervene(self, signal: Signal) -> None:
        """Take a signal. Must return promptly; long work goes into the attempt's own task."""
        ...

    async def close(self) -> None:
        """The host shuts down: end everything that the attempt owns."""
        ...


class AgentHarness(Protocol):
    """Starts attempts."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def traits(self) -> Traits: ...

    @property
    def starts_itself(self) -> bool:
        """True where an attempt runs without a first message (a program); False where it waits for mail."""
        ...

    @property
    def grace_s(self) -> float:
        """Seconds between asking an attempt to stop and ending it by force."""
        ...

    async def start(self, spec: AttemptSpec, port: SessionPort) -> AgentSession:
        """Start an attempt; raises where it cannot be started (the host marks the session failed)."""
        ...


class Compacting(Protocol):
    """A harness whose sessions can be compacted: it can put a conversation into fewer words."""

    async def compact(self, messages: Sequence[ConversationMessage]) -> Sequence[ConversationMessage]:
        """The messages that take the place of these. Raises where it cannot: the conversation stays as it is then."""
        ...
