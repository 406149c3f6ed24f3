"""Who needs a human: counted from open requests, own and descendants', never from what a lifecycle says."""

from __future__ import annotations

from dataclasses import dataclass

from console.fleet.facts import NO_TIME, RequestKey, SessionKey
from console.fleet.state import Request
from console.fleet.store import Store


@dataclass(frozen=True, slots=True)
class Needs:
    """How many requests wait, and since when the oldest does (by the source's clock; NO_TIME: nobody knows)."""

    count: int
    oldest: int


def needs_by_session(store: Store) -> dict[SessionKey, Needs]:
    """The sessions for which something waits, in themselves or below them."""
    found: dict[SessionKey, Needs] = {}
    for owner, session in store.sessions.items():
        waiting = session.open_requests()
        if not waiting:
            continue
        own = Needs(len(waiting), waiting[0].asked_at)
        for key in lineage(store, owner):
            before = found.get(key)
            found[key] = own if before is None else _both(before, own)
    return found


def _both(one: Needs, other: Needs) -> Needs:
    known = [needs.oldest for needs in (one, other) if needs.oldest != NO_TIME]
    return Needs(one.count + other.count, min(known, default=NO_TIME))


def lineage(store: Store, key: SessionKey) -> list[SessionKey]:
    """The session and everything above it, nearest first; ends where a source names its parents in a circle."""
    line: list[SessionKey] = []
    at: SessionKey | None = key
    while at is not None and at not in line:
        line.append(at)
        session = store.sessions.get(at)
        at = SessionKey(at.source, session.parent) if session is not None and session.parent is not None else None
    return line


def open_requests(store: Store) -> list[Request]:
    """Everything that waits, the longest first. The list is shared, so that asking costs nothing: do not change it."""
    return store.queue.requests


def place_of(store: Store, key: RequestKey) -> int | None:
    """The place of a request among those that wait, from 0; None where it does not."""
    return store.queue.place.get(key)


def next_request(store: Store, after: RequestKey | None = None) -> RequestKey | None:
    """The request to look at next: the one behind `after` in the order of waiting, else the first; None: none waits."""
    waiting, place = store.queue
    if not waiting:
        return None
    at = place.get(after) if after is not None else None
    return waiting[(at + 1) % len(waiting) if at is not None else 0].key
