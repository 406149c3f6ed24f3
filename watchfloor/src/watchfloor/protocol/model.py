"""Value objects of watchfloor.v1: capabilities, traits, requests, session summaries, results.

The reader is tolerant: unknown fields are ignored, words that a newer host invented fall back to the
neutral one. The writer is strict: a frame can only be built from known fields, and only the fields that
were set are written, so that a summary can be whole or a change.
All times are integers, milliseconds since 1970 UTC by the host's clock.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from watchfloor.canonical import stringify_numbers, subject_digest
from watchfloor.words import (
    Lifecycle,
    OptionKind,
    Overlay,
    Primitive,
    Priority,
    RequestKind,
    RequestState,
    ReseedMode,
    Scope,
    StopReason,
    Then,
)

E = TypeVar("E", bound=StrEnum)

Millis = Annotated[int, Field(description="milliseconds since 1970 UTC by the host's clock")]
JsonObject = dict[str, JsonValue]


def lenient(kind: type[E], fallback: E) -> BeforeValidator:
    """A validator that reads a word that `kind` lacks as `fallback`."""
    known = kind._value2member_map_

    def read(value: object) -> object:
        return value if not isinstance(value, str) or value in known else fallback

    return BeforeValidator(read)


AnyLifecycle = Annotated[Lifecycle, lenient(Lifecycle, Lifecycle.UNKNOWN)]
AnyStopReason = Annotated[StopReason, lenient(StopReason, StopReason.OTHER)]


class Model(BaseModel):
    """Base of all values on the wire."""

    # A reader of frames is made once for all of them: one for each class as well would take as long again.
    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=(), defer_build=True)


# --- capabilities and traits ---------------------------------------------------------------


class SendOptions(Model):
    """`replies`: a message can name the one that it answers."""

    priorities: tuple[Priority, ...] = (Priority.NORMAL,)
    replies: bool = False


class PauseOptions(Model):
    interrupt: bool = False


class StopOptions(Model):
    kill: bool = False


class ReseedOptions(Model):
    modes: tuple[ReseedMode, ...] = ()


class BudgetOptions(Model):
    tokens: bool = False
    turns: bool = False


class NoOptions(Model):
    """A primitive that is simply there or not."""


class FieldType(StrEnum):
    CHOICE = "choice"
    MANY = "many"
    TEXT = "text"
    SECRET = "secret"  # noqa: S105 - the name of a field type
    NUMBER = "number"
    BOOL = "bool"


class Choice(Model):
    """`value` goes back in the answer, `label` is shown."""

    value: str
    label: str
    note: str | None = None


class FormField(Model):
    """One field of a question or of a source-defined act. `free_text` lets a choice be answered in words."""

    name: str
    type: FieldType
    label: str = ""
    choices: tuple[Choice, ...] = ()
    free_text: bool = False
    required: bool = True
    default: JsonValue = None


class Act(Model):
    """Something that only this source can do; always confirmed, never on a single key."""

    id: str
    label: str
    effect: str = ""
    danger: bool = False
    fields: tuple[FormField, ...] = ()


class ActOptions(Model):
    acts: tuple[Act, ...] = ()


class Capabilities(BaseModel):
    """The primitives that a session advertises, each with its options; None is "not advertised".

    A primitive that we do not know is kept in `model_extra`, shown, and grants nothing.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    send: SendOptions | None = None
    pause: PauseOptions | None = None
    resume: NoOptions | None = None
    interrupt: NoOptions | None = None
    stop: StopOptions | None = None
    reseed: ReseedOptions | None = None
    fork: NoOptions | None = None
    budget: BudgetOptions | None = None
    approve: NoOptions | None = None
    answer: NoOptions | None = None
    notify: NoOptions | None = None
    delete: NoOptions | None = None
    act: ActOptions | None = None

    def advertises(self, primitive: Primitive) -> bool:
        return getattr(self, primitive.value) is not None

    def advertised(self) -> tuple[Primitive, ...]:
        """The known primitives, in the order of the vocabulary."""
        return tuple(p for p in Primitive if self.advertises(p))

    def unknown(self) -> tuple[str, ...]:
        return tuple(self.model_extra or ())


class ApprovalTarget(StrEnum):
    BY_ID = "by_id"
    OLDEST = "oldest"
    ALL_PENDING = "all_pending"


class Reader(StrEnum):
    SHARED = "shared"
    EXCLUSIVE = "exclusive"
    SPLITS = "splits"


class RequestsTrait(StrEnum):
    LISTED = "listed"
    DERIVED = "derived"
    LOST = "lost"


class EffectsTrait(StrEnum):
    VISIBLE = "visible"
    PARTIAL = "partial"
    NONE = "none"


class Replay(StrEnum):
    POS = "pos"
    SEQ = "seq"
    KEY = "key"
    NONE = "none"


class Traits(Model):
    """How advertised primitives behave where systems differ; the defaults are the native host's."""

    approval_target: ApprovalTarget = ApprovalTarget.BY_ID
    resume_approves: bool = False
    send_approves: bool = False
    send_drops_requests: bool = False
    send_interrupts: bool = False
    stop_leaves_requests: bool = False
    stop_leaves_process: bool = False
    stop_cuts_step: bool = False
    pause_is_barrier: bool = True
    pause_drops_mail: bool = False
    reader: Reader = Reader.SHARED
    requests: RequestsTrait = RequestsTrait.LISTED
    effects: EffectsTrait = EffectsTrait.VISIBLE
    ends_with_client: bool = False
    replay: Replay = Replay.POS


