"""Events on their way to clients: watching, resuming, catching up, history."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.host.glass import Glass, poss
from watchfloor.host.clients.clients import SLICE, SLICE_BYTES
from watchfloor.host.wire import LARGEST_EVENT, join_deltas
from watchfloor.protocol.codec import SPLIT_AT, encode
from watchfloor.protocol.events import Delta, Event, Message, Notice, Raw
from watchfloor.protocol.frames import (
    Cursor,
    Error,
    ErrorCode,
    Events,
    Gap,
    History,
    Page,
    Unwatch,
    Watching,
)


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Message)]


def test_watching_from_the_head_gets_what_comes() -> None:
    glass = Glass()
    glass.add()
    glass.say("s1", "before")
    glass.connect("c")
    glass.watch("c")
    pos = glass.core.log.pos
    assert glass.of("c", Watching) == [Watching(session="*", from_pos=pos, through=pos)]
    assert glass.events("c") == []
    glass.say("s1", "after")
    glass.flush()
    assert texts(glass.events("c")) == ["after"]
    assert poss(glass.events("c")) == [pos + 1]


def test_watching_from_the_start_gets_everything() -> None:
    glass = Glass()
    glass.add()
    glass.say("s1", "before")
    glass.connect("c")
    glass.watch("c", start="start")
    watching = glass.of("c", Watching)[0]
    assert (watching.from_pos, watching.through) == (0, glass.core.log.pos)
    assert poss(glass.events("c")) == list(range(1, glass.core.log.pos + 1))


def test_resuming_after_a_pos_gets_the_rest() -> None:
    glass = Glass()
    glass.add("s1")
    glass.add("s2")
    for number in range(20):
        glass.say(f"s{number % 2 + 1}", str(number))
    glass.flush()
    glass.connect("c")
    glass.watch("c", after=9)
    assert poss(glass.events("c")) == list(range(10, glass.core.log.pos + 1))


def test_a_pos_of_a_log_that_is_no_more_starts_over() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.watch("c", after=10_000)
    assert glass.of("c", Watching)[0].from_pos == 0
    assert poss(glass.events("c"))[0] == 1


def test_watching_one_session() -> None:
    glass = Glass()
    glass.add("s1")
    glass.add("s2")
    glass.connect("c")
    glass.watch("c", "s2", start="start")
    glass.say("s1", "one")
    glass.say("s2", "two")
    glass.flush()
    assert glass.events("c", "s1") == []
    assert texts(glass.events("c", "s2")) == ["two"]
    assert [event.seq for event in glass.events("c", "s2")] == list(range(1, glass.core.log.head("s2") + 1))
    glass.send("c", Unwatch(session="s2"))
    glass.frames("c")
    glass.say("s2", "three")
    glass.flush()
    assert glass.events("c") == []


def test_watching_all_and_one_sends_new_events_once() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.watch("c")
    glass.watch("c", "s1")
    glass.say("s1", "once")
    glass.flush()
    assert texts(glass.events("c")) == ["once"]


def test_watches_that_cannot_be() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.watch("c", "nobody")
    glass.watch("c", "nobody", after={"nobody": Cursor(epoch="e1", seq=3)})
    codes = [(error.code, error.about, error.session) for error in glass.of("c", Error)]
    assert codes == [(ErrorCode.NOT_FOUND, "watch", "nobody")] * 2
    assert glass.of("c", Error)[0].message == "this host has no session 'nobody'"
    assert glass.of("c", Watching) == []


def test_a_long_past_comes_in_slices_and_new_events_wait_for_their_turn() -> None:
    glass = Glass()
    glass.add()
    total = 3 * SLICE
    for number in range(total):
        glass.say("s1", str(number))
    glass.connect("c")
    glass.watch("c", start="start")
    assert len(glass.events("c")) == SLICE
    assert glass.core.behind("c")
    glass.say("s1", "new")
    glass.flush()
    assert len(glass.events("c")) == SLICE
    glass.pull_all("c")
    assert texts(glass.events("c"))[-1] == "new"
    assert poss(glass.events("c")) == list(range(1, glass.core.log.pos + 1))


@pytest.mark.parametrize("size", [1_000, SPLIT_AT // 2, 3 * SPLIT_AT])
def test_a_slice_ends_early_where_events_are_large(size: int) -> None:
    glass = Glass()
    glass.add()
    for _ in range(600):
        glass.say("s1", "x")
    for _ in range(20):
        glass.say("s1", "x" * size)
    glass.connect("c")
    glass.watch("c", start="start")
    slices = 0
    while glass.core.behind("c"):
        before = len(glass.of("c", Events))
        glass.take(glass.core.pull("c", glass.now))
        sent = sum(len(encode(frame)) for frame in glass.of("c", Events)[before:])
        assert sent < SLICE_BYTES + max(SPLIT_AT, size + 1_000)
        slices += 1
    assert slices >= 20 * size // (SLICE_BYTES + SPLIT_AT + size)
    assert poss(glass.events("c")) == list(range(1, glass.core.log.pos + 1))


# Each example needs more past than one slice holds.
@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["say a", "say b", "say c", "flush", "pull", "rewatch", "stream a"]), max_size=60))
def test_a_client_reads_every_pos_once_and_in_order(steps: list[str]) -> None:
    glass = Glass()
    for id in "abc":
        glass.add(id)
    for number in range(SLICE):
        glass.say("abc"[number % 3], str(number))
        if number % 7 == 0:
            glass.flush()
    glass.connect("c")
    glass.watch("c", start="start")
    read: list[int] = []
    for step in steps:
        what, _, session = step.partition(" ")
        if what == "say":
            glass.say(session, "x")
        elif what == "stream":
            glass.apply(glass.core.session(session).stream("i", "message", "x", glass.now))
        elif what == "flush":
            glass.flush()
        elif what == "pull":
            glass.take(glass.core.pull("c", glass.now))
        else:
            # The connection is lost, and resumes after the highest pos that was read.
            read += poss(glass.events("c"))
            glass.core.disconnect("c")
            glass.connect("c")
            glass.watch("c", after=read[-1])
    glass.flush()
    glass.pull_all("c")
    read += poss(glass.events("c"))
    assert read == list(range(1, glass.core.log.pos + 1))


def test_frames_are_split_where_they_grow_large() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.watch("c")
    for _ in range(30):
        glass.say("s1", "é" * 20_000)
    glass.flush()
    frames = glass.of("c", Events)
    assert len(frames) > 1
    assert all(len(encode(frame)) <= SPLIT_AT for frame in frames)
    assert len(texts(glass.events("c"))) == 30


def test_an_event_that_no_client_could_take_is_left_out_but_not_its_place() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.watch("c")
    glass.apply(glass.core.session("s1").emit(Notice(at=0, text="x" * (LARGEST_EVENT + 1)), glass.now))
    glass.say("s1", "small")
    glass.flush()
    large, small = glass.events("c")
    assert isinstance(large, Raw)
    assert "was left out" in (large.note or "")
    assert isinstance(small, Message)
    assert (large.seq or 0) + 1 == small.seq


# --- deltas


def test_deltas_are_live_only_and_a_late_joiner_gets_one_from_the_start() -> None:
    glass = Glass()
    session = glass.add()
    glass.connect("early")
    glass.watch("early")
    for piece in ("he", "l"):
        glass.apply(session.stream("i1", "message", piece, glass.now))
        glass.flush()
    head = glass.core.log.head("s1")
    glass.connect("late")
    glass.watch("late", start="start")
    glass.apply(session.stream("i1", "message", "lo", glass.now))
    glass.flush()
    early, late = (
        [(e.offset, e.text) for e in glass.events(conn) if isinstance(e, Delta)] for conn in ("early", "late")
    )
    assert early == [(0, "he"), (2, "l"), (3, "lo")]
    assert late == [(0, "hel"), (3, "lo")]
    assert glass.core.log.head("s1") == head
    assert all(e.seq is None and e.pos is None for e in glass.events("late") if isinstance(e, Delta))


def test_neighbouring_deltas_of_one_item_are_joined() -> None:
    def delta(item: str, offset: int, text: str) -> Delta:
        return Delta(at=1, item=item, offset=offset, text=text)

    message = Message(at=1, text="m")
    joined = join_deltas(
        [delta("a", 0, "x"), delta("a", 1, "y"), delta("b", 0, "z"), message, delta("a", 2, "w"), delta("a", 3, "v")]
    )
    assert joined == [delta("a", 0, "xy"), delta("b", 0, "z"), message, delta("a", 2, "wv")]


# --- what is gone, and history


def test_what_was_forgotten_is_a_gap_with_numbers() -> None:
    glass = Glass(keep=10)
    glass.add("s1")
    glass.add("s2", running=False)
    for number in range(50):
        glass.say("s1", str(number))
    glass.flush()
    lost, head = glass.core.log.lost("s1"), glass.core.log.head("s1")
    glass.connect("c")
    glass.watch("c", after=lost - 1)
    (gap,) = glass.of("c", Gap)
    assert (gap.session, gap.to_seq) == ("s1", head - 10)
    assert len(glass.events("c")) == 10
    glass.connect("d")
    glass.watch("d", after=lost)
    assert glass.of("d", Gap) == []
    assert poss(glass.events("d")) == poss(glass.events("c"))


def test_a_past_that_was_partly_forgotten_is_caught_up_with_whole() -> None:
    glass = Glass(keep=2 * SLICE)
    glass.add()
    for number in range(3 * SLICE):
        glass.say("s1", str(number))
        if number % 100 == 0:
            glass.flush()
    glass.connect("c")
    glass.watch("c", start="start")
    glass.pull_all("c")
    pos = glass.core.log.pos
    assert poss(glass.events("c")) == list(range(pos - 2 * SLICE + 1, pos + 1))


def test_pages_of_history() -> None:
    glass = Glass()
    glass.add()
    for number in range(100):
        glass.say("s1", str(number))
    glass.connect("c")
    epoch, head = glass.core.log.epoch("s1"), glass.core.log.head("s1")

    def page(**more: Any) -> Page:
        glass.send("c", History(id="h", session="s1", epoch=epoch, **more))
        return glass.of("c", Page)[-1]

    newest = page(limit=10)
    assert (newest.first, newest.last, newest.more, newest.id) == (head - 9, head, True, "h")
    older = page(before=newest.first, limit=10)
    assert (older.last, len(older.events)) == (newest.first - 1, 10)
    oldest = page(before=4)
    assert (oldest.first, oldest.last, oldest.more) == (1, 3, False)
    upwards = page(after=0, limit=5)
    assert (upwards.first, upwards.last, upwards.more) == (1, 5, True)
    assert page(after=head - 1).more is False
    empty = page(after=head)
    assert (empty.events, empty.more) == ([], False)


@pytest.mark.parametrize("upwards", [True, False])
def test_a_page_that_would_be_too_large_is_shortened(upwards: bool) -> None:
    glass = Glass()
    glass.add()
    for _ in range(20):
        glass.say("s1", "x" * (SPLIT_AT // 4))
    glass.connect("c")
    epoch, head = glass.core.log.epoch("s1"), glass.core.log.head("s1")
    seen: set[int] = set()
    while len(seen) < head:
        bound: dict[str, Any] = {"after": max(seen, default=0)} if upwards else {"before": min(seen, default=head + 1)}
        glass.send("c", History(id="h", session="s1", epoch=epoch, **bound))
        page = glass.of("c", Page)[-1]
        assert len(encode(page)) <= SPLIT_AT
        assert page.more is (len(seen) + len(page.events) < head)
        seen |= set(range(page.first, page.last + 1))
    assert seen == set(range(1, head + 1))


@pytest.mark.parametrize(("session", "epoch"), [("nobody", "e1"), ("s1", "another")])
def test_history_that_is_not_there(session: str, epoch: str) -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.send("c", History(id="h", session=session, epoch=epoch))
    (error,) = glass.of("c", Error)
    assert (error.code, error.about) == (ErrorCode.NOT_FOUND, "h")


@pytest.mark.parametrize("frame", [{"type": "watch"}, {"type": "history", "id": "h", "epoch": "e1"}])
def test_a_session_that_is_not_there_is_named_harmlessly(frame: dict[str, str]) -> None:
    glass = Glass()
    glass.connect("c")
    glass.receive("c", json.dumps({**frame, "session": "\x1b[2J\n" + "x" * 100_000}).encode())
    (error,) = glass.of("c", Error)
    assert error.message.startswith("this host has no session '␛[2J␊xxx")
    assert error.message.endswith("x…'")
    assert len(error.message) < 120
