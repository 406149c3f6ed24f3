"""Decisions on several requests: first a table of what would be done to each, then one decision for each that goes
along, by its own digest and option, through the gate, and what became of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from console.fleet.decisions.alike import NOT_TOGETHER, Planned, preflight, still
from console.fleet.facts import Intent, Refusal, RequestKey, Seen
from console.fleet.views.wording import clock_time, masked, name_by_key
from console.screens.flows.asking import Ask, Choice
from console.screens.flows.desk import Desk
from console.screens.flows.steering import intent
from watchfloor.text import NOTHING, Clean, clean_line, numeral
from watchfloor.words import EffectState, OptionKind, OutcomeKind, Primitive
from widgets.facts import FactRow
from widgets.tones import Segment, Tone

if TYPE_CHECKING:
    from console.fleet.state import Trail
    from console.fleet.store import Store

LONGEST: Final = 1_000
"""Characters of an action that can still be read as a line of a table."""
MOST: Final = 200
"""Requests of one table: more of them nobody reads."""
VERBS: Final[Mapping[OptionKind, str]] = MappingProxyType({OptionKind.ALLOW: "approve", OptionKind.DENY: "deny"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """One of several requests. `sent`: the id of its command; None: none left, `why` says why."""

    request: RequestKey
    name: Clean
    line: Clean
    sent: str | None
    why: Clean = NOTHING


class TogetherDesk(Desk, Protocol):
    """A screen that can send several decisions, and that shows what became of them."""

    @property
    def steady(self) -> int:
        """Milliseconds of a clock that is never set."""
        ...

    @property
    def read_only(self) -> bool: ...

    @property
    def undo(self) -> str:
        """The key that takes back what has not been sent yet, as it is shown; "" where none does."""
        ...

    def begin_all(self, commands: Sequence[Intent]) -> Sequence[Trail]:
        """Begin each, in the same order, and send what the gate lets through."""
        ...

    def show_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        """Show what becomes of these, for as long as the operator wants."""
        ...


def decide(desk: TogetherDesk, keys: Sequence[RequestKey], kind: OptionKind) -> None:
    """Ask whether these requests are to be decided so, with each of them named; the rest happens once that is given."""
    verb = VERBS[kind]
    planned = [_fits(desk, one, kind, at) for at, one in enumerate(_planned(desk, keys, kind))]
    going = [one for one in planned if one.goes]
    if not going:
        said = planned[0].why if planned else Clean("nothing is marked")
        desk.say(Clean(f"{verb}: none of {numeral(len(planned))} marked; {said}"), "attention")
        return
    asked_at = desk.steady

    def ended() -> Clean:
        for one in going:
            if why := still(desk.fleet, one, kind, desk.now, read_only=desk.read_only):
                return Clean(f"{one.name}: {why}; esc, then once more")
        return NOTHING

    of = f" of {numeral(len(planned))}" if len(going) < len(planned) else ""
    desk.ask(
        Ask(
            title=((Clean(f"{verb} {numeral(len(going))}{of} marked?"), "failed"),),
            about=(*_table(desk.fleet, going), *_left_out(planned)),
            choices=(Choice("yes", Clean("y"), Clean(f"yes, {verb} {_these(len(going))}"), tone="failed"),),
            then=lambda _: _send(desk, planned, kind, asked_at),
            ended=ended,
        )
    )


def _planned(desk: TogetherDesk, keys: Sequence[RequestKey], kind: OptionKind) -> tuple[Planned, ...]:
    return preflight(desk.fleet, keys, kind, desk.now, read_only=desk.read_only)


def _fits(desk: TogetherDesk, one: Planned, kind: OptionKind, at: int) -> Planned:
    """The same, left out where the table could not show it whole, or where it has to be agreed to by itself."""
    if not one.goes:
        return one
    why = ""
    if at >= MOST:
        why = f"more than {MOST} at once"
    elif kind is not OptionKind.DENY and sum(map(len, _texts(desk.fleet, one.key))) > LONGEST:
        why = f"too long for a line of a table: {NOT_TOGETHER}"
    else:
        gated = desk.gate(_command(desk, one, 0))
        if isinstance(gated, Refusal):
            why = gated.reason
        elif gated.confirm:
            why = f"{gated.confirm[0]}: {NOT_TOGETHER}"
    return Planned(one.key, one.name, one.line, one.digest, one.option, Clean(why)) if why else one


def _texts(store: Store, key: RequestKey) -> list[Clean]:
    fact = store.requests[key].fact
    return [text for action in fact.actions for text in (action.text, action.diff or NOTHING)] if fact else []


def _command(desk: TogetherDesk, one: Planned, since: int, **more: Any) -> Intent:
    """The decision on one of them, bound to the text that the table showed. `since`: when it was shown; 0: not yet."""
    session = desk.fleet.sessions[one.key.owner]
    assert one.option is not None  # noqa: S101 - for the type checker: it goes along
    seen = Seen(one.digest, since, whole=True)
    return intent(desk, session, Primitive.APPROVE, request=one.key.request, seen=seen, option=one.option.id, **more)


def _table(store: Store, going: Sequence[Planned]) -> list[Segment]:
    """What is asked, each text once and whole, and below it who asks for it."""
    told: list[Segment] = []
    by_text: dict[tuple[Clean, ...], list[Planned]] = {}
    for one in going:
        option = one.option.label if one.option is not None else NOTHING
        by_text.setdefault((*_asked(store, one.key), option), []).append(one)
    for (*asked, option), members in by_text.items():
        count = f"{numeral(len(members))} times  " if len(members) > 1 else ""
        told += [(Clean(f"{count if at == 0 else '  '}{line}"), "plain") for at, line in enumerate(asked)]
        told.append((Clean(f'  "{option}" for {", ".join(one.name for one in members)}'), "quiet"))
    return told


def _asked(store: Store, key: RequestKey) -> list[Clean]:
    """Every action of a request on a line of its own, with the folder that it runs in."""
    fact, session = store.requests[key].fact, store.sessions.get(key.owner)
    lines: list[Clean] = []
    for action in fact.actions if fact is not None else ():
        where = action.cwd or (session.cwd if session is not None else None)
        text = masked(clean_line("\n".join(part for part in (action.text, action.diff) if part)))
        lines.append(Clean(f"{text}  in {where}" if where else text))
    return lines


def _left_out(planned: Sequence[Planned]) -> list[Segment]:
    return [(Clean(f"not {one.name}: {masked(one.line)}: {one.why}"), "attention") for one in planned if not one.goes]


def _these(number: int) -> str:
    return "this one" if number == 1 else f"these {numeral(number)}"


def _send(desk: TogetherDesk, planned: Sequence[Planned], kind: OptionKind, asked_at: int) -> None:
    """Decide each that is still what the table said, one by one."""
    left: dict[RequestKey, Clean] = {}
    commands: dict[RequestKey, Intent] = {}
    for one in planned:
        why = one.why or still(desk.fleet, one, kind, desk.now, read_only=desk.read_only)
        if not why:
            command = _command(desk, one, asked_at)
            gated = desk.gate(command)
            if isinstance(gated, Refusal):
                why = clean_line(gated.reason)
            elif gated.confirm:
                why = Clean(f"{gated.confirm[0]}: {NOT_TOGETHER}")
            else:
                commands[one.key] = command
                continue
        left[one.key] = why
    begun = dict(zip(commands, desk.begin_all(list(commands.values())), strict=True))
    outcomes: list[Outcome] = []
    for one in planned:
        trail = begun.get(one.key)
        if trail is not None and trail.id in desk.fleet.trails:
            outcomes.append(Outcome(one.key, one.name, one.line, trail.id))
        else:
            outcomes.append(
                Outcome(one.key, one.name, one.line, None, left[one.key] if trail is None else trail.reason)
            )
    sent = sum(outcome.sent is not None for outcome in outcomes)
    desk.show_outcomes(outcomes)
    tone: Tone = "plain" if sent == len(outcomes) else "attention"
    undo = f"; {desk.undo} takes it back while it waits to be sent" if sent and desk.undo else ""
    desk.say(Clean(f"{VERBS[kind]} {numeral(sent)} of {numeral(len(outcomes))}{undo}"), tone)


# --- what became of them -------------------------------------------------------------------

_WORDS: Final[Mapping[EffectState, tuple[str, Tone]]] = MappingProxyType(
    {
        EffectState.PENDING: ("acknowledged, effect not seen yet", "plain"),
        EffectState.SEEN: ("done, effect seen", "running"),
        EffectState.OVERDUE: ("acknowledged, effect overdue", "attention"),
        EffectState.CONTRARY: ("acknowledged, and the contrary was seen", "failed"),
        EffectState.UNOBSERVABLE: ("acknowledged, its effect cannot be seen", "plain"),
    }
)


def outcome_rows(store: Store, outcomes: Sequence[Outcome], tz: tzinfo | None) -> list[FactRow]:
    """What became of each so far, a labelled line each, what did not go along last."""
    rows: list[FactRow] = []
    for outcome in sorted(outcomes, key=lambda one: one.sent is None):
        words, tone = _became(store, outcome, tz)
        name = name_by_key(store.sessions, outcome.request.owner) if outcome.sent is None else outcome.name
        rows.append((name, Clean(f"{words}: {masked(outcome.line)}"), tone))
    return rows


def _became(store: Store, outcome: Outcome, tz: tzinfo | None) -> tuple[str, Tone]:
    trail = store.trails.get(outcome.sent) if outcome.sent is not None else None
    if outcome.sent is None:
        return f"left out ({outcome.why})", "attention"
    if trail is None:
        return "no longer remembered", "quiet"
    if trail.outcome is None and trail.sent_at is None:
        return "waits to be sent", "plain"
    if trail.outcome is None:
        return f"sent {clock_time(trail.requested_at, tz)}, no word yet", "plain"
    if trail.outcome is not OutcomeKind.APPLIED:
        why = f" ({trail.reason})" if trail.reason else ""
        return f"{trail.outcome.value.replace('_', ' ')}{why}", "failed"
    return _WORDS[trail.effect or EffectState.PENDING]
