"""The hub itself: what its parts do is tied together here, and interventions take their way through it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from console.fleet.apply import Fleet
from console.fleet.changes import Changes
from console.fleet.facts import ContactFact, Fact, Intent, Refusal, RequestKey, SessionKey
from console.fleet.gate import ARM_MS, Gated, gate
from console.fleet.state import Trail
from console.fleet.trail import unanswered_s
from console.hub.away import Away
from console.hub.book import Book
from console.hub.detail import Detail
from console.hub.held import Held
from console.hub.jumps import Jumps, steady_ms
from console.hub.lines import HEARD, Lines
from console.hub.past import Past
from console.hub.refused import refused
from console.hub.unfit import first_line, unfit
from watchfloor.errors import ConnectionLost, ProtocolError
from watchfloor.text import NOTHING, Clean, clean_line
from watchfloor.words import Contact, EffectState, OutcomeKind

if TYPE_CHECKING:
    from pathlib import Path

    from console.audit import Audit
    from console.connectors.supervisor import Item
    from console.fleet.absence import Digest
    from console.hub.deciding import Deciding
    from console.hub.pages import OlderPage
    from console.journal.journal import Journal
    from console.policies.rules import Policy, Ruling
    from watchfloor.connector import Clock, Target
    from watchfloor.protocol.frames import ClientFrame

TICK_S: Final = 0.5
"""How often the passing of time alone is looked at: overdue effects, gaps that did not fill."""


_LEFT: Final = Clean("this console was left before it was sent")


class Hub:
    """The sources of one console.

    `clock` gives milliseconds since 1970 UTC, `steady` those of a clock that is never set, by which the moment is
    counted in which a key does not decide yet. `by` is the operator's name. With `read_only` no intervention leaves.
    `on_changes` is called on the event loop after every batch of arrivals, tick and command; `on_items` with a source's
    name and what arrived from it, before the fleet takes it up. Neither may block. `journal` keeps what sources send,
    except those in `passing`. What `policies` decide goes out by itself, through the same gate, unless `read_only`;
    with `by_itself` False they only hold what the operator decides.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        audit: Audit,
        by: str,
        steady: Clock = steady_ms,
        read_only: bool = False,
        on_changes: Callable[[Changes], None] | None = None,
        on_items: Callable[[str, Sequence[Item]], None] | None = None,
        journal: Journal | None = None,
        passing: frozenset[str] = frozenset(),
        policies: tuple[Policy, ...] = (),
        by_itself: bool = True,
    ) -> None:
        self.fleet: Final = Fleet(unfit)
        self.by: Final = by
        self.read_only: Final = read_only
        self.steady: Final = steady
        self.showing: Callable[[], str] | None = None
        """What its sources show, where that is not what happens now; None: it is."""
        self.not_told = ""
        """By what the operator could not be notified, and why, in one line; "" while all works."""
        self._clock = clock
        self._jumps = Jumps(clock, steady)
        self._audit = audit
        self._on_changes = on_changes
        self._book = Book(audit, by)
        self._deciding = self._at_work(policies, by_itself) if policies and not read_only else None
        self._detail = Detail(steady, self.send, self._reachable, self._hears)
        self._away = Away(self.fleet, journal, passing)
        self._past = Past(journal, self.fleet, self._take, self._away, passing)
        self._lines = Lines(clock, self._detail, self._past, take=self._take, on_items=on_items, given_up=self._give_up)
        self._unsent: dict[str, Gated] = {}
        """Commands that were begun and have not been handed on yet."""
        self._held = Held()
        self._awaited: set[str] = set()
        """Commands whose word somebody waits for."""
        self._moved = asyncio.Event()
        self._ticking: asyncio.Task[None] | None = None

    @property
    def audit_fault(self) -> str | None:
        """Why interventions cannot be written down, in one line; None while they can."""
        return self._audit.fault

    @property
    def audit_folder(self) -> Path:
        """Where the audit files of this machine are."""
        return self._audit.path.parent

    @property
    def only_watches(self) -> Clean:
        """Why no intervention leaves this console, in a few words; "" where they do."""
        if self.showing is not None:
            return Clean("this is a recording")
        return Clean("this console only watches") if self.read_only else NOTHING

    @property
    def not_kept(self) -> str:
        """What of the sources' events the journal does not keep, and why, in one line; "" while it keeps them."""
        return self._past.says

    @property
    def absence(self) -> tuple[Digest, ...]:
        """What has happened while nobody could look, by source."""
        return self._away.told(self._clock())

    @property
    def absence_line(self) -> Clean:
        """The same in one line, until it is read; "" where nothing has happened."""
        return self._away.headline(self._clock())

    def absence_read(self) -> None:
        """Somebody has read it."""
        self._away.read(self._clock())

    def touched(self) -> None:
        """Somebody is at the console. Cheap: it is called at every key."""
        self._away.touch(self.steady())

    def left(self) -> None:
        """Nobody looks at the console: its terminal has lost the focus."""
        self._away.leave(self.steady())

    # --- sources ---------------------------------------------------------------------------

    def expect(self, targets: Iterable[Target]) -> None:
        """Show these sources as connecting before `start`, which takes longer. Needs no event loop."""
        now = self._clock()
        facts = [ContactFact(t.name, Contact.CONNECTING, now, NOTHING) for t in targets if t.name not in self._lines]
        self._tell(self.fleet.apply(facts, now))

    def open_journal(self) -> None:
        """Open the journal now, which takes a moment: `start` does it as well. Must be called on the event loop."""
        self._past.begin()

    def start(self, targets: Sequence[Target]) -> None:
        """Connect to these sources, and keep trying. Must be called on the event loop; more may follow later.

        Raises ValueError where a name is taken.
        """
        for target in targets:
            if target.name in self._lines:
                raise ValueError(f"there is a source {target.name!r} already")
        self.expect(targets)
        if not self.read_only:
            self._audit.open()
        self._past.begin()
        self.touched()
        self._audit.hide(target.token for target in targets if target.token is not None)
        for target in targets:
            self._lines.dial(target)
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick_on(), name="hub")

    def has(self, name: str) -> bool:
        """Is there a source of this name, expected ones included?"""
        return name in self.fleet.sources

    def heard(self, name: str) -> bool:
        """Does a connection to the source stand, silent or not?"""
        source = self.fleet.sources.get(name)
        return source is not None and source.contact in HEARD

    def address(self, name: str) -> str:
        """The URL at which the source is dialled; "" for one that was never started."""
        return self._lines.address(name)

    def replace(self, target: Target) -> None:
        """Connect the source of this name to another address, or with another token, from now on. It keeps what is
        known of its sessions until the new host has named its own.

        Raises KeyError for a source that was never started.
        """
        if target.token is not None:
            self._audit.hide([target.token])
        self._lines.replace(target)

    def let_go(self, name: str, why: str) -> None:
        """Dial the source no more: once its connection has ended it is lost for this reason, until it is replaced.

        Raises KeyError for a source that was never started.
        """
        self._lines.let_go(name, why)

    def _give_up(self, source: str, why: str) -> None:
        """Nobody can say any more what became of the commands that are on their way to the source."""
        for id in self._book.open:
            trail = self.fleet.trails.get(id)
            if trail is not None and trail.target.source == source and trail.outcome is None:
                self._tell(self.fleet.settle(id, OutcomeKind.UNKNOWN, Clean(why), self._clock()))

    def _take(self, facts: list[Fact]) -> None:
        self._tell(self.fleet.apply(facts, self._clock()))

    def retry(self, source: str) -> None:
        """Try a lost source again at once."""
        self._lines.retry(source)

    async def send(self, source: str, frame: ClientFrame) -> None:
        """Hand a frame that is no command (a watch, a query) to a source.

        Raises ConnectionLost where it certainly did not leave, KeyError for a source that was never started.
        """
        await self._lines.send(source, frame)

    def look(self, key: SessionKey | None, *, opened: bool = False) -> None:
        """The operator looks at this session: where that lasts, or it was `opened`, its source is asked for all of it.

        Costs nothing where nothing is to be sent, and may be called as often as the screen is painted.
        """
        self._detail.look(key, opened=opened)
        self._past.look(key)
        if opened and key is not None:
            self._away.saw(key, self._clock(), self.steady())

    def attend(self, key: RequestKey | None) -> None:
        """The card of this request is open, or none is: other operators of its source are told, unless this console
        only watches. May be called as often as the screen is painted."""
        if not self.read_only:
            self._detail.attend(key)

    def claim(self, key: RequestKey, *, release: bool = False) -> None:
        """Tell the other operators of its source that this one takes the request, or lets go of it: advice to them,
        never a lock. Nothing is sent where `unclaimable` says why.
        """
        if not self.unclaimable(key):
            self._detail.claim(key, release=release)

    def unclaimable(self, key: RequestKey) -> str:
        """Why nobody could be told that the operator takes the request; "" where they can."""
        request, source = self.fleet.requests.get(key), self.fleet.sources.get(key.source)
        if self.read_only:
            return "this console only watches"
        if request is None or not request.open:
            return "it has ended"
        if source is None or not source.live or key.source not in self._lines:
            return "its source is not heard"
        return "its host does not tell other operators" if source.alone else ""

    def _hears(self, name: str) -> bool:
        return name in self._lines and self.heard(name) and not self.fleet.sources[name].alone

    async def older(self, key: SessionKey, before: int, *, wait_s: float) -> OlderPage:
        """Events of a session before number `before`, as the journal or else its source keeps them.

        Raises ConnectionLost where it is not connected, TimeoutError where no page came within `wait_s` seconds, and
        ProtocolError, with its reason, where the source refuses.
        """
        if (page := await self._past.older(key, before)) is not None:
            return page
        if key.source not in self._lines:
            raise ConnectionLost(f"not sent: {key.source} is not connected")
        return await self._detail.older(key, self.fleet.sessions[key].epoch, before, wait_s=wait_s)

    def _reachable(self, key: SessionKey) -> bool:
        session = self.fleet.sessions.get(key)
        return session is not None and not session.placeholder and key.source in self._lines and self.heard(key.source)

    async def close(self) -> None:
        """End every connection, and the audit file."""
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)
            self._ticking = None
            self._away.close(self._clock(), self.steady())
        if self._deciding is not None:
            await self._deciding.close()
        for id in tuple(self._unsent):
            del self._unsent[id]
            self._tell(self.fleet.settle(id, OutcomeKind.UNDELIVERED, _LEFT, self._clock()))
        await self._lines.close()
        await self._detail.close()
        await self._past.close()
        self._audit.close()

    # --- interventions ---------------------------------------------------------------------

    def gate(self, intent: Intent, *, arm_ms: int = ARM_MS) -> Gated | Refusal:
        """Would the intervention go out now? Whoever submits asks first what `Gated.confirm` lists."""
        now, steady = self._clock(), self.steady()
        found = gate(self.fleet, intent, now, steady=steady, read_only=self.read_only, arm_ms=arm_ms)
        return self._deciding.hold(found) if self._deciding is not None and isinstance(found, Gated) else found

    def begin(self, intent: Intent) -> Trail:
        """Take up an intervention if the gate lets it through; returns its trail, and `dispatch` sends it.

        From now on the fleet knows of it, and nothing that contradicts it is let through any more. A refused one has an
        outcome and is never sent; it is not among `fleet.trails`. One whose id is known already is not begun again:
        its trail is returned as it stands.
        """
        return self._begin(intent, {})

    def _begin(self, intent: Intent, more: Mapping[str, object]) -> Trail:
        if (known := self.fleet.trails.get(intent.id)) is not None:
            return known
        gated = self.gate(intent)
        if isinstance(gated, Refusal):
            return refused(self.fleet, intent, gated, self._clock())
        told = more
        if gated.request is not None:
            from console.hub.deciding import of_request  # judging texts is for later than the first frame

            agreed = self._deciding.agreed(gated) if self._deciding is not None else {}
            told = {**of_request(self.fleet, gated, self._clock()), **agreed, **more}
        if (reason := self._book.requested(gated, told)) is not None:
            refusal = Refusal(OutcomeKind.UNDELIVERED, reason)
            return refused(self.fleet, intent, refusal, self._clock())
        self._unsent[intent.id] = gated
        self._tell(self.fleet.requested(intent, self._clock()))
        return self.fleet.trails[intent.id]

    def ruling(self, key: RequestKey) -> Ruling | None:
        """What the operator's policies say about a request that waits; None: none of them matches."""
        return self._deciding.automatic.on(key) if self._deciding is not None else None

    def ruled(self, key: RequestKey) -> Clean:
        """The same in words, as far as it has been done; "" where none matches."""
        return self._deciding.automatic.says(key, self._clock()) if self._deciding is not None else NOTHING

    def second_key(self, key: RequestKey) -> Clean:
        """Why approving a request takes a second key, by the operator's policies; "" where it takes none."""
        return self._deciding.automatic.second_key(key) if self._deciding is not None else NOTHING

    def refused_early(self, intent: Intent, refusal: Refusal) -> None:
        """A key was refused because what it is about had not stood still for long enough: into the audit."""
        self._book.refused(intent, refusal.reason)

    def revealed(self, key: RequestKey) -> None:
        """The operator had the masked text of a request shown: into the audit."""
        self._book.revealed(key)

    async def dispatch(self, trail: Trail, *, hold_s: float = 0.0) -> None:
        """Send what was begun, once; not before `hold_s` seconds have gone by, in which it can be taken back."""
        if hold_s and trail.id in self._unsent:
            await self._held.rest(trail.id, hold_s)
        if (gated := self._unsent.pop(trail.id, None)) is not None:
            await self._send(gated)

    @property
    def held(self) -> tuple[str, ...]:
        """The ids of the operator's commands that were begun and can still be taken back."""
        return tuple(id for id, gated in self._unsent.items() if gated.intent.policy is None)

    def release(self, ids: Iterable[str]) -> None:
        """Send these now, and hold them no longer."""
        for id in ids:
            self._held.let_go(id)

    def take_back(self, ids: Iterable[str], why: Clean) -> list[Trail]:
        """Take these back, as far as they have not left; returns those that never will."""
        taken: list[Trail] = []
        for id in ids:
            if self._unsent.pop(id, None) is not None:
                self._tell(self.fleet.settle(id, OutcomeKind.UNDELIVERED, why, self._clock()))
                taken.append(self.fleet.trails[id])
            self._held.let_go(id)
        return taken

    async def submit(self, intent: Intent) -> Trail:
        """Begin an intervention and send it; returns its trail once it was sent or refused."""
        trail = self.begin(intent)
        await self.dispatch(trail)
        return trail

    async def settle(self, trail_id: str, wait_s: float) -> Trail:
        """The trail once nothing more is expected of it, or as it is after `wait_s` seconds.

        Raises KeyError for a trail that is not known.
        """
        return await self._until(trail_id, wait_s, _settled)

    async def answered(self, trail_id: str, wait_s: float) -> Trail:
        """The trail once it has an outcome; after `wait_s` seconds without one the outcome is `unknown`."""
        self._awaited.add(trail_id)
        try:
            trail = await self._until(trail_id, wait_s, lambda trail: trail.outcome is not None)
        finally:
            self._awaited.discard(trail_id)
        if trail.outcome is None:
            reason = Clean(f"no word came back within {wait_s:g} s")
            self._tell(self.fleet.settle(trail_id, OutcomeKind.UNKNOWN, reason, self._clock()))
        return trail

    async def until(self, met: Callable[[], bool], wait_s: float) -> bool:
        """Wait until the fleet shows something, `wait_s` seconds at most; False when it did not."""
        try:
            async with asyncio.timeout(wait_s):
                while not met():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            return met()
        return True

    async def _until(self, trail_id: str, wait_s: float, met: Callable[[Trail], bool]) -> Trail:
        trail = self.fleet.trails[trail_id]
        await self.until(lambda: met(trail), wait_s)
        return trail

    async def _send(self, gated: Gated) -> None:
        from pydantic import ValidationError

        from console.commands import command

        target, id = gated.target, gated.id
        self._past.hide_answer(gated)
        try:
            await self._lines.send(target.source, command(gated))
        except ConnectionLost as lost:
            changes = self.fleet.settle(id, OutcomeKind.UNDELIVERED, clean_line(str(lost)), self._clock())
        except (ProtocolError, ValidationError) as fault:
            reason = clean_line(f"it cannot be written: {first_line(fault)}")
            changes = self.fleet.settle(id, OutcomeKind.INVALID, reason, self._clock())
        else:
            changes = self.fleet.sent(id, self._clock())
        self._tell(changes)

    def _at_work(self, policies: tuple[Policy, ...], by_itself: bool) -> Deciding:
        from console.hub.deciding import Deciding

        return Deciding(
            policies,
            self.fleet,
            self._clock,
            by_itself=by_itself,
            gate=self.gate,
            begin=self._begin,
            dispatch=self.dispatch,
        )

    # --- what happens ----------------------------------------------------------------------

    async def _tick_on(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._detail.tick()
            self._past.ask_again(self.send, self.heard, self.steady())
            # Whoever shows a recording leads its clock, faster and slower.
            if self.showing is None and (by_ms := self._jumps.since()):
                self._away.clock_set(by_ms)
                self._tell(self.fleet.clock_set(by_ms))
            now = self._clock()
            self._tell(self.fleet.tick(now))
            if self.showing is None:
                self._away.tick(now, self.steady())
            self._miss_words(now)
            if self._deciding is not None:
                self._deciding.decide()

    def _miss_words(self, now: int) -> None:
        """What a source that is heard has not answered in time is unknown, unless somebody still waits for the word."""
        for id in self._book.unanswered:
            trail = self.fleet.trails.get(id)
            source = self.fleet.sources[trail.target.source] if trail is not None else None
            if id in self._awaited or trail is None or source is None or not source.live:
                continue
            if (wait_s := unanswered_s(trail, source.contact_since, now)) is not None:
                reason = Clean(f"no word came back within {wait_s:g} s")
                self._tell(self.fleet.settle(id, OutcomeKind.UNKNOWN, reason, now))

    def _tell(self, changes: Changes) -> None:
        if not changes:
            return
        for id in changes.trails:
            if (trail := self.fleet.trails.get(id)) is not None:
                self._book.write(trail)
                self._past.trail(trail)
        if self._deciding is not None:
            self._deciding.arrived(changes.requests)
        self._moved.set()
        if self._on_changes is not None:
            self._on_changes(changes)


def _settled(trail: Trail) -> bool:
    if trail.outcome is None:
        return False
    return trail.effect not in (EffectState.PENDING, EffectState.OVERDUE) or trail.closed
