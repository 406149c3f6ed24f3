"""Who else is at a request, in words: advice to the operator, never a lock."""

from __future__ import annotations

from typing import Final

from console.fleet.state import Request
from console.fleet.store import Store
from watchfloor.text import NOTHING, Clean, cut

_NAME: Final = 40


def ours(store: Store, request: Request) -> bool:
    """Has this operator claimed it, here or on another console of theirs?"""
    source = store.sources.get(request.key.source)
    return bool(request.claimed_by) and source is not None and request.claimed_by == source.principal


def taken_by(store: Store, request: Request) -> Clean:
    """The other operator who has claimed it; empty: none has."""
    return NOTHING if request.claimed_by is None or ours(store, request) else request.claimed_by


def presence_words(store: Store, request: Request) -> Clean:
    """Who looks at it besides this operator, and who has claimed it; empty: nobody, or it has ended."""
    if not request.open:
        return NOTHING
    said: list[str] = []
    if request.looking:
        verb = "looks" if len(request.looking) == 1 else "look"
        said.append(f"{', '.join(cut(name, _NAME) for name in request.looking)} {verb} at this card")
    if ours(store, request):
        said.append("you have claimed it")
    elif request.claimed_by:
        said.append(f"{cut(request.claimed_by, _NAME)} has claimed it")
    return Clean(", ".join(said))
