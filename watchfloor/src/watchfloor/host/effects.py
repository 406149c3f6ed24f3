"""What the pure parts of a host ask their shell to do, and what an operation came to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from watchfloor.harness.base import ConversationMessage, Signal
from watchfloor.protocol.events import Event
from watchfloor.protocol.frames import Command, Frame, Query
from watchfloor.protocol.model import Decision, JsonObject, RequestModel
from watchfloor.words import OutcomeKind


@dataclass(frozen=True, slots=True)
class Publish:
    """An event of the session; the log numbers it, unless it is a delta."""

    session: str
    event: Event


@dataclass(frozen=True, slots=True)
class Changed:
    """These fields of the session's summary have new values."""

    session: str
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class RequestChanged:
    """A request was opened or changed its state: clients get it whole."""

    session: str
    request: RequestModel


@dataclass(frozen=True, slots=True)
class Tell:
    """Hand a signal to the attempt, after all signals before it."""

    session: str
    attempt: int
    signal: Signal


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """Have the harness start this attempt."""

    session: str
    attempt: int


@dataclass(frozen=True, slots=True)
class EndAttempt:
    """The attempt is over. Release what it still holds, by force if it must be."""

    session: str
    attempt: int


@dataclass(frozen=True, slots=True)
class CompactNow:
    """Have the harness put the conversation into fewer words; `compacted` or `not_compacted` takes what came of it."""

    session: str
    messages: tuple[ConversationMessage, ...]


@dataclass(frozen=True, slots=True)
class ForkSession:
    """Add a session `id` like `session`, that begins with this conversation."""

    session: str
    id: str
    name: str
    messages: tuple[ConversationMessage, ...]
    model: str | None


@dataclass(frozen=True, slots=True)
class Forget:
    """The session was deleted: end what it holds, and remove it."""

    session: str


@dataclass(frozen=True, slots=True)
class Reached:
    """The session has come to rest, or to its end: whoever asked for it is told."""

    session: str
    state: str
    at: int


@dataclass(frozen=True, slots=True)
class Forward:
    """Hand a command of `by` to the foreign system that runs its session; `HostCore.answered` takes the outcome."""

    command: Command
    by: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the host's program this question of a client; `HostCore.reply` takes the answer."""

    conn: str
    query: Query


@dataclass(frozen=True, slots=True)
class SendFrame:
    """Write to a connection. `wire` is the encoded frame, shared by all who get the same one."""

    conn: str
    frame: Frame
    wire: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Close:
    """End a connection with a WebSocket close code, after the frames before it, or with `drop` at once."""

    conn: str
    code: int
    why: str
    drop: bool = False


SessionEffect = (
    Publish | Changed | RequestChanged | Tell | StartAttempt | EndAttempt | CompactNow | ForkSession | Forget | Reached
)
HostEffect = Tell | StartAttempt | EndAttempt | CompactNow | ForkSession | Forget | Forward | Ask | SendFrame | Close


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of an operation, and what follows from it.

    `reason` is for people; `info` goes into the outcome; `decided` names who was first where somebody was.
    """

    outcome: OutcomeKind
    effects: list[SessionEffect] = field(default_factory=list)
    reason: str | None = None
    info: JsonObject = field(default_factory=dict)
    decided: Decision | None = None
    retry_after_s: float | None = None

    @property
    def applied(self) -> bool:
        return self.outcome is OutcomeKind.APPLIED


def signals(effects: Iterable[object]) -> list[Signal]:
    """The signals among some effects, in order."""
    return [effect.signal for effect in effects if isinstance(effect, Tell)]
