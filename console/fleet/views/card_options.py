"""What may be done about a request: the console's own words first, the source's words quoted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from console.fleet.decisions.decide import TOO_LARGE, option_deny, option_once, undecidable
from console.fleet.decisions.former import standing, state_words
from console.fleet.decisions.reach import REACH, lasts
from console.fleet.facts import OptionFact, RequestFact
from console.fleet.gate import Greyed, Hidden, can, unoffered
from console.fleet.state import Request, Session
from console.fleet.store import Store
from console.fleet.views.wording import Tone
from watchfloor.text import Clean, cut
from watchfloor.words import OptionKind, Primitive, RequestKind, Scope, Then

THEN: Mapping[Then, str] = {
    Then.CONTINUES: "the turn goes on",
    Then.ENDS_TURN: "the turn ends",
    Then.ENDS_ATTEMPT: "the attempt ends",
    Then.WAITS_FOR_RESUME: "it then waits to be resumed",
}


_FEW = 2
"""Options that stand on the card by their words, besides those with a key of their own."""
_DOES: Mapping[OptionKind, str] = {
    OptionKind.ALLOW: "allow",
    OptionKind.DENY: "deny",
    OptionKind.EDIT: "edit",
    OptionKind.ANSWER: "answer",
}
_PLAIN_ALLOWS = frozenset({"allow", "allow once", "approve", "approve once", "yes"})
_PLAIN_DENIES = frozenset({"deny", "no", "reject", "decline"})
"""Labels that say no more than our own words; whoever calls an option otherwise than what it does is quoted."""
_MATCHED = 90
"""Characters of what a grant matches that stand on the card."""


class CardOption(NamedTuple):
    """One way to decide, with the key that does it; `note` says what follows, or why it cannot be chosen."""

    key: Clean
    label: Clean
    note: Clean
    tone: Tone
    enabled: bool


def options_of(
    store: Store, session: Session, request: Request, now: int, keys: Mapping[str, str], *, read_only: bool
) -> tuple[CardOption, ...]:
    """The ways to decide an open request, each with its key."""
    fact = request.fact
    if fact is None or fact.unread:
        return ()
    blocked = undecidable_here(store, session, request, now) or _greyed(store, session, request, now, read_only)
    if blocked is None and (first := standing(store, request.key, now)) is not None:
        blocked = state_words(first)
    make = _Maker(keys, blocked)
    if request.kind is RequestKind.APPROVAL:
        return _approval(fact, make)
    return _question(fact, make)


def undecidable_here(store: Store, session: Session, request: Request, now: int) -> str | None:
    """Why no key decides an open request, neither now nor later; None where one does, or may once something is over."""
    if (never := undecidable(session, request.fact)) is not None:
        return never.reason
    primitive = _primitive(request)
    if isinstance(can(store, session.key, primitive, now), Hidden):
        return f"undecidable: {unoffered(store.profile(session), primitive)}"
    return None


def _greyed(store: Store, session: Session, request: Request, now: int, read_only: bool) -> str | None:
    answer = can(store, session.key, _primitive(request), now, read_only=read_only)
    return answer.reason if isinstance(answer, Greyed) else None


def _primitive(request: Request) -> Primitive:
    return Primitive.APPROVE if request.kind is RequestKind.APPROVAL else Primitive.ANSWER


class _Maker(NamedTuple):
    keys: Mapping[str, str]
    blocked: str | None

    def __call__(self, action: str, label: str, note: str, tone: Tone = "plain", *, enabled: bool = True) -> CardOption:
        if enabled and self.blocked is not None:
            note, enabled = self.blocked, False
        return CardOption(Clean(self.keys.get(action, "")), Clean(label), Clean(note), tone, enabled)


def _approval(fact: RequestFact, make: _Maker) -> tuple[CardOption, ...]:
    options: list[CardOption] = []
    once, deny = option_once(fact), option_deny(fact)
    if fact.too_large and any(o.kind is not OptionKind.DENY for o in fact.options):
        options.append(make("approve", "Approve", TOO_LARGE, enabled=False))
    elif once is not None:
        options.append(make("approve", "Approve once", f"this, now; {THEN[once.then]}{_called(once, fact)}"))
    elif any(o.kind is OptionKind.ALLOW for o in fact.options):
        options.append(make("approve", "Approve once", "it offers no option for just this once", enabled=False))
    rest = [o for o in fact.options if o is not once and o is not deny]
    if fact.too_large:
        rest = [o for o in rest if o.kind is OptionKind.DENY]
    if rest:
        options.append(make("options", "More", _rest(rest, fact)))
    if deny is not None:
        options.append(make("deny", "Deny", f"{_denied(deny)}{_called(deny, fact)}"))
        options.append(make("deny_reason", "Deny with a reason", "the agent is told why"))
    else:
        options.append(make("deny", "Deny", "it offers no option to deny", enabled=False))
    return tuple(options)


def _denied(option: OptionFact) -> str:
    return "the turn goes on without it" if option.then is Then.CONTINUES else THEN[option.then]


def _called(option: OptionFact, fact: RequestFact) -> str:
    """The source's own words for an option, where they may say more than ours."""
    plain = _PLAIN_DENIES if option.kind is OptionKind.DENY else _PLAIN_ALLOWS
    quoted = "" if option.label.casefold() in plain else f'; the source calls it "{option.label}"'
    return f"{quoted}; {option.note}" if option.note else quoted


def _rest(rest: Sequence[OptionFact], fact: RequestFact) -> str:
    """What else is offered: each by its words where they are few; else how many of each kind, and how far they reach at
    most, for a card is there for what is decided. All of each stands where it is taken."""
    if len(rest) <= _FEW:
        return "; ".join(_named(o, fact) for o in rest)
    kinds = Counter(o.kind for o in rest)
    said = [f"{count} that {_DOES[kind]}" for kind in OptionKind if (count := kinds[kind])]
    widest = max(rest, key=lambda o: (o.persists, list(Scope).index(o.scope)))
    reach = f"; at most {REACH[widest.scope]}{', for good' if widest.persists else ''}" if lasts(widest) else ""
    return f"{len(rest)} options: {', '.join(said)}{reach}; each is listed with what it grants"


def _named(option: OptionFact, fact: RequestFact) -> str:
    reach = f" for this {option.scope.value}" if option.scope.value not in ("once", "global") else ""
    lasting = ", for good" if option.persists else ""
    return f'{option.kind.value}{reach}{lasting}: "{option.label}"{_matched(option, fact)}'


def _matched(option: OptionFact, fact: RequestFact) -> str:
    """What an option that lasts will match, as far as there is room; all of it stands where it is taken."""
    if option.kind is not OptionKind.ALLOW or not option.grants:
        return ""
    from console.fleet.decisions.grants import grants_of  # reading commands is for later than the first frame

    first, *rest = grants_of(fact, option)
    more = f" and {len(rest)} more" if rest else ""
    return f", {cut(first.words, _MATCHED)}{more}"


def _question(fact: RequestFact, make: _Maker) -> tuple[CardOption, ...]:
    offered = [o for o in fact.options if o.kind is OptionKind.ANSWER]
    note = "; ".join(f'"{o.label}"' for o in offered) if offered else "in words" if not fact.fields else ""
    options = [make("answer", "Answer", note)]
    deny = option_deny(fact)
    if deny is not None:
        options.append(make("deny", "Decline to answer", f"{_denied(deny)}{_called(deny, fact)}"))
    return tuple(options)
