"""More than the memory takes: a million events, an agent with hundreds of megabytes of output, lines of megabytes.

What is no longer there is said, and the rest is bounded. `make torture` uses the full sizes.
"""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Iterator
from typing import Final

import pytest

from console.fleet.apply import Fleet
from console.fleet.facts import SessionKey
from console.fleet.log import KEEP, KEEP_ALL
from console.fleet.store import KEEP_LOGS
from console.fleet.views.facts import fact_rows
from console.fleet.views.log import SessionLog
from console.hub.unfit import unfit
from console.intake import Intake
from tests.fixtures.odd import NOW, message, sessions, summary
from tests.unit.fleet.viewing import GLYPHS
from watchfloor.connector import Received
from watchfloor.protocol.codec import decode_host

TORTURE: Final = "WATCHFLOOR_TORTURE" in os.environ
MB: Final = 1_000_000


class Console:
    """A fleet behind its door, and nothing else."""

    def __init__(self) -> None:
        self._intake = Intake("here", lambda: NOW)
        self.fleet = Fleet(unfit)

    def takes(self, raw: bytes) -> None:
        """What the network brings."""
        decoded = decode_host(raw)
        self.fleet.apply(self._intake.arrival(Received(decoded.frame, raw, decoded.bad)), NOW)

    def weight(self) -> int:
        """What all logs weigh."""
        return sum(session.log.weight for session in self.fleet.sessions.values())


def events(session: str, first: int, texts: list[str]) -> bytes:
    told = [message(first + n, text=text) for n, text in enumerate(texts)]
    return json.dumps({"type": "events", "session": session, "epoch": "e", "events": told}).encode()


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_so_many_events_leave_the_newest_of_each_session(traced: None) -> None:
    """A million of a hundred sessions."""
    total, each, many = (1_000_000, 200, 100) if TORTURE else (60_000, 200, 20)
    console = Console()
    names = [f"s{n}" for n in range(many)]
    console.takes(sessions(*map(summary, names)))
    held: list[int] = []
    for turn in range(total // each // many):
        for name in names:
            console.takes(events(name, turn * each + 1, ["one line of an ordinary length, and no more"] * each))
        held.append(tracemalloc.get_traced_memory()[0])
    per_session = total // many
    for name in names:
        session = console.fleet.sessions[SessionKey("here", name)]
        assert len(session.log) <= KEEP
        assert session.log.left_out == per_session - len(session.log)
        assert session.track.state(NOW).word.value == "whole", "in the journal, not in memory"
    full = next(at for at in range(len(held)) if (at + 1) * each >= KEEP + each)
    assert held[-1] < held[full] * 1.2, "no more than when the logs were full"


def test_one_agent_with_more_output_than_memory_is_held_to_its_share(traced: None) -> None:
    """Two hundred megabytes of one session."""
    total = 200 * MB if TORTURE else 24 * MB
    console = Console()
    console.takes(sessions(summary("s1"), summary("s2")))
    console.takes(events("s2", 1, ["a small one beside it"]))
    size, seq = 40_000, 1
    while seq * size <= total:
        console.takes(events("s1", seq, ["x" * size] * 5))
        seq += 5
    big, small = (console.fleet.sessions[SessionKey("here", name)] for name in ("s1", "s2"))
    assert big.log.weight <= KEEP_ALL
    assert big.log.left_out + len(big.log) == seq - 1
    assert (len(small.log), small.log.left_out) == (1, 0)
    assert tracemalloc.get_traced_memory()[0] < 40 * MB
    gone = big.log.left_out
    assert SessionLog(console.fleet, SessionKey("here", "s1"), GLYPHS).earlier == gone
    facts = fact_rows(console.fleet, SessionKey("here", "s1"), NOW)
    assert any(f"{gone:,} entries not in memory" in text for _, text, *_ in facts)


def test_lines_of_megabytes_are_cut_at_the_door_and_say_by_how_much(traced: None) -> None:
    console = Console()
    console.takes(sessions(summary("s1")))
    lines = 60 if TORTURE else 8
    for n in range(lines):
        console.takes(events("s1", n + 1, ["y" * (3 * MB)]))
    session = console.fleet.sessions[SessionKey("here", "s1")]
    assert len(session.log) == lines
    assert all("MB more not shown" in entry.text for entry in session.log.entries())
    assert session.log.weight < lines * 70_000


def test_short_lines_weigh_what_they_take(traced: None) -> None:
    """Of thousands of sessions that say little the text is next to nothing; what holds it is what is bounded."""
    many, each = (1_000, 300) if TORTURE else (60, 300)
    console = Console()
    names = [f"s{n}" for n in range(many)]
    console.takes(sessions(*map(summary, names)))
    before = tracemalloc.get_traced_memory()[0]
    for name in names:
        console.takes(events(name, 1, ["a short line"] * each))
    taken = tracemalloc.get_traced_memory()[0] - before
    assert 0.5 < taken / console.weight() < 1.5


def test_all_logs_together_are_within_one_budget() -> None:
    console = Console()
    many = 40 if TORTURE else 20
    names = [f"s{n}" for n in range(many)]
    console.takes(sessions(*map(summary, names)))
    for turn in range(80):
        for name in names:
            console.takes(events(name, turn + 1, ["z" * 60_000]))
        assert console.weight() <= KEEP_LOGS
    assert sum(session.log.left_out for session in console.fleet.sessions.values()) > 0
