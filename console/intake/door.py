"""Frames in, clean facts out: one source at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from console.fleet.facts import (
    NO_TIME,
    AloneFact,
    BeatFact,
    ContactFact,
    EventsFact,
    Fact,
    FaultFact,
    GoneFact,
    HoleFact,
    ListedFact,
    OutcomeFact,
    PresenceFact,
    RequestKey,
    SessionKey,
    SummaryFact,
    WatchingFact,
    WelcomeFact,
)
from console.intake.bounds import (
    KEEP_ID,
    KEEP_NAMES,
    MOST_COUNT,
    Reading,
    a_line,
    exact,
    line,
    size,
)
from console.intake.doubles import is_long, member_twice, sessions_twice, streamed_twice, told_twice
from console.intake.events import event_facts
from console.intake.outcomes import outcome_info
from console.intake.profiles import profile_fact
from console.intake.requests import decision_fact, request_fact
from console.intake.summaries import summary_fields
from watchfloor.connector import Arrival, Clock, Received, Streamed, Unreadable
from watchfloor.protocol import events as e
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.protocol.codec import Bad
from watchfloor.text import NOTHING, Clean
from watchfloor.words import Contact

KEEP_RAW: Final = 4_096
"""Characters that are kept of what could not be read."""


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
    """The door of one source. `clock` gives the local time in milliseconds; `recorded`: it is a recording."""

    def __init__(self, source: str, clock: Clock, *, recorded: bool = False) -> None:
        self.source = source
        self._recorded = recorded
        self._clock = clock
        self._named: set[str] = set()
        """Sessions summarised since the welcome: the first summary of each is whole, later ones are changes."""
        self._keys: dict[str, SessionKey] = {}
        """Of those that have spoken since: most speak again and again."""
        self._reading = Reading()
        """Serves for one frame after the other, until something is noted in it."""

    def arrival(self, arrival: Arrival) -> list[Fact]:
        """What one arrival tells. Never raises: what cannot be read is a FaultFact."""
        if isinstance(arrival, Unreadable):
            return self._unreadable(arrival.bad)
        if isinstance(arrival, Streamed) and (facts := self._streamed(arrival)):
            return facts
        frame, bad = arrival.frame, arrival.bad
        if arrival.raw is not None and (name := told_twice(arrival.raw, frame)):
            bad = (*bad, _twice(name, arrival.raw))
        facts = self.frame(frame, bad)
        if not bad:
            return facts
        # An event whose place is known stands in the log as `raw`, with the reason.
        events = frame.events if isinstance(frame, f.Events | f.Page) else ()
        in_log = sum(type(event) is e.Raw for event in events) >= sum(not one.mended for one in bad)
        for one in bad:
            session = one.session if one.session is not None else getattr(frame, "session", None)
            facts.append(self._fault(one.reason, one.raw, session=session, in_log=in_log or one.mended))
        return facts

    def _streamed(self, arrival: Streamed) -> list[Fact]:
        """Events that came without models; nothing where they have to be looked at with them."""
        stream = arrival.stream
        session = stream.session
        if not 0 < len(session) <= KEEP_ID or streamed_twice(arrival.raw or b"", stream):
            return []
        reading = self._reading
        told = tuple.__new__(
            EventsFact,
            (
                self._keys.get(session) or self._key(session),
                reading.id("epoch", stream.epoch),
                event_facts(stream.events, reading),
                False,
            ),
        )
        return self._noted([told, *self._strange(session, reading)], reading, session) if reading.used else [told]

    def arrivals(self, arrivals: Iterable[Arrival]) -> list[Fact]:
        """What a batch of arrivals tells, in its order."""
        return [fact for arrival in arrivals for fact in self.arrival(arrival)]

    def looked_through(self, arrival: Arrival) -> Callable[[], list[Fact]] | None:
        """What is to be called, in any thread, to look for members that stand twice in a list that is too long for it
        to be looked through at once; None where that was done."""
        raw = arrival.raw if isinstance(arrival, Received) and not isinstance(arrival, Streamed) else None
        if raw is None or not isinstance(arrival, Received) or not is_long(arrival.frame):
            return None

        def found() -> list[Fact]:
            name = member_twice(raw)
            return [self._fault((bad := _twice(name, raw)).reason, bad.raw)] if name else []

        return found

    def frame(self, frame: f.HostFrame | f.UnknownFrame, bad: Sequence[Bad] = ()) -> list[Fact]:
        """What one frame tells. `bad`: what of it could not be read before it came here."""
        handler = _FRAMES.get(type(frame))
        if handler is None:
            return []
        session = getattr(frame, "session", None)
        if isinstance(session, str) and not 0 < len(session) <= KEEP_ID and not isinstance(frame, f.Error):
            return [self._fault(_unnamed(session))]
        reading = self._reading
        facts = handler(self, frame, reading, bad)
        return self._noted(facts, reading, session) if reading.used else facts

    def _noted(self, facts: list[Fact], reading: Reading, session: str | None) -> list[Fact]:
        """The facts with what was noted of them; the next frame has a reading of its own."""
        self._reading = Reading()
        if reading.odd:
            facts.append(self._fault(reading.why, session=reading.whose or session, count=reading.odd))
        return facts

    def _strange(self, session: str, r: Reading) -> list[Fact]:
        if not r.unknown:
            return []
        reason = f"events of an unknown kind: {r.kind[:KEEP_ID]}"
        return [self._fault(reason, session=session, count=r.unknown, in_log=True)]

    def _unreadable(self, bad: Bad) -> list[Fact]:
        """A frame of which nothing could be used; its beginning may still show whose it was, and that it asks."""
        session = _found(_SESSION, bad.raw)
        if session is None or session not in self._named:
            return [self._fault(bad.reason, bad.raw)]
        facts: list[Fact] = [self._fault(bad.reason, bad.raw, session=session)]
        if _ASKS.search(bad.raw) and (name := _found(_ID, bad.raw)) is not None:
            unread = m.RequestModel(subject={"id": name}, digest="", asked_at=NO_TIME)
            facts.append(request_fact(RequestKey(self.source, session, name), unread, Reading(), bad.reason))
        return facts

    def contact(self, change: ContactChange) -> ContactFact:
        """How the source is heard from now on."""
        return ContactFact(
            self.source, change.contact, change.at, line(change.why), change.tries, change.retry_at, self._recorded
        )  # fmt: skip

    # --- frames ----------------------------------------------------------------------------

    def _key(self, session: str) -> SessionKey:
        key = self._keys.get(session)
        if key is None:
            key = SessionKey(self.source, session)
            if session in self._named:
                self._keys[session] = key
        return key

    def _fault(
        self,
        reason: str,
        raw: str = "",
        *,
        session: str | None = None,
        count: int = 1,
        in_log: bool = False,
        told: bool = False,
        fatal: bool = False,
    ) -> FaultFact:
        return FaultFact(
            self.source, line(reason), exact(raw, KEEP_RAW),
            fatal=fatal, told=told, session=session, count=count, in_log=in_log,
        )  # fmt: skip

    def _welcome(self, frame: f.Welcome, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        self._named.clear()
        self._keys.clear()
        return [
            WelcomeFact(
                self.source,
                host=line(frame.host.name),
                version=line(frame.host.version),
                instance=r.id("instance", frame.host.instance),
                principal=line(frame.principal),
                role=frame.role,
                pos=r.count("pos", frame.pos),
                heartbeat_s=r.span_s("heartbeat_s", frame.heartbeat_s),
                ahead_ms=self._ahead(frame.now, r),
            )
        ]

    def _ahead(self, now: int, r: Reading) -> int:
        """How far the source's clock is ahead of ours; a clock that shows no time is taken for ours."""
        theirs = r.time("now", now)
        return theirs - self._clock() if theirs else 0

    def _profiles(self, frame: f.Profiles, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        return [profile_fact(self.source, r.id("profile", id), profile) for id, profile in frame.profiles.items()]

    def _sessions(self, frame: f.Sessions, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        unread = {one.session: one.fields for one in bad if one.session is not None}
        facts: list[Fact] = []
        for summary in frame.sessions:
            if not 0 < len(summary.id) <= KEEP_ID:
                facts.append(self._fault(_unnamed(summary.id)))
                continue
            given = summary.model_fields_set
            if summary.id not in self._named:
                self._named.add(summary.id)
                # What could not be read is not what is absent: it stays as it was known.
                given = set(m.Summary.model_fields).difference(unread.get(summary.id, ()))
            odd = r.odd
            facts.append(SummaryFact(self._key(summary.id), summary_fields(summary, given, r)))
            if r.odd > odd:
                r.whose = summary.id
        for id in sessions_twice(frame.sessions):
            facts.append(self._fault("two sessions with one id: they are shown as one", session=id))
        if frame.listed:
            facts.append(ListedFact(self.source))
        return facts

    def _gone(self, frame: f.Gone, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        self._named.difference_update(frame.sessions)
        self._keys.clear()
        return [GoneFact(self._key(session)) for session in frame.sessions]

    def _request(self, frame: f.RequestFrame, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        name = frame.request.subject.get("id")
        if not isinstance(name, str) or not name:
            return [self._fault(f"a request of session {frame.session} has no id", session=frame.session)]
        if len(name) > KEEP_ID:
            return [self._fault(f"a request with an id of {size(len(name))}", session=frame.session)]
        fault = bad[0].reason if bad else ""
        return [request_fact(RequestKey(self.source, frame.session, name), frame.request, r, fault)]

    def _beat(self, frame: f.Beat, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        return [BeatFact(self.source, r.count("pos", frame.pos), self._ahead(frame.now, r))]

    def _watching(self, frame: f.Watching, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        from_pos, through = r.count("from_pos", frame.from_pos), r.count("through", frame.through)
        return [WatchingFact(self.source, frame.session, from_pos, through)]

    def _events(self, frame: f.Events, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        return [self._taken(frame, r, stored=False), *self._strange(frame.session, r)]

    def _page(self, frame: f.Page, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        return [self._taken(frame, r, stored=True)]

    def _taken(self, frame: f.Events | f.Page, r: Reading, *, stored: bool) -> EventsFact:
        events = event_facts(_placed(frame.events, r), r)
        return EventsFact(self._key(frame.session), r.id("epoch", frame.epoch), events, stored)

    def _lagged(self, frame: f.Lagged, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        return [self._hole(frame, r, gone=False, why=NOTHING)]

    def _gap(self, frame: f.Gap, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        return [self._hole(frame, r, gone=True, why=line(frame.why))]

    def _hole(self, frame: f.Lagged | f.Gap, r: Reading, *, gone: bool, why: Clean) -> HoleFact:
        first, last = r.count("from_seq", frame.from_seq), r.count("to_seq", frame.to_seq)
        return HoleFact(self._key(frame.session), r.id("epoch", frame.epoch), first, last, gone=gone, why=why)

    def _outcome(self, frame: f.Outcome, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        return [
            OutcomeFact(
                self.source,
                id=frame.id,
                outcome=frame.outcome,
                reason=a_line(frame.reason),
                info=outcome_info(frame, r),
                at=r.time("at", frame.at),
                decided=decision_fact(frame.decided, r),
            )
        ]

    def _presence(self, frame: f.Presence, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        looking = [line(name) for name in frame.looking[:KEEP_NAMES]]
        if (more := len(frame.looking) - KEEP_NAMES) > 0:
            looking.append(Clean(f"{more:,} more"))
        return [
            PresenceFact(
                RequestKey(self.source, frame.session, frame.request), tuple(looking), a_line(frame.claimed_by)
            )
        ]

    def _error(self, frame: f.Error, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        if frame.code is f.ErrorCode.UNSUPPORTED and frame.about in _PRESENCE and not frame.fatal:
            # An older host: that nobody hears who looks is no fault of anything.
            return [AloneFact(self.source)]
        about = f" (about {frame.about[:KEEP_ID]})" if frame.about else ""
        reason = f"{frame.code.value}: {frame.message}{about}"
        return [self._fault(reason, session=frame.session, told=True, fatal=frame.fatal)]

    def _unknown(self, frame: f.UnknownFrame, r: Reading, bad: Sequence[Bad]) -> list[Fact]:
        try:
            raw = str(frame.model_extra or "")
        except (ValueError, RecursionError):  # an endless integer has no digits
            raw = ""
        return [self._fault(f"a frame of unknown type {frame.type}", raw[:KEEP_RAW])]


_FRAMES: Final[Mapping[type, Callable[[Intake, Any, Reading, Sequence[Bad]], list[Fact]]]] = {
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

_PRESENCE: Final = frozenset({"looking", "claim"})


_SESSION: Final = re.compile(r'"session"\s*:\s*"([^"\\]{1,1024})"')
_ID: Final = re.compile(r'"id"\s*:\s*"([^"\\]{1,1024})"')
_ASKS: Final = re.compile(r'"type"\s*:\s*"request"')


def _twice(name: str, raw: bytes) -> Bad:
    return Bad(f"{name[:KEEP_ID]} stands in it twice", raw[:KEEP_RAW].decode(errors="replace"))


def _placed(events: Sequence[e.Event], r: Reading) -> Sequence[e.Event]:
    """Without those whose number is beyond every count: they have no place among the others."""
    for event in events:
        if event.seq is not None and event.seq > MOST_COUNT:
            break
    else:
        return events
    placed = [event for event in events if event.seq is None or event.seq <= MOST_COUNT]
    for _ in range(len(events) - len(placed)):
        r.note("an event", "whose number is beyond 2^53 - 1")
    return placed


def _unnamed(session: str) -> str:
    return f"a session with an id of {size(len(session))}" if session else "a session without an id"


def _found(pattern: re.Pattern[str], raw: str) -> str | None:
    match = pattern.search(raw)
    return match[1] if match is not None else None
