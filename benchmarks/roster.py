"""What arranging the roster costs: once for all sessions, and for the change of one.

    python -m benchmarks.roster [SESSIONS]

Prints milliseconds: the median of what one change costs in each order, and the best of a few runs over all of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final

from console.fleet.apply import Fleet
from console.fleet.changes import Changes
from console.fleet.facts import ContactFact, SessionKey, SummaryFact
from console.fleet.roster.arrangement import Grouping
from console.fleet.roster.filter import parse
from console.fleet.roster.order import Sort
from console.fleet.views.roster import RosterView
from themes.loader import load_glyphs
from watchfloor.text import Clean
from watchfloor.words import Contact, Lifecycle

_USUAL: Final = 10_000
_RUNS: Final = 7
_CHANGES: Final = 60
_FAMILY: Final = 10
"""A parent and its descendants, one below the other."""
_FILTERS: Final = ("agent-12", "state:run -label:team=t3", "nobody")


def fleet_of(sessions: int) -> Fleet:
    """So many sessions in families, of seven teams."""
    fleet = Fleet()
    facts: list[Any] = [ContactFact("host", Contact.LIVE, 1, Clean(""))]
    facts += [SummaryFact(_key(n), _fields(n, sessions)) for n in range(sessions)]
    fleet.apply(facts, 1)
    return fleet


def _key(n: int) -> SessionKey:
    return SessionKey("host", f"s{n}")


def _fields(n: int, sessions: int) -> dict[str, Any]:
    return {
        "name": Clean(f"agent-{n * 7_919 % sessions}"),
        "lifecycle": (Lifecycle.RUNNING, Lifecycle.IDLE, Lifecycle.COMPLETED)[n % 3],
        "parent": f"s{n - 1}" if n % _FAMILY else None,
        "labels": {Clean("team"): Clean(f"t{n % 7}")},
    }


def _ms(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) * 1_000


def main(sessions: int) -> None:
    """Measure, and print."""
    fleet = fleet_of(sessions)
    glyphs = load_glyphs("unicode")
    view = RosterView(
        fleet, {**glyphs.states, **glyphs.overlays, **glyphs.tree, **glyphs.marks, "levels": glyphs.levels}
    )
    print(f"{sessions:,} sessions")
    print(f"  all of them arranged anew        {min(_ms(lambda: view.refresh(None, 1)) for _ in range(_RUNS)):8.2f} ms")
    for text in _FILTERS:
        filter = parse(text)

        def let_through(filter: Any = filter) -> None:
            view.keep = lambda session: filter.accepts(fleet, session)
            view.refresh(Changes(), 1)

        best = min(_ms(let_through) for _ in range(_RUNS))
        print(f"  filter {text:<26}{best:8.2f} ms, {view.kept:,} left")
    view.keep = None
    for grouping in (Grouping(), Grouping("none"), Grouping("source"), Grouping("label", "team")):
        view.group_by(grouping)
        for sort in Sort:
            view.sort_by(sort)
            view.refresh(Changes(), 1)
            print(f"  one change, by {sort:<10} {grouping.kind:<8}{median(_changes(fleet, view, sessions)):8.3f} ms")


def _changes(fleet: Fleet, view: RosterView, sessions: int) -> list[float]:
    spent: list[float] = []
    for n in range(_CHANGES):
        state = (Lifecycle.FAILED, Lifecycle.RUNNING)[n % 2]
        changes = fleet.apply([SummaryFact(_key(n * 37 % sessions), {"lifecycle": state})], 1)
        spent.append(_ms(lambda changes=changes: view.refresh(changes, 1)))  # type: ignore[misc]
    return spent


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else _USUAL)
