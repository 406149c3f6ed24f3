"""Frames in, clean facts out: one source at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from console.fleet.facts import (
    BeatFact,
    ContactFact,
    EventsFact,
    Fact,
    FaultFact,
    GoneFact,
    HoleFact,
    LastFact,
    ListedFact,
    OutcomeFact,
    PendingFact,
    PresenceFact,
    ProfileFact,
    RequestKey,
    RequestRefFact,
    ResultFact,
    SessionKey,
    SummaryFact,
    UsageFact,
    WatchingFact,
    WelcomeFact,
)
from console.intake.events import event_fact
from console.intake.requests import decision_fact, field_fact, request_fact
from watchfloor.connector import Arrival, Clock, Unreadable
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.text import Clean, clean, clean_line, clean_prose
from watchfloor.words import Contact, Delivery, Primitive

NOTHING: Final = Clean("")
_PRIMITIVES: Final = {p.value: p for p in Primitive}


class ContactChange(Protocol):
    """What the keeper of connections says of one. `retry_at`, and `at` (since when it is so): local milliseconds."""

    @property
    def contact(self) -> Contact: ...
    @property
    def why(self) -> str: ...
    @property
    def tries(self) -> int: ...
    @property
    def retry_at(self) -> int | None: ...
    @property
    def at(self) -> int: ...


class Intake:
    """The door of one source. `clock` gives the local time in milliseconds."""

    def __init__(self, source: str, clock: Clock) -> None:
        self.source = source
        self._clock = clock
        self._named: set[str] = set()
        """Sessions summarised since the welcome: the first summary of each is whole, later ones are changes."""

    def arrival(self, arrival: Arrival) -> list[Fact]:
        """What one arrival tells. Never raises: what cannot be read is a FaultFact."""
        if isinstance(arrival, Unreadable):
            return [self._fault(arrival.bad.reason, arrival.bad.raw)]
        facts = self.frame(arrival.frame)
        facts.extend(self._fault(bad.reason, bad.raw) for bad in arrival.bad)
        return facts

    def arrivals(self, arrivals: Iterable[Arrival]) -> list[Fact]:
        """What a batch of arrivals tells, in its order."""
        return [fact for arrival in arrivals for fact in self.arrival(arrival)]

    def frame(self, frame: f.HostFrame | f.UnknownFrame) -> list[Fact]:
        """What one frame tells."""
        handler = _FRAMES.get(type(frame))
        return handler(self, frame) if handler is not None else []

    def contact(self, change: ContactChange) -> ContactFact:
        """How the source is heard from now on."""
        why = clean_line(change.why)
        return ContactFact(self.source, change.contact, change.at, why, change.tries, change.retry_at)

    # --- frames ----------------------------------------------------------------------------

    def _key(self, session: str) -> SessionKey:
        return SessionKey(self.source, session)

    def _fault(self, reason: str, raw: str = "", *, fatal: bool = False) -> FaultFact:
        return FaultFact(self.source, clean_line(reason), clean(raw), fatal)

    def _welcome(self, frame: f.Welcome) -> list[Fact]:
        self._named.clear()
        return [
            WelcomeFact(
                self.source,
                host=clean_line(frame.host.name),
                version=clean_line(frame.host.version),
                instance=frame.host.instance,
                principal=clean_line(frame.principal),
                role=frame.role,
                pos=frame.pos,
                heartbeat_s=frame.heartbeat_s,
                ahead_ms=frame.now - self._clock(),
            )
        ]

    def _profiles(self, frame: f.Profiles) -> list[Fact]:
        return [_profile(self.source, id, profile) for id, profile in frame.profiles.items()]

    def _sessions(self, frame: f.Sessions) -> list[Fact]:
        facts: list[Fact] = []
        for summary in frame.sessions:
            whole = summary.id not in self._named
            self._named.add(summary.id)
            facts.append(SummaryFact(self._key(summary.id), _summary(summary, whole)))
        if frame.listed:
            facts.append(ListedFact(self.source))
        return facts

    def _gone(self, frame: f.Gone) -> list[Fact]:
        self._named.difference_update(frame.sessions)
        return [GoneFact(self._key(session)) for session in frame.sessions]

    def _request(self, frame: f.RequestFrame) -> list[Fact]:
        name = frame.request.subject.get("id")
        if not isinstance(name, str) or not name:
            return [self._fault(f"a request of session {frame.session} has no id")]
        return [request_fact(RequestKey(self.source, frame.session, name), frame.request)]

    def _beat(self, frame: f.Beat) -> list[Fact]:
        return [BeatFact(self.source, frame.pos, frame.now - self._clock())]

    def _watching(self, frame: f.Watching) -> list[Fact]:
        return [WatchingFact(self.source, frame.session, frame.from_pos, frame.through)]

    def _events(self, frame: f.Events) -> list[Fact]:
        events = tuple([event_fact(event) for event in frame.events])
        return [EventsFact(self._key(frame.session), frame.epoch, events)]

    def _page(self, frame: f.Page) -> list[Fact]:
        events = tuple([event_fact(event) for event in frame.events])
        return [EventsFact(self._key(frame.session), frame.epoch, events, stored=True)]

    def _lagged(self, frame: f.Lagged) -> list[Fact]:
        key = self._key(frame.session)
        return [HoleFact(key, frame.epoch, frame.from_seq, frame.to_seq, gone=False, why=NOTHING)]

    def _gap(self, frame: f.Gap) -> list[Fact]:
        why = clean_line(frame.why)
        return [HoleFact(self._key(frame.session), frame.epoch, frame.from_seq, frame.to_seq, gone=True, why=why)]

    def _outcome(self, frame: f.Outcome) -> list[Fact]:
        return [
            OutcomeFact(
                self.source,
                id=frame.id,
                outcome=frame.outcome,
                reason=clean_line(frame.reason) if frame.reason is not None else None,
                info=_info(frame),
                at=frame.at,
                decided=decision_fact(frame.decided),
            )
        ]

    def _presence(self, frame: f.Presence) -> list[Fact]:
        looking = tuple(clean_line(name) for name in frame.looking)
        claimed = clean_line(frame.claimed_by) if frame.claimed_by is not None else None
        return [PresenceFact(RequestKey(self.source, frame.session, frame.request), looking, claimed)]

    def _error(self, frame: f.Error) -> list[Fact]:
        about = f" (about {frame.about})" if frame.about else ""
        return [self._fault(f"{frame.code.value}: {frame.message}{about}", fatal=frame.fatal)]

    def _unknown(self, frame: f.UnknownFrame) -> list[Fact]:
        return [self._fault(f"a frame of unknown type {frame.type}", str(frame.model_extra or "")[:4096])]


_FRAMES: Final[Mapping[type, Callable[[Intake, Any], list[Fact]]]] = {
    f.Welcome: Intake._welcome,
    f.Profiles: Intake._profiles,
    f.Sessions: Intake._sessions,
    f.Gone: Intake._gone,
    f.RequestFrame: Intake._request,
    f.Beat: Intake._beat,
    f.Watching: Intake._watching,
    f.Events: Intake._events,
    f.Page: Intake._page,
    f.Lagged: Intake._lagged,
    f.Gap: Intake._gap,
    f.Outcome: Intake._outcome,
    f.Presence: Intake._presence,
    f.Error: Intake._error,
    f.UnknownFrame: Intake._unknown,
}
"""A reply answers whoever asked and tells the fleet nothing."""


# --- profiles ------------------------------------------------------------------------------


def _profile(source: str, id: str, profile: m.Profile) -> ProfileFact:
    advertised = profile.capabilities.advertised()
    return ProfileFact(
        source,
        id,
        primitives=frozenset(advertised),
        options={p: _options(p, profile.capabilities) for p in advertised},
        unknown=tuple(clean_line(name) for name in profile.capabilities.unknown()),
        traits=profile.traits.model_dump(mode="json"),
    )


def _options(primitive: Primitive, capabilities: m.Capabilities) -> Mapping[str, Any]:
    options = getattr(capabilities, primitive.value)
    if not isinstance(options, m.ActOptions):
        return dict(options)
    acts = [
        {
            "id": act.id,
            "label": clean_line(act.label),
            "effect": clean_line(act.effect),
            "danger": act.danger,
            "fields": tuple(field_fact(field) for field in act.fields),
        }
        for act in options.acts
    ]
    return {"acts": tuple(acts)}


# --- summaries -----------------------------------------------------------------------------


def _line(value: str | None) -> Clean | None:
    return clean_line(value) if value is not None else None


def _prose(value: str | None) -> Clean | None:
    return clean_prose(value) if value is not None else None


def _same(value: Any) -> Any:
    return value


def _by_primitive(reasons: Mapping[str, str]) -> dict[Primitive, Clean]:
    return {_PRIMITIVES[name]: clean_line(text) for name, text in reasons.items() if name in _PRIMITIVES}


def _pending(pending: m.Pending | None) -> PendingFact | None:
    return PendingFact(pending.overlay, clean_line(pending.by), pending.since) if pending is not None else None


def _usage(usage: m.Usage | None) -> UsageFact | None:
    if usage is None:
        return None
    return UsageFact(
        usage.input_tokens, usage.output_tokens, usage.turns, usage.budget_tokens, usage.budget_turns
    )  # fmt: skip


def _last(last: m.Last | None) -> LastFact | None:
    return LastFact(last.at, clean_line(last.kind), clean_line(last.text)) if last is not None else None


def _result(result: m.Result | None) -> ResultFact | None:
    if result is None:
        return None
    text = result.text or result.final_message or ""
    return ResultFact(clean_prose(text), result.cut, clean_line(result.stop_reason.value))


def _refs(refs: Iterable[m.RequestRef]) -> tuple[RequestRefFact, ...]:
    return tuple(RequestRefFact(ref.id, ref.kind, ref.asked_at, ref.deadline, ref.digest) for ref in refs)


def _in_flight(items: Iterable[m.InFlight]) -> tuple[tuple[str, Clean, int], ...]:
    return tuple((item.id, clean_line(item.name), item.since) for item in items)


def _labels(labels: Mapping[str, str]) -> dict[Clean, Clean]:
    return {clean_line(name): clean_line(value) for name, value in labels.items()}


_SUMMARY: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "name": ("name", _line),
    "kind": ("kind", str),
    "owned": ("owned", _same),
    "demo": ("demo", _same),
    "parent": ("parent", _same),
    "attempt": ("attempt", _same),
    "turn": ("turn", _same),
    "epoch": ("epoch", _same),
    "lifecycle": ("lifecycle", _same),
    "native_state": ("native_state", _line),
    "why": ("why", _line),
    "since": ("since", _same),
    "profile": ("profile", _same),
    "blocked": ("blocked", _by_primitive),
    "controls": ("controls", _by_primitive),
    "pending": ("pending", _pending),
    "in_flight": ("in_flight", _in_flight),
    "requests": ("request_refs", _refs),
    "head": ("head", _same),
    "usage": ("usage", _usage),
    "last": ("last", _last),
    "labels": ("labels", _labels),
    "cwd": ("cwd", _line),
    "result": ("result", _result),
    "error": ("error", _prose),
}
"""Field of a summary -> attribute of a session, and the way there."""


def _summary(summary: m.Summary, whole: bool) -> dict[str, Any]:
    given = m.Summary.model_fields.keys() if whole else summary.model_fields_set
    fields: dict[str, Any] = {}
    for name in given:
        if name in _SUMMARY:
            attribute, convert = _SUMMARY[name]
            fields[attribute] = convert(getattr(summary, name))
        elif name == "mailbox":
            fields["mail_queued"], fields["mail_refs"] = summary.mailbox.queued, summary.mailbox.refs
    return fields


# --- outcomes ------------------------------------------------------------------------------


def _info(frame: f.Outcome) -> dict[str, Any]:
    """What the fleet and the command line read of an outcome's details: ids raw, other texts clean."""
    info: dict[str, Any] = {}
    for name, value in frame.info.items():
        if name in ("ref", "session") and isinstance(value, str):
            info[name] = value
        elif name == "delivery":
            info[name] = Delivery(value) if isinstance(value, str) and value in Delivery.__members__.values() else None
        elif isinstance(value, str):
            info[clean_line(name)] = clean_line(value)
        elif value is None or isinstance(value, bool | int | float):
            info[clean_line(name)] = value
        else:
            info[clean_line(name)] = clean(str(value))
    if frame.attempt is not None:
        info.setdefault("attempt", frame.attempt)
    if frame.retry_after_s is not None:
        info["retry_after_s"] = frame.retry_after_s
    return info
