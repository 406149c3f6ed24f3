"""What intake hands to the fleet: clean facts about one source, and what operators ask for.

All `Clean` text has passed `watchfloor.text`; ids are opaque and kept exactly as received (used as keys
and on the wire, shown only through `clean_line`). Times are milliseconds since 1970 UTC, by the source's
clock unless a name says `local`.

Nearly all are tuples: to make the class of one takes an eighth of the time that a frozen dataclass takes, and the first
frame waits for all of them. For the same reason the types of their members are no texts, which would have to be read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from watchfloor.text import Clean
from watchfloor.words import (
    Contact,
    OptionKind,
    OutcomeKind,
    Overlay,
    Primitive,
    Priority,
    RequestKind,
    RequestState,
    ReseedMode,
    Role,
    Scope,
    Then,
)

NO_TIME: Final = 0
"""A time that its source did not tell, or that is none: 1970 itself is not when anything here happened."""
NO_DATA: Final[Mapping[str, Any]] = MappingProxyType({})


class SessionKey(NamedTuple):
    source: str
    session: str


class RequestKey(NamedTuple):
    source: str
    session: str
    request: str

    @property
    def owner(self) -> SessionKey:
        return SessionKey(self.source, self.session)


# --- capabilities --------------------------------------------------------------------------


class ProfileFact(NamedTuple):
    """What a profile advertises. `options` maps a primitive to its options as plain data."""

    source: str
    id: str
    primitives: frozenset[Primitive]
    options: Mapping[Primitive, Mapping[str, Any]]
    unknown: tuple[Clean, ...]
    traits: Mapping[str, Any]


# --- requests ------------------------------------------------------------------------------


class ActionFact(NamedTuple):
    """One exact action. `text` is the whole command or the arguments as indented JSON, cleaned strictly.

    `line` is the same for places of one line: the command with its line breaks visible, arguments as `name: value`
    behind the name of their tool. `hidden` counts the code points that cleaning made visible in it; `complete` False:
    cut at its source, or (`whole` False as well) at the intake, because it was longer than can be shown.
    """

    tool: Clean
    text: Clean
    line: Clean
    cwd: Clean | None
    diff: Clean | None
    call: str | None
    complete: bool
    hidden: int
    whole: bool = True


class ChoiceFact(NamedTuple):
    value: str
    label: Clean
    note: Clean | None


class FieldFact(NamedTuple):
    name: str
    type: str
    label: Clean
    choices: tuple[ChoiceFact, ...]
    free_text: bool
    required: bool


class OptionFact(NamedTuple):
    """One option as offered; `id` goes back exactly as it came."""

    id: str
    label: Clean
    kind: OptionKind
    scope: Scope
    grants: tuple[Clean, ...]
    persists: bool
    note: Clean | None
    then: Then
    confirm: bool


class UnknownFact(NamedTuple):
    """A member of a subject that this console does not know: where it stands, and its value as JSON on one line."""

    name: Clean
    value: Clean


class DecisionFact(NamedTuple):
    option: str | None
    kind: OptionKind | None
    by: Clean
    at: int
    note: Clean | None
    automatic: bool


class RequestFact(NamedTuple):
    """A whole request. `digest` was recomputed here from the raw subject; `sound` says that it equals the one sent.

    A request that is not sound, or whose subject cannot be read (`fault`), is never decidable. `unknown` are members
    that the digest covers and this console does not know, the first of `unknown_count`.
    """

    key: RequestKey
    attempt: int | None
    kind: RequestKind
    actions: tuple[ActionFact, ...]
    fields: tuple[FieldFact, ...]
    options: tuple[OptionFact, ...]
    per_action: bool
    asked_at: int
    deadline: int | None
    at_deadline: Clean | None
    blocks: bool
    about: Clean | None
    state: RequestState
    decision: DecisionFact | None
    digest: str
    sound: bool
    fault: Clean | None = None
    unknown: tuple[UnknownFact, ...] = ()
    unknown_count: int = 0

    @property
    def strange(self) -> Clean:
        """How many of its members this console does not know; empty: none."""
        if not self.unknown_count:
            return Clean("")
        return Clean(f"{self.unknown_count:,} member{'s' * (self.unknown_count > 1)} this console does not know")

    @property
    def too_large(self) -> bool:
        """Is there more of what it asks than this console shows?"""
        return any(not action.whole for action in self.actions)

    @property
    def unread(self) -> bool:
        """Nothing of what it asks could be read."""
        return self.fault is not None and not self.actions and not self.fields and not self.options


# --- sessions and events -------------------------------------------------------------------


class RequestRefFact(NamedTuple):
    id: str
    kind: RequestKind
    asked_at: int
    deadline: int | None
    digest: str


class PendingFact(NamedTuple):
    overlay: Overlay
    by: Clean
    since: int


class LastFact(NamedTuple):
    at: int
    kind: Clean
    text: Clean


class UsageFact(NamedTuple):
    input_tokens: int
    output_tokens: int
    turns: int
    budget_tokens: int | None
    budget_turns: int | None


class ResultFact(NamedTuple):
    text: Clean
    cut: bool
    stop_reason: Clean


class SummaryFact(NamedTuple):
    """Changed fields of a session. Keys are the attribute names of `console.fleet.state.Session`; values are clean:

    name, why, native_state, cwd, error: Clean or None · kind: str · owned, demo: bool ·
    parent, turn, profile: str or None (raw ids) · attempt, since: int or None · epoch: str ·
    lifecycle: Lifecycle · blocked, controls: dict[Primitive, Clean] · pending: PendingFact or None ·
    in_flight: tuple of (id, Clean name, since) · mail_queued, mail_refs, head: int ·
    request_refs: tuple[RequestRefFact, ...] · usage: UsageFact or None · last: LastFact or None ·
    labels: dict[Clean, Clean] · result: ResultFact or None · labels_more, in_flight_more: int, those not kept.
    """

    key: SessionKey
    fields: Mapping[str, Any]


class EventFact(NamedTuple):
    """One event, ready to be drawn. `text` may hold line breaks; `head` is its label (a tool's name, a role).

    `seq` None: a delta (`offset` says where its text goes in `item`). `data` holds the few typed values that the fleet
    reads: lifecycle (Lifecycle), request, request_kind, state (RequestState), option, option_kind, by, note, why,
    outcome, ref, delivery (Delivery), mail_state, call, status, exit_code, duration_ms, command, primitive, level,
    child, mode, role, cut; `line` where that fills one line better than the text: it is called for the Clean, as it is
    written out only when it is drawn; of a delta `of` (the kind of its whole) and `length` (code points as sent;
    cleaning may add some).

    A tuple, since these are made by the thousand: one takes a seventh of the time that a frozen dataclass takes.
    """

    kind: str
    at: int
    seq: int | None
    pos: int | None
    attempt: int | None
    turn: str | None
    item: str | None
    offset: int | None
    key: str | None
    head: Clean
    text: Clean
    data: Mapping[str, Any] = NO_DATA


class EventsFact(NamedTuple):
    """Events of one session in the order in which they arrived. `stored`: from a page of the history."""

    key: SessionKey
    epoch: str
    events: tuple[EventFact, ...]
    stored: bool = False


class HoleFact(NamedTuple):
    """Events after `from_seq` through `to_seq` were not sent; `gone`: they are lost for good."""

    key: SessionKey
    epoch: str
    from_seq: int
    to_seq: int
    gone: bool
    why: Clean


class KeptFact(NamedTuple):
    """Events of a session that were received in an earlier life of this console: `kept` on its disk, by number, and
    those that are `gone` from there or from the source. Intervals hold both ends."""

    key: SessionKey
    epoch: str
    kept: tuple[tuple[int, int], ...]
    gone: tuple[tuple[int, int], ...] = ()


# --- sources -------------------------------------------------------------------------------


class ContactFact(NamedTuple):
    """How a source is heard. `local_at`: since when, by the console's clock; a silence began with the last frame.

    `retry_at`: when the next try is due; lost and None: there will be none, for the reason `why`. `recorded`: it is a
    recording that is played.
    """

    source: str
    contact: Contact
    local_at: int
    why: Clean
    tries: int = 0
    retry_at: int | None = None
    recorded: bool = False


class WelcomeFact(NamedTuple):
    """`ahead_ms`: the host's clock minus ours."""

    source: str
    host: Clean
    version: Clean
    instance: str
    principal: Clean
    role: Role
    pos: int
    heartbeat_s: float
    ahead_ms: int


class BeatFact(NamedTuple):
    source: str
    pos: int
    ahead_ms: int


class ListedFact(NamedTuple):
    """Every session of the source was named since the welcome: those that were not are gone."""

    source: str


class GoneFact(NamedTuple):
    key: SessionKey


class WatchingFact(NamedTuple):
    source: str
    session: str
    from_pos: int
    through: int


class OutcomeFact(NamedTuple):
    """What became of a command of ours."""

    source: str
    id: str
    outcome: OutcomeKind
    reason: Clean | None
    info: Mapping[str, Any]
    at: int
    decided: DecisionFact | None


class PresenceFact(NamedTuple):
    """Who else looks at an open request, and who has claimed it."""

    key: RequestKey
    looking: tuple[Clean, ...]
    claimed_by: Clean | None


class AloneFact(NamedTuple):
    """The source keeps no presence: it is of no use to tell it who looks at what, or who takes it."""

    source: str


@dataclass(frozen=True, slots=True)
class FaultFact:
    """Something received that could not be read (`count` of them, `reason` of the newest), or, where `told`, an error
    that the source reports; `fatal`: it ends the connection. `session`: whose it is, where that is known; `in_log`: its
    log shows it already.
    """

    source: str
    reason: Clean
    raw: Clean
    fatal: bool = False
    told: bool = False
    session: str | None = None
    count: int = 1
    in_log: bool = False


Fact = (
    ProfileFact
    | RequestFact
    | SummaryFact
    | EventsFact
    | HoleFact
    | KeptFact
    | ContactFact
    | WelcomeFact
    | BeatFact
    | ListedFact
    | GoneFact
    | WatchingFact
    | OutcomeFact
    | PresenceFact
    | AloneFact
    | FaultFact
)


# --- what operators ask for ----------------------------------------------------------------


class Seen(NamedTuple):
    """What the operator had before them when deciding: the digest, since when, and whether its end was shown.

    `since_local` counts milliseconds of a clock that is never set. The command line's `--digest D` is a Seen without a
    screen: `since_local` 0, `whole` True.
    """

    digest: str
    since_local: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Intent:
    """One intervention as asked for, before the gate. `attempt` and `turn` None: what the console showed last.

    Arguments by primitive: send text, priority, reply_to · pause interrupt · stop kill, reason ·
    reseed mode, to, text · approve request, option, note, seen · answer request, seen and one of option,
    text, fields · fork, budget, notify, delete, act: `extra`; approve, where one decision settles all pending
    requests: `extra["shown"]`, the digests of those that were shown by request id. `policy`: the rule of the operator's
    that decides so, None: the operator does.
    """

    id: str
    primitive: Primitive
    target: SessionKey
    by: str
    attempt: int | None = None
    turn: str | None = None
    text: str | None = None
    priority: Priority = Priority.NORMAL
    reply_to: str | None = None
    interrupt: bool = False
    kill: bool = False
    reason: str | None = None
    mode: ReseedMode | None = None
    to: str | None = None
    request: str | None = None
    option: str | None = None
    note: str | None = None
    fields: Mapping[str, Any] | None = None
    seen: Seen | None = None
    policy: Clean | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class Refusal(NamedTuple):
    """The gate's no: the outcome that the command line exits with, and the reason that the screen shows.

    `early`: it came before what is decided had stood still for long enough, and nothing else is against it.
    """

    outcome: OutcomeKind
    reason: str
    decided: DecisionFact | None = None
    early: bool = False
