"""How sessions were left when nobody could look any more, and what to tell when somebody can again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from console.fleet.absence import AWAY_MS, Digest, Mark, digest, headline, marks
from watchfloor.text import NOTHING, Clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.fleet.state import Source
    from console.fleet.store import Store
    from console.journal.journal import Journal

SETTLE_MS: Final = 2_000
"""After contact, before what is known of it is compared: its greeting and list are on their way."""
SEE_MS: Final = 30_000
"""How often it is written down how sessions are: a console that is killed has looked until then at most."""


class Away:
    """One console. `journal` keeps over its end how it left its sources, but those in `passing`."""

    def __init__(self, store: Store, journal: Journal | None, passing: frozenset[str]) -> None:
        self._store = store
        self._journal = journal
        self._passing = passing
        self._left: dict[str, Mapping[str, Mark]] = {}
        """Sources that are not caught up with, and how their sessions were left."""
        self._seen_at: dict[str, int] = {}
        self._written: dict[str, dict[str, Mark]] = {}
        self._digests: dict[str, Digest] = {}
        self._news = False

    def remember(self, source: str, left: Mapping[str, Mark]) -> None:
        """How an earlier console has left the source."""
        if left:
            self._left.setdefault(source, left)

    @property
    def digests(self) -> tuple[Digest, ...]:
        """What has happened while nobody could look."""
        return tuple(one for one in self._digests.values() if one)

    def headline(self, now: int) -> Clean:
        """All of it in one line; "" where there is nothing that was not read yet."""
        return headline(self.digests, now) if self._news else NOTHING

    def read(self) -> None:
        """Somebody has read it."""
        self._news = False

    def tick(self, now: int) -> None:
        """Note who is lost, who is back, and how everybody is."""
        for name, source in self._store.sources.items():
            if source.lost_since is not None:
                if name not in self._left and source.welcomed:
                    self._left[name] = marks(self._store, name, source.lost_since)
            elif self._caught_up(source, now):
                if (left := self._left.pop(name, None)) is not None:
                    found = digest(self._store, name, left, now)
                    if now - found.at >= AWAY_MS:
                        self._digests[name] = found
                        self._news = True
                if now - self._seen_at.get(name, 0) >= SEE_MS:
                    self._see(name, now)

    def close(self, now: int) -> None:
        """The console ends: how everything is that it could see."""
        for name, source in self._store.sources.items():
            if source.live and source.listed and name not in self._left:
                self._see(name, now)

    def _caught_up(self, source: Source, now: int) -> bool:
        """Is all known that the source told first on this connection?"""
        return source.live and source.listed and not source.behind and now - source.contact_since >= SETTLE_MS

    def _see(self, name: str, now: int) -> None:
        self._seen_at[name] = now
        if self._journal is None or name in self._passing:
            return
        present = marks(self._store, name, now)
        before = self._written.get(name, {})
        changed = {id: one for id, one in present.items() if id not in before or one[1:] != before[id][1:]}
        # One is written anew each time, so that it is known when somebody last looked.
        changed.update(list(present.items())[:1])
        self._written[name] = present
        if changed:
            self._journal.see(name, changed)
