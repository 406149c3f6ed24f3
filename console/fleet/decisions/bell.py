"""When the bell rings: for requests that are new, and once for however many of them come together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from console.fleet.decisions.former import standing
from console.fleet.facts import RequestKey, SessionKey
from console.fleet.state import Request
from console.fleet.store import Store
from watchfloor.words import RequestState

CALM_MS: Final = 1_000
"""One bell stands for all that come within this time of it."""
IDLE: Final = 3
"""So many requests of a session that ended before anybody decided them, one after the other, are a session that plays
with the bell, or is broken."""
IDLE_MS: Final = 30_000
"""Least time between two bells for such a session."""


class Bell:
    """Remembers what it has rung for: a request that is told of again, or comes back with its source, is not new."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: set[RequestKey] = set()
        self._rung_at: int | None = None
        self._idle: dict[SessionKey, int] = {}
        """How many requests of a session ended undecided since one was decided."""
        self._rung_for: dict[SessionKey, int] = {}
        """When it last rang for one of these."""

    def rings(self, keys: Iterable[RequestKey], steady: int, now: int) -> bool:
        """Is one of these requests new, and does it wait for a human? `steady`: milliseconds of a clock that is never
        set; `now`: local time."""
        new = False
        for key in keys:
            request = self._store.requests.get(key)
            if request is None or not request.open:
                self._over(key, request)
            elif key not in self._known:
                self._known.add(key)
                if standing(self._store, key, now) is None and not self._tires(key.owner, steady):
                    new = True
        if not new or (self._rung_at is not None and 0 <= steady - self._rung_at < CALM_MS):
            return False
        self._rung_at = steady
        return True

    def _over(self, key: RequestKey, request: Request | None) -> None:
        if key not in self._known:
            return
        self._known.discard(key)
        if request is not None and request.state is RequestState.RESOLVED:
            self._idle.pop(key.owner, None)
            self._rung_for.pop(key.owner, None)
        elif key.owner in self._store.sessions:
            self._idle[key.owner] = self._idle.get(key.owner, 0) + 1
        else:
            self._idle.pop(key.owner, None)
            self._rung_for.pop(key.owner, None)

    def _tires(self, session: SessionKey, steady: int) -> bool:
        """Does the session ask again and again, and take it back before anybody decides?"""
        if self._idle.get(session, 0) < IDLE:
            return False
        before = self._rung_for.get(session)
        if before is not None and 0 <= steady - before < IDLE_MS:
            return True
        self._rung_for[session] = steady
        return False
