"""Views of what a scripted host has told, with the glyphs of the real theme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from console.fleet.facts import RequestKey
from console.fleet.roster.census import Census
from console.fleet.store import Store
from console.fleet.views.card import Card, card
from console.fleet.views.roster import RosterView
from console.fleet.views.row import Row
from console.fleet.views.status import behind_segments, contact_segments, count_segments, need_segments
from console.fleet.views.wording import Segment, clock_time
from tests.unit.fleet.scripted import ScriptedHost
from themes.loader import load_glyphs

KEYS = {"approve": "a", "options": "A", "deny": "d", "deny_reason": "D", "answer": "o"}


def glyphs(name: str = "unicode") -> dict[str, str]:
    loaded = load_glyphs(name)
    return {**loaded.states, **loaded.overlays, **loaded.tree, **loaded.marks, "levels": loaded.levels}


GLYPHS = glyphs()


@dataclass(frozen=True, slots=True)
class Bar:
    """The two ends of a status bar."""

    left: tuple[Segment, ...]
    right: tuple[Segment, ...]


def status(store: Store, now: int, glyphs: Mapping[str, str], tz: tzinfo | None = None) -> Bar:
    """All that the bars of the fleet screen say of the fleet."""
    left = (*contact_segments(store, now), *count_segments(Census(store)), *behind_segments(store))
    return Bar(left, (*need_segments(store, now, glyphs), (clock_time(now, tz), "quiet")))


def roster(host: ScriptedHost) -> RosterView:
    view = RosterView(host.fleet, GLYPHS)
    view.refresh(None, host.now)
    return view


def shown(view: RosterView) -> list[str]:
    return [f"{row.tree}{row.name}" for row in map(view.row, range(len(view)))]


def row(host: ScriptedHost, session: str = "s1") -> Row:
    view = roster(host)
    at = view.index(host.at(session).key)
    assert at is not None
    return view.row(at)


def card_of(host: ScriptedHost, key: RequestKey, **options: Any) -> Card:
    made = card(host.fleet, key, host.now, keys=KEYS, tz=UTC, **options)
    assert made is not None
    return made
