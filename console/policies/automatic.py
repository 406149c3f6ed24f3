"""Where policies meet what arrives: each request is looked at once, and what a policy decides becomes an intent.

The intent goes the way of every other: through the gate, bound to the digest of what was looked at, one decision
a request, into the audit, and only then to its source. What the gate does not let through yet is tried again for as
long as the request waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from console.fleet.decisions.former import former, standing
from console.fleet.facts import Intent, RequestKey, Seen
from console.fleet.state import Request
from console.fleet.store import Store
from console.fleet.views.wording import name_of
from console.policies.rules import Asker, Does, Policy, Ruling, meant, rule, told
from watchfloor.text import NOTHING, Clean, clean_line
from watchfloor.words import Primitive, RequestState


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision that a policy takes: the ruling, and the intent that goes to the gate."""

    ruling: Ruling
    intent: Intent

    @property
    def audited(self) -> dict[str, object]:
        """What the audit says of it besides what it says of every decision."""
        policy = self.ruling.policy
        named = sorted({risk.rule for risk in self.ruling.risks})
        return {"automatic": True, "policy": policy.name if policy is not None else None, "risks": named or None}


class Automatic:
    """The policies of one console at work. Without policies it never does anything."""

    def __init__(self, policies: tuple[Policy, ...], store: Store) -> None:
        self.policies: Final = policies
        self._store = store
        self._ruled: dict[RequestKey, tuple[str, Ruling]] = {}
        """The ruling on each request that waits, and the digest of the text that it is about."""
        self._due: dict[RequestKey, None] = {}

    def arrived(self, keys: Iterable[RequestKey], now: int) -> None:
        """Look at requests that are new or have changed, at the local time `now`."""
        if not self.policies:
            return
        for key in keys:
            request = self._store.requests.get(key)
            if request is None or not request.open:
                self._ruled.pop(key, None)
                self._due.pop(key, None)
            elif request.fact is not None and self._ruled.get(key, ("", None))[0] != request.digest:
                ruling = self._rule(request, now)
                self._ruled[key] = (request.digest, ruling)
                self._due.pop(key, None)
                if ruling.decides:
                    self._due[key] = None

    def due(self, now: int) -> Iterator[Decided]:
        """The decisions that have not been begun yet. They are looked at anew: a policy may have ended meanwhile, and a
        human may have decided. Each stays due until `begun` or until its request ends."""
        for key in list(self._due):
            request = self._store.requests.get(key)
            if request is None or not request.open or self._touched(request):
                del self._due[key]
                continue
            ruling = self._rule(request, now)
            self._ruled[key] = (request.digest, ruling)
            option = ruling.option
            if option is None or ruling.policy is None:
                del self._due[key]
                continue
            yield Decided(ruling, _intent(request, option.id, ruling))

    def begun(self, key: RequestKey) -> None:
        """The decision on this request was begun: it is taken once, whatever its source makes of it."""
        self._due.pop(key, None)

    def undelivered(self, key: RequestKey) -> None:
        """The decision that was begun never left: it is due once more, if the request still asks for the same."""
        ruling = self.on(key)
        if ruling is not None and ruling.decides:
            self._due[key] = None

    def on(self, key: RequestKey) -> Ruling | None:
        """The ruling on a request that waits, for its card; None: none of the policies matches."""
        request = self._store.requests.get(key)
        found = self._ruled.get(key)
        if request is None or not request.open or found is None or found[0] != request.digest:
            return None
        return found[1] if found[1].policy is not None else None

    def second_key(self, key: RequestKey | None) -> Clean:
        """Why a request takes a second key; empty: it takes none. What a policy denies, and leaves to a human since one
        had begun with it, takes one as well."""
        ruling = self.on(key) if key is not None else None
        if key is None or ruling is None or ruling.policy is None:
            return NOTHING
        if ruling.does is Does.SECOND_KEY:
            return meant(ruling)
        return meant(ruling) if ruling.does is Does.DENY and self._left(key) else NOTHING

    def denied(self, key: RequestKey | None) -> Clean:
        """Which policy denies a request, so that nobody approves it; empty: none does."""
        ruling = self.on(key) if key is not None else None
        if key is None or ruling is None or ruling.does is not Does.DENY or self._left(key):
            return NOTHING
        return meant(ruling)

    def says(self, key: RequestKey, now: int) -> Clean:
        """What the policies say of a request that waits, as of the local time `now`; empty: none of them matches."""
        ruling = self.on(key)
        if ruling is None or ruling.policy is None:
            return NOTHING
        if not ruling.decides or key in self._due or standing(self._store, key, now) is not None:
            return told(ruling)
        # It was left alone, or decided, and waits all the same: nothing is reported done that was not.
        return Clean(f"{meant(ruling)}, and that was left to a human")

    def _left(self, key: RequestKey) -> bool:
        return self._touched(self._store.requests[key])

    def _touched(self, request: Request) -> bool:
        """Has a human begun with it, or has it been decided here before?"""
        return bool(request.claimed_by) or former(self._store, request.key) is not None

    def _rule(self, request: Request, now: int) -> Ruling:
        fact, store = request.fact, self._store
        session = store.sessions.get(request.key.owner)
        if fact is None or session is None:
            return Ruling(None, None)
        source = store.sources[request.key.source]
        asker = Asker(request.key.source, str(name_of(session)), session.cwd, source.ahead_ms)
        ruling = rule(self.policies, fact, asker, now)
        if not ruling.decides:
            return ruling
        profile = store.profile(session)
        traits = profile.traits if profile is not None else {}
        if request.state is not RequestState.OPEN or traits.get("requests", "listed") != "listed":
            why = "its source does not list what is open"
        elif traits.get("approval_target", "by_id") != "by_id":
            why = "its source takes no decision by id"
        else:
            return ruling
        return Ruling(ruling.policy, None, why=Clean(why), risks=ruling.risks)


def _intent(request: Request, option: str, ruling: Ruling) -> Intent:
    assert ruling.policy is not None  # noqa: S101 - for the type checker
    return Intent(
        id=str(uuid4()),
        primitive=Primitive.APPROVE,
        target=request.key.owner,
        by=f"policy {ruling.policy.name}",
        request=request.key.request,
        option=option,
        note=f"automatically, by policy {ruling.policy.name}",
        policy=clean_line(ruling.policy.name),
        seen=Seen(request.digest, since_local=0, whole=True),
    )
