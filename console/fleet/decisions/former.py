"""A decision of ours that was sent before: whether it keeps another from being taken, and what is known of it."""

from __future__ import annotations

from console.fleet.facts import RequestKey
from console.fleet.state import Trail
from console.fleet.store import Store
from watchfloor.text import since
from watchfloor.words import EffectState, OutcomeKind

_MAY_HAVE_COUNTED = (None, OutcomeKind.APPLIED, OutcomeKind.UNKNOWN)


def former(store: Store, key: RequestKey) -> Trail | None:
    """Our newest decision on the request, unless it is certain that it came to nothing."""
    for trail in reversed(store.trails.values()):
        if trail.request == key and trail.outcome in _MAY_HAVE_COUNTED:
            return trail
    return None


def standing(store: Store, key: RequestKey, now: int) -> Trail | None:
    """Our decision that keeps another from being taken: its word, or its effect, is still to come. None: there is none.

    Nothing comes any more from a host that was started anew since, nor once the time for it is over.
    """
    trail = former(store, key)
    if trail is None or _started_anew(store, trail):
        return None
    if trail.outcome is None:
        return trail
    waits = trail.outcome is OutcomeKind.APPLIED and (trail.due_at is None or now < trail.due_at)
    return trail if waits else None


def in_doubt(store: Store, key: RequestKey, now: int) -> Trail | None:
    """Our decision of which nobody can say whether it counted, on a request that can be decided once more."""
    return former(store, key) if standing(store, key, now) is None else None


def state_words(trail: Trail) -> str:
    """How far it has come, without times: "approve sent, no word yet". What counts time would disarm a card."""
    return _words(trail, "")


def ago_words(trail: Trail, now: int) -> str:
    """The same as of now: "approve sent 0:12 ago, no word yet"."""
    return _words(trail, sent_ago(trail, now))


def doubt_words(store: Store, trail: Trail, ago: str = "") -> str:
    """What is known of it, for whoever is about to decide once more. `ago`: when it was sent, such as " 0:12 ago"."""
    if trail.outcome is None or (trail.outcome is OutcomeKind.UNKNOWN and _started_anew(store, trail)):
        return f"{trail.told} was sent{ago}, and its host was started anew since: it may have been taken"
    if trail.outcome is OutcomeKind.UNKNOWN:
        return f"{trail.told} was sent{ago}, and no word came back: it may have been taken"
    seen = "was seen" if trail.effect is EffectState.SEEN else "was not seen"
    return f"{trail.told} was sent{ago} and taken, its effect {seen}, and the request is still open"


def sent_ago(trail: Trail, now: int) -> str:
    """When it was sent, for `doubt_words`."""
    at = trail.requested_at if trail.sent_at is None else trail.sent_at
    return f" {since(max(0, now - at))} ago"


def _words(trail: Trail, ago: str) -> str:
    sent = "on its way already" if trail.sent_at is None else f"sent{ago}"
    got = "taken, its effect is not seen yet" if trail.outcome is OutcomeKind.APPLIED else "no word yet"
    return f"{trail.told} {sent}, {got}"


def _started_anew(store: Store, trail: Trail) -> bool:
    before, instance = trail.baseline.instance, store.sources[trail.target.source].instance
    return bool(before and instance and before != instance)
