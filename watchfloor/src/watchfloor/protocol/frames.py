"""The frames of watchfloor.v1, by the side that sends them.

A role `agent` dials in and speaks the host's side. A frame of a type that we do not know is kept as
`UnknownFrame` and counted, never fatal.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from watchfloor.protocol.events import AnyEvent, Tagged
from watchfloor.protocol.model import (
    Decision,
    JsonObject,
    Millis,
    Model,
    Profile,
    RequestModel,
    Summary,
    lenient,
)
from watchfloor.words import OutcomeKind, Primitive, Priority, ReseedMode, Role

ALL: Literal["*"] = "*"
"""Watch every session."""

Seconds = Annotated[float, Field(allow_inf_nan=False)]
CommandId = Annotated[str, Field(min_length=1, max_length=200)]
MOST_RECALLED: Final = 1000
"""Commands that one `recall` may ask about: each has an answer of its own, and a client's queue is bounded."""


class Frame(Tagged):
    """Base of all frames."""


# --- from the client -----------------------------------------------------------------------


class Hello(Frame):
    """First frame of a client. `name` stands for the principal where no token names one, shown as unverified."""

    type: Literal["hello"] = "hello"
    client: str
    version: str
    name: str = ""


class Cursor(Model):
    """How far a session was read: exclusive."""

    epoch: str
    seq: Annotated[int, Field(ge=0)]


class Watch(Frame):
    """Follow a session, or all (`*`).

    `after` is a pos (with `*`) or cursors per session; without it `start` says whether to begin at the
    start of what is kept or at the head. Details, requests and mailbox of the session are sent as well.
    """

    type: Literal["watch"] = "watch"
    session: str
    after: Annotated[int, Field(ge=0)] | dict[str, Cursor] | None = None
    start: Literal["head", "start"] = "head"


class Unwatch(Frame):
    type: Literal["unwatch"] = "unwatch"
    session: str


class History(Frame):
    """Ask for a page of stored events: after `after` upwards, or before `before` downwards; never deltas."""

    type: Literal["history"] = "history"
    id: str
    session: str
    epoch: str
    before: Annotated[int | None, Field(ge=1)] = None
    after: Annotated[int | None, Field(ge=0)] = None
    limit: Annotated[int, Field(ge=1, le=5000)] = 500


class DoSend(Tagged):
    primitive: Literal["send"] = "send"
    text: str
    priority: Priority = Priority.NORMAL
    reply_to: str | None = None


class DoPause(Tagged):
    """`interrupt` suspends the step at once instead of at its boundary."""

    primitive: Literal["pause"] = "pause"
    interrupt: bool = False


class DoResume(Tagged):
    primitive: Literal["resume"] = "resume"


class DoInterrupt(Tagged):
    primitive: Literal["interrupt"] = "interrupt"


class DoStop(Tagged):
    primitive: Literal["stop"] = "stop"
    kill: bool = False
    reason: str | None = None


class DoReseed(Tagged):
    """`to`: a message ref (rewind) or a model label (model); `text`: the new conversation (replace)."""

    primitive: Literal["reseed"] = "reseed"
    mode: ReseedMode
    to: str | None = None
    text: str | None = None


class DoFork(Tagged):
    primitive: Literal["fork"] = "fork"
    name: str | None = None


class DoBudget(Tagged):
    primitive: Literal["budget"] = "budget"
    tokens: Annotated[int | None, Field(ge=0)] = None
    turns: Annotated[int | None, Field(ge=0)] = None


class DoApprove(Tagged):
    """Take an allow, deny or edit option of an approval. `digest` is what the client computed from what it showed.

    `automatic`: a rule of the operator's took it, and nobody has read it.
    """

    primitive: Literal["approve"] = "approve"
    request: str
    option: str
    digest: str
    note: str | None = None
    automatic: bool = False


class DoAnswer(Tagged):
    """Answer a question by an option, by free text where that is allowed, or by its fields."""

    primitive: Literal["answer"] = "answer"
    request: str
    digest: str
    option: str | None = None
    text: str | None = None
    fields: JsonObject | None = None


