"""The trail of a command: requested, sent, acknowledged, and whether its effect was seen on the session.

An acknowledgement says that the source took the command. Only what the session shows afterwards says that
it happened; the rules for that are in `evidence`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from console.fleet import evidence
from console.fleet.evidence import Scene
from console.fleet.facts import EventFact, Intent, OutcomeFact, RequestKey, SessionKey
from console.fleet.state import Baseline, Session, Trail
from watchfloor.text import NOTHING, Clean
from watchfloor.words import (
    EFFECT_TIMEOUT_S,
    OVERLAY_OF,
    RESEED_TIMEOUT_S,
    EffectState,
    OptionKind,
    OutcomeKind,
    Overlay,
    Primitive,
)

STOP_MARGIN_S: Final = 5.0
GRACE_MOST_S: Final = 86_400.0
"""The longest time that a session may be given to stop."""
GIVE_UP_MS: Final = 600_000
"""How long an overdue effect is still looked for."""

EFFECT_EXPECTED: Final = frozenset({OutcomeKind.APPLIED, OutcomeKind.UNKNOWN})
NOTHING_TO_DO: Final = Clean("nothing to do, it was so already")


def begin(intent: Intent, session: Session, sessions: Iterable[SessionKey], now: int, *, instance: str = "") -> Trail:
    """The trail of a command that is about to leave; it remembers what its target shows now.

    `instance`: the run of the host that it is sent to.
    """
    return Trail(
        id=intent.id,
        intent=intent,
        target=session.key,
        request=RequestKey(*session.key, intent.request) if intent.request is not None else None,
        baseline=Baseline(
            lifecycle=session.lifecycle,
            attempt=session.attempt,
            turn=session.turn,
            head=max(session.track.head, session.track.held.high),
            sessions=frozenset(sessions) if intent.primitive is Primitive.FORK else frozenset(),
            instance=instance,
        ),
        requested_at=now,
        option_kind=_option_kind(intent, session),
    )


def _option_kind(intent: Intent, session: Session) -> OptionKind | None:
    if intent.primitive not in (Primitive.APPROVE, Primitive.ANSWER):
        return None
    request = session.requests.get(intent.request or "")
    options = request.fact.options if request is not None and request.fact is not None else ()
    return next((option.kind for option in options if option.id == intent.option), None)


def acknowledge(trail: Trail, fact: OutcomeFact, now: int) -> bool:
    """The source has answered; False where that changes nothing (an answer that came twice)."""
    if not _settle(trail, fact.outcome, fact.reason or NOTHING, now):
        return False
    trail.fact = fact
    if trail.outcome is OutcomeKind.APPLIED and fact.info.get("noop"):
        _conclude(trail, EffectState.SEEN, NOTHING_TO_DO, now)
    elif trail.primitive is Primitive.STOP and trail.due_at is not None:
        grace_s = fact.info.get("grace_s")
        # Outside what anybody waits for, and where it is no number at all, the usual time holds.
        if isinstance(grace_s, int | float) and 0 <= grace_s <= GRACE_MOST_S:
            trail.due_at = now + int(1000 * (grace_s + STOP_MARGIN_S))
    return True


def settle(trail: Trail, outcome: OutcomeKind, reason: Clean, now: int) -> bool:
    """The console itself knows what became of the command; False where the source has said already."""
    return _settle(trail, outcome, reason, now)


def unanswered_s(trail: Trail, heard_since: int, now: int) -> float | None:
    """The seconds within which a word should have come back, once they are over; None before, and once one has come.

    `heard_since`: local time since which its source is heard without a break.
    """
    left = trail.requested_at if trail.sent_at is None else trail.sent_at
    wait_s = _timeout_s(trail.primitive)
    late = trail.outcome is None and now >= max(left, heard_since) + int(1000 * wait_s)
    return wait_s if late else None


def observe(trail: Trail, event: EventFact) -> None:
    """Note an event of the target. It counts even before the acknowledgement, which it may overtake."""
    if event.seq is None or event.seq > trail.baseline.head:
        evidence.note(trail, event)


def judge(trail: Trail, scene: Scene, now: int) -> bool:
    """Look whether the effect has shown; False where nothing changed."""
    if trail.outcome not in EFFECT_EXPECTED or not trail.active:
        return False
    found = evidence.weigh(trail, scene)
    if found is not None:
        _conclude(trail, found.state, found.text, now)
        return True
    if evidence.blind(scene):
        _conclude(trail, EffectState.UNOBSERVABLE, Clean("its source shows no effects"), now)
        return True
    due = trail.due_at
    if due is None or now < due:
        return False
    if trail.effect is EffectState.OVERDUE:
        trail.closed = now >= due + GIVE_UP_MS
        return trail.closed
    waits = evidence.held_back(trail, scene)
    if waits is not None:
        changed = trail.effect_text != waits
        trail.effect_text = waits
        return changed
    if evidence.dim(scene):
        _conclude(trail, EffectState.UNOBSERVABLE, Clean("its source shows only some effects"), now)
    else:
        trail.effect, trail.effect_at, trail.effect_text = EffectState.OVERDUE, now, Clean("not seen yet")
    return True


def call_off(trail: Trail, later: Trail, now: int) -> bool:
    """A pause that is still on its way does not outlive a resume of ours that came behind it and had its effect; False
    where that changes nothing."""
    resumed = later.primitive is Primitive.RESUME and later.effect is EffectState.SEEN
    if not resumed or later.effect_text == NOTHING_TO_DO or trail.primitive is not Primitive.PAUSE:
        return False
    if trail.outcome is not OutcomeKind.APPLIED or not trail.active or trail.requested_at > later.requested_at:
        return False
    _conclude(trail, EffectState.CONTRARY, Clean(evidence.CALLED_OFF), now)
    return True


def clock_set(trail: Trail, by_ms: int) -> None:
    """Our clock was set by so much: nobody waits longer or shorter for it."""
    trail.requested_at += by_ms
    if trail.sent_at is not None:
        trail.sent_at += by_ms
    if trail.acked_at is not None:
        trail.acked_at += by_ms
    if trail.due_at is not None:
        trail.due_at += by_ms


def give_up(trail: Trail, now: int) -> None:
    """Nothing can be made of what the session shows."""
    _conclude(trail, EffectState.UNOBSERVABLE, Clean("what the session shows cannot be read"), now)


def overlay(session: Session, trails: Iterable[Trail]) -> tuple[Overlay, Clean] | None:
    """The change that is on its way and by whom: from our own commands, else from what the source says."""
    for trail in trails:
        shown = OVERLAY_OF.get(trail.primitive)
        if shown is not None and trail.effect in (None, EffectState.PENDING) and trail.active:
            return shown, Clean("")
    if session.pending is not None:
        return session.pending.overlay, session.pending.by
    return None


def _settle(trail: Trail, outcome: OutcomeKind, reason: Clean, now: int) -> bool:
    if trail.outcome is not None and trail.outcome is not OutcomeKind.UNKNOWN:
        return False
    if trail.outcome is outcome:
        return False
    trail.outcome, trail.reason, trail.acked_at = outcome, reason, now
    if outcome in EFFECT_EXPECTED:
        if trail.effect is None:
            trail.effect = EffectState.PENDING
        trail.due_at = now + int(1000 * _timeout_s(trail.primitive))
    elif trail.effect is not None:
        # It was unknown before, so an effect was looked for; now it is certain that none will come.
        trail.effect = None
    return True


def _timeout_s(primitive: Primitive) -> float:
    match primitive:
        case Primitive.RESEED:
            return RESEED_TIMEOUT_S
        case Primitive.STOP:
            return EFFECT_TIMEOUT_S + STOP_MARGIN_S
        case _:
            return EFFECT_TIMEOUT_S


def _conclude(trail: Trail, state: EffectState, text: Clean, now: int) -> None:
    trail.effect, trail.effect_at, trail.effect_text = state, now, text
    trail.closed = True
