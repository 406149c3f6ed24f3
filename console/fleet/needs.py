"""Who needs a human: counted from open requests, own and descendants', never from what a lifecycle says."""

from __future__ import annotations

from collections import Counter
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
    """The sessions for which something waits, in themselves or below them.

    Each session is added to its parent once, after all that is below it: children may be nested as deep as a source
    likes, and climbing from each of them would look at the whole line every time.
    """
    found: dict[SessionKey, Needs] = {}
    for owner, session in store.sessions.items():
        if waiting := session.open_requests():
            found[owner] = Needs(len(waiting), waiting[0].asked_at)
    above: dict[SessionKey, SessionKey | None] = {}
    for owner in found:
        at: SessionKey | None = owner
        while at is not None and at not in above:
            above[at] = parent = _parent(store, at)
            at = parent
    below = Counter(parent for parent in above.values() if parent is not None)
    ready = [key for key in above if not below[key]]
    while ready:
        key = ready.pop()
        parent = above.pop(key)
        if parent is None:
            continue
        _add(found, parent, found[key])
        below[parent] -= 1
        if not below[parent]:
            ready.append(parent)
    # What is left names its parents in a circle: each waits for all of it.
    for key, needs in [(key, found[key]) for key in above if key in found]:
        for other in lineage(store, key)[1:]:
            _add(found, other, needs)
    return found


def _add(found: dict[SessionKey, Needs], key: SessionKey, more: Needs) -> None:
    before = found.get(key)
    if before is None:
        found[key] = more
        return
    known = [needs.oldest for needs in (before, more) if needs.oldest != NO_TIME]
    found[key] = Needs(before.count + more.count, min(known, default=NO_TIME))


def _parent(store: Store, key: SessionKey) -> SessionKey | None:
    session = store.sessions.get(key)
    return SessionKey(key.source, session.parent) if session is not None and session.parent is not None else None


def lineage(store: Store, key: SessionKey) -> list[SessionKey]:
    """The session and everything above it, nearest first; ends where a source names its parents in a circle."""
    line: dict[SessionKey, None] = {}
    at: SessionKey | None = key
    while at is not None and at not in line:
        line[at] = None
        at = _parent(store, at)
    return list(line)


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
