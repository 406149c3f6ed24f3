"""The status bar: is every source heard, how many sessions in which state, who waits, how far behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from console.fleet.needs import unheard_requests
from console.fleet.roster.census import Census
from console.fleet.state import Source
from console.fleet.store import Store
from console.fleet.views.wording import Glyphs, Segment, Tone, clock_time, elapsed
from watchfloor.text import NOTHING, Clean, cut, numeral, since
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


@dataclass(frozen=True, slots=True)
class Status:
    """The two ends of the bar."""

    left: tuple[Segment, ...]
    right: tuple[Segment, ...]


def status(store: Store, now: int, glyphs: Glyphs, tz: tzinfo | None = None) -> Status:
    """The whole bar at the local time `now`."""
    left = (*contact_segments(store, now), *count_segments(Census(store)), *behind_segments(store))
    return Status(left, (*need_segments(store, now, glyphs), (clock_time(now, tz), "quiet")))


def contact_segments(store: Store, now: int, *, reasons: bool = True, narrow: bool = False) -> tuple[Segment, ...]:
    """The sources that are heard as one number, every other one by name, and why where `reasons` are wanted. Where it
    is `narrow`, the passing reason of a lost contact has no room."""
    if not store.sources:
        return ((Clean("no sources"), "quiet"),)
    live = [source for source in store.sources.values() if source.live]
    rest = [source for source in store.sources.values() if not source.live]
    segments: list[Segment] = []
    if len(live) == 1:
        segments.append((Clean(f"{live[0].shown} live"), "plain"))
    elif live:
        segments.append((Clean(f"{len(live)} sources live"), "plain"))
    segments.extend(_unheard(source, now, reasons, narrow) for source in rest if not source.given_up)
    segments.extend(_given_up([source for source in rest if source.given_up], now))
    return tuple(segments)


def _given_up(sources: list[Source], now: int) -> list[Segment]:
    """Hosts that ended pile up in a console that stays open: those with the same reason are one number."""
    by_why: dict[Clean, list[Source]] = {}
    for source in sources:
        by_why.setdefault(source.why, []).append(source)
    return [
        (Clean(f"{len(lost)} sources lost: {why}"), "lost")
        if len(lost) > 1
        else (Clean(f"{lost[0].shown} lost {since(now - (lost[0].lost_since or now))}: {why}"), "lost")
        for why, lost in by_why.items()
    ]


def _unheard(source: Source, now: int, reasons: bool, narrow: bool) -> Segment:
    why = f": {source.why}" if source.why and reasons else ""
    retrying = f", try {source.tries}" if source.tries > 1 else ""
    if source.lost_since is not None and source.contact in (Contact.LOST, Contact.CONNECTING):
        lost = since(now - source.lost_since)
        if not source.welcomed:
            return Clean(f"{source.shown} not reached for {lost}{why}{retrying}"), "lost"
        told = why if source.fatal or not narrow else ""
        return Clean(f"{source.shown} lost {lost}{told}{retrying}"), "lost"
    match source.contact:
        case Contact.CONNECTING:
            return Clean(f"{source.shown} connecting{retrying}"), "quiet"
        case Contact.SILENT:
            return Clean(f"{source.shown} silent {since(now - source.contact_since)}"), "lost"
        case Contact.REFUSED:
            return Clean(f"{source.shown} refused{why}"), "failed"
        case contact:
            return Clean(f"{source.shown} {contact.value}{why}"), "lost"


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
