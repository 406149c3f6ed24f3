"""Facts about a source as a whole."""

from __future__ import annotations

from typing import Final

from console.fleet.changes import Changes
from console.fleet.facts import (
    AloneFact,
    BeatFact,
    ContactFact,
    FaultFact,
    ListedFact,
    ProfileFact,
    SessionKey,
    WatchingFact,
    WelcomeFact,
)
from console.fleet.state import Session, Source
from console.fleet.store import Store
from watchfloor.text import NOTHING
from watchfloor.words import Contact

ALL: Final = "*"
"""A watch of every session."""


def contact(store: Store, fact: ContactFact, now: int, changes: Changes) -> None:
    source = store.source(fact.source, changes)
    if fact.contact is not source.contact or not source.contact_since:
        source.contact_since = fact.local_at
    if fact.contact is Contact.LIVE:
        source.lost_since = None
    elif fact.contact is Contact.LOST and source.lost_since is None:
        source.lost_since = fact.local_at
        _broke(store, source, changes)
        _unwatched(store, source, changes)
    # What the source said before it hung up tells more than that it did.
    why = fact.why if fact.contact is Contact.LIVE else source.fatal or fact.why
    source.recorded = fact.recorded
    source.contact, source.why, source.tries, source.retry_at = fact.contact, why, fact.tries, fact.retry_at
    store.noted(source, changes)


def _broke(store: Store, source: Source, changes: Changes) -> None:
    """Contact was lost: where nothing can be replayed, something may be missing from now on."""
    for session in _sessions(store, source.name):
        profile = store.profile(session)
        if session.track.followed and profile is not None and profile.traits.get("replay") == "none":
            session.track.broken = True
            store.changed(session, changes)


def welcome(store: Store, fact: WelcomeFact, now: int, changes: Changes) -> None:
    source = store.source(fact.source, changes)
    if source.welcomed and source.instance != fact.instance:
        # Another life of the host may have begun a new log, which counts from the start.
        source.pos = min(source.pos, fact.pos)
    source.host, source.host_version, source.instance = fact.host, fact.version, fact.instance
    source.principal, source.role = fact.principal, fact.role
    source.head, source.heartbeat_s, source.fatal = fact.pos, fact.heartbeat_s, NOTHING
    store.set_clock(source, fact.ahead_ms)
    source.welcomed, source.listed, source.follows_all = True, False, False
    source.named.clear()
    source.alone = False
    _unwatched(store, source, changes)
    store.noted(source, changes)


def _unwatched(store: Store, source: Source, changes: Changes) -> None:
    """Who looks at its requests is not known any more, or will be told anew where there is anybody."""
    for request in store.queue.requests:
        if request.key.source == source.name and (request.looking or request.claimed_by is not None):
            request.looking, request.claimed_by = (), None
            request.version += 1
            changes.requests.add(request.key)


def alone(store: Store, fact: AloneFact, now: int, changes: Changes) -> None:
    store.source(fact.source, changes).alone = True


def beat(store: Store, fact: BeatFact, now: int, changes: Changes) -> None:
    source = store.source(fact.source, changes)
    source.head = max(source.head, fact.pos)
    store.set_clock(source, fact.ahead_ms)
    changes.sources.add(source.name)


def profile(store: Store, fact: ProfileFact, now: int, changes: Changes) -> None:
    source = store.source(fact.source, changes)
    if source.profiles.get(fact.id) == fact:
        return
    source.profiles[fact.id] = fact
    for session in _sessions(store, fact.source):
        if session.profile == fact.id:
            session.track.ordered = numbers_itself(fact)
            store.changed(session, changes)


def numbers_itself(fact: ProfileFact) -> bool:
    """Does the source number its events? Otherwise its connector does, in the order of arrival."""
    return fact.traits.get("replay", "pos") in ("pos", "seq")


def watching(store: Store, fact: WatchingFact, now: int, changes: Changes) -> None:
    source = store.source(fact.source, changes)
    if fact.session == ALL:
        first = not source.followed_before
        source.follows_all = source.followed_before = True
        source.through = fact.through
        source.pos = max(source.pos, fact.from_pos)
        source.head = max(source.head, fact.through)
        watched = _sessions(store, fact.source)
    else:
        session = store.session(SessionKey(fact.source, fact.session), changes)
        first = not session.track.followed
        watched = [session]
    for session in watched:
        track = session.track
        if first and fact.from_pos > 0 and not track.received and track.head > 0:
            # What came before was not asked for. Only a watch from the head on tells how much that is.
            track.floor_open = True
            track.floor = track.head if fact.from_pos >= fact.through else 0
            track.watch_behind(now)
        track.followed = True
        store.changed(session, changes)
    store.noted(source, changes)


def listed(store: Store, fact: ListedFact, now: int, changes: Changes) -> None:
    source = store.source(fact.source, changes)
    source.listed = True
    for session in _sessions(store, fact.source):
        if not session.placeholder and session.key.session not in source.named:
            store.remove(session.key, now, changes)
    store.noted(source, changes)


def fault(store: Store, fact: FaultFact, now: int, changes: Changes) -> None:
    source = store.source(fact.source, changes)
    source.faults.append(fact)
    if fact.told:
        source.error_count += fact.count
    else:
        source.fault_count += fact.count
    if fact.fatal:
        source.fatal = fact.reason
        if not source.live:
            source.why = fact.reason
    session = store.sessions.get(SessionKey(source.name, fact.session)) if fact.session is not None else None
    if session is not None and not fact.in_log:
        before = session.log.first, session.log.end
        session.log.note(fact.reason, now + source.ahead_ms, fact.count, told=fact.told)
        store.note_log(session, before, changes)
    store.noted(source, changes)


def _sessions(store: Store, source: str) -> list[Session]:
    return [session for key, session in store.sessions.items() if key.source == source]
