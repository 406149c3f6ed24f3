"""Who else is at a request, in words: advice to the operator, never a lock."""

from __future__ import annotations

from console.fleet.state import Request
from console.fleet.store import Store
from console.fleet.wording import Segment
from watchfloor.text import NOTHING, Clean


def ours(store: Store, request: Request) -> bool:
    """Has this operator claimed it, here or on another console of theirs?"""
    source = store.sources.get(request.key.source)
    return bool(request.claimed_by) and source is not None and request.claimed_by == source.principal


def taken_by(store: Store, request: Request) -> Clean:
    """The other operator who has claimed it; empty: none has."""
    return NOTHING if request.claimed_by is None or ours(store, request) else request.claimed_by


def presence_segments(store: Store, request: Request) -> tuple[Segment, ...]:
    """Who looks at it besides this operator, and who has claimed it."""
    said: list[Segment] = []
    if request.looking:
        verb = "looks" if len(request.looking) == 1 else "look"
        said.append((Clean(f"{', '.join(request.looking)} {verb} at this card"), "quiet"))
    if ours(store, request):
        said.append((Clean("you have claimed it"), "quiet"))
    elif request.claimed_by:
        said.append((Clean(f"{request.claimed_by} has claimed it"), "attention"))
    return tuple(said)
