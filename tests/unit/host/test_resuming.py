"""Clients that go on by epoch and `seq`, and clients that do not keep up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.host.glass import Glass
from watchfloor.host.clients.clients import SLICE
from watchfloor.host.core import LAG_MS
from watchfloor.protocol.events import Delta, Event
from watchfloor.protocol.frames import Cursor, Events, Gap, Lagged, Watching


def at(glass: Glass, session: str, seq: int) -> dict[str, Cursor]:
    return {session: Cursor(epoch=glass.core.log.epoch(session), seq=seq)}


def seqs(events: list[Event]) -> list[int]:
    return [event.seq for event in events if event.seq is not None]


def spoken(glass: Glass, *sessions: str, count: int = 20) -> None:
    for session in dict.fromkeys(sessions):
        glass.add(session)
    for number in range(count):
        for session in sessions:
            glass.say(session, f"{session} {number}")
        glass.flush()


# --- by epoch and seq


def test_each_session_goes_on_where_the_client_stands_in_it() -> None:
    glass = Glass()
    spoken(glass, "a", "b", "new")
    head = glass.core.log.head("a")
    glass.connect("c")
    glass.watch("c", after={**at(glass, "a", head - 2), **at(glass, "b", head)})
    glass.pull_all("c")
    assert seqs(glass.events("c", "a")) == [head - 1, head]
    assert seqs(glass.events("c", "b")) == []
    assert seqs(glass.events("c", "new")) == list(range(1, head + 1))
    glass.say("b", "on")
    glass.flush()
    assert seqs(glass.events("c", "b")) == [head + 1]


def test_another_epoch_comes_from_its_start() -> None:
    glass = Glass()
    spoken(glass, "a")
    glass.connect("c")
    glass.watch("c", "a", after={"a": Cursor(epoch="of long ago", seq=7)})
    assert seqs(glass.events("c")) == list(range(1, glass.core.log.head("a") + 1))
    assert glass.of("c", Watching)[0].from_pos == 0


def test_what_is_no_longer_kept_is_a_gap_that_begins_where_the_client_stands() -> None:
    glass = Glass(keep=6)
    spoken(glass, "a", "b")
    glass.connect("c")
    glass.watch("c", after={**at(glass, "a", 5), **at(glass, "b", glass.core.log.head("b"))})
    (gap,) = glass.of("c", Gap)
    assert (gap.session, gap.from_seq, gap.to_seq) == ("a", 5, glass.core.log.first("a") - 1)
    assert seqs(glass.events("c", "a")) == list(range(gap.to_seq + 1, glass.core.log.head("a") + 1))


def test_who_has_everything_but_the_oldest_session_gets_that_alone_over_many_slices() -> None:
    glass = Glass()
    glass.add("old")
    spoken(glass, "busy", count=3 * SLICE)
    glass.connect("c")
    glass.watch("c", after={**at(glass, "busy", glass.core.log.head("busy"))})
    glass.pull_all("c")
    assert seqs(glass.events("c", "old")) == list(range(1, glass.core.log.head("old") + 1))
    assert seqs(glass.events("c", "busy")) == []
    glass.say("busy", "on")
    glass.flush()
    assert len(seqs(glass.events("c", "busy"))) == 1


@settings(max_examples=40, deadline=None)
@given(
    said=st.lists(st.sampled_from("abc"), max_size=60),
    places=st.dictionaries(st.sampled_from("abc"), st.tuples(st.booleans(), st.integers(0, 30))),
    keep=st.sampled_from([None, 5, 20]),
)
def test_nothing_is_left_out_and_nothing_comes_twice(
    said: list[str], places: dict[str, tuple[bool, int]], keep: int | None
) -> None:
    glass = Glass(keep=keep)
    log = glass.core.log
    for session in "abc":
        glass.add(session, running=False)
    for session in said:
        glass.say(session, "x")
        glass.flush()
    stands = {s: min(seq, log.head(s)) if same else 0 for s, (same, seq) in places.items()}
    after = {
        s: Cursor(epoch=log.epoch(s) if same else "another", seq=min(seq, log.head(s)))
        for s, (same, seq) in places.items()
    }
    glass.connect("c")
    glass.watch("c", after=after)
    glass.pull_all("c")
    lost = {gap.session: gap for gap in glass.of("c", Gap)}
    for session in "abc":
        through = stands.get(session, 0)
        got = seqs(glass.events("c", session))
        first = log.first(session)
        assert got == list(range(max(through + 1, first), log.head(session) + 1))
        assert (session in lost) is (first - 1 > through)
        if session in lost:
            assert (lost[session].from_seq, lost[session].to_seq) == (through, first - 1)


# --- too slow


def test_a_client_that_does_not_keep_up_is_told_what_it_was_not_sent() -> None:
    glass = Glass()
    spoken(glass, "a", "b", count=2)
    for conn in ("slow", "quick"):
        glass.connect(conn)
        glass.watch(conn)
    glass.frames("slow")
    head = glass.core.log.head("a")
    glass.core.lagging("slow", glass.now)
    for _ in range(3):
        glass.say("a", "more")
        glass.flush()
    assert glass.of("slow", Events) == []
    assert seqs(glass.events("quick", "a")) == [head + 1, head + 2, head + 3]
    assert glass.core.behind("slow")
    glass.say("a", "just before there is room")
    glass.pull_all("slow")
    (lagged,) = glass.of("slow", Lagged)
    assert (lagged.session, lagged.epoch) == ("a", glass.core.log.epoch("a"))
    assert (lagged.from_seq, lagged.to_seq) == (head, head + 4)
    glass.say("a", "and on")
    glass.flush()
    assert seqs(glass.events("slow")) == [head + 5]
    assert glass.of("slow", Gap) == []


def test_what_streams_when_there_is_room_again_is_shown_whole() -> None:
    glass = Glass()
    spoken(glass, "a", count=1)
    glass.connect("c")
    glass.watch("c")
    glass.core.lagging("c", glass.now)
    glass.apply(glass.core.session("a").stream("i", "message", "half a ", glass.now))
    glass.flush()
    glass.apply(glass.core.session("a").stream("i", "message", "word", glass.now))
    glass.pull_all("c")
    deltas = [event for event in glass.events("c") if isinstance(event, Delta)]
    assert [(delta.offset, delta.text) for delta in deltas] == [(0, "half a word")]
    assert glass.of("c", Lagged) == []


@pytest.mark.parametrize("reads", [False, True])
def test_only_who_reads_again_in_time_is_kept(reads: bool) -> None:
    glass = Glass()
    spoken(glass, "a", count=1)
    glass.connect("c")
    glass.watch("c")
    glass.core.lagging("c", glass.now)
    glass.tick(LAG_MS - 1)
    glass.core.lagging("c", glass.now)
    assert glass.closed == {}
    if reads:
        glass.pull_all("c")
    glass.tick(1)
    assert glass.closed == ({} if reads else {"c": 1013})


def test_frames_that_found_no_room_are_told_as_well() -> None:
    glass = Glass()
    spoken(glass, "a", count=2)
    glass.connect("c")
    glass.watch("c", start="start")
    frames = [frame for frame in glass.frames("c") if isinstance(frame, Events)]
    for frame in frames:
        glass.core.left_out("c", frame, glass.now)
    glass.say("a", "later")
    glass.flush()
    assert glass.of("c", Events) == []
    glass.pull_all("c")
    (lagged,) = glass.of("c", Lagged)
    assert (lagged.from_seq, lagged.to_seq) == (0, glass.core.log.head("a"))
    glass.core.left_out("gone", frames[0], glass.now)
