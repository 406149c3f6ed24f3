"""What the console knows: plain records, changed by `apply` alone and read by everything else.

Ids are opaque keys; `Clean` text is ready to be shown. Times are milliseconds since 1970 UTC by the
source's clock, unless a name says `local`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from console.fleet.continuity import Track
from console.fleet.facts import (
    DecisionFact,
    EventFact,
    FaultFact,
    Intent,
    LastFact,
    OutcomeFact,
    PendingFact,
    ProfileFact,
    RequestFact,
    RequestKey,
    RequestRefFact,
    ResultFact,
    SessionKey,
    UsageFact,
)
from console.fleet.log import Log
from console.fleet.reseeds import reseed_word
from console.fleet.roster.rate import Rate
from watchfloor.text import NOTHING, Clean
from watchfloor.words import (
    ANSWERABLE,
    Contact,
    EffectState,
    Lifecycle,
    OptionKind,
    OutcomeKind,
    Primitive,
    RequestKind,
    RequestState,
    Role,
    verb,
)

KEEP_FAULTS: Final = 100
LATEST: Final = 2**63
"""Later than any time: where a request stands of which nobody knows when it was made."""


@dataclass(slots=True)
class Source:
    """A server that the console is connected to, as it was last heard."""

    name: str
    shown: Clean
    recorded: bool = False
    """It is a recording that is played: nothing of it happens now."""
    contact: Contact = Contact.CONNECTING
    contact_since: int = 0
    """Local time since which `contact` is what it is; that of a silence is when the last frame came."""
    lost_since: int | None = None
    """Local time since which the source is not heard, across retries."""
    why: Clean = NOTHING
    tries: int = 0
    retry_at: int | None = None
    host: Clean = NOTHING
    host_version: Clean = NOTHING
    instance: str = ""
    principal: Clean = NOTHING
    role: Role = Role.OBSERVER
    welcomed: bool = False
    listed: bool = False
    named: set[str] = field(default_factory=set)
    """Sessions that were named since the last welcome."""
    follows_all: bool = False
    followed_before: bool = False
    """It was followed on an earlier connection, so that later watches go on from there."""
    through: int = 0
    """Events up to this position are the past of the present watch."""
    alone: bool = False
    """It has said that it keeps no presence: who looks at what is not to be told it."""
    pos: int = 0
    """Position of the newest event that was applied."""
    head: int = 0
    """Position of the newest event that the source has named."""
    heartbeat_s: float = 0.0
    ahead_ms: int = 0
    """The source's clock minus ours."""
    profiles: dict[str, ProfileFact] = field(default_factory=dict)
    faults: deque[FaultFact] = field(default_factory=lambda: deque(maxlen=KEEP_FAULTS))
    fault_count: int = 0
    """What came and could not be read."""
    error_count: int = 0
    """Errors that the source has reported."""
    fatal: Clean = NOTHING
    """The error with which the source ended the connection; empty since it was last greeted."""
    version: int = 0
    """Grows with every change of what is shown of the source."""

    @property
    def live(self) -> bool:
        return self.contact is Contact.LIVE

    @property
    def given_up(self) -> bool:
        """Lost, and nobody tries to reach it any more, for the reason `why`."""
        return self.contact is Contact.LOST and self.retry_at is None and not self.tries and bool(self.why)

    @property
    def behind(self) -> int:
        """Events that the source has and the console has not applied yet; 0 where it does not follow everything."""
        return max(0, self.head - self.pos) if self.follows_all else 0


@dataclass(slots=True)
class Session:
    """One running agent as an operator sees it. `placeholder`: known by name only, as somebody's parent."""

    key: SessionKey
    name: Clean | None = None
    placeholder: bool = True
    kind: str = "agent"
    owned: bool = False
    demo: bool = False
    parent: str | None = None
    attempt: int | None = None
    turn: str | None = None
    lifecycle: Lifecycle = Lifecycle.UNKNOWN
    native_state: Clean | None = None
    why: Clean | None = None
    since: int | None = None
    profile: str | None = None
    blocked: Mapping[Primitive, Clean] = field(default_factory=dict)
    controls: Mapping[Primitive, Clean] = field(default_factory=dict)
    pending: PendingFact | None = None
    in_flight: tuple[tuple[str, Clean, int], ...] = ()
    in_flight_more: int = 0
    """What is in flight beyond that which is kept."""
    mail_queued: int = 0
    mail_refs: int = 0
    request_refs: tuple[RequestRefFact, ...] = ()
    usage: UsageFact | None = None
    last: LastFact | None = None
    labels: Mapping[Clean, Clean] = field(default_factory=dict)
    labels_more: int = 0
    cwd: Clean | None = None
    result: ResultFact | None = None
    error: Clean | None = None
    track: Track = field(default_factory=Track)
    log: Log = field(default_factory=Log)
    rate: Rate = field(default_factory=Rate)
    requests: dict[str, Request] = field(default_factory=dict)
    """All requests of the session that are remembered, by id."""
    _waiting: list[Request] | None = field(default=None, repr=False, compare=False)
    _asked: frozenset[RequestKind] = field(default=frozenset(), repr=False, compare=False)
    version: int = 0
    """Grows with every change of anything but the log."""

    @property
    def epoch(self) -> str:
        return self.track.epoch

    @property
    def head(self) -> int:
        return self.track.head

    def open_requests(self) -> list[Request]:
        """The requests that wait for a human, oldest first, those of an unknown time last. The list is shared."""
        if self._waiting is None:
            waiting = [request for request in self.requests.values() if request.open]
            if len(waiting) > 1:
                waiting.sort(key=lambda r: (r.asked_at or LATEST, r.key.request))
            self._waiting, self._asked = waiting, frozenset(request.kind for request in waiting)
        return self._waiting

    def asks(self, kind: RequestKind) -> bool:
        """Does a request of this kind wait for a human?"""
        self.open_requests()
        return kind in self._asked

    def asked_anew(self) -> None:
        """Its requests change: who asks next what waits has to look again."""
        self._waiting = None


