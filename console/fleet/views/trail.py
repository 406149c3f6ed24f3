"""The trail of a command in words."""

from __future__ import annotations

from datetime import tzinfo

from console.fleet.state import Trail
from console.fleet.views.wording import Segment, Tone, clock_time
from watchfloor.text import Clean
from watchfloor.words import EffectState, OutcomeKind

_EFFECT: dict[EffectState, tuple[str, Tone]] = {
    EffectState.PENDING: ("effect not seen yet", "plain"),
    EffectState.SEEN: ("effect seen", "running"),
    EffectState.OVERDUE: ("effect overdue", "attention"),
    EffectState.CONTRARY: ("contrary", "failed"),
    EffectState.UNOBSERVABLE: ("effect unobservable", "quiet"),
}


def trail_segment(trail: Trail, tz: tzinfo | None = None) -> Segment:
    """How far a command has come, such as "pause: sent 14:05:22, acknowledged 14:05:22, effect seen: paused"."""
    steps = []
    if trail.sent_at is not None:
        steps.append(f"sent {clock_time(trail.sent_at, tz)}")
    elif trail.outcome is None:
        steps.append(f"requested {clock_time(trail.requested_at, tz)}")
    tone: Tone = "plain"
    match trail.outcome:
        case None:
            if trail.sent_at is not None:
                steps.append("no word yet")
        case OutcomeKind.APPLIED:
            steps.append(f"acknowledged {clock_time(trail.acked_at or trail.requested_at, tz)}")
        case OutcomeKind.UNKNOWN:
            steps.append("no word came back")
            tone = "attention"
        case outcome:
            words = outcome.value.replace("_", " ")
            steps.append(f"{words}: {trail.reason}" if trail.reason else words)
            tone = "failed"
    if trail.effect is not None:
        word, tone = _EFFECT[trail.effect]
        steps.append(f"{word}: {trail.effect_text}" if trail.effect_text else word)
    return Clean(f"{trail.told}: {', '.join(steps)}"), tone


_SHORT: dict[EffectState, str] = {
    EffectState.PENDING: "under way",
    EffectState.SEEN: "effect seen",
    EffectState.OVERDUE: "overdue",
    EffectState.CONTRARY: "contrary",
    EffectState.UNOBSERVABLE: "unobservable",
}


def trail_brief(trail: Trail) -> Segment:
    """What has become of a command, such as "pause: effect seen"; the reason as well where it came to nothing."""
    _, tone = trail_segment(trail)
    if trail.outcome is OutcomeKind.UNKNOWN and trail.effect is EffectState.PENDING:
        word, why = "no word came back", ""
    elif trail.effect is not None:
        word = _SHORT[trail.effect]
        why = trail.effect_text if trail.effect is EffectState.CONTRARY else ""
    elif trail.outcome is None:
        word, why = "no word yet", ""
    else:
        word, why = trail.outcome.value.replace("_", " "), trail.reason
    return Clean(f"{trail.told}: {word}: {why}" if why else f"{trail.told}: {word}"), tone
