"""The trail of an intervention that never left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.fleet.state import Baseline, Trail
from watchfloor.text import clean_line
from watchfloor.words import Lifecycle

if TYPE_CHECKING:
    from console.fleet.apply import Fleet
    from console.fleet.facts import Intent, Refusal


def refused(fleet: Fleet, intent: Intent, refusal: Refusal, now: int) -> Trail:
    """Has its outcome from the beginning, and is not among `fleet.trails`; its session may not even be known."""
    session = fleet.sessions.get(intent.target)
    baseline = Baseline(
        lifecycle=session.lifecycle if session else Lifecycle.UNKNOWN,
        attempt=session.attempt if session else None,
        turn=session.turn if session else None,
        head=session.head if session else 0,
    )
    return Trail(
        id=intent.id,
        intent=intent,
        target=intent.target,
        request=None,
        baseline=baseline,
        requested_at=now,
        acked_at=now,
        outcome=refusal.outcome,
        reason=clean_line(refusal.reason),
        closed=True,
    )
