"""What this console decides by itself, by the operator's policies, and what is written down of every decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from console.fleet.decisions.risk.actions import request_risks
from console.fleet.facts import Refusal
from console.fleet.gate import Gated
from console.policies.automatic import Automatic
from watchfloor.words import OptionKind, OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from console.fleet.apply import Fleet
    from console.fleet.facts import Intent, RequestKey
    from console.fleet.state import Trail
    from console.policies.rules import Policy
    from watchfloor.connector import Clock


class Deciding:
    """The policies at work. `gate`, `begin` and `dispatch` are those of the hub: there is no other way out.

    Without `by_itself` nothing is decided by them: they only hold what an operator decides.
    """

    def __init__(
        self,
        policies: tuple[Policy, ...],
        fleet: Fleet,
        clock: Clock,
        *,
        by_itself: bool,
        gate: Callable[[Intent], Gated | Refusal],
        begin: Callable[[Intent, Mapping[str, object]], Trail],
        dispatch: Callable[[Trail], Awaitable[None]],
    ) -> None:
        self.automatic: Final = Automatic(policies, fleet)
        self._fleet = fleet
        self._clock = clock
        self._by_itself = by_itself
        self._gate = gate
        self._begin = begin
        self._dispatch = dispatch
        self._sending: set[asyncio.Task[None]] = set()
        self._at_it = False

    def arrived(self, keys: Iterable[RequestKey]) -> None:
        """These requests are new or have changed: what the policies decide of them goes out at once."""
        self.automatic.arrived(keys, self._clock())
        self.decide()

    def decide(self) -> None:
        """Begin and send what is due and can go out now."""
        if self._at_it or not self._by_itself:
            return  # beginning a decision changes its request, which is how we came back here
        self._at_it = True
        try:
            for decided in list(self.automatic.due(self._clock())):
                gated = self._gate(decided.intent)
                if not isinstance(gated, Gated) or gated.request is None:
                    continue
                if gated.confirm:
                    self.automatic.begun(gated.request)  # a human has to agree to that
                    continue
                trail = self._begin(decided.intent, decided.audited)
                if trail.id in self._fleet.trails:
                    self.automatic.begun(gated.request)
                    self._send(trail)
        finally:
            self._at_it = False

    def hold(self, gated: Gated) -> Gated | Refusal:
        """What the policies make of a command that may go out: nobody approves what one denies, and a second key is
        among what has to be agreed to."""
        if gated.request is None or (gated.option is not None and gated.option.kind is OptionKind.DENY):
            return gated
        if denied := self.automatic.denied(gated.request):
            return Refusal(OutcomeKind.INVALID, str(denied))
        why = self.automatic.second_key(gated.request)
        return gated._replace(confirm=(*gated.confirm, str(why))) if why else gated

    def agreed(self, gated: Gated) -> dict[str, object]:
        """What the audit says of the second key that was given."""
        ruling = self.automatic.on(gated.request) if gated.request is not None else None
        asked = ruling is not None and str(self.automatic.second_key(gated.request)) in gated.confirm
        return {"second_key": ruling.policy.name} if asked and ruling is not None and ruling.policy is not None else {}

    async def close(self) -> None:
        await asyncio.gather(*self._sending, return_exceptions=True)

    def _send(self, trail: Trail) -> None:
        async def send() -> None:
            await self._dispatch(trail)
            if trail.outcome is OutcomeKind.UNDELIVERED and trail.request is not None:
                self.automatic.undelivered(trail.request)

        task = asyncio.get_running_loop().create_task(send(), name=f"policy decision {trail.id}")
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)


def of_request(fleet: Fleet, gated: Gated, now: int) -> dict[str, object]:
    """What the audit says of the request that a command decides: how long it waited, and how risky it was."""
    request = fleet.requests.get(gated.request) if gated.request is not None else None
    if request is None or request.fact is None:
        return {}
    asked = fleet.asked_local(request)
    session = fleet.sessions.get(request.key.owner)
    found = request_risks(request.fact, session.cwd if session is not None else None)
    rules = sorted({risk.rule for risks in found for risk in risks})
    return {"waited_ms": max(0, now - asked) if asked else None, "risks": rules or None}
