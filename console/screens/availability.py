"""Which actions work on what is selected, and why the others do not: what footer, help and keys are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from console.actions import BY_ID, Action, Needs
from console.fleet.decisions.decide import TOO_LARGE, option_deny, option_once, undecidable
from console.fleet.decisions.former import standing as decided_before
from console.fleet.decisions.former import state_words
from console.fleet.facts import OptionFact, ProfileFact, RequestFact, SessionKey
from console.fleet.gate import Allowed, Greyed, Hidden, can, unoffered
from console.fleet.reseeds import reseed_word
from console.fleet.state import Request, Session
from console.fleet.store import Store
from watchfloor.text import NOTHING, Clean
from watchfloor.words import Lifecycle, OptionKind, Primitive, RequestKind

NOTHING_MORE: Final = Clean("its source offers nothing of its own")

_OFFERS: Final[Mapping[OptionKind, Callable[[RequestFact], OptionFact | None]]] = {
    OptionKind.ALLOW: option_once,
    OptionKind.DENY: option_deny,
}

_BOTH: Final = frozenset(RequestKind)
_KINDS: Final[Mapping[str, frozenset[RequestKind]]] = {
    "approve": frozenset({RequestKind.APPROVAL}),
    "options": _BOTH,
    "deny": _BOTH,
    "deny_reason": _BOTH,
    "answer": frozenset({RequestKind.QUESTION}),
}
"""What kinds of request a key decides."""

_A: Final = {RequestKind.APPROVAL: "an approval, not a question", RequestKind.QUESTION: "a question: answer it"}

_NAMED: Final[Mapping[Primitive, tuple[str, ...]]] = {
    Primitive.RESEED: ("modes",),
    Primitive.BUDGET: ("tokens", "turns"),
    Primitive.ACT: ("acts",),
}
"""Options of which a session has to name one at least, or there is nothing to be done."""

_ONLY_WITH_REQUEST: Final = frozenset({"options", "deny", "deny_reason"})
"""Ways to decide; while nothing is open one key stands for them all."""


class Standing(NamedTuple):
    """How an action stands. `shown`: has it a place in the footer? `reason`: why it does not work, "" where it does."""

    shown: bool
    label: Clean
    reason: Clean = NOTHING

    @property
    def works(self) -> bool:
        return not self.reason


def standing(
    store: Store, action: Action, key: SessionKey | None, request: Request | None, now: int, *, read_only: bool
) -> Standing:
    """How an action stands for the selected session and its open request."""
    label = Clean(action.label)
    if action.primitive is None:
        return Standing(True, label)
    if request is not None and action.needs is Needs.REQUEST and request.kind not in _KINDS[action.id]:
        return Standing(False, label, Clean(f"this is {_A[request.kind]}"))
    if key is None:
        return Standing(False, label, Clean("no session is selected"))
    session = store.sessions.get(key)
    if session is None or session.placeholder:
        return Standing(False, label, Clean("its source has not told of this session yet"))
    profile = store.profile(session)
    if action.primitive is Primitive.RESEED:
        label = _reseed_label(profile, label)
    primitive = _primitive(action, request)
    verdict = can(store, key, primitive, now, read_only=read_only)
    if isinstance(verdict, Hidden):
        return Standing(False, label, unoffered(profile, primitive))
    if action.id == "deny_reason" and request is not None and request.kind is RequestKind.QUESTION:
        # The key works as the one without a reason, which has the place in the footer.
        stands = standing(store, BY_ID["deny"], key, request, now, read_only=read_only)
        return Standing(False, stands.label, stands.reason)
    if action.primitive is Primitive.STOP and session.lifecycle is Lifecycle.STOPPED:
        return Standing(True, label, Clean("stopped already"))
    if (missing := _detail_missing(action, profile)) is not None:
        return Standing(False, label, missing)
    match verdict:
        case Greyed(reason):
            return Standing(action.id not in _ONLY_WITH_REQUEST or request is not None, label, Clean(reason))
        case Allowed(own):
            label = own or label
    if action.needs is Needs.REQUEST and (lacking := _not_decidable(action, session, request)) is not None:
        return lacking
    first = decided_before(store, request.key, now) if request is not None else None
    if action.needs is Needs.REQUEST and first is not None:
        return Standing(True, label, Clean(state_words(first)))
    return Standing(True, label if action.detail is None else Clean(action.label))


def _reseed_label(profile: ProfileFact | None, label: Clean) -> Clean:
    """By what it does, where that is one thing only."""
    modes: Sequence[str] = profile.options.get(Primitive.RESEED, {}).get("modes", ()) if profile is not None else ()
    return Clean(reseed_word(modes[0])) if len(modes) == 1 else label


def _primitive(action: Action, request: Request | None) -> Primitive:
    """A question is declined, and its options are taken, by answering it."""
    assert action.primitive is not None  # noqa: S101 - for the type checker
    question = request is not None and request.kind is RequestKind.QUESTION
    if question and action.needs is Needs.REQUEST and action.option is not OptionKind.ALLOW:
        return Primitive.ANSWER
    return action.primitive


def _detail_missing(action: Action, profile: ProfileFact | None) -> Clean | None:
    """Why the harder form of a primitive is not offered; None where it is, or none is asked for."""
    if profile is None or action.primitive is None:
        return None
    offered = profile.options.get(action.primitive, {})
    if action.primitive in _NAMED and not any(offered.get(name) for name in _NAMED[action.primitive]):
        if action.primitive is Primitive.ACT:
            return NOTHING_MORE
        return Clean(f"this session offers {action.primitive.value} and names nothing of it")
    if action.detail is None or offered.get(action.detail):
        return None
    return Clean(f"this session offers {action.primitive.value} only in its gentle form")


def _not_decidable(action: Action, session: Session, request: Request | None) -> Standing | None:
    """Why the request in sight has no such key; None where it has."""
    label = Clean(action.label)
    fact = request.fact if request is not None else None
    if request is None:
        return Standing(action.id not in _ONLY_WITH_REQUEST, label, Clean("nothing waits here"))
    if (never := undecidable(session, fact)) is not None:
        return Standing(True, label, Clean(never.reason))
    assert fact is not None  # noqa: S101 - for the type checker
    if fact.too_large and action.option is OptionKind.ALLOW:
        return Standing(True, label, Clean(TOO_LARGE))
    if action.option is not None and _OFFERS[action.option](fact) is None:
        word = "approve it just this once" if action.option is OptionKind.ALLOW else "deny it"
        return Standing(False, label, Clean(f"this request offers no way to {word}"))
    if action.id == "options" and not _more(fact):
        return Standing(False, label, Clean("this request offers nothing else"))
    return None


def _more(fact: RequestFact) -> bool:
    """Does it offer anything that no key of its own stands for?"""
    own = [option_once(fact), option_deny(fact)]
    return any(option not in own for option in fact.options)
