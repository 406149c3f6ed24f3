"""How a session was left, as it stands in the journal's file."""

from __future__ import annotations

import json

from console.fleet.absence import Mark


def marked(mark: Mark) -> str:
    """How a session was left, but for when, as it stands in the file."""
    return json.dumps([mark.epoch, mark.head, mark.lifecycle, mark.attempt, mark.tokens, sorted(mark.requests)])


def mark(at: int, body: str) -> Mark | None:
    """What `marked` has written; None where it is something else."""
    try:
        epoch, head, lifecycle, attempt, tokens, requests = json.loads(body)
        return Mark(at, str(epoch), int(head), str(lifecycle), attempt, int(tokens), frozenset(map(str, requests)))
    except (ValueError, TypeError):
        return None
