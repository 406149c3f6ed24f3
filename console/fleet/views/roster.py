"""The roster as a view: what is shown of it, as rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from console.fleet.facts import NO_TIME
from console.fleet.needs import Needs
from console.fleet.roster.arrangement import Arrangement
from console.fleet.roster.order import GroupKey, RowKey
from console.fleet.state import LATEST, Session
from console.fleet.store import Store
from console.fleet.views.row import Place, Row, heading_row, session_row, stalled_ms
from console.fleet.views.wording import Glyphs
from watchfloor.text import NOTHING, Clean


class RosterView(Arrangement):
    """The rows that are shown, as of the last `refresh`; reading changes nothing."""

    def __init__(self, store: Store, glyphs: Glyphs, keep: Callable[[Session], bool] | None = None) -> None:
        """Show this fleet with these glyphs; `keep` as in `Arrangement`."""
        super().__init__(store, keep)
        self._glyphs = glyphs

    def __len__(self) -> int:
        return len(self._tree)

    def key(self, i: int, /) -> RowKey:
        return self._tree.key(i)

    def keys(self) -> list[RowKey]:
        """The key of each row, in order."""
        return self._tree.keys()

    @property
    def kept(self) -> int:
        """Sessions that the filter lets through, those that are put away included."""
        return len(self._labels)

    def index(self, key: Any, /) -> int | None:
        return self._tree.index(key)

    def row(self, i: int, /) -> Row:
        """Row `i` as of the last refresh."""
        key = self._tree.key(i)
        if isinstance(key, GroupKey):
            return heading_row(self._store, key, self._tree.size(key), self._place_of(key), self._now)
        session = self._store.sessions.get(key) or Session(key)
        return session_row(self._store, session, self._place_of(key), self._glyphs, self._now)

    def version(self, key: Any, /) -> int:
        """Changes whenever anything in the row of that key does."""
        if isinstance(key, GroupKey):
            return hash((self._place_of(key), self._tree.size(key), self._now // 1000))
        session = self._store.sessions.get(key)
        if session is None:
            return 0
        source = self._store.sources[session.key.source]
        place = self._place_of(session.key)
        needs = place.needs
        waited = (self._now + source.ahead_ms - needs.oldest) // 1000 if needs is not None else -1
        idle = stalled_ms(self._store, session, self._now)
        counts = session.rate.counts(self._now)
        return hash(
            (
                session.version,
                place,
                waited,
                idle // 1000 if idle is not None else -1,
                tuple(counts) if any(counts) else (),
                source.contact,
                source.version if session.profile is None else 0,
            )
        )

    def _place_of(self, key: RowKey) -> Place:
        below = self._tree.size(key)
        return Place(
            tree=self._lead(key),
            needs=self._needs_of(key) if isinstance(key, GroupKey) else self.needs.get(key),
            marked=key in self.marked,
            more=Clean(f"+{below:,}") if below and self._tree.closed(key) else NOTHING,
        )

    def _lead(self, key: RowKey) -> Clean:
        levels = self._tree.levels(key)
        if self._grouping.kind in ("source", "label"):
            # What stands directly below a heading is drawn as the top level.
            levels = levels[1:]
        if not levels:
            return NOTHING
        glyphs = self._glyphs
        lines = "".join(glyphs["blank" if last else "pipe"] for last in levels[:-1])
        return Clean(lines + glyphs["last" if levels[-1] else "branch"])

    def _needs_of(self, group: GroupKey) -> Needs | None:
        if self._group_needs is None:
            found: dict[GroupKey, list[int]] = {}
            for request in self._store.queue.requests:
                session = self._store.sessions[request.key.owner]
                above = self.above(session.key)
                heading = above[-1] if above else self._heading(session)
                if isinstance(heading, GroupKey):
                    found.setdefault(heading, []).append(self._store.asked_local(request) or LATEST)
            self._group_needs = {
                key: Needs(len(asked), NO_TIME if min(asked) == LATEST else min(asked)) for key, asked in found.items()
            }
        return self._group_needs.get(group)