class Profile(Model):
    """What many sessions share, sent once; summaries refer to it by id."""

    capabilities: Capabilities = Capabilities()
    traits: Traits = Traits()


# --- requests ------------------------------------------------------------------------------


class Action(Model):
    """One thing that will be done when allowed. `text` or `arguments` is exact; `complete` false = cut at its source.

    `call` is the id of the tool call that waits on it.
    """

    tool: str
    text: str | None = None
    arguments: JsonValue = None
    cwd: str | None = None
    diff: str | None = None
    call: str | None = None
    complete: bool = True


class Option(Model):
    """One button, id as the source has it."""

    id: str
    label: str
    kind: OptionKind
    scope: Scope = Scope.ONCE
    grants: tuple[str, ...] = ()
    persists: bool = False
    note: str | None = None
    then: Then = Then.CONTINUES
    confirm: bool = False


class Subject(Model):
    """The part of a request that its digest covers, read for display."""

    session: str
    attempt: int | None = None
    id: str
    kind: RequestKind
    actions: tuple[Action, ...] = ()
    fields: tuple[FormField, ...] = ()
    options: tuple[Option, ...] = ()

    def raw(self) -> JsonObject:
        """The subject as a host puts it on the wire: set fields only, uncommon numbers as strings."""
        raw: JsonObject = stringify_numbers(self.model_dump(mode="json", exclude_unset=True))
        return raw


class Decision(Model):
    """Who ended a request, and how.

    `note`: the operator's, or what was answered: a text, or `name: value; …` with values in JSON. Bounded by the host,
    which leaves secret fields out.
    """

    option: str | None = None
    kind: OptionKind | None = None
    by: str = ""
    at: Millis
    note: str | None = None
    automatic: bool = False


class RequestModel(Model):
    """A whole request. `subject` is kept unparsed, newer fields included: the digest is over it as received."""

    subject: JsonObject
    digest: str
    state: Annotated[RequestState, lenient(RequestState, RequestState.UNCONFIRMED)] = RequestState.OPEN
    asked_at: Millis
    deadline: Millis | None = None
    at_deadline: str | None = None
    """Id of the option that is taken at the deadline, or a word of the source."""
    per_action: bool = False
    blocks: bool = True
    about: str | None = None
    """The agent's own description. Not part of the subject, and shown as the agent's words."""
    decision: Decision | None = None

    def read(self) -> Subject:
        """The subject, parsed. Raises pydantic.ValidationError when it is malformed."""
        return Subject.model_validate(self.subject)

    @classmethod
    def ask(cls, subject: Subject, **rest: Any) -> RequestModel:
        """A new request with the digest of its subject."""
        raw = subject.raw()
        return cls(subject=raw, digest=subject_digest(raw), **rest)


class RequestRef(Model):
    """A request as a summary lists it."""

    id: str
    kind: RequestKind
    asked_at: Millis
    deadline: Millis | None = None
    digest: str


# --- sessions ------------------------------------------------------------------------------


class Usage(Model):
    """Running totals of an attempt. Tokens, never money: prices are not ours to know."""

    input_tokens: int = 0
    output_tokens: int = 0
    turns: int = 0
    budget_tokens: int | None = None
    budget_turns: int | None = None


class Result(Model):
    """A run's own record. `text` is bounded by the host; `cut` says that it was."""

    text: str = ""
    cut: bool = False
    final_message: str | None = None
    stop_reason: AnyStopReason
    session_id: str


class Last(Model):
    """The newest thing worth a glance: at most 120 code points of text."""

    at: Millis
    kind: str
    text: Annotated[str, Field(max_length=120)]


class Mailbox(Model):
    """How many messages wait, and the highest ref handed out."""

    queued: int = 0
    refs: int = 0


class Pending(Model):
    """A change that somebody asked for and that has not landed, so that a second operator sees it too."""

    overlay: Overlay
    by: str = ""
    since: Millis


class InFlight(Model):
    """Work that has begun and not ended: a tool call, a model call."""

    id: str
    name: str
    since: Millis


class SessionKind(StrEnum):
    AGENT = "agent"
    GROUP = "group"


class Summary(Model):
    """A session as its host lists it: whole the first time, later the changed fields only.

    Only set fields are written; a set None is a value ("no turn runs"), an unset field is "as before".
    """

    id: str
    name: str = ""
    kind: Annotated[SessionKind, lenient(SessionKind, SessionKind.AGENT)] = SessionKind.AGENT
    owned: bool = False
    demo: bool = False
    parent: str | None = None
    attempt: int | None = None
    turn: str | None = None
    epoch: str = ""
    lifecycle: AnyLifecycle = Lifecycle.UNKNOWN
    native_state: str | None = None
    why: str | None = None
    since: Millis | None = None
    profile: str | None = None
    blocked: Annotated[dict[str, str], Field(default_factory=dict)]
    """Primitive -> reason, said by the source: advertised, not usable now."""
    controls: Annotated[dict[str, str], Field(default_factory=dict)]
    """Primitive -> what the control will do now, where it differs: resume -> "Retry (attempt 3)"."""
    pending: Pending | None = None
    in_flight: tuple[InFlight, ...] = ()
    mailbox: Mailbox = Mailbox()
    requests: tuple[RequestRef, ...] = ()
    head: int = 0
    """`seq` of the newest event, 0 where there is none."""
    usage: Usage | None = None
    last: Last | None = None
    labels: Annotated[dict[str, str], Field(default_factory=dict)]
    cwd: str | None = None
    result: Result | None = None
    error: str | None = None
