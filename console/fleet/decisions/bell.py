"""When the bell rings: for requests that are new, and once for however many of them come together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from console.fleet.decisions.former import standing
from console.fleet.facts import RequestKey
from console.fleet.store import Store

CALM_MS: Final = 1_000
"""One bell stands for all that come within this time of it."""


class Bell:
    """Remembers what it has rung for: a request that is told of again, or comes back with its source, is not new."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: set[RequestKey] = set()
        self._rung_at: int | None = None

    def rings(self, keys: Iterable[RequestKey], steady: int, now: int) -> bool:
        """Is one of these requests new, and does it wait for a human? `steady`: milliseconds of a clock that is never
        set; `now`: local time."""
        new = False
        for key in keys:
            request = self._store.requests.get(key)
            if request is None or not request.open:
                self._known.discard(key)
            elif key not in self._known:
                self._known.add(key)
                new = new or standing(self._store, key, now) is None
        if not new or (self._rung_at is not None and 0 <= steady - self._rung_at < CALM_MS):
            return False
        self._rung_at = steady
        return True
