"""Facts about one session: its summary, its events, its requests."""

from __future__ import annotations

from typing import Final

from console.fleet import requests, trail
from console.fleet.changes import Changes
from console.fleet.facts import (
    EventFact,
    EventsFact,
    GoneFact,
    HoleFact,
    KeptFact,
    PresenceFact,
    RequestFact,
    SummaryFact,
)
from console.fleet.from_source import numbers_itself
from console.fleet.state import Session
from console.fleet.store import Store
from watchfloor.text import Clean, numeral
from watchfloor.words import WENT_BACK

TAKEN_OVER: Final = frozenset(
    {
        "name",
        "kind",
        "owned",
        "demo",
        "attempt",
        "turn",
        "lifecycle",
        "native_state",
        "why",
        "since",
        "profile",
        "blocked",
        "controls",
        "pending",
        "in_flight",
        "in_flight_more",
        "mail_queued",
        "mail_refs",
        "request_refs",
        "usage",
        "last",
        "labels",
        "labels_more",
        "cwd",
        "result",
        "error",
    }
)
"""Fields of a summary that a session simply takes over."""


def summary(store: Store, fact: SummaryFact, now: int, changes: Changes) -> None:
    key, fields = fact.key, fact.fields
    session = store.session(key, changes)
    store.gone.pop(key, None)
    source = store.sources[key.source]
    listed = key.session not in source.named
    source.named.add(key.session)
    if session.placeholder:
        session.placeholder = False
        changes.structure = True
        store.touched.update(store.active)  # it may be what a fork made
    if "epoch" in fields:
        _begin(store, session, fields["epoch"], now, changes, fields.get("head", 0))
    for name, value in fields.items():
        if name in TAKEN_OVER:
            setattr(session, name, value)
    if "profile" in fields and (profile := store.profile(session)) is not None:
        session.track.ordered = numbers_itself(profile)
    if "parent" in fields:
        store.reparent(session, fields["parent"], changes)
    if "request_refs" in fields:
        store.note_requests(requests.listed(store.requests, session, session.request_refs, now), changes)
    if "head" in fields:
        if listed and 0 < fields["head"] < session.track.named:
            _went_back(store, session, fields["head"], now, changes)
        session.track.named = fields["head"]
        _note_head(store, session, fields["head"], now)
    store.changed(session, changes)
    if key in store.active:
        store.touched.add(key)


def gone(store: Store, fact: GoneFact, now: int, changes: Changes) -> None:
    if fact.key in store.sessions:
        store.remove(fact.key, now, changes)


def events(store: Store, fact: EventsFact, now: int, changes: Changes) -> None:
    key = fact.key
    session = store.sessions.get(key)
    if session is None:
        if key in store.gone:
            return
        session = store.session(key, changes)
    track = session.track
    if fact.epoch != track.epoch and not _of_now(store, session, fact.epoch, now, changes):
        return
    told = fact.events
    if len(told) == 1 and told[0].seq is None and not fact.stored:
        _piece(store, session, told[0], now, changes)
        return
    source = store.sources[key.source]
    log, held, pos, through = session.log, track.held, source.pos, source.through
    before, fresh = log.place, 0
    watched = None if fact.stored else store.active.get(key)
    for event in told:
        seq = event.seq
        if seq is None:
            log.stream(event)
            continue
        if not held.add(seq) or (event.key is not None and log.seen_key(event.key)):
            continue
        log.add(event, seq)
        place = event.pos
        if place is None:
            fresh += 1
        else:
            fresh += place > through
            if place > pos:
                pos = place
        if event.kind == "request_resolved":
            _resolved(store, session, event, now, changes)
        if watched:
            for one in watched:
                trail.observe(one, event)
    if not fact.stored:
        track.followed = True
        if fresh:
            session.rate.add(fresh, now)
    if pos > source.pos:
        source.pos = pos
        source.head = max(source.head, pos)
        changes.sources.add(key.source)
    if held.high > track.head:
        track.head = held.high
    if track.behind_since is not None:
        track.watch_behind(now)
    store.note_log(session, before, changes)
    if watched:
        store.touched.add(key)


def _piece(store: Store, session: Session, event: EventFact, now: int, changes: Changes) -> None:
    """A piece of a streamed item by itself, as most of what a source sends while agents write."""
    log, track = session.log, session.track
    end = log.end
    log.stream(event)
    store.note_stream(session, log.end - end, changes)
    track.followed = True
    if track.behind_since is not None:
        track.watch_behind(now)
    if session.key in store.active:
        store.touched.add(session.key)


