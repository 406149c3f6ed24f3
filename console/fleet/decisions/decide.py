"""Decisions: a request is decided only as it was read, only once, and only by an option that it offers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from console.fleet.decisions.former import ago_words, doubt_words, in_doubt, sent_ago, standing
from console.fleet.decisions.reach import REACH, lasts
from console.fleet.facts import (
    FieldFact,
    Intent,
    OptionFact,
    ProfileFact,
    Refusal,
    RequestFact,
    Seen,
)
from console.fleet.state import Request, Session, Source, Trail
from console.fleet.store import Store
from watchfloor.text import clean_line, cut, numeral, since
from watchfloor.words import DECIDED, OptionKind, OutcomeKind, Primitive, RequestKind, RequestState, Scope

KINDS: Final[Mapping[Primitive, frozenset[OptionKind]]] = {
    Primitive.APPROVE: frozenset({OptionKind.ALLOW, OptionKind.DENY, OptionKind.EDIT}),
    # A question can only be declined by answering it so.
    Primitive.ANSWER: frozenset({OptionKind.ANSWER, OptionKind.DENY}),
}


_REACH: Final[Mapping[Scope, str]] = {
    Scope.WORKSPACE: "for this workspace",
    Scope.AGENT: "for this agent, in all its sessions",
    Scope.GLOBAL: "everywhere",
}
"""Scopes that reach beyond the session that asks."""


class Moment(NamedTuple):
    """When a key was pressed. `now`: local time; `steady`: the same by a clock that is never set, in which
    `Seen.since_local` is counted; `arm_ms`: how long what is decided has to have stood still."""

    now: int
    steady: int
    arm_ms: int


class Verdict(NamedTuple):
    """A decision that may be sent: on which request, by which digest and option."""

    request: Request
    digest: str
    option: OptionFact | None
    confirm: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


TOO_LARGE: Final = "too large to be shown whole: deny it, or decide where it can be read"
"""Why nothing but a denial is taken for an action of which this console keeps a part only."""


def option_once(fact: RequestFact) -> OptionFact | None:
    """The option that allows exactly this, once. None where the request offers only wider ones: never widen."""
    return next((o for o in fact.options if o.kind is OptionKind.ALLOW and _narrow(o, Scope.ONCE)), None)


def option_deny(fact: RequestFact) -> OptionFact | None:
    """The option that denies this once, or else for the turn; None where the request has only wider ones."""
    denying = [o for o in fact.options if o.kind is OptionKind.DENY]
    return next((o for scope in (Scope.ONCE, Scope.TURN) for o in denying if _narrow(o, scope)), None)


def _narrow(option: OptionFact, scope: Scope) -> bool:
    return option.scope is scope and not option.persists


def arming_ms(request: Request, seen: Seen, moment: Moment) -> int:
    """Milliseconds until a decision on what was seen counts; 0 where it does, and for whoever has no screen."""
    if not seen.since_local:
        return 0
    left = seen.since_local + moment.arm_ms - moment.steady
    age = moment.now - request.changed_local
    # A local clock that was set back since says nothing.
    return max(left, moment.arm_ms - age if age >= 0 else 0, 0)


def arming_words(left_ms: int) -> str:
    """How long a decision does not count yet, never as no time."""
    return f"armed in {max(left_ms, 100) / 1000:.1f} s"


def decide(
    store: Store, session: Session, profile: ProfileFact | None, source: Source, intent: Intent, moment: Moment
) -> Verdict | Refusal:
    """Let a decision through or say why not."""
    request = session.requests.get(intent.request or "")
    if request is None:
        named = clean_line(intent.request or "")
        return Refusal(OutcomeKind.STALE_TARGET, f"no request {named} is known" if named else "no request was named")
    if not request.open:
        return ended(request, source, moment.now)
    if (first := standing(store, request.key, moment.now)) is not None:
        # A second decision could only contradict the first.
        return Refusal(OutcomeKind.ALREADY_DECIDED, decided_words(first, moment.now))
    fact = request.fact
    if (never := undecidable(session, fact)) is not None:
        return never
    assert fact is not None  # noqa: S101 - for the type checker
    option = _option(fact, intent)
    if isinstance(option, Refusal):
        return option
    if fact.too_large and (option is None or option.kind is not OptionKind.DENY):
        return Refusal(OutcomeKind.INVALID, TOO_LARGE)
    if option is not None and (wide := _too_wide(fact, option)):
        return Refusal(OutcomeKind.INVALID, wide)
    refusal = (
        _not_as_read(request, option, intent, moment)
        or _lands_elsewhere(session, profile, request, intent)
        or (_unfit(fact, intent) if option is None else None)
    )
    if refusal is not None:
        return refusal
    doubt = in_doubt(store, request.key, moment.now)
    before = (doubt_words(store, doubt, sent_ago(doubt, moment.now)),) if doubt is not None else ()
    return Verdict(request, fact.digest, option, (*before, *_confirm(fact, option)), _notes(request, profile))


def _too_wide(fact: RequestFact, option: OptionFact) -> str:
    if not lasts(option):
        return ""
    from console.fleet.decisions.grants import too_wide  # reading commands is for later than the first frame

    return too_wide(fact, option)


def decided_words(first: Trail, now: int) -> str:
    """Why no second decision is taken."""
    whose = "your decision" if first.intent.policy is None else "a decision"
    return f"{whose} is on its way already: {ago_words(first, now)}"


def undecidable(session: Session, fact: RequestFact | None) -> Refusal | None:
    """Why an open request can be decided by no option at all, as it stands; None where there is no such reason."""
    if fact is None:
        return Refusal(OutcomeKind.INVALID, "undecidable: its text has not come yet")
    if fact.fault is not None:
        return Refusal(OutcomeKind.INVALID, f"undecidable: {fact.fault}")
    if not fact.sound:
        return Refusal(OutcomeKind.INVALID, "undecidable: its digest is not that of its text")
    asked_in, runs = fact.attempt, session.attempt
    if asked_in is not None and runs is not None and asked_in != runs:
        reason = f"undecidable: it belongs to attempt {numeral(asked_in)}, and {numeral(runs)} runs"
        return Refusal(OutcomeKind.STALE_TARGET, reason)
    return None


def ended(request: Request, source: Source, now: int) -> Refusal:
    """Why a request that is over cannot be decided: by whom, how and when, as far as its source tells."""
    decision = request.decision
    if request.state is RequestState.RESOLVED:
        if decision is None:
            return Refusal(OutcomeKind.ALREADY_DECIDED, "already decided; its source does not say by whom")
        by = f" by {decision.by}" if decision.by else ""
        how = " automatically" if decision.automatic else ""
        ago = since(now + source.ahead_ms - decision.at)
        return Refusal(OutcomeKind.ALREADY_DECIDED, f"already {DECIDED[decision.kind]}{by}{how} {ago} ago", decision)
    why = f": {request.ended_why}" if request.ended_why else ""
    word = "gone" if request.delisted else request.state.value
    return Refusal(OutcomeKind.STALE_TARGET, f"the request is {word}{why}", decision)


def _option(fact: RequestFact, intent: Intent) -> OptionFact | Refusal | None:
    wanted = RequestKind.APPROVAL if intent.primitive is Primitive.APPROVE else RequestKind.QUESTION
    if fact.kind is not wanted:
        return Refusal(OutcomeKind.INVALID, f"the request is {_a(fact.kind)}, not {_a(wanted)}")
    if intent.option is None:
        if intent.primitive is Primitive.APPROVE:
            return Refusal(OutcomeKind.INVALID, "an approval is decided by one of its options")
        return None
    option = next((o for o in fact.options if o.id == intent.option), None)
    if option is None:
        offered = ", ".join(clean_line(o.id) for o in fact.options) or "none"
        return Refusal(OutcomeKind.INVALID, f"{clean_line(intent.option)} is not an option; there are: {offered}")
    if option.kind not in KINDS[intent.primitive]:
        return Refusal(OutcomeKind.INVALID, f"{option.label} is not for {intent.primitive.value}")
    return option


def _a(kind: RequestKind) -> str:
    return "an approval" if kind is RequestKind.APPROVAL else "a question"


def _not_as_read(request: Request, option: OptionFact | None, intent: Intent, moment: Moment) -> Refusal | None:
    seen = intent.seen
    if seen is None:
        return Refusal(OutcomeKind.INVALID, "a decision names the digest of what was read")
    if seen.digest != request.digest:
        return Refusal(OutcomeKind.STALE_TARGET, "the request is not what was read: its digest differs")
    if option is not None and option.kind is OptionKind.DENY:
        return None  # denying what stands on the card is always safe
    if not seen.whole:
        return Refusal(OutcomeKind.REFUSED, "not before you have seen the end")
    if left := arming_ms(request, seen, moment):
        return Refusal(OutcomeKind.REFUSED, arming_words(left), early=True)
    return None


def _lands_elsewhere(session: Session, profile: ProfileFact | None, request: Request, intent: Intent) -> Refusal | None:
    """Where a source takes decisions without an id, what it would hit must be exactly what was shown."""
    target = profile.traits.get("approval_target", "by_id") if profile is not None else "by_id"
    if target == "by_id" or intent.primitive is not Primitive.APPROVE:
        return None
    pending = [other for other in session.open_requests() if other.kind is RequestKind.APPROVAL]
    if target == "oldest":
        if pending[0].key != request.key:
            return Refusal(OutcomeKind.INVALID, "its source decides the oldest request first, and that is another one")
        return None
    shown = intent.extra.get("shown") or {request.key.request: request.digest}
    if {other.key.request: other.digest for other in pending} != dict(shown):
        reason = f"one decision settles all {len(pending)} pending requests, and they are not what was shown"
        return Refusal(OutcomeKind.STALE_TARGET, reason)
    return None


def _confirm(fact: RequestFact, option: OptionFact | None) -> tuple[str, ...]:
    """What has to be agreed to first: whatever outlives the moment, and what cannot be read."""
    if option is None:
        return _strange(fact)
    lines = _standing(option)
    if option.kind is not OptionKind.DENY:
        if option.kind is OptionKind.ALLOW and lasts(option) and not lines and option_once(fact) is None:
            lines.append(f"{option.label}: {REACH[option.scope]}; it offers nothing narrower")
        if option.confirm and not lines:
            lines.append(option.note or option.label)
        if any(not action.complete for action in fact.actions):
            lines.append("its source gave only a part of the action: the rest cannot be read")
        lines.extend(_strange(fact))
    return tuple(lines)


def _strange(fact: RequestFact) -> tuple[str, ...]:
    if not fact.strange:
        return ()
    more = ", …" if fact.unknown_count > len(fact.unknown) else ""
    return (f"it has {fact.strange}: {', '.join(cut(member.name, 60) for member in fact.unknown)}{more}",)


def _standing(option: OptionFact) -> list[str]:
    """What an option does beyond the session that asks, or for longer than it lives; nothing where it does not."""
    reach = _REACH.get(option.scope)
    if reach is None and not option.persists:
        return []
    stays = "stays in force after this session" if option.persists else ""
    lines = [f"{option.label}: {', '.join(words for words in (reach, stays) if words)}"]
    lines.extend(f"grants: {clean_line(grant)}" for grant in option.grants)
    if option.note:
        lines.append(f"the source says: {option.note}")
    return lines


def _notes(request: Request, profile: ProfileFact | None) -> tuple[str, ...]:
    told = profile.traits.get("requests", "listed") if profile is not None else "listed"
    if request.state is RequestState.UNCONFIRMED or told != "listed":
        return ("unconfirmed: its source does not list what is open",)
    return ()


# --- answers -------------------------------------------------------------------------------


def _unfit(fact: RequestFact, intent: Intent) -> Refusal | None:
    """Why an answer in words or fields does not fit the question. Values are never repeated: they may be secret."""
    if intent.primitive is not Primitive.ANSWER:
        return None
    if (intent.text is None) == (intent.fields is None):
        return Refusal(OutcomeKind.INVALID, "an answer is one of: an option, a text, or fields")
    if intent.text is not None:
        if not _takes_text(fact):
            return Refusal(OutcomeKind.INVALID, "the question takes no free text")
        if intent.text.strip():
            return None
        if not fact.fields:
            return Refusal(OutcomeKind.INVALID, _REQUIRED)
        asked = next((field for field in fact.fields if field.required), None)
        return None if asked is None else Refusal(OutcomeKind.INVALID, f"{_named(asked)}: {_REQUIRED}")
    why = unfit_fields(fact.fields, intent.fields or {}, "the question")
    return Refusal(OutcomeKind.INVALID, why) if why is not None else None


def unfit_fields(fields: Sequence[FieldFact], given: Mapping[str, Any], whose: str) -> str | None:
    """Why the values do not fit the fields of `whose`; None where they do."""
    known = {field.name for field in fields}
    for name in given:
        if name not in known:
            return f"{whose} has no field {clean_line(name)}"
    for field in fields:
        if (why := _unfit_value(field, given)) is not None:
            return f"{_named(field)}: {why}"
    return None


_REQUIRED: Final = "an answer is required"


def _named(field: FieldFact) -> str:
    return field.label or clean_line(field.name)


def _empty(value: object, choices: Collection[str]) -> bool:
    """Does the value say nothing? A text of blanks does not, unless it is one of the choices, nor does no choice."""
    if isinstance(value, str):
        return not value.strip() and value not in choices
    return value is None or value in ([], ())


def _takes_text(fact: RequestFact) -> bool:
    if not fact.fields:
        return not fact.options
    takes = [field for field in fact.fields if field.free_text or field.type in ("text", "secret")]
    return bool(takes) and not any(field.required for field in fact.fields if field is not takes[0])


def _unfit_value(field: FieldFact, given: Mapping[str, Any]) -> str | None:
    value = given.get(field.name)
    values = {choice.value for choice in field.choices}
    if field.required and _empty(value, values):
        return _REQUIRED
    if value is None:
        return None
    match field.type:
        case "choice":
            fits = isinstance(value, str) and (field.free_text or value in values)
            return None if fits else "not one of its choices"
        case "many":
            fits = isinstance(value, list | tuple) and all(
                isinstance(v, str) and (field.free_text or v in values) for v in value
            )
            return None if fits else "not some of its choices"
        case "number":
            return None if isinstance(value, int | float) and not isinstance(value, bool) else "not a number"
        case "bool":
            return None if isinstance(value, bool) else "not yes or no"
        case _:
            return None if isinstance(value, str) else "not a text"
