"""What is on the disk counts as received, in the epoch in which it was."""

from __future__ import annotations

from console.fleet.apply import Fleet
from console.fleet.facts import EventFact, EventsFact, Fact, KeptFact, ListedFact, SessionKey, SummaryFact, WatchingFact
from console.fleet.roster.search import LogReader
from console.fleet.views.log import SessionLog
from watchfloor.text import Clean
from watchfloor.words import Continuity

KEY = SessionKey("h", "s")
NOW = 1_000_000


def named(head: int, epoch: str = "e") -> SummaryFact:
    return SummaryFact(KEY, {"epoch": epoch, "head": head})


def told(*numbers: int, stored: bool = False) -> EventsFact:
    events = tuple(
        EventFact("message", NOW, seq, seq, 1, None, None, None, None, Clean("assistant"), Clean(f"line {seq}"))
        for seq in numbers
    )
    return EventsFact(KEY, "e", events, stored)


def fleet(*facts: Fact) -> Fleet:
    made = Fleet()
    made.apply([*facts, ListedFact("h")], NOW)
    return made


def state(made: Fleet, later_ms: int = 60_000) -> str:
    return str(made.sessions[KEY].track.state(NOW + later_ms))


def test_what_is_kept_makes_a_session_whole_without_its_events() -> None:
    made = fleet(named(12), KeptFact(KEY, "e", ((1, 10),)), WatchingFact("h", "*", 10, 12), told(11, 12))
    assert state(made) == Continuity.WHOLE.value
    assert len(made.sessions[KEY].log) == 2


def test_a_watch_that_brings_nothing_new_is_not_the_tail_only() -> None:
    made = fleet(named(10), KeptFact(KEY, "e", ((1, 10),)), WatchingFact("h", "*", 10, 10))
    assert state(made) == Continuity.WHOLE.value


def test_holes_in_what_is_kept_are_holes_until_they_are_filled() -> None:
    made = fleet(named(10), KeptFact(KEY, "e", ((1, 3), (6, 10))), WatchingFact("h", "*", 3, 10))
    assert state(made) == "gap 4-5"
    made.apply([told(4, 5, 6, 7)], NOW)
    assert state(made) == Continuity.WHOLE.value


def test_what_the_disk_let_go_of_is_beyond_retention() -> None:
    made = fleet(named(10), KeptFact(KEY, "e", ((5, 10),), ((1, 4),)))
    assert state(made) == "beyond retention: 1-4 no longer kept"


def test_what_is_kept_of_another_log_says_nothing_of_this_one() -> None:
    made = fleet(named(10), KeptFact(KEY, "older", ((1, 10),)), WatchingFact("h", "*", 0, 10))
    assert state(made) == "gap 1-10"
    made.apply([named(3, "third"), KeptFact(KEY, "third", ((1, 3),))], NOW)
    assert state(made) == Continuity.WHOLE.value
    made.apply([KeptFact(SessionKey("h", "nobody"), "e", ((1, 3),))], NOW)
    assert SessionKey("h", "nobody") not in made.sessions


def test_kept_events_join_the_log_also_behind_newer_ones() -> None:
    made = fleet(named(12), KeptFact(KEY, "e", ((1, 10),)), told(11, 12))
    made.apply([told(*range(1, 11), stored=True)], NOW)
    log = made.sessions[KEY].log
    assert [log.entry(at).fact.seq for at in range(len(log))] == list(range(1, 13))
    made.apply([told(*range(1, 13))], NOW)
    assert len(log) == 12, "what is sent again all the same is there once"


def test_a_log_says_how_much_is_earlier_than_it() -> None:
    made = fleet(named(12), KeptFact(KEY, "e", ((1, 10),)))
    lines = LogReader(SessionLog(made, KEY, {}))
    assert lines.earlier == 0, "nothing is shown yet that it could be earlier than"
    made.apply([told(11, 12)], NOW)
    assert lines.earlier == 10
    made.apply([told(*range(1, 11), stored=True)], NOW)
    assert lines.earlier == 0
