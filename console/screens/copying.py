"""What is copied: always text that was cleaned, whole and without our own frame around it."""

from __future__ import annotations

from console.fleet.facts import RequestKey, SessionKey
from console.fleet.state import Request
from console.fleet.store import Store
from watchfloor.text import NOTHING, Clean


def copied(store: Store, selected: SessionKey | None, shown: RequestKey | None, line: Clean) -> Clean:
    """The exact action on the card; without a card what the selected session asks for; else the line given."""
    request = store.requests.get(shown) if shown is not None else None
    if request is None and selected is not None and (session := store.sessions.get(selected)) is not None:
        waiting = session.open_requests()
        request = waiting[0] if waiting else None
    return (_exact(request) if request is not None else NOTHING) or line


def _exact(request: Request) -> Clean:
    fact = request.fact
    if fact is None:
        return NOTHING
    texts = [action.text or action.tool for action in fact.actions] or [field.label for field in fact.fields]
    return Clean("\n".join(texts))