def hole(store: Store, fact: HoleFact, now: int, changes: Changes) -> None:
    if fact.key in store.gone:
        return
    session = store.session(fact.key, changes)
    if fact.epoch != session.track.epoch and not _of_now(store, session, fact.epoch, now, changes):
        return
    if fact.gone:
        session.track.gone.add_range(fact.from_seq + 1, fact.to_seq)
    _note_head(store, session, fact.to_seq, now)
    store.changed(session, changes)


def kept(store: Store, fact: KeptFact, now: int, changes: Changes) -> None:
    """What is on the disk counts as received. That of another epoch is another log."""
    session = store.sessions.get(fact.key)
    if session is None:
        return
    track = session.track
    if track.epoch != fact.epoch:
        if _is_older(track.epoch, fact.epoch) and fact.kept and not session.log.end:
            before = session.log.first, session.log.end
            _tell_back(store, session, fact.kept[-1][1], track.named, now)
            store.note_log(session, before, changes)
        return
    for first, last in fact.kept:
        track.kept.add_range(first, last)
    for first, last in fact.gone:
        track.gone.add_range(first, last)
    track.floor, track.floor_open = 0, False
    track.watch_behind(now)
    store.changed(session, changes)


def request(store: Store, fact: RequestFact, now: int, changes: Changes) -> None:
    if fact.key.owner in store.gone:
        return
    session = store.session(fact.key.owner, changes)
    if requests.read(store.requests, session, fact, now):
        store.note_requests({fact.key}, changes)


def presence(store: Store, fact: PresenceFact, now: int, changes: Changes) -> None:
    found = store.requests.get(fact.key)
    if found is not None:
        found.looking, found.claimed_by = fact.looking, fact.claimed_by
        found.version += 1
        changes.requests.add(fact.key)


def _of_now(store: Store, session: Session, epoch: str, now: int, changes: Changes) -> bool:
    """Is this the session's epoch? One that was never heard of begins; one that is over does not come back."""
    if epoch in session.track.past:
        return False
    _begin(store, session, epoch, now, changes)
    return True


def _begin(store: Store, session: Session, epoch: str, now: int, changes: Changes, head: int = 0) -> None:
    track = session.track
    if epoch == track.epoch:
        return
    before = session.log.first, session.log.end
    held, older = track.received.high, _is_older(epoch, track.epoch)
    track.begin(epoch)
    if before[0] == before[1] and not held:
        return
    session.log.clear()
    if older:
        _tell_back(store, session, held, head, now)
    else:
        told = f"another log begins here: the one before was known up to event {numeral(held)}"
        session.log.tell(Clean(told), _there(store, session, now))
    store.note_log(session, before, changes)


def _is_older(epoch: str, before: str) -> bool:
    """Is it an older state of the log that there was before?"""
    return WENT_BACK in epoch and epoch.partition(WENT_BACK)[0] == before.partition(WENT_BACK)[0]


def _tell_back(store: Store, session: Session, held: int, head: int, now: int) -> None:
    told = f"its log went back from {numeral(held)} to {numeral(head)}: it is told anew from here"
    session.log.tell(Clean(told), _there(store, session, now))


def _went_back(store: Store, session: Session, head: int, now: int, changes: Changes) -> None:
    """The source says that it is the same log, and that it ends sooner: what follows may have the numbers of others."""
    track, before = session.track, (session.log.first, session.log.end)
    told = (
        f"its log went back from {numeral(track.named)} to {numeral(head)}: what follows may be other than what is here"
    )
    session.log.tell(Clean(told), _there(store, session, now))
    track.broken = True
    store.note_log(session, before, changes)


def _there(store: Store, session: Session, now: int) -> int:
    """Now, by the clock of the session's source."""
    return now + store.sources[session.key.source].ahead_ms


def _note_head(store: Store, session: Session, head: int, now: int) -> None:
    session.track.note_head(head, now)
    if session.track.behind_since is not None:
        store.unsettled.add(session.key)


def _resolved(store: Store, session: Session, event: EventFact, now: int, changes: Changes) -> None:
    key = requests.resolved(store.requests, session, event, now)
    if key is not None:
        store.note_requests({key}, changes)
