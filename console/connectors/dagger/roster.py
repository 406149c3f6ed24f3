"""Which agents there are, as telemetry shows them: their spans, whose child each is, and their latest records."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from console.connectors.dagger.telemetry import Span, StateRecord, Subscription
from watchfloor.protocol.model import InFlight

MOST_SPANS: Final = 100_000
"""Spans that are remembered, to find who stands above whom."""
MOST_IN_FLIGHT: Final = 8
MOST_BELOW: Final = 1_000
"""Pieces of work right below one span that are remembered as unfinished."""


@dataclass(slots=True)
class Seen:
    """What telemetry says of one agent. `record` is its latest state record."""

    handle: str
    name: str = ""
    spans: dict[str, None] = field(default_factory=dict)
    record: StateRecord | None = None
    subscribers: dict[str, Subscription] = field(default_factory=dict)


class Roster:
    """The agents of one session's telemetry."""

    def __init__(self) -> None:
        self.agents: dict[str, Seen] = {}
        self._above: OrderedDict[str, str] = OrderedDict()
        self._handle_of: dict[str, str] = {}
        self._running: dict[str, dict[str, Span]] = {}
        """What began right below a span of an agent and has not ended, by that span."""
        self._over: OrderedDict[str, None] = OrderedDict()
        """Spans that have ended. What is exported twice may come in another order."""
        self._early: OrderedDict[str, StateRecord] = OrderedDict()
        """Records of spans that were not told yet: the two streams are read side by side."""

    def take_spans(self, spans: Iterable[Span]) -> set[str]:
        """The handles of the agents of which something is new."""
        changed: set[str] = set()
        for span in spans:
            self._above[span.id] = span.parent
            self._above.move_to_end(span.id)
            while len(self._above) > MOST_SPANS:
                self._above.popitem(last=False)
            if span.handle:
                changed.add(span.handle)
                self._handle_of[span.id] = span.handle
                seen = self._agent(span.handle)
                seen.name = span.name or seen.name
                seen.spans[span.id] = None
                if (early := self._early.pop(span.id, None)) is not None:
                    self._note(seen, early)
            changed |= self._take_work(span)
        return changed

    def _take_work(self, span: Span) -> set[str]:
        below = self._running.setdefault(span.parent, {}) if span.parent else {}
        before = span.id in below
        if span.end is not None:
            self._over[span.id] = None
            self._over.move_to_end(span.id)
            if len(self._over) > MOST_SPANS:
                self._over.popitem(last=False)
        if span.handle or span.id in self._over:
            below.pop(span.id, None)
        elif before or len(below) < MOST_BELOW:
            below[span.id] = span
        if span.parent and not below:
            del self._running[span.parent]
        handle = self._handle_of.get(span.parent)
        return {handle} if handle is not None and before != (span.id in below) else set()

    def take_records(self, records: Iterable[StateRecord | Subscription]) -> set[str]:
        """The handles of the agents of which something is new."""
        changed: set[str] = set()
        for record in records:
            handle = record.handle or (self._handle_of.get(record.span, "") if isinstance(record, StateRecord) else "")
            if not handle:
                if isinstance(record, StateRecord) and record.span and record.state is not None:
                    self._early[record.span] = record
                    if len(self._early) > MOST_IN_FLIGHT * 128:
                        self._early.popitem(last=False)
                continue
            seen = self._agent(handle)
            if isinstance(record, Subscription):
                last = seen.subscribers.get(record.subscriber)
                if last is not None and record.revision < last.revision:
                    continue
                seen.subscribers[record.subscriber] = record
            elif not self._note(seen, record):
                continue
            changed.add(handle)
        return changed

    def _note(self, seen: Seen, record: StateRecord) -> bool:
        seen.name = record.name or seen.name
        if record.state is None:
            return False
        last = seen.record
        if last is not None and record.revision and record.incarnation == last.incarnation:
            if record.revision < last.revision:
                return False
        elif last is not None and record.at < last.at:
            return False
        seen.record = record
        return True

    def _agent(self, handle: str) -> Seen:
        return self.agents.setdefault(handle, Seen(handle))

    # --- asked

    def started(self, handle: str) -> bool:
        """Has the agent a span? One that never ran has none."""
        return bool(self.agents[handle].spans) if handle in self.agents else False

    def parent(self, handle: str) -> str | None:
        """The handle of the agent above: as its record says, else of the nearest span above that is another agent's."""
        seen = self.agents.get(handle)
        if seen is None:
            return None
        if seen.record is not None and seen.record.parent:
            return seen.record.parent
        for span in reversed(seen.spans):
            passed: set[str] = set()
            above = self._above.get(span, "")
            while above and above not in passed:
                passed.add(above)
                other = self._handle_of.get(above)
                if other is not None and other != handle:
                    return other
                above = self._above.get(above, "")
        return None

    def in_flight(self, handle: str) -> tuple[InFlight, ...]:
        """The work that runs right below the agent, oldest first."""
        seen = self.agents.get(handle)
        below = [span for id in (seen.spans if seen is not None else ()) for span in self._running.get(id, {}).values()]
        below.sort(key=lambda span: span.start)
        return tuple(InFlight(id=span.id, name=span.name, since=span.start) for span in below[:MOST_IN_FLIGHT])
