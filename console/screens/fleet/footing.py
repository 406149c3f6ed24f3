"""What stands in the lines that frame the fleet: keys, hints, the last command, and what a quiet roster says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from console.actions import Action, Group
from console.fleet.facts import SessionKey
from console.fleet.needs import open_requests
from console.fleet.roster.arrangement import Arrangement, group_words
from console.fleet.roster.filter import Filter
from console.fleet.roster.order import Sort
from console.fleet.state import Source, Trail
from console.fleet.store import Store
from console.fleet.views.wording import Segment
from console.keymap import Keymap
from console.screens.availability import Standing
from console.screens.shown import Shown
from watchfloor.text import NOTHING, Clean, clean_line, cut
from watchfloor.words import Contact

_READS_ON: Final = (("read_on", Clean("read on")), ("last", Clean("to its end")), ("back", Clean("close")))


class FooterKey(NamedTuple):
    """One key of the footer. A blocked one is drawn grey, with its reason."""

    key: Clean
    label: Clean
    enabled: bool
    reason: Clean


def footer_keys(
    standings: Iterable[tuple[Action, Standing]], keys: Keymap, store: Store, *, unread: bool = False
) -> list[FooterKey]:
    """The keys of the footer: what works for the selected session, and what is there but blocked.

    `unread`: the keys go to a card whose end has not been seen; how to get there stands next to what waits for it.
    """
    waiting = len(open_requests(store))
    shown: list[FooterKey] = []
    for action, standing in standings:
        if unread and action.group is not Group.DECIDE:
            shown.extend(FooterKey(keys.shown(id), label, True, NOTHING) for id, label in _READS_ON if keys.shown(id))
            unread = False
        if not action.footer or not standing.shown or not keys.shown(action.id):
            continue
        if action.id == "next":
            if not waiting:
                continue
            standing = Standing(True, Clean(f"next of {waiting}" if waiting > 1 else "to the request"))
        shown.append(FooterKey(keys.shown(action.id), standing.label, standing.works, standing.reason))
    return shown


def line_keys(label: str) -> list[FooterKey]:
    """The keys while a line is written in: those of the screen below it do nothing then."""
    return [FooterKey(Clean(key), Clean(does), True, NOTHING) for key, does in (("enter", label), ("esc", "leave it"))]


def hint(store: Store, keys: Keymap, ground: Clean = NOTHING) -> tuple[Segment, ...]:
    """What an operator who has not touched anything should know. `ground`: why this is what the console opened on."""
    agents = {r.key.owner for r in open_requests(store) if store.sources[r.key.source].live}
    word = "agent waits" if len(agents) == 1 else "agents wait"
    waits = Clean(f"{len(agents)} {word} for you: {keys.shown('next')}") if agents else NOTHING
    segments: tuple[Segment, ...] = ((waits, "attention"), (ground, "plain"))
    return tuple(segment for segment in segments if segment[0])


def unheard(store: Store, selected: SessionKey | None, keys: Keymap, room: int) -> tuple[Segment, ...]:
    """Why the selected session shows its last known state only, in so many cells, of which the end is what gives way;
    nothing while its source is heard."""
    source = store.sources.get(selected.source) if selected is not None else None
    if source is None or source.live or source.lost_since is None:
        return ()
    why = f": {source.why}" if source.why else ""
    return ((cut(Clean(f"{source.shown} is not heard ({keys.shown('sources')} tells more){why}"), room), "lost"),)


def last_trail(store: Store, selected: SessionKey | None, shown: Shown | None) -> Trail | None:
    """The newest command on the selected session. Below a card: on its request, or given since it stands there."""
    for trail in reversed(store.trails.values()):
        if shown is None:
            found = trail.target == selected
        elif trail.request is not None:
            found = trail.request == shown.key
        else:
            found = trail.target == shown.key.owner and trail.requested_at >= shown.put_at
        if found:
            return trail
    return None


def asked_since(store: Store, trail: Trail) -> bool:
    """Is the command over, and does its session wait for something that it asked only after that was given?"""
    session = store.sessions.get(trail.target)
    waiting = session.open_requests() if session is not None and not trail.active else []
    return any(request.key != trail.request and store.asked_local(request) >= trail.requested_at for request in waiting)


def arrangement(rows: Arrangement, filter: Filter | None) -> tuple[Segment, ...]:
    """How the roster is arranged, as far as that is not the usual way."""
    said: list[Segment] = []
    if rows.marked:
        said.append((Clean(f"{len(rows.marked):,} marked"), "attention"))
    if filter is not None:
        said.append((clean_line(f"filter {filter.text}"), "attention"))
    if words := group_words(rows.grouping):
        said.append((Clean(f"by {words}"), "quiet"))
    if rows.sort is not Sort.ATTENTION or rows.reverse:
        said.append((Clean(f"sort {rows.sort.value}{', reversed' if rows.reverse else ''}"), "quiet"))
    return tuple(said)


def quiet_roster(store: Store, filter: Filter | None = None) -> Clean:
    """Why there are no sessions to be seen."""
    if filter is not None and store.sessions:
        return clean_line(f"none of {len(store.sessions):,} sessions is let through by the filter {filter.text}")
    sources = list(store.sources.values())
    if not sources:
        return Clean("no sources: name one with `watchfloor connect URL`, or in the configuration")
    words = [word for source in sources if (word := _why_empty(source))]
    if words:
        return Clean("\n".join(words))
    return Clean("no sessions yet: `watchfloor run -- PROGRAM` starts one")


_CONNECTS: Final = frozenset({Contact.CONNECTING})


def _why_empty(source: Source) -> Clean:
    if source.contact is Contact.REFUSED:
        return Clean(f"{source.shown} refused: {source.why}" if source.why else f"{source.shown} refused")
    if source.live:
        return NOTHING if source.listed else Clean(f"{source.shown}: waiting for its sessions")
    why = f": {source.why}" if source.why else ""
    tries = f", try {source.tries}" if source.tries > 1 else ""
    if source.contact in _CONNECTS and source.lost_since is None:
        return Clean(f"{source.shown} connecting{why}{tries}")
    lost = "lost" if source.welcomed else "not reached"
    word = lost if source.contact in (Contact.LOST, Contact.CONNECTING) else source.contact.value
    return Clean(f"{source.shown} {word}{why}{tries}")
