"""One request as a card: the exact action, what is doubtful about it, and what may be done."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from console.fleet.decisions.decide import TOO_LARGE, Moment, arming_ms, arming_words, ended
from console.fleet.decisions.former import ago_words, doubt_words, in_doubt, standing
from console.fleet.decisions.presence import presence_words
from console.fleet.facts import FieldFact, RequestFact, RequestKey, Seen
from console.fleet.gate import ARM_MS
from console.fleet.needs import open_requests, place_of
from console.fleet.state import Request, Session, Source
from console.fleet.store import Store
from console.fleet.views.card_action import CardAction, card_action
from console.fleet.views.card_options import CardOption, options_of, undecidable_here
from console.fleet.views.wording import Segment, Tone, clock_time, elapsed, name_by_key, name_of
from watchfloor.text import NOTHING, Clean, clean_line, numeral, since
from watchfloor.words import Continuity, RequestState

if TYPE_CHECKING:
    from console.fleet.decisions.risk.model import Risk

MASK: Final = "*"


class CardField(NamedTuple):
    """One thing that a question asks for, and what was entered so far."""

    label: Clean
    kind: Clean
    choices: tuple[Clean, ...]
    value: Clean


class Card(NamedTuple):
    """One request, ready to be drawn."""

    key: RequestKey
    digest: str
    digest_short: Clean
    title: tuple[Clean, ...]
    actions: tuple[CardAction, ...]
    fields: tuple[CardField, ...]
    unknown: tuple[Clean, ...]
    strange: Clean
    description: tuple[Clean, ...]
    flags: tuple[Segment, ...]
    options: tuple[CardOption, ...]
    open: bool
    ending: Clean
    deadline: Clean
    armed: Clean
    told: bool
    """Has its text come?"""
    left_ms: int
    """Milliseconds until a key counts, while it is only that which is missing."""
    presence: Clean
    """Who else is at it. It changes as others come and go, and is no part of what is decided."""
    masked: int = 0
    """How many secrets in it are not shown."""


def card(
    store: Store,
    key: RequestKey,
    now: int,
    *,
    keys: Mapping[str, str],
    seen: Seen | None = None,
    steady: int | None = None,
    entered: Mapping[str, str] | None = None,
    read_only: bool = False,
    arm_ms: int = ARM_MS,
    tz: tzinfo | None = None,
    revealed: bool = False,
    ruling: Clean = NOTHING,
    place: tuple[int, int] | None = None,
) -> Card | None:
    """The card of a request at the local time `now`; None for one that is not known.

    `keys` names the key of each of `approve`, `options`, `deny`, `deny_reason`, `answer`. `seen` is what the operator
    has had before them, by the clock of which `steady` is the time (`now` where that is the same), `entered` what they
    have entered so far by the name of the field. `revealed`: with the secrets that are masked otherwise. `ruling`: what
    the operator's policies say. `place`: its n of m in a list that is sorted otherwise than by how long they wait.
    """
    request = store.requests.get(key)
    if request is None:
        return None
    session = store.sessions.get(key.owner) or Session(key.owner)
    source, fact = store.sources[key.source], request.fact
    over = ended(request, source, now) if not request.open else None
    never = undecidable_here(store, session, request, now) if request.open else None
    armed, left_ms = _armed(request, seen, Moment(now, now if steady is None else steady, arm_ms))
    if request.open and (first := standing(store, key, now)) is not None:
        armed, left_ms = Clean(ago_words(first, now)), 0
    if never is not None and armed:
        armed, left_ms = Clean("undecidable"), 0
    risks = _risks(session, fact)
    actions = (
        tuple(card_action(one, found, revealed=revealed) for one, found in zip(fact.actions, risks, strict=True))
        if fact
        else ()
    )
    masked = sum(action.masked for action in actions)
    return Card(
        key=key,
        digest=request.digest,
        digest_short=digest_short(request.digest),
        title=_title(store, session, source, request, now, tz, place),
        actions=actions,
        fields=tuple(_field(field, (entered or {}).get(field.name, "")) for field in fact.fields) if fact else (),
        unknown=_unknown(fact) if fact else (),
        strange=fact.strange if fact else NOTHING,
        description=tuple(Clean(line) for line in fact.about.split("\n")) if fact and fact.about else (),
        flags=(
            *_faults(fact, never, request.open),
            *_risk_flags(risks),
            *_masked_flags(masked, keys.get("reveal", "")),
            *_flags(store, session, source, request, now),
            *(((ruling, "attention"),) if ruling and request.open else ()),
        ),
        options=options_of(store, session, request, now, keys, read_only=read_only) if request.open else (),
        open=request.open,
        ending=clean_line(over.reason.removeprefix("already ")) if over is not None else NOTHING,
        deadline=_deadline(request, source, now, tz),
        armed=armed,
        told=fact is not None,
        left_ms=left_ms,
        presence=presence_words(store, request),
        masked=masked,
    )


def _risks(session: Session, fact: RequestFact | None) -> tuple[tuple[Risk, ...], ...]:
    """The risks of each action."""
    if fact is None or not fact.actions:
        return ()
    from console.fleet.decisions.risk.actions import request_risks  # reading commands is for later than the first frame

    return request_risks(fact, session.cwd)


def _risk_flags(risks: tuple[tuple[Risk, ...], ...]) -> tuple[Segment, ...]:
    """How risky it is and in which ways, and the reasons that point at no place of the text."""
    found = [one for each in risks for one in each]
    if not found:
        return ()
    level = max(one.level for one in found)
    kinds = dict.fromkeys(one.kind.value for one in sorted(found, key=lambda one: -one.level))
    tone: Tone = "failed" if level > 1 else "attention"
    whole = dict.fromkeys(one.reason for one in found if one.start == one.end)
    return ((Clean(f"{level.name.lower()}: {' · '.join(kinds)}"), tone), *((reason, tone) for reason in whole))


def _masked_flags(masked: int, key: str) -> tuple[Segment, ...]:
    if not masked:
        return ()
    said = "what looks like a secret is masked" if masked == 1 else f"{masked} that look like secrets are masked"
    return ((Clean(f"{said}; {key} shows it" if key else said), "attention"),)


def digest_short(digest: str) -> Clean:
    """The ends of a digest, enough to compare two by eye."""
    tail = digest.partition(":")[2]
    return Clean(f"{tail[:4]}..{tail[-2:]}") if tail.isalnum() and tail.isascii() else NOTHING


def _title(
    store: Store,
    session: Session,
    source: Source,
    request: Request,
    now: int,
    tz: tzinfo | None,
    listed: tuple[int, int] | None,
) -> tuple[Clean, ...]:
    at = place_of(store, request.key)
    if listed is None and at is not None:
        listed = at + 1, len(open_requests(store))
    place = f"{listed[0]} of {listed[1]}  " if listed is not None and request.open else ""
    whose = name_of(session)
    if session.parent is not None:
        above = name_by_key(store.sessions, request.key.owner._replace(session=session.parent))
        whose = Clean(f"{above} > {whose}")
    asked = f"asked {clock_time(store.asked_local(request), tz)}"
    waits = f", waiting {elapsed(now + source.ahead_ms, request.asked_at)}" if request.open else ""
    attempt = f"  attempt {numeral(session.attempt)}" if session.attempt is not None else ""
    return Clean(f"{place}{whose}"), Clean(f"{source.shown}  {asked}{waits}{attempt}")


def _field(field: FieldFact, entered: str) -> CardField:
    choices = [
        Clean(f"{choice.label}  {choice.note}") if choice.note is not None else choice.label for choice in field.choices
    ]
    if field.free_text and field.choices:
        choices.append(Clean("or in your own words"))
    value = Clean(MASK * len(entered)) if field.type == "secret" else clean_line(entered)
    return CardField(field.label, clean_line(field.type), tuple(choices), value)


def _unknown(fact: RequestFact) -> tuple[Clean, ...]:
    lines = [Clean(f"{name} = {value}") for name, value in fact.unknown]
    if (more := fact.unknown_count - len(fact.unknown)) > 0:
        lines.append(Clean(f"… {more:,} more not shown"))
    return tuple(lines)


def _faults(fact: RequestFact | None, never: str | None, is_open: bool) -> tuple[Segment, ...]:
    """Why it cannot be decided at all, or not be trusted."""
    if fact is None:
        return ((Clean(never), "attention"),) if never is not None else ()
    faults: list[Segment] = []
    if fact.unread:
        faults.append((Clean(f"this agent asks something that could not be read: {fact.fault}"), "failed"))
    elif never is not None:
        faults.append((Clean(never), "failed"))
    elif fact.fault is not None or not fact.sound:
        faults.append((Clean(f"not to be trusted: {fact.fault or 'its digest is not that of its text'}"), "failed"))
    if fact.too_large and is_open:
        faults.append((Clean(TOO_LARGE), "failed"))
    return tuple(faults)


def _flags(store: Store, session: Session, source: Source, request: Request, now: int) -> tuple[Segment, ...]:
    fact = request.fact
    if fact is None:
        return ()
    flags: list[Segment] = []
    flags += _hidden(fact)
    if fact.actions and (not_known := _not_known(fact)):
        flags.append((not_known, "failed"))
    if len(fact.actions) > 1 and not fact.per_action:
        flags.append((Clean(f"one answer decides all {len(fact.actions)} actions"), "attention"))
    if not request.open:
        if request.reworded:
            flags.append((Clean("it asked for this while it was open; its source shows another text"), "failed"))
        return tuple(flags)
    if not source.live:
        flags.append((Clean(f"contact with {source.shown} is {source.contact.value}: last known state"), "lost"))
    if (doubt := in_doubt(store, request.key, now)) is not None:
        flags.append((Clean(doubt_words(store, doubt)), "attention"))
    flags += _traits(store, session, request)
    word = session.track.state(now).word
    if word not in (Continuity.WHOLE, Continuity.ARRIVAL_ORDER):
        flags.append((Clean(f"continuity: {session.track.state(now)}"), "attention"))
    return tuple(flags)


def _not_known(fact: RequestFact) -> Clean:
    """That it is not known whole, where nothing else on the card says why."""
    if fact.too_large or not fact.sound or fact.fault is not None or any(action.hidden for action in fact.actions):
        return NOTHING
    from console.fleet.decisions.alike import unknown  # judging texts is for later than the first frame

    return unknown(fact)


def _hidden(fact: RequestFact) -> list[Segment]:
    hidden = sum(action.hidden for action in fact.actions)
    if not hidden:
        return []
    noun = "character was" if hidden == 1 else "characters were"
    return [(Clean(f"{hidden} invisible or control {noun} made visible"), "attention")]


def _traits(store: Store, session: Session, request: Request) -> list[Segment]:
    profile = store.profile(session)
    traits = profile.traits if profile is not None else {}
    flags: list[Segment] = []
    others = len(session.open_requests()) - 1
    if traits.get("approval_target") == "all_pending" and others > 0:
        flags.append((Clean(f"one decision settles this and {others} more at once"), "attention"))
    if request.state is RequestState.UNCONFIRMED or traits.get("requests", "listed") != "listed":
        flags.append((Clean("unconfirmed: its source does not list what is open"), "attention"))
    return flags


def _deadline(request: Request, source: Source, now: int, tz: tzinfo | None) -> Clean:
    if request.deadline is None or not request.open:
        return NOTHING
    at = request.deadline - source.ahead_ms
    how = request.fact.at_deadline if request.fact is not None else None
    left = f"in {since(at - now)}" if at > now else "due"
    return Clean(f"at {clock_time(at, tz)} ({left}): {how or 'it ends by itself'}")


def _armed(request: Request, seen: Seen | None, moment: Moment) -> tuple[Clean, int]:
    """Whether a key counts, and the milliseconds until it does where only they are missing."""
    if not request.open or request.fact is None or seen is None or seen.digest != request.digest:
        return NOTHING, 0
    if not seen.whole:
        return Clean("not before you have seen the end"), 0
    left = arming_ms(request, seen, moment)
    return Clean(arming_words(left) if left else "armed"), left
