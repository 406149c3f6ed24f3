"""The events of a session: one fact each.

`seq` numbers the events of one session from 1, across attempts; `pos` all events of a host. A delta has
neither: it is a preview of an item whose whole form follows. Event kinds that we do not know are kept as
`UnknownEvent`, which refuses the kinds that we do know, so that a malformed known event is noticed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from watchfloor.protocol.model import AnyLifecycle, JsonObject, Millis, Model, Result, Usage, lenient
from watchfloor.words import (
    Delivery,
    OptionKind,
    OutcomeKind,
    Overlay,
    RequestKind,
    RequestState,
    ReseedMode,
)


class Tagged(Model):
    """A model whose tag counts as set, so that "set fields only" still writes it."""

    _TAG: ClassVar[str | None] = None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls._TAG = next((tag for tag in ("type", "kind", "primitive") if tag in cls.model_fields), None)

    def __init__(self, /, **data: Any) -> None:
        super().__init__(**data)
        self._mark()

    # What is read from a frame carries its tag, as the unions find the model by it: a hook that pydantic calls for each
    # model would cost as much as reading does. This says that the constructor need not be called for those.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """As pydantic's; a tag that was left out counts as set."""
        one = super().model_validate(obj, **options)
        one._mark()
        return one

    def _mark(self) -> None:
        if self._TAG is not None:
            self.__pydantic_fields_set__.add(self._TAG)


class Event(Tagged):
    """What every event carries."""

    seq: Annotated[int | None, Field(ge=1)] = None
    pos: Annotated[int | None, Field(ge=1)] = None
    attempt: int | None = None
    at: Millis
    turn: str | None = None
    item: str | None = None
    """Id of the streamed thing that this event completes."""
    key: str | None = None
    """The source's own identity of the event, by which replays are dropped."""
    author: str | None = None
    """Who speaks, where one session holds several agents."""


class Speaker(StrEnum):
    ASSISTANT = "assistant"
    USER = "user"
    OPERATOR = "operator"
    SYSTEM = "system"


class Message(Event):
    """Something said. `cut`: the item ended before it was whole."""

    kind: Literal["message"] = "message"
    role: Annotated[Speaker, lenient(Speaker, Speaker.ASSISTANT)] = Speaker.ASSISTANT
    text: str
    cut: bool = False


class Reasoning(Event):
    kind: Literal["reasoning"] = "reasoning"
    text: str
    cut: bool = False


class Delta(Event):
    """A piece of a streamed item: `text` starts at `offset` (code points). Without seq and pos."""

    kind: Literal["delta"] = "delta"
    item: str
    of: Literal["message", "reasoning", "tool_output", "plan", "diff"] = "message"
    offset: Annotated[int, Field(ge=0)]
    text: str
    call: str | None = None


class ToolCall(Event):
    """A tool call was announced. `text` is the exact command line where there is one."""

    kind: Literal["tool_call"] = "tool_call"
    call: str
    name: str
    arguments: JsonValue = None
    text: str | None = None
    cwd: str | None = None
    gated: bool = False
    """It waits for an approval before it is executed."""


class ToolOutput(Event):
    """Output of a call, or of the session itself where `call` is absent (a program's own output)."""

    kind: Literal["tool_output"] = "tool_output"
    call: str | None = None
    stream: str = "stdout"
    text: str
    cut: bool = False


class ToolStatus(StrEnum):
    OK = "ok"
    ERROR = "error"
    DECLINED = "declined"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class ToolResult(Event):
    kind: Literal["tool_result"] = "tool_result"
    call: str
    status: Annotated[ToolStatus, lenient(ToolStatus, ToolStatus.UNKNOWN)]
    text: str = ""
    exit_code: int | None = None
    duration_ms: int | None = None
    cut: bool = False


class Diff(Event):
    kind: Literal["diff"] = "diff"
    path: str
    text: str
    call: str | None = None


class PlanStep(Model):
    text: str
    status: str = "open"


class Plan(Event):
    kind: Literal["plan"] = "plan"
    steps: tuple[PlanStep, ...]