class DoNotify(Tagged):
    primitive: Literal["notify"] = "notify"
    subscriber: str
    on: tuple[str, ...] = ("idle", "failed")


class DoDelete(Tagged):
    primitive: Literal["delete"] = "delete"


class DoAct(Tagged):
    primitive: Literal["act"] = "act"
    act: str
    fields: Annotated[JsonObject, Field(default_factory=dict)]


Do = Annotated[
    DoSend
    | DoPause
    | DoResume
    | DoInterrupt
    | DoStop
    | DoReseed
    | DoFork
    | DoBudget
    | DoApprove
    | DoAnswer
    | DoNotify
    | DoDelete
    | DoAct,
    Field(discriminator="primitive"),
]
DO_PRIMITIVES: frozenset[str] = frozenset(p.value for p in Primitive)


class UnknownDo(Tagged):
    """A primitive that this side does not know; answered `capability_not_supported`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    primitive: str

    @model_validator(mode="after")
    def _not_known(self) -> Self:
        if self.primitive in DO_PRIMITIVES:
            raise ValueError(f"malformed {self.primitive!r} command")
        return self


class Command(Frame):
    """One primitive aimed at one session. `id` is made by the client and never executed twice.

    `attempt` and `turn` name what the operator saw running; another one running = `stale_target`.
    """

    type: Literal["command"] = "command"
    id: CommandId
    session: str
    attempt: int | None = None
    turn: str | None = None
    by: str | None = None
    """In whose name, where the host that an agent has joined hands it on; anybody else's is not heeded."""
    do: Annotated[Do | UnknownDo, Field(union_mode="left_to_right")]


class Recall(Frame):
    """Ask what became of commands: each is answered by its outcome, `undelivered` where it never arrived.

    A command of which that was said is not executed any more, should it arrive after all.
    """

    type: Literal["recall"] = "recall"
    ids: Annotated[tuple[CommandId, ...], Field(max_length=MOST_RECALLED)]


class Query(Frame):
    """Ask for something that is not an event: snapshot, messages, stored sessions, mailbox."""

    type: Literal["query"] = "query"
    id: str
    what: str
    session: str | None = None
    args: Annotated[JsonObject, Field(default_factory=dict)]


class Looking(Frame):
    """This operator has the card open (None: no card)."""

    type: Literal["looking"] = "looking"
    session: str | None = None
    request: str | None = None


class Claim(Frame):
    type: Literal["claim"] = "claim"
    session: str
    request: str
    release: bool = False


# --- from the host -------------------------------------------------------------------------


class HostInfo(Model):
    """`instance` changes when the host starts anew: a command that it does not know was forgotten, not lost."""

    name: str
    version: str
    instance: str = ""


class Welcome(Frame):
    type: Literal["welcome"] = "welcome"
    protocol: str
    host: HostInfo
    principal: str
    role: Annotated[Role, lenient(Role, Role.OBSERVER)]
    pos: Annotated[int, Field(ge=0)]
    heartbeat_s: Seconds
    now: Millis


class Profiles(Frame):
    type: Literal["profiles"] = "profiles"
    profiles: dict[str, Profile]


class Sessions(Frame):
    """Summaries, whole or changed. `listed`: with this frame every session was named once since the welcome."""

    type: Literal["sessions"] = "sessions"
    sessions: tuple[Summary, ...]
    listed: bool = False


class Gone(Frame):
    type: Literal["gone"] = "gone"
    sessions: tuple[str, ...]


class RequestFrame(Frame):
    type: Literal["request"] = "request"
    session: str
    request: RequestModel


class Beat(Frame):
    type: Literal["beat"] = "beat"
    now: Millis
    pos: int


class Watching(Frame):
    """Answer to a watch: events from `from_pos` (exclusive) are coming; those through `through` are the past."""

    type: Literal["watching"] = "watching"
    session: str
    from_pos: int
    through: int


