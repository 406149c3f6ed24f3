"""What stands between the sources and whoever looks at them: one fleet, a connection for each source, one audit.

In: a connector's arrivals -> intake -> fleet -> `on_changes`. Out: an intent -> gate -> audit -> connector; what
comes back goes into fleet and audit. The application and every verb of the command line work through a hub.

Importing this module, and making a hub, loads no network library and no models; `start` does.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from console.audit import Audit
from console.fleet.apply import Fleet
from console.fleet.changes import Changes
from console.fleet.facts import ContactFact, Fact, FaultFact, Intent, Refusal, SessionKey
from console.fleet.gate import ARM_MS, Gated, gate
from console.fleet.state import NOTHING, Baseline, Trail
from console.fleet.trail import unanswered_s
from console.pages import OlderPage, Pages
from console.watching import Order, Watches
from watchfloor.errors import ConnectionLost, ProtocolError
from watchfloor.text import Clean, clean_line
from watchfloor.words import Contact, EffectState, Lifecycle, OutcomeKind, Primitive

if TYPE_CHECKING:
    from console.connectors.supervisor import Item, Supervisor
    from watchfloor.connector import Clock, Target
    from watchfloor.protocol.frames import ClientFrame

_log = logging.getLogger(__name__)

_HEARD: Final = frozenset({Contact.LIVE, Contact.SILENT})
TICK_S: Final = 0.5
"""How often the passing of time alone is looked at: overdue effects, gaps that did not fill."""


def steady_ms() -> int:
    """Milliseconds of a clock that is never set."""
    return time.monotonic_ns() // 1_000_000


@dataclass(slots=True)
class _Line:
    """One source: what keeps it connected, and the task in which that runs."""

    supervisor: Supervisor
    task: asyncio.Task[None]


class Hub:
    """The sources of one console.

    `clock` gives milliseconds since 1970 UTC, `steady` those of a clock that is never set, by which the moment is
    counted in which a key does not decide yet. `by` is the operator's name. With `read_only` no intervention leaves.
    `on_changes` is called on the event loop after every batch of arrivals, tick and command; `on_items` with a source's
    name and what arrived from it, before the fleet takes it up. Neither may block.
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
    ) -> None:
        self.fleet: Final = Fleet(_unfit)
        self.by: Final = by
        self.read_only: Final = read_only
        self.steady: Final = steady
        self._clock = clock
        self._audit = audit
        self._on_changes = on_changes
        self._on_items = on_items
        self._lines: dict[str, _Line] = {}
        self._unsent: dict[str, Gated] = {}
        """Commands that were begun and have not been handed on yet."""
        self._told: dict[str, tuple[OutcomeKind | None, EffectState | None]] = {}
        """What the audit file says of the commands that are not settled."""
        self._awaited: set[str] = set()
        """Commands whose word somebody waits for."""
        self._moved = asyncio.Event()
        self._watches = Watches()
        self._pages = Pages()
        self._closing: set[asyncio.Task[None]] = set()
        self._ticking: asyncio.Task[None] | None = None

    @property
    def audit_fault(self) -> str | None:
        """Why interventions cannot be written down, in one line; None while they can."""
        return self._audit.fault

    # --- sources ---------------------------------------------------------------------------

    def expect(self, targets: Iterable[Target]) -> None:
        """Show these sources as connecting before `start`, which takes longer. Needs no event loop."""
        now = self._clock()
        facts = [ContactFact(t.name, Contact.CONNECTING, now, NOTHING) for t in targets if t.name not in self._lines]
        self._tell(self.fleet.apply(facts, now))

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
        self._audit.hide(target.token for target in targets if target.token is not None)
        for target in targets:
            self._lines[target.name] = self._line(target)
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick_on(), name="hub")

    def has(self, name: str) -> bool:
        """Is there a source of this name, expected ones included?"""
        return name in self.fleet.sources

    def heard(self, name: str) -> bool:
        """Does a connection to the source stand, silent or not?"""
        source = self.fleet.sources.get(name)
        return source is not None and source.contact in _HEARD

    def address(self, name: str) -> str:
        """The URL at which the source is dialled; "" for one that was never started."""
        line = self._lines.get(name)
        return line.supervisor.target.url if line is not None else ""

    def replace(self, target: Target) -> None:
        """Connect the source of this name to another address, or with another token, from now on. It keeps what is
        known of its sessions until the new host has named its own.

        Raises KeyError for a source that was never started.
        """
        self._part(self._lines[target.name])
        if target.token is not None:
            self._audit.hide([target.token])
        self._watches.parted(target.name)
        self._give_up(target.name, "another host has taken the place of the one that it was sent to")
        self._lines[target.name] = self._line(target)

    def let_go(self, name: str, why: str) -> None:
        """Dial the source no more: once its connection has ended it is lost for this reason, until it is replaced.

        Raises KeyError for a source that was never started.
        """
        self._lines[name].supervisor.let_go(why)

    def _part(self, line: _Line) -> None:
        async def part() -> None:
            await line.supervisor.close()
            await line.task

        parting = asyncio.create_task(part(), name=f"parting from {line.supervisor.target.name}")
        self._closing.add(parting)
        parting.add_done_callback(self._closing.discard)

    def _give_up(self, source: str, why: str) -> None:
        """Nobody can say any more what became of the commands that are on their way to the source."""
        for id in list(self._told):
            trail = self.fleet.trails.get(id)
            if trail is not None and trail.target.source == source and trail.outcome is None:
                self._tell(self.fleet.settle(id, OutcomeKind.UNKNOWN, Clean(why), self._clock()))

    def _line(self, target: Target) -> _Line:
        from console.connectors.registry import connector_for
        from console.connectors.supervisor import ContactChange, Supervisor
        from console.intake import Intake
        from watchfloor.connector import Received

        intake = Intake(target.name, self._clock)

        def sink(items: Sequence[Item]) -> None:
            if self._lines.get(target.name) is not line:
                return  # another host is this source by now
            if any(isinstance(item, ContactChange) and item.contact not in _HEARD for item in items):
                self._watches.parted(target.name)
            facts: list[Fact] = []
            if self._on_items is not None:
                try:
                    self._on_items(target.name, items)
                except Exception as fault:
                    facts.append(_unfit(target.name, fault))
            for item in items:
                try:
                    told = [intake.contact(item)] if isinstance(item, ContactChange) else intake.arrival(item)
                    facts += told
                    if isinstance(item, Received):
                        self._pages.take(target.name, item.frame, told)
                except Exception as fault:
                    facts.append(_unfit(target.name, fault))
            self._tell(self.fleet.apply(facts, self._clock()))

        async def keep() -> None:
            await supervisor.run()
            if self._lines.get(target.name) is line and supervisor.let_go_for is not None:
                self._give_up(target.name, supervisor.let_go_for)

        rng = random.Random()  # noqa: S311 - spreads retries in time, nothing depends on its secrecy
        supervisor = Supervisor(connector_for, target, sink, self._clock, rng)
        line = _Line(supervisor, asyncio.create_task(keep(), name=f"source {target.name}"))
        return line

    def retry(self, source: str) -> None:
        """Try a lost source again at once."""
        if (line := self._lines.get(source)) is not None:
            line.supervisor.retry_now()

    async def send(self, source: str, frame: ClientFrame) -> None:
        """Hand a frame that is no command (a watch, a query) to a source.

        Raises ConnectionLost where it certainly did not leave, KeyError for a source that was never started.
        """
        await self._lines[source].supervisor.send(frame)

    def look(self, key: SessionKey | None, *, opened: bool = False) -> None:
        """The operator looks at this session: where that lasts, or it was `opened`, its source is asked for all of it.

        Costs nothing where nothing is to be sent, and may be called as often as the screen is painted.
        """
        self._watches.look(key, self.steady(), opened=opened)
        self._keep_watches()

    async def older(self, key: SessionKey, before: int, *, wait_s: float) -> OlderPage:
        """Events of a session before number `before`, as its source keeps them.

        Raises ConnectionLost where it is not connected, TimeoutError where no page came within `wait_s` seconds, and
        ProtocolError, with its reason, where the source refuses.
        """
        if key.source not in self._lines:
            raise ConnectionLost(f"not sent: {key.source} is not connected")
        frame, page = self._pages.ask(key, self.fleet.sessions[key].epoch, before)
        try:
            await self.send(key.source, frame)
            return await asyncio.wait_for(page, wait_s)
        finally:
            self._pages.forget(frame)

    def _keep_watches(self) -> None:
        for order in self._watches.due(self.steady(), self._reachable):
            telling = asyncio.create_task(self._order(order), name=f"watch {order.key.session}")
            self._closing.add(telling)
            telling.add_done_callback(self._closing.discard)

    def _reachable(self, key: SessionKey) -> bool:
        session = self.fleet.sessions.get(key)
        return session is not None and not session.placeholder and key.source in self._lines and self.heard(key.source)

    async def _order(self, order: Order) -> None:
        try:
            await self.send(order.key.source, order.frame())
        except (ConnectionLost, ProtocolError):
            if order.watch:
                self._watches.failed(order.key, self.steady())

    async def close(self) -> None:
        """End every connection, and the audit file."""
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)
            self._ticking = None
        lines = list(self._lines.values())
        await asyncio.gather(*(line.supervisor.close() for line in lines), return_exceptions=True)
        await asyncio.gather(*(line.task for line in lines), *self._closing, return_exceptions=True)
        self._audit.close()

    # --- interventions ---------------------------------------------------------------------

    def gate(self, intent: Intent, *, arm_ms: int = ARM_MS) -> Gated | Refusal:
        """Would the intervention go out now? Whoever submits asks first what `Gated.confirm` lists."""
        now, steady = self._clock(), self.steady()
        return gate(self.fleet, intent, now, steady=steady, read_only=self.read_only, arm_ms=arm_ms)

    def begin(self, intent: Intent) -> Trail:
        """Take up an intervention if the gate lets it through; returns its trail, and `dispatch` sends it.

        From now on the fleet knows of it, and nothing that contradicts it is let through any more. A refused one has an
        outcome and is never sent; it is not among `fleet.trails`. One whose id is known already is not begun again:
        its trail is returned as it stands.
        """
        if (known := self.fleet.trails.get(intent.id)) is not None:
            return known
        gated = self.gate(intent)
        if isinstance(gated, Refusal):
            return self._refused(intent, gated)
        if not self._audit.write("requested", intent.id, _asked(gated, self.by)) and self._audit.required:
            reason = f'it cannot be written down, and audit = "required" is set: {self._audit.fault}'
            return self._refused(intent, Refusal(OutcomeKind.UNDELIVERED, reason))
        self._told[intent.id] = (None, None)
        self._unsent[intent.id] = gated
        self._tell(self.fleet.requested(intent, self._clock()))
        return self.fleet.trails[intent.id]

    async def dispatch(self, trail: Trail) -> None:
        """Send what was begun, once."""
        if (gated := self._unsent.pop(trail.id, None)) is not None:
            await self._send(gated)

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
        try:
            await self._lines[target.source].supervisor.send(command(gated))
        except ConnectionLost as lost:
            changes = self.fleet.settle(id, OutcomeKind.UNDELIVERED, clean_line(str(lost)), self._clock())
        except (ProtocolError, ValidationError) as fault:
            reason = clean_line(f"it cannot be written: {_first_line(fault)}")
            changes = self.fleet.settle(id, OutcomeKind.INVALID, reason, self._clock())
        else:
            changes = self.fleet.sent(id, self._clock())
        self._tell(changes)

    def _refused(self, intent: Intent, refusal: Refusal) -> Trail:
        """The trail of what never left; its session may not even be known."""
        session = self.fleet.sessions.get(intent.target)
        now = self._clock()
        baseline = Baseline(
            lifecycle=session.lifecycle if session else Lifecycle.UNKNOWN,
            attempt=session.attempt if session else None,
            turn=session.turn if session else None,
            head=session.head if session else 0,
        )
        return Trail(
            id=intent.id,
            intent=intent,
            target=intent.target,
            request=None,
            baseline=baseline,
            requested_at=now,
            acked_at=now,
            outcome=refusal.outcome,
            reason=clean_line(refusal.reason),
            closed=True,
        )

    # --- what happens ----------------------------------------------------------------------

    async def _tick_on(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._keep_watches()
            now = self._clock()
            self._tell(self.fleet.tick(now))
            self._miss_words(now)

    def _miss_words(self, now: int) -> None:
        """What a source that is heard has not answered in time is unknown, unless somebody still waits for the word."""
        for id in [id for id, (outcome, _) in self._told.items() if outcome is None and id not in self._awaited]:
            trail = self.fleet.trails.get(id)
            source = self.fleet.sources[trail.target.source] if trail is not None else None
            if trail is None or source is None or not source.live:
                continue
            if (wait_s := unanswered_s(trail, source.contact_since, now)) is not None:
                reason = Clean(f"no word came back within {wait_s:g} s")
                self._tell(self.fleet.settle(id, OutcomeKind.UNKNOWN, reason, now))

    def _tell(self, changes: Changes) -> None:
        if not changes:
            return
        for id in changes.trails:
            if (trail := self.fleet.trails.get(id)) is not None:
                self._write_down(trail)
        self._moved.set()
        if self._on_changes is not None:
            self._on_changes(changes)

    def _write_down(self, trail: Trail) -> None:
        """Audit what has newly become of a command."""
        outcome, effect = self._told.get(trail.id, (trail.outcome, trail.effect))
        if trail.outcome is not outcome and trail.outcome is not None:
            self._audit.write("outcome", trail.id, _became(trail))
        if trail.effect is not effect and trail.effect not in (None, EffectState.PENDING):
            self._audit.write("effect", trail.id, {"effect": trail.effect, "reason": trail.effect_text or None})
        if trail.active:
            self._told[trail.id] = (trail.outcome, trail.effect)
        else:
            self._told.pop(trail.id, None)


def _unfit(source: str, fault: Exception) -> FaultFact:
    """What arrived and could not be taken up, for the log and for the count of the source."""
    reason = f"it could not be taken up: {type(fault).__name__}: {_first_line(fault)}"
    at = traceback.extract_tb(fault.__traceback__)[-1:]
    # One line and no more, however often a source does it.
    _log.warning("%s: %s (%s)", source, reason, ", ".join(f"{place.filename}:{place.lineno}" for place in at))
    return FaultFact(source, clean_line(reason), Clean(""))


def _settled(trail: Trail) -> bool:
    if trail.outcome is None:
        return False
    return trail.effect not in (EffectState.PENDING, EffectState.OVERDUE) or trail.closed


def _asked(gated: Gated, by: str) -> dict[str, object]:
    """A command for the audit. What is filled in to answer or to act is left out: any of it may be secret."""
    intent = gated.intent
    fields: dict[str, object] = {
        "by": by,
        "source": gated.target.source,
        "session": gated.target.session,
        "attempt": gated.attempt,
        "turn": gated.turn,
        "primitive": gated.primitive,
        "request": intent.request,
        "option": gated.option.id if gated.option is not None else None,
        "option_kind": gated.option.kind if gated.option is not None else None,
        "digest": gated.digest,
        "reason": intent.reason,
        "note": intent.note,
        "interrupt": intent.interrupt or None,
        "kill": intent.kill or None,
        "mode": intent.mode,
        "to": intent.to,
    }
    if gated.primitive is Primitive.ANSWER:
        fields["answers"] = sorted(intent.fields) if intent.fields is not None else None
    elif gated.primitive is Primitive.SEND:
        fields |= {"text": intent.text, "priority": gated.priority}
    elif gated.primitive is Primitive.ACT:
        fields |= {"act": intent.extra.get("act"), "fields": sorted(intent.extra.get("fields", ()))}
    elif intent.extra:
        fields["extra"] = sorted(intent.extra)
    return fields


def _became(trail: Trail) -> dict[str, object]:
    fact = trail.fact
    decided = fact.decided if fact is not None else None
    return {
        "outcome": trail.outcome,
        "reason": trail.reason or None,
        "info": dict(fact.info) if fact is not None and fact.info else None,
        "decided_by": decided.by if decided is not None else None,
        "decided_option": decided.option if decided is not None else None,
        "decided_at": decided.at if decided is not None else None,
    }


def _first_line(fault: Exception) -> str:
    return str(fault).partition("\n")[0]
