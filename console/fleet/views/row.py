"""A session, or the heading over some, as one line of the roster."""

from __future__ import annotations

from typing import Final, NamedTuple

from console.fleet.facts import ProfileFact
from console.fleet.needs import Needs
from console.fleet.roster.order import GroupKey
from console.fleet.state import Session, Source
from console.fleet.store import Store
from console.fleet.trail import overlay
from console.fleet.views.wording import (
    TONE_OF,
    Glyphs,
    Tone,
    asked_text,
    elapsed,
    masked,
    name_of,
    one_line,
    short_count,
)
from watchfloor.text import NOTHING, Clean, clean_line, numeral, since
from watchfloor.words import Lifecycle, Primitive

STALL_MS: Final = 60_000
"""A session that runs, with nothing in flight, and of which nothing was heard for so long, is said to do nothing."""

LETTERS: Final[tuple[tuple[Primitive, str], ...]] = (
    (Primitive.SEND, "s"),
    (Primitive.PAUSE, "p"),
    (Primitive.INTERRUPT, "x"),
    (Primitive.RESUME, "r"),
    (Primitive.STOP, "X"),
    (Primitive.APPROVE, "a"),
    (Primitive.ANSWER, "o"),
    (Primitive.RESEED, "R"),
)
"""The letter of each control in the CAN column; the place of a letter never changes."""

_WAS: Final = {Lifecycle.COMPLETED.value: "complete"}
"""A last known state in words that fit into its column."""


class Row(NamedTuple):
    """One session as a line. An empty text leaves its cell empty."""

    glyph: Clean
    state: Clean
    tone: Tone
    name: Clean
    tree: Clean
    source: Clean
    attempt: Clean
    needs: Clean
    wait: Clean
    last: Clean
    rate: Clean
    usage: Clean
    can: Clean
    demo: bool
    marked: bool
    more: Clean
    """How many lines are put away below it, such as "+3"."""


class Place(NamedTuple):
    """What the roster knows of a line and the session does not."""

    tree: Clean
    needs: Needs | None
    marked: bool
    more: Clean


def session_row(store: Store, session: Session, place: Place, glyphs: Glyphs, now: int) -> Row:
    """The line of a session at the local time `now`."""
    source = store.sources[session.key.source]
    profile = store.profile(session)
    needs = place.needs
    over = overlay(session, store.active.get(session.key, ()))
    word = over[0].value if over is not None else session.lifecycle.value
    observed = profile is not None and not profile.primitives and session.lifecycle is Lifecycle.RUNNING
    glyph = "observed" if observed and over is None else word
    if not source.live and session.lifecycle is not Lifecycle.UNKNOWN:
        # Whoever is not heard may do anything by now.
        glyph, word = Lifecycle.UNKNOWN.value, f"was {_WAS.get(word, word)}"
    return Row(
        glyph=Clean(glyphs[glyph]),
        state=Clean(word),
        tone=_tone(session, source, bool(session.open_requests())),
        name=name_of(session),
        tree=place.tree,
        source=source.shown,
        attempt=Clean(numeral(session.attempt)) if session.attempt is not None else NOTHING,
        needs=Clean(str(needs.count)) if needs is not None else NOTHING,
        wait=Clean(elapsed(now + source.ahead_ms, needs.oldest)) if needs is not None else NOTHING,
        last=_last(store, session, now),
        rate=_bars(session.rate.counts(now), glyphs["levels"]),
        usage=_usage(session),
        can=can_letters(profile, glyphs),
        demo=session.demo,
        marked=place.marked,
        more=place.more,
    )


def heading_row(store: Store, group: GroupKey, sessions: int, place: Place, now: int) -> Row:
    """The line over a group; the oldest wait below it is by the console's clock."""
    if group.kind == "source":
        name = store.sources[group.value].shown if group.value in store.sources else clean_line(group.value)
    else:
        label = clean_line(group.by)
        name = Clean(f"{label}: {clean_line(group.value)}") if group.value else Clean(f"no {label}")
    needs = place.needs
    source = store.sources.get(group.value) if group.kind == "source" else None
    last_known = ", last known" if source is not None and not source.live else ""
    return Row(
        glyph=NOTHING,
        state=Clean(group.kind),
        tone="lost" if last_known else "attention" if needs is not None else "quiet",
        name=name,
        tree=NOTHING,
        source=NOTHING,
        attempt=NOTHING,
        needs=Clean(str(needs.count)) if needs is not None else NOTHING,
        wait=Clean(elapsed(now, needs.oldest)) if needs is not None else NOTHING,
        last=Clean(f"{sessions:,} session{'' if sessions == 1 else 's'}{last_known}"),
        rate=NOTHING,
        usage=NOTHING,
        can=NOTHING,
        demo=False,
        marked=False,
        more=place.more,
    )


def stalled_ms(store: Store, session: Session, now: int) -> int | None:
    """For how long a session that says it runs has done nothing that could be seen; None while it may well work, or
    wait for its children."""
    source = store.sources[session.key.source]
    if session.key in store.children or session.lifecycle is not Lifecycle.RUNNING or not source.live:
        return None
    if session.in_flight or session.in_flight_more or session.open_requests():
        return None
    log = session.log
    heard = max(
        session.since or 0,
        session.last.at if session.last is not None else 0,
        log.entry(len(log) - 1).fact.at if len(log) else 0,
    )
    idle = now + source.ahead_ms - heard
    return idle if heard and idle >= STALL_MS else None


def _tone(session: Session, source: Source, waits: bool) -> Tone:
    if not source.live:
        return "lost"
    if waits:
        return "attention"
    # A word alone does not make a session need somebody.
    return "running" if session.lifecycle is Lifecycle.WAITING else TONE_OF[session.lifecycle]


def _last(store: Store, session: Session, now: int) -> Clean:
    waiting = session.open_requests()
    if waiting:
        text = asked_text(waiting[0])
    elif session.lifecycle is Lifecycle.FAILED and session.error:
        text = one_line(session.error)
    elif (idle := stalled_ms(store, session, now)) is not None:
        text = Clean(f"no event for {since(idle)}, nothing in flight")
    elif session.last is not None and session.last.text:
        text = session.last.text
    else:
        text = session.why or NOTHING
    return masked(text)


def _usage(session: Session) -> Clean:
    usage = session.usage
    return short_count(usage.input_tokens + usage.output_tokens) if usage is not None else NOTHING


def _bars(counts: list[int], levels: str) -> Clean:
    """A bar a slot, each step of height twice as many events; empty where nothing happens."""
    if not any(counts):
        return NOTHING
    top = len(levels) - 1
    return Clean("".join(levels[min(top, count.bit_length())] for count in counts))


def can_letters(profile: ProfileFact | None, glyphs: Glyphs) -> Clean:
    """The advertised controls as letters, each at its own place; "observe" for the empty set, empty while unknown."""
    if profile is None:
        return NOTHING
    if not profile.primitives:
        return Clean("observe")
    absent = "." if glyphs["cut"].isascii() else "·"
    return Clean("".join(letter if p in profile.primitives else absent for p, letter in LETTERS))
