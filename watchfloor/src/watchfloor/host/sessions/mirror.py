"""A session that a foreign system runs, as a host shows it.

Its lifecycle is what that system says, not what our table would make of it. What is told twice changes nothing:
a connector may list everything again after every connection. A command is checked here against what is
advertised, blocked and asked, and is then forwarded; what became of it comes back by `HostCore.answered`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from watchfloor.harness.base import Rest
from watchfloor.host.effects import Changed, Handled, Publish, RequestChanged, SessionEffect
from watchfloor.host.quoting import shown
from watchfloor.host.sessions.hosted import Forwarded
from watchfloor.host.sessions.offered import not_offered
from watchfloor.host.sessions.request_events import ended, opened
from watchfloor.host.sessions.requests import Rejected, Requests
from watchfloor.host.sessions.streams import Streams, within
from watchfloor.protocol.events import Event, LifecycleChanged
from watchfloor.protocol.frames import Do, DoAnswer, DoApprove, UnknownDo
from watchfloor.protocol.model import Capabilities, Decision, InFlight, RequestModel, Result, Summary
from watchfloor.words import TERMINAL, Lifecycle, OutcomeKind, RequestState

KEYS: Final = 20_000
"""Events of a session whose identity is remembered, so that a replay of them is dropped."""

_FOUND_OUT: Final = frozenset({"id", "epoch", "head", "last", "profile", "requests"})
SETTABLE: Final = frozenset(Summary.model_fields) - _FOUND_OUT
_DEFAULTS: Final = {
    name: field.get_default(call_default_factory=True)
    for name, field in Summary.model_fields.items()
    if name in SETTABLE
}
_AT_REST: Final = TERMINAL | {Lifecycle.IDLE, Lifecycle.UNKNOWN}
_TOLD_AS_EVENT: Final = frozenset({"lifecycle", "pending", "attempt"})
_ASKED: Final = (RequestState.OPEN, RequestState.UNCONFIRMED, RequestState.UNREAD)

Effects = list[SessionEffect]


class MirrorSession:
    """One session of a foreign system (a `watchfloor.host.sessions.hosted.HostedSession`).

    `now` is in milliseconds since 1970 UTC everywhere. Every method returns the effects that follow from it.
    """

    def __init__(self, session_id: str, *, capabilities: Capabilities, now: int) -> None:
        self.id: Final = session_id
        self.capabilities = capabilities
        self.requests: Final = Requests(session_id)
        self.streams: Final = Streams()
        self._fields: dict[str, object] = {**_DEFAULTS, "since": now}
        self._keys: OrderedDict[str, None] = OrderedDict()
        self._deciding: set[str] = set()
        self._described = False

    # --- what it is

    @property
    def attempt(self) -> int | None:
        value = self._fields["attempt"]
        return value if isinstance(value, int) else None

    @property
    def turn(self) -> str | None:
        value = self._fields["turn"]
        return value if isinstance(value, str) else None

    @property
    def lifecycle(self) -> Lifecycle:
        return Lifecycle(str(self._fields["lifecycle"]))

    @property
    def alive(self) -> bool:
        return self.lifecycle not in TERMINAL

    @property
    def settled(self) -> bool:
        """Does nothing of it run or wait, as far as is known?"""
        return self.lifecycle in _AT_REST and self._fields["pending"] is None

    def rest(self) -> Rest:
        """How it came to rest. What it said last is its result."""
        result, error = self._fields["result"], self._fields["error"]
        said = (result.final_message or result.text) if isinstance(result, Result) else ""
        if self.lifecycle is Lifecycle.UNKNOWN:
            error = self._fields["why"]
        return Rest(self.lifecycle, said, str(error) if error is not None else None)

    @property
    def in_flight(self) -> tuple[InFlight, ...]:
        value = self._fields["in_flight"]
        return value if isinstance(value, tuple) else ()

    def summary(self) -> dict[str, object]:
        return {**self._fields, "requests": self.requests.refs()}

    # --- what the foreign system says

    def set_capabilities(self, capabilities: Capabilities, now: int) -> Effects:
        self.capabilities = capabilities
        return []

    def update(self, now: int, **fields: object) -> Effects:
        """The summary fields that are so now; those not named stay as they are.

        `since` follows the lifecycle where it is not given. Raises ValueError for a field that cannot be set here, and
        for a value that it cannot hold.
        """
        unknown = fields.keys() - SETTABLE
        if unknown:
            raise ValueError(f"not fields of a mirrored summary: {', '.join(sorted(unknown))}")
        # Read before it is kept: a value that no summary can hold must not surface at the next flush.
        read = Summary.model_validate({"id": self.id, **fields})
        fields = {name: getattr(read, name) for name in fields}
        changed = {name for name, value in fields.items() if self._fields[name] != value}
        if "lifecycle" in changed and "since" not in fields:
            fields["since"] = now
            changed.add("since")
        self._fields.update(fields)
        # What it was when we first heard of it did not happen then.
        first, self._described = not self._described, True
        effects: Effects = []
        if not first and (changed & _TOLD_AS_EVENT or ("native_state" in changed and "lifecycle" in fields)):
            effects.append(self._publish(self._lifecycle_event(now), now))
        if changed:
            effects.append(Changed(self.id, frozenset(changed)))
        return effects

    def _lifecycle_event(self, now: int) -> LifecycleChanged:
        told = {name: self._fields[name] for name in ("native_state", "why") if self._fields[name] is not None}
        overlay = getattr(self._fields["pending"], "overlay", None)
        if overlay is not None:
            told["pending"] = overlay
        return LifecycleChanged.model_validate({"at": now, "lifecycle": self.lifecycle, **told})

    def emit(self, event: Event, now: int) -> Effects:
        """Something happened. An event whose `key` was seen before is dropped; one without `at` (0) gets `now`."""
        if event.key is not None:
            if event.key in self._keys:
                return []
            self._keys[event.key] = None
            if len(self._keys) > KEYS:
                self._keys.popitem(last=False)
        if event.item is not None:
            self.streams.close(event.item)
        return [self._publish(within(event), now)]

    def has(self, key: str) -> None:
        """An event with this key was emitted before."""
        self._keys[key] = None

    def saw(self, key: str) -> bool:
        """Was an event with this key emitted, as far as is remembered?"""
        return key in self._keys

    def stream(self, item: str, of: str, text: str, now: int, call: str | None = None) -> Effects:
        """The next piece of a streamed item."""
        delta = self.streams.append(item, of, text, now, call)
        return [] if delta is None else [self._publish(delta, now)]

    def cut_streams(self, now: int, *items: str) -> Effects:
        """Nothing more will come of the items that are open (of all, or of these): close them as they stand, marked
        as cut."""
        return [self._publish(event, now) for event in self.streams.cut(now, *items)]

    # --- requests

    def ask(self, request: RequestModel, now: int) -> Effects:
        """A request is open there. One that is open here already, unchanged, is no news; where the same id asks for
        something else now, what it asked for before is withdrawn.

        Raises ContractError for a request of another session, and for an id that has ended before.
        """
        id = str(request.subject.get("id"))
        open_ = next((known for known in self.requests.open() if known.subject.get("id") == id), None)
        effects: Effects = []
        if open_ is not None:
            if open_.digest == request.digest and open_.state is request.state:
                return []
            self.requests.forget(id)
            changed = open_.digest != request.digest
            if changed:
                gone = open_.model_copy(update={"state": RequestState.WITHDRAWN})
                effects.append(self._publish(ended(gone, id, now, "it asks for something else now"), now))
        kept, subject = self.requests.ask(request, self.attempt, _ASKED)
        if open_ is None or open_.digest != request.digest:
            effects.append(self._publish(opened(kept, subject, now), now))
        return [*effects, RequestChanged(self.id, kept), Changed(self.id, frozenset({"requests"}))]

    def end_request(
        self,
        id: str,
        now: int,
        state: RequestState = RequestState.RESOLVED,
        *,
        decision: Decision | None = None,
        why: str = "",
    ) -> Effects:
        """A request is no longer open there. Nothing for one that is not open here."""
        request = self.requests.end(id, state, decision, why)
        if request is None:
            return []
        event = ended(request, id, now, why or None)
        return [
            self._publish(event, now),
            RequestChanged(self.id, request),
            Changed(self.id, frozenset({"requests"})),
        ]

    # --- commands

    def not_advertised(self, do: Do | UnknownDo) -> str | None:
        return not_offered(self.capabilities, do)

    def command(self, do: Do | UnknownDo, by: str, now: int) -> Handled | Forwarded:
        blocked = self._fields["blocked"]
        if isinstance(blocked, dict) and do.primitive in blocked:
            return Handled(OutcomeKind.INVALID, reason=str(blocked[do.primitive]))
        if isinstance(do, DoApprove | DoAnswer):
            fits = self.requests.fits(do)
            if isinstance(fits, Rejected):
                return Handled(fits.outcome, reason=fits.reason, decided=fits.decided)
            if do.request in self._deciding:
                reason = f"a decision on {shown(do.request)} is on its way already"
                return Handled(OutcomeKind.REFUSED, reason=reason)
            self._deciding.add(do.request)
        return Forwarded()

    def answered(self, do: Do | UnknownDo) -> None:
        """A forwarded command has its outcome."""
        if isinstance(do, DoApprove | DoAnswer):
            self._deciding.discard(do.request)

    # --- time

    def next_due(self) -> int | None:
        """Deadlines are the foreign system's to keep."""
        return None

    def tick(self, now: int) -> Effects:
        return []

    def _publish(self, event: Event, now: int) -> Publish:
        fill: dict[str, object] = {}
        if event.at == 0:
            fill["at"] = now
        if event.attempt is None and self.attempt is not None:
            fill["attempt"] = self.attempt
        if event.turn is None and self.turn is not None:
            fill["turn"] = self.turn
        return Publish(self.id, event.model_copy(update=fill) if fill else event)
