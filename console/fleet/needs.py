"""Who needs a human: counted from open requests, own and descendants', never from what a lifecycle says."""

from __future__ import annotations

from dataclasses import dataclass

from console.fleet.facts import RequestKey, SessionKey
from console.fleet.state import Request
from console.fleet.store import Store


@dataclass(frozen=True, slots=True)
class Needs:
    """How many requests wait, and since when the oldest does (by the source's clock)."""

    count: int
    oldest: int


def needs_by_session(store: Store) -> dict[SessionKey, Needs]:
    """The sessions for which something waits, in themselves or below them."""
    found: dict[SessionKey, Needs] = {}
    for request in store.requests.values():
        if not request.open:
            continue
        for key in lineage(store, request.key.owner):
            before = found.get(key)
            if before is None:
                found[key] = Needs(1, request.asked_at)
            else:
                found[key] = Needs(before.count + 1, min(before.oldest, request.asked_at))
    return found


def lineage(store: Store, key: SessionKey) -> list[SessionKey]:
    """The session and everything above it, nearest first; ends where a source names its parents in a circle."""
    line: list[SessionKey] = []
    at: SessionKey | None = key
    while at is not None and at not in line:
        line.append(at)
        session = store.sessions.get(at)
        at = SessionKey(at.source, session.parent) if session is not None and session.parent is not None else None
    return line


def open_requests(store: Store) -> list[Request]:
    """Everything that waits, the longest first. Waits are compared by the console's clock, as sources' may differ."""
    waiting = [request for request in store.requests.values() if request.open]
    waiting.sort(key=lambda request: (asked_local(store, request), request.key))
    return waiting


def asked_local(store: Store, request: Request) -> int:
    """When the request was made, by the console's clock."""
    return request.asked_at - store.sources[request.key.source].ahead_ms


def next_request(store: Store, after: RequestKey | None = None) -> RequestKey | None:
    """The request to look at next: the one behind `after` in the order of waiting, else the first; None: none waits."""
    waiting = [request.key for request in open_requests(store)]
    if not waiting:
        return None
    if after in waiting:
        return waiting[(waiting.index(after) + 1) % len(waiting)]
    return waiting[0]
