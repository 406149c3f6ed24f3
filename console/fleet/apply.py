"""The fleet: facts in, changes out. Pure: no I/O, and the time is always given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from console.fleet import from_session, from_source, trail
from console.fleet.changes import Changes
from console.fleet.evidence import Scene
from console.fleet.facts import (
    AloneFact,
    BeatFact,
    ContactFact,
    EventsFact,
    Fact,
    FaultFact,
    GoneFact,
    HoleFact,
    Intent,
    KeptFact,
    ListedFact,
    OutcomeFact,
    PresenceFact,
    ProfileFact,
    RequestFact,
    SessionKey,
    SummaryFact,
    WatchingFact,
    WelcomeFact,
)
from console.fleet.state import Trail
from console.fleet.store import Store
from watchfloor.text import Clean
from watchfloor.words import OutcomeKind

KEEP_TRAILS: Final = 1_000


def _outcome(store: Store, fact: OutcomeFact, now: int, changes: Changes) -> None:
    found = store.trails.get(fact.id)
    if found is not None and trail.acknowledge(found, fact, now):
        store.touched.add(found.target)
        _note_trail(store, found, changes)


_HANDLERS: Final[Mapping[type, Callable[[Store, Any, int, Changes], None]]] = MappingProxyType(
    {
        EventsFact: from_session.events,
        SummaryFact: from_session.summary,
        RequestFact: from_session.request,
        PresenceFact: from_session.presence,
        AloneFact: from_source.alone,
        HoleFact: from_session.hole,
        GoneFact: from_session.gone,
        KeptFact: from_session.kept,
        ProfileFact: from_source.profile,
        ContactFact: from_source.contact,
        WelcomeFact: from_source.welcome,
        BeatFact: from_source.beat,
        ListedFact: from_source.listed,
        WatchingFact: from_source.watching,
        FaultFact: from_source.fault,
        OutcomeFact: _outcome,
    }
)


Unfit: TypeAlias = Callable[[str, Exception], FaultFact]
"""What is told of a source when something from it could not be taken up, and why."""


class Fleet(Store):
    """What the console knows, with the ways to change it. Read the attributes; they are never replaced."""

    def __init__(self, unfit: Unfit | None = None) -> None:
        """Create an empty fleet. With `unfit` a fact that cannot be taken up costs itself only and is counted as a
        fault of its source; without, it raises."""
        super().__init__()
        self.unfit: Final = unfit

    def apply(self, facts: Iterable[Fact], now: int) -> Changes:
        """Take up what arrived at the local time `now`, in its order."""
        changes = Changes()
        for fact in facts:
            try:
                _HANDLERS[type(fact)](self, fact, now, changes)
            except Exception as fault:
                _spoilt(self, _source_of(fact), fault, now, changes)
        _judge(self, now, changes)
        self.forget_ended()
        return changes

    def tick(self, now: int) -> Changes:
        """Take up what the passing of time alone has changed: overdue effects, gaps that did not fill."""
        changes = Changes()
        self.touched.update(self.active)
        _judge(self, now, changes)
        for key in list(self.unsettled):
            session = self.sessions.get(key)
            if session is None or session.track.behind_since is None:
                self.unsettled.discard(key)
            elif session.track.late(now):
                self.unsettled.discard(key)
                self.changed(session, changes)
        return changes

    def clock_set(self, by_ms: int) -> Changes:
        """Our clock was set by so much, while no time passed: what is waited for is due by the clock as it is now."""
        changes = Changes()
        for one in (one for trails in self.active.values() for one in trails):
            trail.clock_set(one, by_ms)
        for session in self.sessions.values():
            if session.track.behind_since is not None:
                session.track.behind_since += by_ms
        for source in self.sources.values():
            # The first beat brings it as well; until then requests would be of another day.
            self.set_clock(source, source.ahead_ms - by_ms)
            if source.contact_since:
                source.contact_since += by_ms
            if source.lost_since is not None:
                source.lost_since += by_ms
            if source.retry_at is not None:
                source.retry_at += by_ms
            self.noted(source, changes)
        return changes

    def requested(self, intent: Intent, now: int) -> Changes:
        """A command has passed the gate and is about to be sent. Its id is new, its target known."""
        changes = Changes()
        instance = self.sources[intent.target.source].instance
        begun = trail.begin(intent, self.sessions[intent.target], self.sessions, now, instance=instance)
        self.trails[begun.id] = begun
        self.active.setdefault(begun.target, []).append(begun)
        if len(self.trails) > KEEP_TRAILS:
            _retire(self, self.trails.pop(next(iter(self.trails))))
        _note_trail(self, begun, changes)
        return changes

    def sent(self, id: str, now: int) -> Changes:
        """The command has left the console."""
        changes = Changes()
        found = self.trails.get(id)
        if found is not None and found.sent_at is None:
            found.sent_at = now
            _note_trail(self, found, changes)
        return changes

    def settle(self, id: str, outcome: OutcomeKind, reason: Clean, now: int) -> Changes:
        """The console itself knows what became of a command: `undelivered`, or `unknown` as no word came back."""
        changes = Changes()
        found = self.trails.get(id)
        if found is not None and trail.settle(found, outcome, reason, now):
            self.touched.add(found.target)
            _note_trail(self, found, changes)
            _judge(self, now, changes)
        return changes

    def active_trails(self, key: SessionKey) -> list[Trail]:
        """Commands on the session from which something is still expected, oldest first."""
        return list(self.active.get(key, ()))


def _judge(store: Fleet, now: int, changes: Changes) -> None:
    for key in store.touched:
        session = store.sessions.get(key)
        for one in list(store.active.get(key, ())):
            profile = store.profile(session) if session is not None else None
            request = store.requests.get(one.request) if one.request is not None else None
            scene = Scene(session, profile, request, store.sessions, store.children)
            try:
                moved = trail.judge(one, scene, now)
            except Exception as fault:
                # Whatever is wrong with it would be so for ever.
                trail.give_up(one, now)
                moved = True
                _spoilt(store, key.source, fault, now, changes)
            if moved:
                _note_trail(store, one, changes)
            if not one.active:
                _retire(store, one)
            for former in list(store.active.get(key, ())) if moved else ():
                if trail.call_off(former, one, now):
                    _note_trail(store, former, changes)
                    _retire(store, former)
    store.touched.clear()


def _spoilt(fleet: Fleet, source: str, fault: Exception, now: int, changes: Changes) -> None:
    """Count what could not be taken up. Raises it again where nobody counts."""
    if fleet.unfit is None:
        raise fault
    from_source.fault(fleet, fleet.unfit(source, fault), now, changes)


def _source_of(fact: Fact) -> str:
    match fact:
        case SummaryFact() | EventsFact() | RequestFact() | PresenceFact() | HoleFact() | GoneFact() | KeptFact():
            return fact.key.source
        case _:
            return fact.source


def _note_trail(store: Store, one: Trail, changes: Changes) -> None:
    one.version += 1
    changes.trails.add(one.id)
    if (session := store.sessions.get(one.target)) is not None:
        store.changed(session, changes)


def _retire(store: Store, one: Trail) -> None:
    left = [other for other in store.active.get(one.target, ()) if other is not one]
    if left:
        store.active[one.target] = left
    else:
        store.active.pop(one.target, None)