class Events(Frame):
    """Events of one session in the order of seq (deltas in between)."""

    type: Literal["events"] = "events"
    session: str
    epoch: str
    events: list[AnyEvent]


class Lagged(Frame):
    """This client was too slow: events after `from_seq` through `to_seq` were not sent; the history has them."""

    type: Literal["lagged"] = "lagged"
    session: str
    epoch: str
    from_seq: int
    to_seq: int


class Gap(Frame):
    """Events after `from_seq` through `to_seq` are gone for good."""

    type: Literal["gap"] = "gap"
    session: str
    epoch: str
    from_seq: int
    to_seq: int
    why: str = ""


class Page(Frame):
    type: Literal["page"] = "page"
    id: str
    session: str
    epoch: str
    events: list[AnyEvent]
    first: int
    last: int
    more: bool


class Outcome(Frame):
    """What became of the command `id`. `decided` names who was first where the outcome is `already_decided`."""

    type: Literal["outcome"] = "outcome"
    id: str
    outcome: Annotated[OutcomeKind, lenient(OutcomeKind, OutcomeKind.UNKNOWN)]
    reason: str | None = None
    info: Annotated[JsonObject, Field(default_factory=dict)]
    at: Millis
    session: str | None = None
    attempt: int | None = None
    request: str | None = None
    decided: Decision | None = None
    retry_after_s: Seconds | None = None
    instance: str | None = None


class Reply(Frame):
    type: Literal["reply"] = "reply"
    id: str
    data: JsonValue
    error: str | None = None


class Presence(Frame):
    """Who looks at which card, and who claimed it."""

    type: Literal["presence"] = "presence"
    session: str
    request: str
    looking: tuple[str, ...] = ()
    claimed_by: str | None = None


class ErrorCode(StrEnum):
    UNSUPPORTED = "unsupported"
    MALFORMED = "malformed"
    NOT_PERMITTED = "not_permitted"
    TOO_LARGE = "too_large"
    NOT_FOUND = "not_found"
    OTHER = "other"


class Error(Frame):
    """A frame was not taken. `about` is its id, else its type; absent where neither could be read.

    `session`: the one that a `watch` named and that is not there. `fatal`: the connection closes after it.
    """

    type: Literal["error"] = "error"
    code: Annotated[ErrorCode, lenient(ErrorCode, ErrorCode.OTHER)]
    message: str
    about: str | None = None
    session: str | None = None
    fatal: bool = False


class UnknownFrame(Frame):
    """A frame of a type that we do not know, with everything it carried."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str

    @model_validator(mode="after")
    def _not_known(self) -> Self:
        if self.type in HOST_TYPES or self.type in CLIENT_TYPES:
            raise ValueError(f"malformed frame of type {self.type!r}")
        return self


HostFrame = (
    Welcome
    | Profiles
    | Sessions
    | Gone
    | RequestFrame
    | Beat
    | Watching
    | Events
    | Lagged
    | Gap
    | Page
    | Outcome
    | Reply
    | Presence
    | Error
)
ClientFrame = Hello | Watch | Unwatch | History | Command | Recall | Query | Looking | Claim

_HOST: tuple[type[Frame], ...] = (
    Welcome,
    Profiles,
    Sessions,
    Gone,
    RequestFrame,
    Beat,
    Watching,
    Events,
    Lagged,
    Gap,
    Page,
    Outcome,
    Reply,
    Presence,
    Error,
)
_CLIENT: tuple[type[Frame], ...] = (Hello, Watch, Unwatch, History, Command, Recall, Query, Looking, Claim)
HOST_TYPES: frozenset[str] = frozenset(t.model_fields["type"].default for t in _HOST)
CLIENT_TYPES: frozenset[str] = frozenset(t.model_fields["type"].default for t in _CLIENT)
AnyHostFrame = Annotated[
    Annotated[HostFrame, Field(discriminator="type")] | UnknownFrame, Field(union_mode="left_to_right")
]
AnyClientFrame = Annotated[
    Annotated[ClientFrame, Field(discriminator="type")] | UnknownFrame, Field(union_mode="left_to_right")
]
