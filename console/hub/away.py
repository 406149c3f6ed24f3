"""How sessions were when the operator last could see them, and what to tell once they can be seen again.

Seen is what a source that is heard shows while somebody is there: keys, the mouse and the terminal's focus say so. What
was told and has not been read counts as not seen, so that nothing falls between two absences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from console.fleet.absence import AWAY_MS, Digest, Mark, digest, headline, mark, marks
from watchfloor.text import NOTHING, Clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.fleet.facts import SessionKey
    from console.fleet.state import Source
    from console.fleet.store import Store
    from console.journal.journal import Journal

SETTLE_MS: Final = 2_000
"""After contact, before what is known of it is compared: its greeting and list are on their way."""
SEE_MS: Final = 30_000
"""How often it is written down how sessions are, and how long somebody looks after a key, as far as is known."""
IDLE_MS: Final = 300_000
"""Without a key for so long nobody was there: who only reads touches something sooner."""


class Away:
    """One console. `journal` keeps over its end how its sources were seen, but those in `passing`."""

    def __init__(self, store: Store, journal: Journal | None, passing: frozenset[str]) -> None:
        self._store = store
        self._journal = journal
        self._passing = passing
        self._sight: dict[str, dict[str, Mark]] = {}
        """How the sessions of each source were last seen; that of a source in `_unread` stays as it is."""
        self._kept: dict[str, dict[str, Mark]] = {}
        """The same as the journal has it."""
        self._seen_at: dict[str, int] = {}
        self._lost: set[str] = set()
        """Sources that could not be seen, and have not been compared since."""
        self._digests: dict[str, Digest] = {}
        self._unread: set[str] = set()
        self._touched: int | None = None
        self._gone_at: int | None = None
        """Since when nobody is there, as the terminal said."""
        self._returned = False

    def remember(self, source: str, left: Mapping[str, Mark]) -> None:
        """How the source was seen in an earlier console."""
        if left and source not in self._sight:
            self._sight[source], self._kept[source] = dict(left), dict(left)
            self._lost.add(source)

    # --- the operator ----------------------------------------------------------------------

    def touch(self, steady: int) -> None:
        """Somebody is there. `steady`: milliseconds of a clock that is never set."""
        if self._gone_at is not None:
            self._returned |= steady - self._gone_at >= AWAY_MS
        elif self._touched is not None:
            self._returned |= steady - self._touched >= IDLE_MS
        self._touched, self._gone_at = steady, None

    def leave(self, steady: int) -> None:
        """Nobody looks any more: the terminal has lost the focus."""
        if self._gone_at is None:
            self._gone_at = steady

    def saw(self, key: SessionKey, now: int, steady: int) -> None:
        """The session is open before the operator: what it was before is told no more."""
        session = self._store.sessions.get(key)
        if key.source in self._unread and session is not None and self._there(steady):
            sight = self._sight[key.source]
            # When the others were seen is what counts.
            sight[key.session] = mark(session, sight[key.session].at if key.session in sight else now)

    def _there(self, steady: int) -> bool:
        return self._gone_at is None and self._touched is not None and steady - self._touched < SEE_MS

    # --- what is told ----------------------------------------------------------------------

    def told(self, now: int) -> tuple[Digest, ...]:
        """What has happened while nobody could look, up to now where it was not read yet."""
        for name in self._unread - self._lost:
            self._digests[name] = digest(self._store, name, self._sight[name], now)
            if not self._digests[name]:
                # It is again as it was, or was seen meanwhile.
                self._unread.discard(name)
        return tuple(one for one in self._digests.values() if one)

    def headline(self, now: int) -> Clean:
        """All of it in one line; "" where there is nothing that was not read yet."""
        unread = tuple(self._digests[name] for name in self._unread)
        return headline(unread, now) if unread else NOTHING

    def read(self, now: int) -> None:
        """Somebody has read it."""
        unread, self._unread = self._unread, set()
        for name in unread - self._lost:
            self._see(name, now)

    # --- time ------------------------------------------------------------------------------

    def tick(self, now: int, steady: int) -> None:
        """Note who is lost, who is back, and how everybody is."""
        returned, self._returned = self._returned, False
        for name, source in self._store.sources.items():
            if source.lost_since is not None:
                if name not in self._lost and source.welcomed:
                    self._lost.add(name)
                    if name not in self._unread and self._there(steady):
                        self._sight[name] = marks(self._store, name, source.lost_since)
            elif self._caught_up(source, now):
                if name in self._lost or returned:
                    self._compare(name, now)
                self._lost.discard(name)
                due = name not in self._sight or (self._there(steady) and now - self._seen_at.get(name, 0) >= SEE_MS)
                if name not in self._unread and due:
                    self._see(name, now)
            elif returned:
                # It is compared once it has told what it tells first.
                self._lost.add(name)

    def clock_set(self, by_ms: int) -> None:
        """Our clock was set by so much, while no time passed."""
        for name, sight in self._sight.items():
            self._sight[name] = {id: one._replace(at=one.at + by_ms) for id, one in sight.items()}
        self._seen_at = {name: at + by_ms for name, at in self._seen_at.items()}

    def close(self, now: int, steady: int) -> None:
        """The console ends: how everything is, if somebody sees it."""
        for name, source in self._store.sources.items():
            if self._there(steady) and source.live and source.listed and name not in self._lost | self._unread:
                self._see(name, now)

    def _compare(self, name: str, now: int) -> None:
        if (seen := self._sight.get(name)) is None:
            return
        found = digest(self._store, name, seen, now)
        if found and (now - found.at >= AWAY_MS or name in self._unread):
            self._digests[name] = found
            self._unread.add(name)

    def _caught_up(self, source: Source, now: int) -> bool:
        """Is all known that the source told first on this connection?"""
        return source.live and source.listed and not source.behind and now - source.contact_since >= SETTLE_MS

    def _see(self, name: str, now: int) -> None:
        self._seen_at[name] = now
        present = self._sight[name] = marks(self._store, name, now)
        if self._journal is None or name in self._passing:
            return
        before = self._kept.get(name, {})
        changed = {id: one for id, one in present.items() if id not in before or one[1:] != before[id][1:]}
        # One is written anew each time, so that it is known when somebody last looked.
        changed.update(list(present.items())[:1])
        self._kept[name] = present
        if changed:
            self._journal.see(name, changed)
