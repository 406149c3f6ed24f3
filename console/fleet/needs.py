"""Who needs a human: counted from open requests, own and descendants', never from what a lifecycle says."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from console.fleet.facts import NO_TIME, RequestKey, SessionKey
from console.fleet.state import LATEST, Request
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


class NeedsIndex:
    """The same, kept up to date by what has changed. `found` is as of the last `update` or `rebuild`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.found: dict[SessionKey, Needs] = {}
        self._own: dict[SessionKey, Needs] = {}
        self._above: dict[SessionKey, SessionKey] = {}
        """Whose needs each session's are counted in."""
        self._below: dict[SessionKey, list[tuple[int, SessionKey]]] = {}
        """Those directly below with needs, by when the oldest of them was made."""
        self._counts: dict[SessionKey, int] = {}
        """How much waits below."""
        self._circular = False

    def rebuild(self) -> None:
        """Start over."""
        store = self._store
        self.found = needs_by_session(store)
        self._own = {key: own for key in self.found if (own := self._own_now(key)) is not None}
        self._above.clear()
        self._below.clear()
        self._counts.clear()
        for key, needs in self.found.items():
            above = _parent(store, key)
            if above is not None and above != key:
                self._above[key] = above
                self._below.setdefault(above, []).append((needs.oldest or LATEST, key))
                self._counts[above] = self._counts.get(above, 0) + needs.count
        for below in self._below.values():
            below.sort()
        self._circular = any(self._expected(key) != needs for key, needs in self.found.items())

    def update(self, sessions: Iterable[SessionKey]) -> set[SessionKey]:
        """Take up that requests of these sessions, or their parents, may have changed; returns whose needs did."""
        if self._circular:
            before = self.found
            self.rebuild()
            return {key for key in (*before, *self.found) if before.get(key) != self.found.get(key)}
        changed: set[SessionKey] = set()
        for key in sessions:
            own = self._own_now(key)
            above = _parent(self._store, key)
            if own == self._own.get(key) and (key not in self.found or above == self._above.get(key)):
                continue
            if own is None:
                self._own.pop(key, None)
            else:
                self._own[key] = own
            if not self._climb(key, changed):
                self._circular = True
                return changed | self.update(())
        return changed

    def _own_now(self, key: SessionKey) -> Needs | None:
        session = self._store.sessions.get(key)
        waiting = session.open_requests() if session is not None else ()
        return Needs(len(waiting), waiting[0].asked_at) if waiting else None

    def _expected(self, key: SessionKey) -> Needs | None:
        own, below = self._own.get(key), self._below.get(key)
        if not below:
            return own
        oldest = below[0][0] if own is None else min(below[0][0], own.oldest or LATEST)
        count = self._counts[key] + (own.count if own is not None else 0)
        return Needs(count, NO_TIME if oldest == LATEST else oldest)

    def _climb(self, key: SessionKey, changed: set[SessionKey]) -> bool:
        """Count anew what changed here, and above; False where that goes round in a circle."""
        at: SessionKey | None = key
        climbed: set[SessionKey] = set()
        while at is not None:
            if at in climbed:
                return False
            climbed.add(at)
            before, needs = self.found.get(at), self._expected(at)
            was, above = self._above.get(at), _parent(self._store, at)
            if before == needs and was == above:
                return True
            if needs is None:
                self.found.pop(at, None)
            else:
                self.found[at] = needs
            if before != needs:
                changed.add(at)
            if above == at:
                return False
            if was is not None and before is not None:
                self._uncount(was, at, before)
                if was != above and not self._climb(was, changed):
                    return False
            if above is not None and needs is not None:
                self._above[at] = above
                insort(self._below.setdefault(above, []), (needs.oldest or LATEST, at))
                self._counts[above] = self._counts.get(above, 0) + needs.count
            at = above
        return True

    def _uncount(self, above: SessionKey, key: SessionKey, needs: Needs) -> None:
        del self._above[key]
        below = self._below[above]
        del below[bisect_left(below, (needs.oldest or LATEST, key))]
        self._counts[above] -= needs.count
        if not below:
            del self._below[above], self._counts[above]


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


def unheard_requests(store: Store) -> int:
    """How many of those that wait are of sources that are not heard: nobody can decide them now."""
    return sum(count for name, count in store.queue.by_source.items() if not store.sources[name].live)


def place_of(store: Store, key: RequestKey) -> int | None:
    """The place of a request among those that wait, from 0; None where it does not."""
    return store.queue.place(key)


def next_request(store: Store, after: RequestKey | None = None) -> RequestKey | None:
    """The request to look at next: the one behind `after` in the order of waiting, else the first; None: none waits."""
    waiting = store.queue.requests
    if not waiting:
        return None
    at = store.queue.place(after) if after is not None else None
    return waiting[(at + 1) % len(waiting) if at is not None else 0].key
