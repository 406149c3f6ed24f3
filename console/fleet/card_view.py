"""One request as a card: the exact action, what is doubtful about it, and what may be done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache
from typing import Final

from console.fleet.card_options import CardOption, options_of, undecidable_here
from console.fleet.decide import TOO_LARGE, Moment, arming_ms, arming_words, ended
from console.fleet.facts import ActionFact, FieldFact, RequestFact, RequestKey, Seen
from console.fleet.former import ago_words, doubt_words, in_doubt, standing
from console.fleet.gate import ARM_MS
from console.fleet.needs import open_requests, place_of
from console.fleet.presence import presence_segments
from console.fleet.state import Request, Session, Source
from console.fleet.store import Store
from console.fleet.wording import Segment, clock_time, elapsed, name_by_key, name_of
from watchfloor.text import NOTHING, Clean, clean_line, numeral, since
from watchfloor.words import Continuity, RequestState

MASK: Final = "*"


@dataclass(frozen=True, slots=True)
class CardAction:
    """One action, word for word; `does` says in a word what comes."""

    does: Clean
    tool: Clean
    lines: tuple[Clean, ...]
    cwd: Clean
    size: Clean
    complete: bool


@dataclass(frozen=True, slots=True)
class CardField:
    """One thing that a question asks for, and what was entered so far."""

    label: Clean
    kind: Clean
    choices: tuple[Clean, ...]
    value: Clean


@dataclass(frozen=True, slots=True)
class Card:
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
) -> Card | None:
    """The card of a request at the local time `now`; None for one that is not known.

    `keys` names the key of each of `approve`, `options`, `deny`, `deny_reason`, `answer`. `seen` is what the operator
    has had before them, by the clock of which `steady` is the time (`now` where that is the same), `entered` what they
    have entered so far by the name of the field.
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
    return Card(
        key=key,
        digest=request.digest,
        digest_short=digest_short(request.digest),
        title=_title(store, session, source, request, now, tz),
        actions=tuple(_action(action) for action in fact.actions) if fact else (),
        fields=tuple(_field(field, (entered or {}).get(field.name, "")) for field in fact.fields) if fact else (),
        unknown=_unknown(fact) if fact else (),
        strange=fact.strange if fact else NOTHING,
        description=tuple(Clean(line) for line in fact.about.split("\n")) if fact and fact.about else (),
        flags=_flags(store, session, source, request, now, never),
        options=options_of(store, session, request, now, keys, read_only=read_only) if request.open else (),
        open=request.open,
        ending=clean_line(over.reason.removeprefix("already ")) if over is not None else NOTHING,
        deadline=_deadline(request, source, now, tz),
        armed=armed,
        told=fact is not None,
        left_ms=left_ms,
    )


def digest_short(digest: str) -> Clean:
    """The ends of a digest, enough to compare two by eye."""
    tail = digest.partition(":")[2]
    return Clean(f"{tail[:4]}..{tail[-2:]}") if tail.isalnum() and tail.isascii() else NOTHING


def _title(
    store: Store, session: Session, source: Source, request: Request, now: int, tz: tzinfo | None
) -> tuple[Clean, ...]:
    at = place_of(store, request.key)
    place = f"{at + 1} of {len(open_requests(store))}  " if at is not None else ""
    whose = name_of(session)
    if session.parent is not None:
        above = name_by_key(store.sessions, request.key.owner._replace(session=session.parent))
        whose = Clean(f"{above} > {whose}")
    asked = f"asked {clock_time(store.asked_local(request), tz)}"
    waits = f", waiting {elapsed(now + source.ahead_ms, request.asked_at)}" if request.open else ""
    attempt = f"  attempt {numeral(session.attempt)}" if session.attempt is not None else ""
    return Clean(f"{place}{whose}"), Clean(f"{source.shown}  {asked}{waits}{attempt}")


@lru_cache(maxsize=16)
def _action(action: ActionFact) -> CardAction:
    # A card is made at every key, and an action may have ten thousand lines.
    text = action.text + (f"\n{action.diff}" if action.diff else "")
    lines = tuple(Clean(line) for line in text.split("\n")) if text else ()
    size = f"{len(lines)} line{'s' if len(lines) != 1 else ''}, {len(text):,} chars" if lines else ""
    does = Clean("changes" if action.diff else "runs")
    return CardAction(does, action.tool, lines, action.cwd or NOTHING, Clean(size), action.complete)


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


def _flags(
    store: Store, session: Session, source: Source, request: Request, now: int, never: str | None
) -> tuple[Segment, ...]:
    flags: list[Segment] = []
    fact = request.fact
    if fact is None:
        return ((Clean(never), "attention"),) if never is not None else ()
    if fact.unread:
        flags.append((Clean(f"this agent asks something that could not be read: {fact.fault}"), "failed"))
    elif never is not None:
        flags.append((Clean(never), "failed"))
    elif fact.fault is not None or not fact.sound:
        flags.append((Clean(f"not to be trusted: {fact.fault or 'its digest is not that of its text'}"), "failed"))
    if fact.too_large and request.open:
        flags.append((Clean(TOO_LARGE), "failed"))
    flags += _hidden(fact)
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
    flags += presence_segments(store, request)
    return tuple(flags)


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
