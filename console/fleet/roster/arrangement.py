"""How the roster is arranged: which sessions are shown, in which order, under which headings, and what is put away."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Final, NamedTuple

from console.fleet.changes import Changes
from console.fleet.facts import SessionKey
from console.fleet.needs import Needs, NeedsIndex
from console.fleet.roster.order import LAST, LIFTS, Backwards, GroupKey, Order, RowKey, Sort, order_of
from console.fleet.roster.rate import SLOT_MS
from console.fleet.roster.tree import MOST_LEVELS, Tree
from console.fleet.state import Session
from console.fleet.store import Store
from watchfloor.text import NOTHING, Clean, clean_line

FEW: Final = 64
"""So many sessions are put in their places one by one; an eighth of all at most."""
CLOCK_MS: Final = 1_000
"""A source's clock that moves by less changes no order."""


GROUPINGS: Final = ("parent", "source", "label", "none")
"""By what sessions can stand together."""


class Grouping(NamedTuple):
    """Under what sessions stand: `parent`, `source`, `label` (that of this name), or `none`."""

    kind: str = "parent"
    label: str = ""


class Arrangement:
    """What the roster shows, and where. `refresh` takes up what has changed.

    `keep`, where given, says which sessions are shown, by what changes with the session alone; a shown child without
    its parent stands at the top level.
    """

    def __init__(self, store: Store, keep: Callable[[Session], bool] | None = None) -> None:
        self._store = store
        self._keep = keep
        self.marked: set[SessionKey] = set()
        self._sort, self._reverse, self._grouping = Sort.ATTENTION, False, Grouping()
        self._pinned: SessionKey | None = None
        self._closed: set[RowKey] = set()
        self._needs = NeedsIndex(store)
        self._tree = Tree()
        self._now = 0
        self._stale = True
        self._circular = False
        self._leaving: SessionKey | None = None
        self._labels: dict[SessionKey, str] = {}
        self._busy: set[SessionKey] = set()
        self._slot = 0
        self._clocks: dict[str, int] = {}
        self._group_needs: dict[GroupKey, Needs] | None = None

    # --- how it is arranged; the next refresh takes it up -------------------------------------

    @property
    def sort(self) -> Sort:
        """What it is sorted by."""
        return self._sort

    @property
    def reverse(self) -> bool:
        """Does the last stand first?"""
        return self._reverse

    @property
    def grouping(self) -> Grouping:
        """Under what sessions stand."""
        return self._grouping

    @property
    def keep(self) -> Callable[[Session], bool] | None:
        """Which sessions are shown; None: all."""
        return self._keep

    @keep.setter
    def keep(self, keep: Callable[[Session], bool] | None) -> None:
        self._keep = keep
        self._stale = True

    def sort_by(self, sort: Sort, *, reverse: bool = False) -> None:
        """Sort it otherwise."""
        self._sort, self._reverse, self._stale = sort, reverse, True

    def group_by(self, grouping: Grouping) -> None:
        """Put sessions under something else; what was put away comes back."""
        self._grouping, self._stale = grouping, True
        self._closed.clear()

    def groupings(self) -> list[Grouping]:
        """By what sessions can be grouped: each label that one of them has included."""
        labels = {str(name) for session in self._store.sessions.values() for name in session.labels}
        return [Grouping(), Grouping("source"), *(Grouping("label", name) for name in sorted(labels)), Grouping("none")]

    @property
    def pinned(self) -> SessionKey | None:
        """A session that is shown although the filter leaves it out."""
        return self._pinned

    def pin(self, key: SessionKey | None) -> None:
        """Show this session whatever the filter says, and no other one so."""
        before, self._pinned = self._pinned, key
        if before != key and not self._stale:
            self._place_all(one for one in (before, key) if one is not None)

    def close(self, key: RowKey, closed: bool) -> None:
        """Put away what is below a line, or show it again."""
        (self._closed.add if closed else self._closed.discard)(key)
        if key in self._tree:
            self._tree.close(key, closed)

    def closed(self, key: RowKey) -> bool:
        """Is what is below this line put away?"""
        return self._tree.closed(key)

    def below(self, key: RowKey) -> int:
        """How many lines belong below this one, put away or not."""
        return self._tree.size(key)

    def above(self, key: RowKey) -> list[RowKey]:
        """What a line stands below, nearest first."""
        return self._tree.above(key) if key in self._tree else []

    def close_all(self, closed: bool) -> None:
        """Put everything away that is below something, or show it again."""
        tops = [key for key in self._orders() if self._tree.size(key)] if closed else []
        self._closed = set(tops)
        self._stale = True

    def reveal(self, key: SessionKey) -> None:
        """Open whatever keeps this session out of sight."""
        for above in self.above(key):
            self.close(above, closed=False)

    @property
    def needs(self) -> dict[SessionKey, Needs]:
        """Who needs a human, as of the last refresh."""
        return self._needs.found

    @property
    def hidden(self) -> int:
        """Requests that the filter hides: neither in the row of their session nor in one above it are they counted."""
        if self._keep is None:
            return 0
        return sum(not self._counted(request.key.owner) for request in self._store.queue.requests)

    def _counted(self, key: SessionKey) -> bool:
        for _ in range(MOST_LEVELS):
            if key in self._tree:
                return True
            session = self._store.sessions.get(key)
            if session is None or session.parent is None:
                return False
            key = SessionKey(key.source, session.parent)
        return False

    # --- taking up changes -----------------------------------------------------------------

    def refresh(self, changes: Changes | None, now: int) -> bool:
        """Take up what has changed (None: anything may have) at the local time `now`; True where rows moved."""
        self._now = now
        if changes is None or self._stale or self._clock_moved(changes):
            self._start_over()
        else:
            self._take_up(changes, now)
        moved, self._tree.moved = self._tree.moved, False
        return moved

    def _take_up(self, changes: Changes, now: int) -> None:
        touched = set(changes.sessions)
        if changes.requests or changes.structure:
            touched.update(key.owner for key in changes.requests)
            self._group_needs = None
            if self._many(len(touched)):
                self._start_over()
                return
            touched |= self._needs.update(touched)
        if self._sort is Sort.RATE:
            self._busy.update(changes.appended)
            if now // SLOT_MS != self._slot:
                touched |= self._busy
                self._slot = now // SLOT_MS
                sessions = self._store.sessions
                self._busy = {key for key in self._busy if key in sessions and any(sessions[key].rate.counts(now))}
        if touched and self._grouping.kind == "label":
            self._group_needs = None
        if self._many(len(touched)):
            self._arrange()
        else:
            self._place_all(touched)

    def _many(self, touched: int) -> bool:
        return touched > max(FEW, len(self._store.sessions) // 8)

    def _clock_moved(self, changes: Changes) -> bool:
        if self._sort is not Sort.WAITING:
            return False
        sources = self._store.sources
        return any(abs(sources[name].ahead_ms - self._clocks.get(name, 0)) >= CLOCK_MS for name in changes.sources)

    def _start_over(self) -> None:
        self._needs.rebuild()
        self._group_needs = None
        self.marked.intersection_update(self._store.sessions)
        self._arrange()

    # --- one session -----------------------------------------------------------------------

    def _place_all(self, keys: Iterable[SessionKey]) -> None:
        """Let each of these stand where it belongs now. In a circle of parents everything hangs on everything."""
        for key in keys:
            if self._circular or not self._place(key):
                self._arrange()
                return

    def _place(self, key: SessionKey) -> bool:
        """False where parents are named in a circle."""
        tree, session = self._tree, self._store.sessions.get(key)
        if session is None or not self._keeps(session):
            if session is None:
                self.marked.discard(key)
            return key not in tree or self._take_away(key)
        above = self._above(session, tree)
        if tree.circles(key, above):
            self._circular = True
            return False
        if isinstance(above, GroupKey) and above not in tree:
            tree.put(above, self._heading_order(above), None, closed=above in self._closed)
        new = key not in tree
        before = None if new else tree.parent(key)
        tree.put(key, self._order(session), above, closed=key in self._closed)
        self._tidy(before)
        label = self._label(session)
        if new or self._labels.get(key, "") != label:
            self._labels[key] = label
            return all(self._place(child) for child in self._store.children.get(key, ()) if child in tree)
        return True

    def _take_away(self, key: SessionKey) -> bool:
        tree = self._tree
        before, self._leaving = tree.parent(key), key
        try:
            if not all(self._place(kid) for kid in tree.kids(key) if isinstance(kid, SessionKey)):
                return False
        finally:
            self._leaving = None
        tree.drop(key)
        self._labels.pop(key, None)
        self._tidy(before)
        return True

    def _tidy(self, heading: RowKey | None) -> None:
        """A heading over nothing goes."""
        if isinstance(heading, GroupKey) and heading in self._tree and not self._tree.size(heading):
            self._tree.drop(heading)

    def _keeps(self, session: Session) -> bool:
        return self._keep is None or session.key == self._pinned or self._keep(session)

    def _order(self, session: Session) -> Order:
        source = self._store.sources[session.key.source]
        return order_of(session, source, self.needs.get(session.key), self._sort, self._now, reverse=self._reverse)

    def _heading_order(self, group: GroupKey) -> Order:
        name = group.value.casefold() if group.value else chr(0x10FFFF)
        back = self._reverse and self._sort is Sort.NAME
        return LAST if self._sort in LIFTS else 0, Backwards(name) if back else name, group

    def _label(self, session: Session) -> str:
        return session.labels.get(Clean(self._grouping.label), "") if self._grouping.kind == "label" else ""

    def _heading(self, session: Session) -> GroupKey | None:
        if self._grouping.kind == "source":
            return GroupKey("source", "", session.key.source)
        if self._grouping.kind == "label":
            return GroupKey("label", self._grouping.label, self._label(session))
        return None

    def _above(self, session: Session, shown: Container[RowKey]) -> RowKey | None:
        """What the session stands below: its parent, else its heading."""
        key, kind = session.key, self._grouping.kind
        if session.parent is not None and kind != "none":
            above = SessionKey(key.source, session.parent)
            if above != key and above in shown and above != self._leaving:
                # A child goes with its parent, unless its own label puts it elsewhere.
                label = self._label(session)
                if not label or label == self._label(self._store.sessions[above]):
                    return above
        return self._heading(session)

    # --- all of them -----------------------------------------------------------------------

    def _orders(self) -> Iterable[RowKey]:
        return [key for key in self._store.sessions if key in self._tree] + [
            key for key in {self._heading(s) for s in self._store.sessions.values()} if key is not None
        ]

    def _arrange(self) -> None:
        store = self._store
        shown = {key: session for key, session in store.sessions.items() if self._keeps(session)}
        orders: dict[RowKey, Order] = {key: self._order(session) for key, session in shown.items()}
        parents: dict[RowKey, RowKey] = {}
        for key, session in shown.items():
            above = self._above(session, shown)
            if above is not None:
                parents[key] = above
                if isinstance(above, GroupKey) and above not in orders:
                    orders[above] = self._heading_order(above)
        self._part_circles(shown, orders, parents)
        self._tree.build(orders, parents, self._closed, lifts=self._sort in LIFTS)
        self._labels = {key: self._label(session) for key, session in shown.items()}
        self._clocks = {name: source.ahead_ms for name, source in store.sources.items()}
        self._slot = self._now // SLOT_MS
        if self._sort is Sort.RATE:
            self._busy = {key for key, session in store.sessions.items() if any(session.rate.counts(self._now))}
        self._stale = False

    def _part_circles(
        self, shown: dict[SessionKey, Session], orders: dict[RowKey, Order], parents: dict[RowKey, RowKey]
    ) -> None:
        """What stands in a circle of parents, or below one, has no place in the tree: each stands by itself."""
        grounded: set[RowKey] = set()
        lost: set[RowKey] = set()
        for start in parents:
            line: dict[RowKey, None] = {}
            at: RowKey | None = start
            while at is not None and at not in grounded and at not in lost and at not in line:
                line[at] = None
                at = parents.get(at)
            (grounded if at is None or at in grounded else lost).update(line)
        self._circular = bool(lost)
        for key in lost:
            del parents[key]
            heading = self._heading(shown[key]) if isinstance(key, SessionKey) else None
            if heading is not None:
                orders.setdefault(heading, self._heading_order(heading))
                parents[key] = heading


def group_words(grouping: Grouping) -> Clean:
    """How a grouping is called: "source", "label team", empty where children stand below their parents."""
    if grouping.kind == "label":
        return Clean(f"label {clean_line(grouping.label)}")
    return NOTHING if grouping.kind == "parent" else Clean("nothing" if grouping.kind == "none" else grouping.kind)
