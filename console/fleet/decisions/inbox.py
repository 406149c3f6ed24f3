"""The inbox: every open request of every source and child in one list, the riskiest and the longest waiting first.

The cursor is on a request, never on a line. What is re-sorted, comes, ends or is filtered away moves lines around it; a
request that ends under the cursor keeps its line and says what ended it until the operator goes on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from console.fleet.decisions.alike import identity, unknown
from console.fleet.decisions.decide import ended
from console.fleet.decisions.former import ago_words, standing
from console.fleet.decisions.presence import presence_words, taken_by
from console.fleet.decisions.risk.actions import kinds_of
from console.fleet.decisions.risk.judged import Judged
from console.fleet.decisions.risk.model import RiskKind, RiskLevel
from console.fleet.facts import NO_TIME, RequestFact, RequestKey, SessionKey
from console.fleet.needs import lineage
from console.fleet.state import LATEST, Request, Session
from console.fleet.store import Store
from console.fleet.views.wording import asked_text, elapsed, masked, name_of
from watchfloor.text import NOTHING, Clean, clean_line, since
from watchfloor.words import RequestState

_Order: TypeAlias = tuple[int, int, RequestKey]
"""Riskiest first, then the longest waiting, then by name, so that no two ever change places by themselves."""

_LEVEL_WORDS: Final = {RiskLevel.NONE: "", RiskLevel.MEDIUM: "medium", RiskLevel.HIGH: "high"}


class Shown(NamedTuple):
    """What stood before the operator when a key went down: a request, the digest of its text as it was painted, and
    whether it still waited. One that is listed again waits anew, and was not seen to."""

    key: RequestKey
    digest: str
    open: bool = True


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One request as a line. `line` is what it asks, secrets masked; `whole`: the line shows all of that, so that it
    may be decided from here. `left_ms`: until its deadline; None: it has none. `ending`: how it ended; empty: it waits.
    `presence`: who else is at it; `taken`: one of them has claimed it. `alike`: how many that wait ask for the very
    same, itself among them.
    """

    key: RequestKey
    digest: str
    level: RiskLevel
    kinds: tuple[RiskKind, ...]
    risk: Clean
    unknown: Clean
    name: Clean
    path: tuple[Clean, ...]
    source: Clean
    line: Clean
    whole: bool
    waiting: Clean
    deadline: Clean
    left_ms: int | None
    sent: Clean
    ending: Clean
    presence: Clean
    taken: bool
    marked: bool
    alike: int

    @property
    def open(self) -> bool:
        return not self.ending

    @property
    def shown(self) -> Shown:
        """What a key on this line is about."""
        return Shown(self.key, self.digest, self.open)


@dataclass(frozen=True, slots=True)
class Badge:
    """What every screen says of the inbox: how many wait, since when the oldest does, how risky the worst is."""

    count: int
    oldest: Clean
    level: RiskLevel


