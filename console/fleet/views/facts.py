"""The column of facts on one session."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

from console.fleet.facts import ProfileFact, SessionKey
from console.fleet.gate import UNASKED, Greyed, can
from console.fleet.reseeds import reseed_words
from console.fleet.state import Session, Source
from console.fleet.store import Store
from console.fleet.trail import overlay
from console.fleet.views.status import unread_text
from console.fleet.views.trail import trail_brief
from console.fleet.views.wording import (
    TONE_OF,
    Tone,
    ago,
    asked_text,
    elapsed,
    masked,
    name_by_key,
    name_of,
    short_count,
)
from watchfloor.text import NOTHING, Clean, clean_line, numeral, since
from watchfloor.words import TERMINAL, Contact, Continuity, Primitive

FactRow: TypeAlias = tuple[Clean, Clean, Tone] | tuple[Clean, Clean, Tone, int]
"""Label, value (may hold line breaks), tone of the value, and the most lines that it is worth, where it is not worth
all that it takes."""

TRAILS_SHOWN = 2
ITEMS_SHOWN = 6
ASKED_SHOWN = 3
"""Requests that the facts name; their cards have the rest, and the whole of each."""
ASKED_LINES = 2
UNREAD_CELLS = 120
"""Cells of the reason why something could not be read."""


def fact_rows(store: Store, key: SessionKey, now: int, *, read_only: bool = False) -> list[FactRow]:
    """What is known of a session at the local time `now`; empty for one that is not known."""
    session = store.sessions.get(key)
    if session is None:
        return []
    source = store.sources[key.source]
    there = now + source.ahead_ms
    rows = [_state(store, session, source, now, there)]
    rows += _rows(("attempt", Clean(numeral(session.attempt)) if session.attempt is not None else NOTHING, "plain"))
    rows += _asked(session, there)
    rows += _rows(
        ("error", masked(session.error or NOTHING), "failed"),
        ("why", session.why if session.why != session.error else NOTHING, "plain"),
    )
    rows += _capabilities(store, session, now, read_only)
    rows += _commands(store, session)
    rows += _work(session, there)
    rows += _usage(session)
    rows += _where(store, session, source, now)
    return rows


def _asked(session: Session, there: int) -> list[FactRow]:
    rows: list[FactRow] = []
    waiting = session.open_requests()
    for request in waiting[:ASKED_SHOWN]:
        # The wait first: a long text is cut at its end.
        text = Clean(f"{elapsed(there, request.asked_at)}  {masked(asked_text(request))}")
        rows.append((Clean("" if rows else "waits"), text, "attention", ASKED_LINES))
    if len(waiting) > ASKED_SHOWN:
        rows.append((NOTHING, Clean(f"and {len(waiting) - ASKED_SHOWN} more"), "attention"))
    return rows


def _rows(*rows: tuple[str, Clean | None, Tone]) -> list[FactRow]:
    return [(Clean(label), value, tone) for label, value, tone in rows if value]


def _state(store: Store, session: Session, source: Source, now: int, there: int) -> FactRow:
    text = session.lifecycle.value
    if session.native_state and session.native_state != session.lifecycle.value:
        text += f" ({session.native_state})"
    if session.since is not None:
        text += f", {elapsed(there, session.since)}"
    over = overlay(session, store.active.get(session.key, ()))
    if over is not None:
        text += f"\n{over[0].value}" + (f", asked for by {over[1]}" if over[1] else "")
    if session.placeholder:
        text = "known by name only: its source has not described it"
    if source.live:
        return Clean("state"), Clean(text), TONE_OF[session.lifecycle]
    if source.lost_since is not None:
        heard = f"contact lost {ago(now, source.lost_since)}"
    elif source.contact is Contact.SILENT:
        heard = f"not heard for {since(now - source.contact_since)}"
    else:
        heard = "not heard"
    return Clean("state"), Clean(f"{text}\nlast known: {heard}"), "lost"


def _commands(store: Store, session: Session) -> list[FactRow]:
    """The newest first; how far the newest has come in full stands below the log."""
    mine = [trail for trail in store.trails.values() if trail.target == session.key][-TRAILS_SHOWN:]
    rows: list[FactRow] = []
    for trail in reversed(mine):
        text, tone = trail_brief(trail)
        rows.append((Clean("" if rows else "commands"), text, tone))
    return rows


def _capabilities(store: Store, session: Session, now: int, read_only: bool) -> list[FactRow]:
    profile = store.profile(session)
    if profile is None:
        return _rows(("can", Clean("its source has not said"), "quiet"))
    if not profile.primitives:
        return _rows(("can", Clean("nothing: observe only"), "quiet"))
    works: list[str] = []
    bare: list[str] = []
    hindered: dict[str, list[str]] = {}
    for primitive in Primitive:
        if primitive not in profile.primitives:
            continue
        answer = can(store, session.key, primitive, now, read_only=read_only)
        words = capability_words(primitive, profile)
        label = session.controls.get(primitive)
        text = f"{label}: {words}" if label and words else label or words
        # That nothing is asked of the operator is told by the state.
        if isinstance(answer, Greyed) and answer.reason != UNASKED.get(primitive):
            hindered.setdefault(answer.reason, []).append(_called(primitive, profile))
        elif text:
            works.append(f"{_called(primitive, profile)}: {text}")
        else:
            bare.append(_called(primitive, profile))
    works += [", ".join(bare)] if bare else []
    works += [f"not known here: {', '.join(profile.unknown)}"] if profile.unknown else []
    return _listed("can", works, "plain") + _listed(
        "not now", [f"{', '.join(names)}: {reason}" for reason, names in hindered.items()], "quiet"
    )


def _called(primitive: Primitive, profile: ProfileFact) -> str:
    if primitive is Primitive.RESEED:
        return reseed_words(profile.options.get(primitive, {}).get("modes", ()))
    return primitive.value


def _listed(label: str, texts: Collection[str], tone: Tone) -> list[FactRow]:
    return [(Clean("" if at else label), Clean(text), tone) for at, text in enumerate(texts)]


def capability_words(primitive: Primitive, profile: ProfileFact) -> str:
    """An advertised control in words, by its options and traits; empty where its name says it all."""
    options, traits = profile.options.get(primitive, {}), profile.traits
    match primitive:
        case Primitive.SEND:
            priorities = _joined(options.get("priorities", ()))
            return f"{priorities}; may answer a message" if options.get("replies") else priorities
        case Primitive.PAUSE:
            words = "between steps, or at once" if options.get("interrupt") else "between steps"
            return words if traits.get("pause_is_barrier", True) else f"{words}; a call in flight still runs"
        case Primitive.STOP:
            return "gently, or kill" if options.get("kill") else ""
        case Primitive.BUDGET:
            return _joined([name for name in ("tokens", "turns") if options.get(name)])
        case Primitive.RESUME if traits.get("resume_approves"):
            return "would approve what is pending, so not while a request is open"
        case Primitive.APPROVE if traits.get("approval_target", "by_id") == "all_pending":
            return "all pending actions at once"
        case Primitive.ACT:
            return _joined([act.get("label", "") for act in options.get("acts", ())])
        case _:
            return ""


def _joined(words: Collection[Any]) -> str:
    return ", ".join(str(word) for word in words)


def _work(session: Session, there: int) -> list[FactRow]:
    flying = [f"{name}  {elapsed(there, begun)}" for _, name, begun in session.in_flight[:ITEMS_SHOWN]]
    more = len(session.in_flight) + session.in_flight_more - ITEMS_SHOWN
    if more > 0:
        flying.append(f"and {numeral(more)} more")
    mail = f"{numeral(session.mail_queued)} queued, {numeral(session.mail_refs)} so far" if session.mail_refs else ""
    result = session.result
    ended = (f"{result.stop_reason}: {result.text}" if result.text else result.stop_reason) if result else ""
    return _rows(
        ("in flight", Clean("\n".join(flying)), "running"),
        ("mailbox", Clean(mail), "plain"),
        ("result", masked(Clean(ended)), "plain"),
    )


def _usage(session: Session) -> list[FactRow]:
    usage = session.usage
    if usage is None:
        return []
    tokens = f"{short_count(usage.input_tokens)} tokens in, {short_count(usage.output_tokens)} out"
    words = f"{tokens}, {numeral(usage.turns)} turn{'s' if usage.turns != 1 else ''}"
    budget = [f"{short_count(usage.budget_tokens)} tokens"] if usage.budget_tokens is not None else []
    budget += [f"{numeral(usage.budget_turns)} turns"] if usage.budget_turns is not None else []
    return _rows(("usage", Clean(words), "plain"), ("budget", Clean(", ".join(budget)), "plain"))


def _where(store: Store, session: Session, source: Source, now: int) -> list[FactRow]:
    continuity = session.track.state(now)
    good = continuity.word in (Continuity.WHOLE, Continuity.ARRIVAL_ORDER)
    children = sorted(store.children.get(session.key, ()))
    alive = sum(1 for child in children if store.sessions[child].lifecycle not in TERMINAL)
    below = f"{len(children)}, {alive} alive" if children else ""
    above = SessionKey(session.key.source, session.parent) if session.parent is not None else None
    labels = [f"{name}: {value}" for name, value in session.labels.items()]
    labels += [f"and {numeral(session.labels_more)} more"] if session.labels_more else []
    head, left_out = session.track.head, session.log.left_out
    events = numeral(head) if head else ""
    if left_out:
        entries = "entry" if left_out == 1 else "entries"
        events = f"{events}{', ' if events else ''}{numeral(left_out)} {entries} not in memory"
    whose = [word for word, so in (("started by this console", session.owned), ("DEMO", session.demo)) if so]
    return _rows(
        ("continuity", Clean(str(continuity)), "plain" if good else "attention"),
        ("events", Clean(events), "plain"),
        ("parent", name_by_key(store.sessions, above) if above is not None else NOTHING, "plain"),
        ("children", Clean(below), "plain"),
        ("labels", masked(Clean("\n".join(labels))), "plain"),
        ("cwd", session.cwd, "plain"),
        ("source", Clean(f"{source.shown}, {_contact(source, now)}"), "plain" if source.live else "lost"),
        ("unread", unread_text(source, UNREAD_CELLS) if source.fault_count else NOTHING, "attention"),
        ("note", Clean(", ".join(whose)), "quiet"),
        ("id", clean_line(session.key.session) if session.key.session != name_of(session) else NOTHING, "quiet"),
    )


def _contact(source: Source, now: int) -> str:
    word = "a recording" if source.recorded and source.live else source.contact.value
    if source.contact is Contact.SILENT:
        return f"{word} {since(now - source.contact_since)}"
    return f"{word}: {source.why}" if source.why and not source.live else word
