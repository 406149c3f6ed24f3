"""The roster as a view: sessions in the order of who needs attention, children under their parents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from console.fleet.changes import Changes
from console.fleet.facts import ProfileFact, SessionKey
from console.fleet.needs import Needs, needs_by_session
from console.fleet.rate import SLOT_MS
from console.fleet.state import NOTHING, Session, Source
from console.fleet.store import Store
from console.fleet.trail import overlay
from console.fleet.wording import TONE_OF, Glyphs, Tone, asked_text, elapsed, masked, name_of, one_line, short_count
from watchfloor.text import Clean, numeral
from watchfloor.words import Lifecycle, Primitive

LETTERS: Final[tuple[tuple[Primitive, str], ...]] = (
    (Primitive.SEND, "s"),
    (Primitive.PAUSE, "p"),
    (Primitive.INTERRUPT, "x"),
    (Primitive.RESUME, "r"),
    (Primitive.STOP, "X"),
    (Primitive.APPROVE, "a"),
    (Primitive.ANSWER, "o"),
    (Primitive.RESEED, "R"),
)
"""The letter of each control in the CAN column; the place of a letter never changes."""

_RANK: Final = {
    Lifecycle.FAILED: 1,
    Lifecycle.WAITING: 2,
    Lifecycle.PAUSED: 2,
    Lifecycle.STARTING: 3,
    Lifecycle.RUNNING: 3,
    Lifecycle.IDLE: 4,
    Lifecycle.UNKNOWN: 5,
    Lifecycle.COMPLETED: 6,
    Lifecycle.STOPPED: 6,
}
"""Attention: what needs somebody is 0, whatever its state."""

MOST_LEAD: Final = 48
"""Characters of the lines before a name; children below that stand under each other."""

_Order = tuple[int, str, SessionKey]


@dataclass(frozen=True, slots=True)
class Row:
    """One session as a line. An empty text leaves its cell empty."""

    glyph: Clean
    state: Clean
    tone: Tone
    name: Clean
    tree: Clean
    source: Clean
    attempt: Clean
    needs: Clean
    wait: Clean
    last: Clean
    rate: Clean
    usage: Clean
    can: Clean
    demo: bool
    marked: bool


class RosterView:
    """The rows that are shown. `refresh` takes up what has changed; reading changes nothing.

    `keep`, where given, says which sessions are shown; a shown child without its parent stands at the top level.
    """

    def __init__(self, store: Store, glyphs: Glyphs, keep: Callable[[Session], bool] | None = None) -> None:
        self._store = store
        self._glyphs = glyphs
        self.keep = keep
        self.marked: set[SessionKey] = set()
        self.needs: dict[SessionKey, Needs] = {}
        """Who needs a human, as of the last refresh."""
        self._now = 0
        self._keys: list[SessionKey] = []
        self._index: dict[SessionKey, int] = {}
        self._tree: dict[SessionKey, Clean] = {}
        self._order: dict[SessionKey, _Order] = {}

    # --- reading ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._keys)

    def key(self, i: int, /) -> SessionKey:
        return self._keys[i]

    def index(self, key: object, /) -> int | None:
        return self._index.get(key)  # type: ignore[call-overload, no-any-return]

    def row(self, i: int, /) -> Row:
        """Row `i` as of the last refresh."""
        key = self._keys[i]
        return self._row(self._store.sessions.get(key) or Session(key))

    def version(self, key: object, /) -> int:
        """Changes whenever anything in the row of that key does."""
        session = self._store.sessions.get(key)  # type: ignore[call-overload]
        if session is None:
            return 0
        source = self._store.sources[session.key.source]
        needs = self.needs.get(session.key)
        waited = (self._now + source.ahead_ms - needs.oldest) // 1000 if needs is not None else -1
        busy = self._now // SLOT_MS if any(session.rate.counts(self._now)) else -1
        return hash(
            (
                session.version,
                needs,
                waited,
                busy,
                tuple(session.rate.counts(self._now)) if busy >= 0 else (),
                source.contact,
                source.version if session.profile is None else 0,
                self._tree.get(session.key, NOTHING),
                session.key in self.marked,
            )
        )

    # --- taking up changes -----------------------------------------------------------------

    def refresh(self, changes: Changes | None, now: int) -> bool:
        """Take up what has changed (None: anything may have) at the local time `now`; True where rows moved."""
        self._now = now
        everything = changes is None or changes.structure
        if everything or (changes is not None and changes.requests):
            needs = needs_by_session(self._store)
            everything = everything or needs.keys() != self.needs.keys()
            self.needs = needs
        if not everything and changes is not None:
            everything = any(self._moved(key) for key in changes.sessions)
        if everything:
            before = self._keys
            self._arrange()
            return before != self._keys
        return False

    def _moved(self, key: SessionKey) -> bool:
        session = self._store.sessions.get(key)
        if session is None:
            return key in self._index
        if (self.keep is None or self.keep(session)) != (key in self._index):
            return True
        return key in self._order and self._place(session) != self._order[key]

    def _place(self, session: Session) -> _Order:
        rank = 0 if session.key in self.needs else _RANK[session.lifecycle]
        return rank, name_of(session).casefold(), session.key

    def _arrange(self) -> None:
        store, keep = self._store, self.keep
        shown = {key: s for key, s in store.sessions.items() if keep is None or keep(s)}
        self._order = {key: self._place(session) for key, session in shown.items()}
        below: dict[SessionKey, list[SessionKey]] = {}
        roots: list[SessionKey] = []
        for key, session in shown.items():
            above = SessionKey(key.source, session.parent) if session.parent is not None else None
            if above is not None and above != key and above in shown:
                below.setdefault(above, []).append(key)
            else:
                roots.append(key)
        self._keys, self._tree = [], {}
        self._lay(roots, below, NOTHING, top=True)
        if len(self._keys) < len(shown):
            # Parents that are named in a circle have no root: each still gets a row.
            self._lay([key for key in shown if key not in self._tree], {}, NOTHING, top=True)
        self._index = {key: i for i, key in enumerate(self._keys)}

    def _lay(
        self, keys: Iterable[SessionKey], below: dict[SessionKey, list[SessionKey]], lead: Clean, *, top: bool
    ) -> None:
        # A stack of our own: how deep children go is for a source to choose.
        glyphs = self._glyphs
        best = self._best(below)
        stack = [(key, lead, top, i == 0) for i, key in enumerate(sorted(keys, key=best, reverse=True))]
        while stack:
            key, lead, at_top, last = stack.pop()
            branch = "" if at_top else glyphs["last"] if last else glyphs["branch"]
            self._keys.append(key)
            self._tree[key] = Clean(f"{lead}{branch}")
            inner = (
                lead
                if at_top or len(lead) >= MOST_LEAD
                else Clean(f"{lead}{glyphs['blank'] if last else glyphs['pipe']}")
            )
            children = sorted(below.get(key, ()), key=best, reverse=True)
            stack.extend((child, inner, False, i == 0) for i, child in enumerate(children))

    def _best(self, below: dict[SessionKey, list[SessionKey]]) -> Callable[[SessionKey], _Order]:
        """A parent stands where the neediest below it would stand."""
        if not below:
            return self._order.__getitem__
        ranks = {key: place[0] for key, place in self._order.items()}
        for key in below:
            for child in below[key]:
                at, hops = key, 0
                while at in ranks and ranks[child] < ranks[at] and hops < len(ranks):
                    ranks[at] = ranks[child]
                    parent = self._store.sessions[at].parent
                    if parent is None:
                        break
                    at, hops = SessionKey(at.source, parent), hops + 1
        return lambda key: (ranks[key], *self._order[key][1:])

    # --- a row -----------------------------------------------------------------------------

    def _row(self, session: Session) -> Row:
        store, key, now = self._store, session.key, self._now
        source = store.sources[key.source]
        profile = store.profile(session)
        needs = self.needs.get(key)
        over = overlay(session, store.active.get(key, ()))
        word = over[0].value if over is not None else session.lifecycle.value
        observed = profile is not None and not profile.primitives and session.lifecycle is Lifecycle.RUNNING
        glyph = self._glyphs["observed" if observed and over is None else word]
        return Row(
            glyph=Clean(glyph),
            state=Clean(word),
            tone=_tone(session, source, bool(session.open_requests())),
            name=name_of(session),
            tree=self._tree.get(key, NOTHING),
            source=source.shown,
            attempt=Clean(numeral(session.attempt)) if session.attempt is not None else NOTHING,
            needs=Clean(str(needs.count)) if needs is not None else NOTHING,
            wait=Clean(elapsed(now + source.ahead_ms, needs.oldest)) if needs is not None else NOTHING,
            last=_last(session),
            rate=_bars(session.rate.counts(now), self._glyphs["levels"]),
            usage=_usage(session),
            can=can_letters(profile, self._glyphs),
            demo=session.demo,
            marked=key in self.marked,
        )


def _tone(session: Session, source: Source, waits: bool) -> Tone:
    if not source.live:
        return "lost"
    if waits:
        return "attention"
    # A word alone does not make a session need somebody.
    return "running" if session.lifecycle is Lifecycle.WAITING else TONE_OF[session.lifecycle]


def _last(session: Session) -> Clean:
    waiting = session.open_requests()
    if waiting:
        text = asked_text(waiting[0])
    elif session.lifecycle is Lifecycle.FAILED and session.error:
        text = one_line(session.error)
    elif session.last is not None and session.last.text:
        text = session.last.text
    else:
        text = session.why or NOTHING
    return masked(text)


def _usage(session: Session) -> Clean:
    usage = session.usage
    return short_count(usage.input_tokens + usage.output_tokens) if usage is not None else NOTHING


def _bars(counts: list[int], levels: str) -> Clean:
    """A bar a slot, each step of height twice as many events; empty where nothing happens."""
    if not any(counts):
        return NOTHING
    top = len(levels) - 1
    return Clean("".join(levels[min(top, count.bit_length())] for count in counts))


def can_letters(profile: ProfileFact | None, glyphs: Glyphs) -> Clean:
    """The advertised controls as letters, each at its own place; "observe" for the empty set, empty while unknown."""
    if profile is None:
        return NOTHING
    if not profile.primitives:
        return Clean("observe")
    absent = "." if glyphs["cut"].isascii() else "·"
    return Clean("".join(letter if p in profile.primitives else absent for p, letter in LETTERS))