class Inbox:
    """The list, the cursor and the marks. `refresh` takes up what has changed; nothing else moves a line.

    `judged` may be shared with others that ask for risks.
    """

    def __init__(self, store: Store, judged: Judged | None = None) -> None:
        self._store = store
        self.judged: Final = judged if judged is not None else Judged(store)
        self._orders: list[_Order] = []
        self._order_of: dict[RequestKey, _Order] = {}
        self._identities: dict[RequestKey, tuple[RequestFact, Clean | None, str | None]] = {}
        self._counts: Counter[str] = Counter()
        self._marks: dict[RequestKey, str] = {}
        """What is marked, by the digest that it had then."""
        self._words: tuple[str, ...] = ()
        self.selected: RequestKey | None = None
        self.total = 0
        """All that waits, filtered away or not."""

    # --- the list --------------------------------------------------------------------------

    def refresh(self) -> None:
        """Take up the requests as they are now, in their order. The cursor stays on its request."""
        store = self._store
        waiting = store.queue.requests
        kept = {request.key: self._order(request) for request in waiting if self._wanted(request)}
        pinned = self.selected
        if pinned is not None and pinned not in kept and (was := self._order_of.get(pinned)) is not None:
            request = store.requests.get(pinned)
            if request is None or not request.open:
                kept[pinned] = was  # it has ended where the operator looks: its line stays where it was
            else:
                self.selected = None  # it was filtered away, and no other takes its place by itself
        self.total = len(waiting)
        self._order_of = kept
        self._orders = sorted(kept.values())
        self._count_alike(waiting)
        self._marks = {key: digest for key, digest in self._marks.items() if self._is(key, digest)}

    def filter(self, text: str) -> None:
        """Show only what holds all of these words: in its text, its names, its source or its risks. Empty: all."""
        self._words = tuple(text.casefold().split())
        self.refresh()

    @property
    def filtered(self) -> bool:
        """Is only what holds certain words shown?"""
        return bool(self._words)

    def __len__(self) -> int:
        return len(self._orders)

    def key(self, at: int) -> RequestKey:
        return self._orders[at][2]

    def index(self, key: RequestKey) -> int | None:
        """The line of a request; None where it has none."""
        order = self._order_of.get(key)
        return bisect_left(self._orders, order) if order is not None else None

    def place(self) -> tuple[int, int] | None:
        """The n and m of "n of m" for the request under the cursor."""
        at = self.index(self.selected) if self.selected is not None else None
        return (at + 1, len(self._orders)) if at is not None else None

    # --- the cursor ------------------------------------------------------------------------

    def select(self, key: RequestKey | None) -> None:
        """Put the cursor on this request, which the operator has chosen; one that has no line: nowhere."""
        self.selected = key if key is not None and key in self._order_of else None
        self._drop_ended()

    def move(self, by: int) -> None:
        """Move the cursor by so many lines, and no further than to the ends; from nowhere to the first or the last."""
        if not self._orders:
            self.selected = None
            return
        at = self.index(self.selected) if self.selected is not None else None
        if at is None:
            wanted = 0 if by >= 0 else len(self._orders) - 1
        else:
            wanted = max(0, min(len(self._orders) - 1, at + by))
        self.selected = self._orders[wanted][2]
        self._drop_ended()

    def _drop_ended(self) -> None:
        """Lines of what has ended stay only under the cursor."""
        over = [key for key in self._order_of if key != self.selected and not self._open(key)]
        for key in over:
            del self._order_of[key]
        if over:
            self._orders = sorted(self._order_of.values())

    def target(self, shown: Shown | None) -> Request | Clean:
        """The request that a key is about, given what stood before the operator when it went down; else why none is.

        Never another one than that, and never with another text.
        """
        if shown is None:
            return Clean("no request is selected")
        if shown.key != self.selected:
            return Clean("the cursor is on another request by now")
        request = self._store.requests.get(shown.key)
        if request is None:
            return Clean("the request is gone")
        if not request.open:
            return Clean("the request has ended")
        if not shown.open:
            return Clean("the request had ended when it was shown, and waits again")
        if request.digest != shown.digest:
            return Clean("the request is not what was shown: its text has changed")
        return request

    # --- marks -----------------------------------------------------------------------------

    def mark(self, shown: Shown) -> None:
        """Mark a request as it is shown, or take its mark away."""
        if self._marks.pop(shown.key, None) is None and self._is(shown.key, shown.digest):
            self._marks[shown.key] = shown.digest

    def mark_alike(self, shown: Shown) -> int:
        """Mark all lines that ask for the very same as this one; returns how many are marked so."""
        if not self._is(shown.key, shown.digest):
            return 0
        wanted = self._identity(self._store.requests[shown.key])
        keys = (
            [shown.key] if wanted is None else [key for _, _, key in self._orders if self._identity_of(key) == wanted]
        )
        for key in keys:
            self._marks[key] = self._store.requests[key].digest
        return len(keys)

    def unmark(self) -> None:
        """Take all marks away."""
        self._marks.clear()

    def marked(self) -> list[RequestKey]:
        """What is marked and has a line, in the order of the list."""
        return [key for _, _, key in self._orders if key in self._marks]

    # --- what is drawn ---------------------------------------------------------------------

    def badge(self, now: int) -> Badge:
        """The inbox in a word, filtered or not."""
        return badge(self._store, self.judged, now)

    def row(self, at: int, now: int) -> InboxRow:
        """The line at this place, at the local time `now`."""
        key = self.key(at)
        store = self._store
        request = store.requests.get(key)
        if request is None:
            return _gone(key)
        session = store.sessions.get(key.owner) or Session(key.owner)
        source, fact = store.sources[key.source], request.fact
        risks = self.judged.risks(request)
        asked = asked_text(request)
        line = masked(asked)
        first = standing(store, key, now) if request.open else None
        deadline, left_ms = _deadline(request, now + source.ahead_ms)
        over = ended(request, source, now) if not request.open else None
        level, kinds = self._level(request), kinds_of(risks)
        return InboxRow(
            key=key,
            digest=request.digest,
            level=level,
            kinds=kinds,
            risk=Clean(f"{_LEVEL_WORDS[level]}: {' · '.join(kinds)}" if kinds else _LEVEL_WORDS[level]),
            unknown=_unknown(request),
            name=name_of(session),
            path=tuple(name_of(store.sessions[above]) for above in _above(store, key)),
            source=source.shown,
            line=line,
            whole=line == asked and _whole(fact, line),
            waiting=Clean(elapsed(now + source.ahead_ms, request.asked_at)),
            deadline=deadline if request.open else NOTHING,
            left_ms=left_ms if request.open else None,
            sent=Clean(ago_words(first, now)) if first is not None else NOTHING,
            ending=clean_line(over.reason.removeprefix("already ")) if over is not None else NOTHING,
            presence=presence_words(store, request),
            taken=bool(taken_by(store, request)),
            marked=key in self._marks,
            alike=self._counts.get(self._identity(request) or "", 1),
        )

    # --- inside ----------------------------------------------------------------------------

    def _open(self, key: RequestKey) -> bool:
        request = self._store.requests.get(key)
        return request is not None and request.open

    def _is(self, key: RequestKey, digest: str) -> bool:
        request = self._store.requests.get(key)
        return request is not None and request.open and request.digest == digest

    def _order(self, request: Request) -> _Order:
        return -self._level(request), self._store.asked_local(request) or LATEST, request.key

    def _level(self, request: Request) -> RiskLevel:
        level = self.judged.level(request)
        # What cannot be read in full may be anything.
        return max(level, RiskLevel.MEDIUM) if _unknown(request) else level

    def _wanted(self, request: Request) -> bool:
        if not self._words:
            return True
        store = self._store
        names = [
            str(name_of(store.sessions[key])) for key in lineage(store, request.key.owner) if key in store.sessions
        ]
        kinds = kinds_of(self.judged.risks(request))
        source = store.sources[request.key.source].shown
        held = " ".join((asked_text(request), *names, source, request.kind, _LEVEL_WORDS[self._level(request)], *kinds))
        folded = held.casefold()
        return all(word in folded for word in self._words)

    def _identity_of(self, key: RequestKey) -> str | None:
        request = self._store.requests.get(key)
        return self._identity(request) if request is not None else None

    def _identity(self, request: Request) -> str | None:
        session = self._store.sessions.get(request.key.owner)
        if request.fact is None or session is None:
            return None
        kept = self._identities.get(request.key)
        if kept is None or kept[0] is not request.fact or kept[1] != session.cwd:
            kept = (request.fact, session.cwd, identity(session, request.fact))
            self._identities[request.key] = kept
        return kept[2]

    def _count_alike(self, waiting: Sequence[Request]) -> None:
        keys = {request.key for request in waiting}
        self._identities = {key: kept for key, kept in self._identities.items() if key in keys or key == self.selected}
        found = (self._identity(request) for request in waiting)
        self._counts = Counter(one for one in found if one is not None)


