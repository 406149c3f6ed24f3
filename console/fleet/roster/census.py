"""How many sessions are in which state, kept up to date by what has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from console.fleet.changes import Changes
from console.fleet.facts import SessionKey
from console.fleet.store import Store
from watchfloor.words import Lifecycle


class Census:
    """Sessions by state, those that are known by name only left out; as of the last `take_up`.

    Whether their sources are heard is as of now: of one that is not, only the last known state is known.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[SessionKey, Lifecycle] = {}
        self._counts: dict[str, Counter[Lifecycle]] = {}
        self.used = False
        """Has any session ever told what it uses?"""
        self.take_up(None)

    @property
    def counts(self) -> Mapping[Lifecycle, int]:
        """The sessions of the sources that are heard, by state."""
        found: Counter[Lifecycle] = Counter()
        for source, counts in self._counts.items():
            if self._store.sources[source].live:
                found += counts
        return found

    @property
    def last_known(self) -> int:
        """How many sessions are those of sources that are not heard."""
        sources = self._store.sources
        return sum(counts.total() for source, counts in self._counts.items() if not sources[source].live)

    def take_up(self, changes: Changes | None) -> None:
        """Count what has changed; None: anything may have."""
        keys: Iterable[SessionKey] = {*self._known, *self._store.sessions} if changes is None else changes.sessions
        for key in keys:
            session = self._store.sessions.get(key)
            self.used = self.used or (session is not None and session.usage is not None)
            state = session.lifecycle if session is not None and not session.placeholder else None
            before = self._known.get(key)
            if state is before:
                continue
            counts = self._counts.setdefault(key.source, Counter())
            if before is not None:
                counts[before] -= 1
                del self._known[key]
            if state is not None:
                counts[state] += 1
                self._known[key] = state