@dataclass(slots=True)
class Request:
    """Something that waits, or waited, for a human. `fact` None: it is listed, and its text has not come yet."""

    key: RequestKey
    kind: RequestKind
    asked_at: int
    digest: str
    deadline: int | None = None
    state: RequestState = RequestState.UNREAD
    fact: RequestFact | None = None
    decision: DecisionFact | None = None
    ended_why: Clean = NOTHING
    ended_at: int | None = None
    delisted: bool = False
    """Its source no longer lists it and does not say how it ended."""
    reworded: bool = False
    """It ended with another text than the one that it was open with, which is kept."""
    changed_local: int = 0
    """Local time at which what an operator reads of it last changed."""
    looking: tuple[Clean, ...] = ()
    claimed_by: Clean | None = None
    version: int = 0

    @property
    def text_size(self) -> int:
        """Characters of its actions."""
        actions = self.fact.actions if self.fact is not None else ()
        return sum(len(action.text) + len(action.diff or "") for action in actions)

    @property
    def open(self) -> bool:
        """Does it still wait for a human?"""
        return self.state in ANSWERABLE and not self.delisted


class Baseline(NamedTuple):
    """What the target showed when the command left: effects are changes from here."""

    lifecycle: Lifecycle
    attempt: int | None
    turn: str | None
    head: int
    """Events after this number count as evidence."""
    sessions: frozenset[SessionKey] = frozenset()
    instance: str = ""
    """The run of the host that it was sent to."""


@dataclass(slots=True)
class Evidence:
    """What was seen on the session since the command left; it may come before the acknowledgement."""

    mail: dict[str, EventFact] = field(default_factory=dict)
    """The newest event of each message, by ref."""
    calls: dict[str, str] = field(default_factory=dict)
    """Tool calls that moved: the status of the result, "" while there is output only."""
    reseeded: bool = False
    resolved_seq: int | None = None
    moved_on: bool = False
    """The agent did something after our request was resolved."""
    taken: bool = False
    """The source has told every operator of our command."""
    resumed_by: Clean | None = None
    """Who resumed the session after that; "" where that is not told."""


@dataclass(slots=True)
class Trail:
    """One command of ours: requested, sent, acknowledged, effect. Times are local."""

    id: str
    intent: Intent
    target: SessionKey
    request: RequestKey | None
    baseline: Baseline
    requested_at: int
    option_kind: OptionKind | None = None
    """Of a decision: what the option that it takes does."""
    sent_at: int | None = None
    acked_at: int | None = None
    outcome: OutcomeKind | None = None
    reason: Clean = NOTHING
    fact: OutcomeFact | None = None
    effect: EffectState | None = None
    """None until an acknowledgement (or its absence) makes an effect to be expected."""
    effect_at: int | None = None
    effect_text: Clean = NOTHING
    due_at: int | None = None
    closed: bool = False
    """The effect was seen or can no longer be hoped for."""
    evidence: Evidence = field(default_factory=Evidence)
    version: int = 0

    @property
    def primitive(self) -> Primitive:
        return self.intent.primitive

    @property
    def verb(self) -> str:
        """What the command does, in one word: a denial is sent as `approve`, and is none; a reseed is its mode."""
        if self.primitive is Primitive.RESEED:
            return reseed_word(self.intent.mode)
        return verb(self.primitive.value, self.option_kind)

    @property
    def told(self) -> str:
        """The same with the policy that took it, where none of it was done by hand: "deny by policy machine"."""
        return f"{self.verb} by policy {self.intent.policy}" if self.intent.policy is not None else self.verb

    @property
    def active(self) -> bool:
        """Is something still expected of it?"""
        return not self.closed and (self.outcome is None or self.effect is not None)