def badge(store: Store, judged: Judged, now: int) -> Badge:
    """What waits, in a word, at the local time `now`."""
    waiting = store.queue.requests
    if not waiting:
        return Badge(0, NOTHING, RiskLevel.NONE)
    oldest = store.asked_local(waiting[0])
    level = max(map(judged.level, waiting))
    return Badge(len(waiting), Clean(elapsed(now, oldest) if oldest != NO_TIME else "unknown time"), level)


def _above(store: Store, key: RequestKey) -> list[SessionKey]:
    """The sessions above the one that asks, the topmost first."""
    return [above for above in reversed(lineage(store, key.owner)[1:]) if above in store.sessions]


def _unknown(request: Request) -> Clean:
    if request.fact is None:
        return Clean("its text has not come yet")
    if why := unknown(request.fact):
        return why
    return Clean("unconfirmed") if request.state is RequestState.UNCONFIRMED else NOTHING


def _whole(fact: RequestFact | None, line: Clean) -> bool:
    """Does the line show all that is asked?"""
    if fact is None or len(fact.actions) != 1 or fact.fields or unknown(fact):
        return False
    (action,) = fact.actions
    return action.text == line and not action.diff


def _deadline(request: Request, now: int) -> tuple[Clean, int | None]:
    """What happens when, and how long that is; `now` by the clock of its source."""
    if request.deadline is None:
        return NOTHING, None
    left = request.deadline - now
    how = request.fact.at_deadline if request.fact is not None else None
    when = f"in {since(left)}" if left > 0 else "due"
    return Clean(f"{when}: {how or 'it ends by itself'}"), max(0, left)


def _gone(key: RequestKey) -> InboxRow:
    return InboxRow(
        key=key,
        digest="",
        level=RiskLevel.NONE,
        kinds=(),
        risk=NOTHING,
        unknown=NOTHING,
        name=clean_line(key.session),
        path=(),
        source=clean_line(key.source),
        line=clean_line(key.request),
        whole=False,
        waiting=NOTHING,
        deadline=NOTHING,
        left_ms=None,
        sent=NOTHING,
        ending=Clean("it is no longer remembered"),
        presence=NOTHING,
        taken=False,
        marked=False,
        alike=1,
    )
