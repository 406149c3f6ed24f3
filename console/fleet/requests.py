"""Requests over their life: listed, read, changed, ended. What has ended never opens again: ids are unique for ever."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping

from console.fleet.facts import DecisionFact, EventFact, RequestFact, RequestKey, RequestRefFact
from console.fleet.state import Request, Session
from watchfloor.text import NOTHING, Clean
from watchfloor.words import ANSWERABLE, RequestKind, RequestState

Requests = MutableMapping[RequestKey, Request]

NOT_LISTED = Clean("its source no longer lists it and does not say how it ended")
SESSION_GONE = Clean("its session is gone")


def read(requests: Requests, session: Session, fact: RequestFact, now: int) -> bool:
    """Take up a whole request; False where nothing changed."""
    session.asked_anew()
    request = session.requests.get(fact.key.request)
    if request is None:
        request = _new(requests, session, fact.key, fact.kind, fact.asked_at, fact.digest)
    elif request.fact == fact and request.state is fact.state and not request.delisted:
        return False
    ended = request.state not in ANSWERABLE
    if ended and fact.state in ANSWERABLE:
        if request.fact is not None:
            return False
        _describe(request, fact)  # it ended before its text came: the text is worth reading, the end stands
    elif ended:
        _keep_or_describe(request, fact)
        request.decision = fact.decision or request.decision
        request.state = fact.state
    else:
        if fact.state in ANSWERABLE:
            _describe(request, fact)
        else:
            _keep_or_describe(request, fact)
        request.state, request.decision, request.delisted = fact.state, fact.decision, False
        request.ended_why = NOTHING
        if fact.state not in ANSWERABLE:
            request.ended_at = fact.decision.at if fact.decision else None
    request.changed_local = now
    request.version += 1
    return True


def listed(requests: Requests, session: Session, refs: Iterable[RequestRefFact], now: int) -> set[RequestKey]:
    """Take up the open requests that a summary names; returns the keys of those that changed."""
    session.asked_anew()
    changed: set[RequestKey] = set()
    named = set()
    for ref in refs:
        named.add(ref.id)
        request = session.requests.get(ref.id)
        if request is None:
            key = RequestKey(*session.key, ref.id)
            request = _new(requests, session, key, ref.kind, ref.asked_at, ref.digest)
            request.deadline = ref.deadline
            request.changed_local = now
        elif request.delisted:
            request.delisted = False
            request.changed_local = now
        else:
            continue
        request.version += 1
        changed.add(request.key)
    for request in session.requests.values():
        if request.open and request.key.request not in named:
            _delist(request, NOT_LISTED, now)
            changed.add(request.key)
    return changed


def resolved(requests: Requests, session: Session, event: EventFact, now: int) -> RequestKey | None:
    """Take up a `request_resolved` event; returns the request's key where something changed."""
    session.asked_anew()
    data = event.data
    name = data["request"]
    request = session.requests.get(name)
    if request is None:
        key = RequestKey(*session.key, name)
        request = _new(requests, session, key, data.get("request_kind", RequestKind.APPROVAL), event.at, "")
    elif request.state not in ANSWERABLE:
        # The request itself was quicker; it does not say why.
        if request.ended_why or not data.get("why"):
            return None
        request.ended_why = data["why"]
        request.version += 1
        return request.key
    state = data.get("state", RequestState.RESOLVED)
    if state in ANSWERABLE:
        return None
    request.state, request.delisted = state, False
    request.ended_at = event.at
    request.ended_why = data.get("why") or NOTHING
    by = data.get("by")
    if by or data.get("option") is not None:
        request.decision = DecisionFact(
            option=data.get("option"),
            kind=data.get("option_kind"),
            by=by or NOTHING,
            at=event.at,
            note=data.get("note"),
            automatic=False,
        )
    request.changed_local = now
    request.version += 1
    return request.key


def end_all(session: Session, now: int) -> set[RequestKey]:
    """The session is gone, and what it waited for with it; returns the keys of what was open."""
    session.asked_anew()
    changed = set()
    for request in session.requests.values():
        if request.open:
            _delist(request, SESSION_GONE, now)
            changed.add(request.key)
    return changed


def _new(
    requests: Requests, session: Session, key: RequestKey, kind: RequestKind, asked_at: int, digest: str
) -> Request:
    request = Request(key, kind, asked_at, digest)
    session.requests[key.request] = requests[key] = request
    return request


def _keep_or_describe(request: Request, fact: RequestFact) -> None:
    """Take up a request that is over. What could be decided was the text that it was open with."""
    if request.fact is None or request.fact.digest == fact.digest:
        _describe(request, fact)
    else:
        request.reworded = True


def _describe(request: Request, fact: RequestFact) -> None:
    request.fact = fact
    request.kind, request.asked_at, request.deadline = fact.kind, fact.asked_at, fact.deadline
    request.digest = fact.digest


def _delist(request: Request, why: Clean, now: int) -> None:
    request.delisted = True
    request.ended_why = why
    request.changed_local = now
    request.version += 1