class Progress(Event):
    kind: Literal["progress"] = "progress"
    usage: Usage | None = None
    note: str | None = None


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Notice(Event):
    """Something the operator should know: a retry, a warning, an error that is not the result."""

    kind: Literal["notice"] = "notice"
    level: Annotated[Level, lenient(Level, Level.INFO)] = Level.INFO
    code: str | None = None
    text: str
    retrying: bool = False
    next_at: Millis | None = None


class MailState(StrEnum):
    """Every message ends consumed, queued (still), or with an error."""

    SENT = "sent"
    CONSUMED = "consumed"
    ERROR = "error"


class Mail(Event):
    """A message in the session's mailbox. `ref` is "#n", dense from 1."""

    kind: Literal["mail"] = "mail"
    ref: str
    state: Annotated[MailState, lenient(MailState, MailState.SENT)]
    delivery: Delivery | None = None
    reply_to: str | None = None
    text: str | None = None
    by: str = ""
    error: str | None = None


class RequestOpened(Event):
    kind: Literal["request_opened"] = "request_opened"
    request: str
    request_kind: RequestKind
    digest: str
    text: str = ""
    """One line that names what is asked."""


class RequestResolved(Event):
    """A request ended. `note` is that of its decision: the operator's, or what was answered, secret fields left out."""

    kind: Literal["request_resolved"] = "request_resolved"
    request: str
    state: Annotated[RequestState, lenient(RequestState, RequestState.RESOLVED)]
    option: str | None = None
    option_kind: OptionKind | None = None
    by: str = ""
    note: str | None = None
    why: str | None = None


class LifecycleChanged(Event):
    kind: Literal["lifecycle"] = "lifecycle"
    lifecycle: AnyLifecycle
    native_state: str | None = None
    why: str | None = None
    pending: Overlay | None = None


class Child(Event):
    kind: Literal["child"] = "child"
    session: str
    name: str = ""
    state: str = "opened"


class Intervention(Event):
    """A command that a host has taken, with its outcome: the trail that every operator sees.

    A decision names the option that it took, and whether that allows, denies or answers: `approve` covers all options
    of an approval. Both are absent where the request has no such option. `automatic`: a rule took it, and
    nobody by hand.
    """

    kind: Literal["intervention"] = "intervention"
    primitive: str
    command: str
    by: str
    outcome: Annotated[OutcomeKind, lenient(OutcomeKind, OutcomeKind.UNKNOWN)]
    option: str | None = None
    option_kind: OptionKind | None = None
    automatic: bool = False
    reason: str | None = None
    info: Annotated[JsonObject, Field(default_factory=dict)]


class Reseeded(Event):
    kind: Literal["reseeded"] = "reseeded"
    mode: ReseedMode
    by: str = ""
    note: str | None = None


class ResultEvent(Event):
    kind: Literal["result"] = "result"
    result: Result


class Raw(Event):
    """Something a host or connector could not put in better words."""

    kind: Literal["raw"] = "raw"
    data: JsonValue
    note: str | None = None


KnownEvent = Annotated[
    Message
    | Reasoning
    | Delta
    | ToolCall
    | ToolOutput
    | ToolResult
    | Diff
    | Plan
    | Progress
    | Notice
    | Mail
    | RequestOpened
    | RequestResolved
    | LifecycleChanged
    | Child
    | Intervention
    | Reseeded
    | ResultEvent
    | Raw,
    Field(discriminator="kind"),
]

EVENT_TYPES: tuple[type[Event], ...] = (
    Message,
    Reasoning,
    Delta,
    ToolCall,
    ToolOutput,
    ToolResult,
    Diff,
    Plan,
    Progress,
    Notice,
    Mail,
    RequestOpened,
    RequestResolved,
    LifecycleChanged,
    Child,
    Intervention,
    Reseeded,
    ResultEvent,
    Raw,
)
EVENT_KINDS: frozenset[str] = frozenset(t.model_fields["kind"].default for t in EVENT_TYPES)


class UnknownEvent(Event):
    """An event of a kind that we do not know, with everything it carried."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str

    @model_validator(mode="after")
    def _not_a_known_kind(self) -> Self:
        if self.kind in EVENT_KINDS:
            raise ValueError(f"malformed event of kind {self.kind!r}")
        return self


AnyEvent = Annotated[KnownEvent | UnknownEvent, Field(union_mode="left_to_right")]
