"""The risks of many requests, each judged once: a list is sorted by them whenever anything in it changes."""

from __future__ import annotations

from console.fleet.decisions.risk.actions import level_of, request_risks
from console.fleet.decisions.risk.model import Risk, RiskLevel
from console.fleet.facts import RequestFact, RequestKey
from console.fleet.state import Request
from console.fleet.store import Store
from watchfloor.text import Clean

_KEEP = 4_096
"""Requests whose risks are kept."""


class Judged:
    """Risks by request, for as long as its text and the folder of its session stay what they were."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[RequestKey, tuple[RequestFact, Clean | None, tuple[Risk, ...]]] = {}

    def risks(self, request: Request) -> tuple[Risk, ...]:
        """All that was found in its actions; empty too where its text has not come yet."""
        fact = request.fact
        if fact is None:
            return ()
        session = self._store.sessions.get(request.key.owner)
        cwd = session.cwd if session is not None else None
        kept = self._kept.get(request.key)
        if kept is not None and kept[0] is fact and kept[1] == cwd:
            return kept[2]
        found = tuple(risk for risks in request_risks(fact, cwd) for risk in risks)
        self._kept[request.key] = (fact, cwd, found)
        if len(self._kept) > _KEEP:
            self._forget()
        return found

    def level(self, request: Request) -> RiskLevel:
        return level_of(self.risks(request))

    def _forget(self) -> None:
        for key in list(self._kept):
            kept = self._store.requests.get(key)
            if kept is None or not kept.open:
                del self._kept[key]
