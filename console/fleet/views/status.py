"""The status bar: is every source heard, how many sessions in which state, who waits, how far behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from console.fleet.needs import unheard_requests
from console.fleet.roster.census import Census
from console.fleet.state import Source
from console.fleet.store import Store
from console.fleet.views.wording import Segment, Tone, elapsed
from watchfloor.text import NOTHING, Clean, cell_width, cut, numeral, since
from watchfloor.words import Contact, Lifecycle

BEHIND_FROM: Final = 200
"""Events that may be on their way before the console says that it is behind."""

REASON: Final = 48
"""Cells of a reason in the bar."""

_COUNTED: Final[tuple[tuple[Lifecycle, Tone], ...]] = (
    (Lifecycle.RUNNING, "running"),
    (Lifecycle.WAITING, "plain"),
    (Lifecycle.FAILED, "failed"),
    (Lifecycle.PAUSED, "paused"),
)


def contact_segments(
    store: Store,
    now: int,
    *,
    reasons: bool = True,
    room: int | None = None,
    title: Clean = NOTHING,
    more: Clean = NOTHING,
) -> tuple[Segment, ...]:
    """The sources that are heard as one number, every other one by name, and why where `reasons` are wanted.

    `room`: the cells there are, None for as many as it takes. Where not all of it fits, the `title` before it goes
    first, then the reasons of what may come back by itself, then the others, then the names; never that a source is not
    heard. `more`: the key that tells what had to go.
    """
    before: tuple[Segment, ...] = ((title, "plain"),) if title else ()
    if not store.sources:
        return (*before, (Clean("no sources"), "quiet"))
    live = [source for source in store.sources.values() if source.live]
    rest = [source for source in store.sources.values() if not source.live]
    heard: list[Segment] = []
    if len(live) == 1:
        heard.append((Clean(f"{live[0].shown} live"), "plain"))
    elif live:
        heard.append((Clean(f"{len(live)} sources live"), "plain"))
    whole = (*heard, *_unheard(rest, now, _Why.ALL if reasons else _Why.NONE))
    if room is None or _fits((*before, *whole), room):
        return (*before, *whole)
    tells: tuple[Segment, ...] = ((Clean(f"{more} tells why"), "quiet"),) if more and rest else ()
    pointed = tells if reasons else ()
    lasting = (*heard, *_unheard(rest, now, _Why.LASTING)) if reasons else whole
    bare = (*heard, *_unheard(rest, now, _Why.NONE))
    counted = (*([(Clean(f"{len(live)} live"), "plain")] if live else ()), *_counted(rest))
    tries: tuple[tuple[Segment, ...], ...]
    tries = (whole, (*lasting, *pointed), (*bare, *pointed), lasting, bare, (*counted, *tells))
    return next((said for said in tries if _fits(said, room)), counted)


class _Why(Enum):
    """Which reasons are told."""

    ALL = auto()
    LASTING = auto()
    NONE = auto()


_GAP: Final = 2


def _fits(segments: tuple[Segment, ...], room: int) -> bool:
    return sum(cell_width(text) + _GAP for text, _ in segments) - _GAP <= room


def _unheard(sources: list[Source], now: int, why: _Why) -> list[Segment]:
    ended = [source for source in sources if source.given_up]
    return [_not_heard(source, now, why) for source in sources if not source.given_up] + _given_up(ended, now, why)


def _given_up(sources: list[Source], now: int, why: _Why) -> list[Segment]:
    """Hosts that ended pile up in a console that stays open: those with the same reason are one number."""
    by_why: dict[Clean, list[Source]] = {}
    for source in sources:
        by_why.setdefault(NOTHING if why is _Why.NONE else source.why, []).append(source)
    return [
        (Clean(f"{len(lost)} sources lost{_told(said)}"), "lost")
        if len(lost) > 1
        else (Clean(f"{lost[0].shown} lost {since(now - (lost[0].lost_since or now))}{_told(said)}"), "lost")
        for said, lost in by_why.items()
    ]


def _not_heard(source: Source, now: int, why: _Why) -> Segment:
    word = _word(source)
    passing = word in ("lost", "not reached") and not source.fatal
    told = _told(source.why) if why is _Why.ALL or (why is _Why.LASTING and not passing) else ""
    retrying = f", try {source.tries}" if source.tries > 1 else ""
    match word:
        case "lost" | "not reached" if source.lost_since is not None:
            during = "" if source.welcomed else " for"
            return Clean(f"{source.shown} {word}{during} {since(now - source.lost_since)}{told}{retrying}"), "lost"
        case Contact.CONNECTING:
            return Clean(f"{source.shown} connecting{retrying}"), "quiet"
        case Contact.SILENT:
            return Clean(f"{source.shown} silent {since(now - source.contact_since)}"), "lost"
        case _:
            return Clean(f"{source.shown} {word}{told}"), _tone(word)


def _word(source: Source) -> str:
    """What a source that is not heard is instead; one that is being tried again is still lost."""
    if source.lost_since is not None and source.contact in (Contact.LOST, Contact.CONNECTING):
        return "lost" if source.welcomed else "not reached"
    return source.contact.value


def _tone(word: str) -> Tone:
    return "failed" if word == Contact.REFUSED else "lost"


def _told(why: Clean) -> str:
    return f": {why}" if why else ""


def _counted(sources: list[Source]) -> list[Segment]:
    """How many sources are not heard, by what they are instead."""
    words = Counter(map(_word, sources))
    return [(Clean(f"{count} {word}"), _tone(word)) for word, count in words.items()]


def count_segments(census: Census) -> tuple[Segment, ...]:
    """How many sessions there are, how many of those that are heard are in the states that matter, and of how many only
    the last state is known."""
    counts, last_known = census.counts, census.last_known
    total = sum(counts.values()) + last_known
    if not total:
        return ()
    segments: list[Segment] = [(Clean(f"{total:,} session{'s' if total != 1 else ''}"), "plain")]
    segments += [(Clean(f"{counts[state]:,} {state.value}"), tone) for state, tone in _COUNTED if counts.get(state)]
    if last_known:
        segments.append((Clean(f"{last_known:,} last known"), "lost"))
    return tuple(segments)


def behind_segments(store: Store) -> tuple[Segment, ...]:
    """What the console lacks: events that arrive faster than it takes them up, and what it could not read."""
    late: list[Segment] = [
        (Clean(f"{source.shown}: {numeral(source.behind)} events behind"), "attention")
        for source in store.sources.values()
        if source.live and source.behind >= BEHIND_FROM
    ]
    return (*late, *unread_segments(store))


def unread_segments(store: Store) -> tuple[Segment, ...]:
    """The sources that sent what could not be read: how much, and why the last of it."""
    return tuple(
        (Clean(f"{source.shown}: {unread_text(source, REASON)}"), "attention")
        for source in store.sources.values()
        if source.fault_count
    )


def unread_text(source: Source, cells: int) -> Clean:
    """How much of a source could not be read, and why the last of it, in so many cells."""
    last = next((fault.reason for fault in reversed(source.faults) if not fault.told), NOTHING)
    why = f", last: {cut(last, cells)}" if last else ""
    return Clean(f"{numeral(source.fault_count)} unreadable{why}")


def need_segments(store: Store, now: int, glyphs: Mapping[str, str], *, hidden: int = 0) -> tuple[Segment, ...]:
    """How many requests wait, how long the oldest has, and how many of them the filter hides; apart from them those of
    sources that are not heard, which nobody can decide now."""
    segments: list[Segment] = []
    unheard = unheard_requests(store)
    heard = len(store.queue.requests) - unheard
    behind = f", {hidden} hidden by the filter" if hidden else ""
    if heard:
        oldest = next(request for request in store.queue.requests if store.sources[request.key.source].live)
        need = "needs" if heard == 1 else "need"
        waits = elapsed(now, store.asked_local(oldest))
        segments.append((Clean(f"{glyphs['alert']} {heard} {need} you, oldest {waits}{behind}"), "attention"))
    if unheard:
        segments.append((Clean(f"{unheard} asked before contact was lost{'' if heard else behind}"), "lost"))
    return tuple(segments)
