"""How many sessions are in which state, kept up to date by what has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from console.fleet.changes import Changes
from console.fleet.facts import SessionKey
from console.fleet.store import Store
from watchfloor.words import Lifecycle


class Census:
    """Sessions by state, those that are known by name only left out; as of the last `take_up`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[SessionKey, Lifecycle] = {}
        self._counts: Counter[Lifecycle] = Counter()
        self.take_up(None)

    @property
    def counts(self) -> Mapping[Lifecycle, int]:
        return self._counts

    def take_up(self, changes: Changes | None) -> None:
        """Count what has changed; None: anything may have."""
        keys: Iterable[SessionKey] = {*self._known, *self._store.sessions} if changes is None else changes.sessions
        for key in keys:
            session = self._store.sessions.get(key)
            state = session.lifecycle if session is not None and not session.placeholder else None
            before = self._known.get(key)
            if state is before:
                continue
            if before is not None:
                self._counts[before] -= 1
                del self._known[key]
            if state is not None:
                self._counts[state] += 1
                self._known[key] = state
