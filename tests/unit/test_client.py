"""The client core: bytes in, arrivals and bytes out, across connections."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchfloor.client import ClientCore
from watchfloor.connector import Arrival, Received, Record, Target, Unreadable
from watchfloor.errors import ProtocolError
from watchfloor.protocol.codec import encode
from watchfloor.protocol.events import Message
from watchfloor.protocol.frames import (
    Beat,
    ClientFrame,
    Command,
    DoApprove,
    DoPause,
    DoSend,
    Error,
    ErrorCode,
    Events,
    Frame,
    Gone,
    History,
    HostInfo,
    Lagged,
    Outcome,
    Page,
    Sessions,
    Unwatch,
    Watch,
    Watching,
    Welcome,
)
from watchfloor.protocol.frames import Cursor as WireCursor
from watchfloor.protocol.model import Summary
from watchfloor.words import PROTOCOL, OutcomeKind, Role

TARGET = Target("local", "ws://127.0.0.1:1", user="ann", client="console", version="1.2")


def welcome(pos: int = 0, instance: str = "one", now: int = 7) -> Welcome:
    host = HostInfo(name="h", version="1", instance=instance)
    return Welcome(protocol=PROTOCOL, host=host, principal="ann", role=Role.OPERATOR, pos=pos, heartbeat_s=15, now=now)


def event(pos: int | None, seq: int | None = None) -> Message:
    return Message(pos=pos, seq=pos if seq is None else seq, at=1, text="x")


def events(positions: Iterable[int], session: str = "s", epoch: str = "e") -> Events:
    return Events(session=session, epoch=epoch, events=[event(pos) for pos in positions])


def feed(core: ClientCore, *frames: Frame) -> list[Arrival]:
    return [arrival for frame in frames for arrival in core.receive(encode(frame))]


def sent(core: ClientCore) -> list[dict[str, Any]]:
    return [json.loads(raw) for raw in core.to_send()]


def connect(core: ClientCore, pos: int = 0, instance: str = "one") -> list[dict[str, Any]]:
    """Open a connection and take the welcome; returns what the core sends after it."""
    core.opened()
    feed(core, welcome(pos, instance))
    return sent(core)


def summary(id: str, epoch: str, head: int) -> Summary:
    return Summary.model_validate({"id": id, "epoch": epoch, "head": head})


def outcomes(arrivals: Sequence[Arrival]) -> list[tuple[str, OutcomeKind]]:
    return [
        (arrival.frame.id, arrival.frame.outcome)
        for arrival in arrivals
        if isinstance(arrival, Received) and isinstance(arrival.frame, Outcome)
    ]


def command(id: str, session: str = "s") -> Command:
    return Command(id=id, session=session, attempt=2, do=DoPause())


# --- greeting ----------------------------------------------------------------------------------


def test_hello_comes_first_and_the_watch_follows_the_welcome() -> None:
    core = ClientCore(TARGET)
    assert [json.loads(raw) for raw in core.opened()] == [
        {"type": "hello", "client": "console", "version": "1.2", "name": "ann"}
    ]
    assert core.to_send() == []
    arrivals = feed(core, welcome())
    assert [type(a.frame) for a in arrivals if isinstance(a, Received)] == [Welcome]
    assert sent(core) == [{"type": "watch", "session": "*", "start": "start"}]
    assert core.to_send() == []


@pytest.mark.parametrize("record", [Record.WATCHED, Record.NONE])
def test_nothing_is_followed_by_itself_unless_everything_is_recorded(record: Record) -> None:
    core = ClientCore(Target("local", "ws://h", record=record))
    assert connect(core) == []


def test_following_from_the_head_begins_where_the_host_stood_at_its_first_welcome() -> None:
    core = ClientCore(Target("local", "ws://h", start_at_head=True))
    assert connect(core, pos=40) == [{"type": "watch", "session": "*", "after": 40}]
    assert connect(core, pos=60) == [{"type": "watch", "session": "*", "after": 40}]


def test_bytes_are_kept_as_they_came() -> None:
    core = ClientCore(TARGET)
    core.opened()
    raw = b'{ "type": "beat", "now": 5, "pos": 6, "mood": "fine" }'
    assert core.receive(raw) == [Received(Beat(now=5, pos=6), raw)]


def test_what_cannot_be_read_arrives_as_unreadable() -> None:
    core = ClientCore(TARGET)
    [arrival] = core.receive(b"\x00\xff")
    assert isinstance(arrival, Unreadable)
    assert "not JSON" in arrival.bad.reason
    assert arrival.bad.raw == "\x00\ufffd"


def test_a_bad_event_arrives_with_its_frame() -> None:
    core = ClientCore(TARGET)
    connect(core)
    raw = encode(events([1, 2])).replace(b'"x"', b"7", 1)
    [arrival] = core.receive(raw)
    assert isinstance(arrival, Received)
    assert len(arrival.bad) == 1
    assert core.pos == 2


# --- resuming ----------------------------------------------------------------------------------


def test_the_next_connection_resumes_after_what_was_received() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, Watching(session="*", from_pos=0, through=3), events([1, 2, 3]))
    core.closed()
    assert connect(core, pos=9) == [{"type": "watch", "session": "*", "after": 3}]


def test_the_cursor_stops_before_a_hole_and_passes_it_when_it_is_filled() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1, 2], "a"), events([4, 6], "b"))
    assert core.pos == 2
    feed(core, events([3], "a"))
    assert core.pos == 4


def test_a_hole_is_final_when_another_frame_has_arrived_behind_it() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1, 2]), events([7, 8]))
    assert core.pos == 2
    feed(core, Beat(now=9, pos=90))
    assert core.pos == 8


def test_what_was_received_beyond_a_hole_does_not_settle_it_on_another_connection() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1, 2]), events([7, 8]))
    assert connect(core, pos=9) == [{"type": "watch", "session": "*", "after": 2}]
    feed(core, Watching(session="*", from_pos=2, through=9), Beat(now=9, pos=9))
    assert core.pos == 2


def test_pages_of_history_do_not_move_the_cursor() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1]), Page(id="1", session="s", epoch="e", events=[event(2)], first=2, last=2, more=False))
    feed(core, Beat(now=9, pos=9))
    assert core.pos == 1


def test_a_frame_that_cannot_be_read_settles_nothing() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1]), events([5]))
    core.receive(b"?")
    assert core.pos == 1


def test_neither_beats_nor_welcomes_nor_deltas_move_the_cursor() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1]), Beat(now=9, pos=50), Events(session="s", epoch="e", events=[event(None)]))
    assert core.pos == 1
    assert connect(core, pos=60) == [{"type": "watch", "session": "*", "after": 1}]


def test_what_the_host_says_is_gone_is_not_waited_for() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, Watching(session="*", from_pos=100, through=120), events([101, 102]))
    assert core.pos == 102


def test_the_watch_of_one_session_does_not_move_the_cursor_of_all() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, Watching(session="s", from_pos=100, through=120))
    assert core.pos == 0


def test_another_instance_is_resumed_by_epoch_and_seq_of_every_session() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1, 2, 3]), events([4, 6], session="r"), events([7], session="gone"))
    feed(core, Gone(sessions=("gone",)))
    places = {"s": {"epoch": "e", "seq": 3}, "r": {"epoch": "e", "seq": 6}}
    assert connect(core, pos=9, instance="two") == [{"type": "watch", "session": "*", "after": places}]
    feed(core, Watching(session="*", from_pos=2, through=9), events([3]), events([1, 2], session="r", epoch="f"))
    assert core.pos == 3
    places = {"s": {"epoch": "e", "seq": 3}, "r": {"epoch": "f", "seq": 2}}
    assert connect(core, pos=9, instance="three") == [{"type": "watch", "session": "*", "after": places}]


def test_another_instance_of_which_nothing_is_known_is_read_from_its_start() -> None:
    core = ClientCore(TARGET)
    connect(core)
    assert connect(core, pos=9, instance="two") == [{"type": "watch", "session": "*", "start": "start"}]
    feed(core, events([1]))
    assert core.pos == 1


def test_what_was_there_before_we_followed_from_the_head_is_not_wanted_from_another_instance_either() -> None:
    core = ClientCore(Target("local", "ws://h", start_at_head=True))
    connect(core, pos=40)
    feed(core, Sessions(sessions=(summary("old", "o", 30), summary("s", "e", 10)), listed=True))
    feed(core, Events(session="s", epoch="e", events=[event(41, 11)]))
    places = {"old": {"epoch": "o", "seq": 30}, "s": {"epoch": "e", "seq": 11}}
    assert connect(core, pos=9, instance="two") == [{"type": "watch", "session": "*", "after": places}]
    feed(core, Sessions(sessions=(summary("new", "n", 3),), listed=True))
    assert connect(core, pos=9, instance="three")[0]["after"] == places


def test_more_sessions_than_a_frame_holds_are_read_from_their_start() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, *(events([number], session=f"{number:0>500}") for number in range(1, 2500)))
    assert connect(core, pos=9000, instance="two") == [{"type": "watch", "session": "*", "start": "start"}]


def test_a_host_that_cannot_resume_by_seq_is_read_from_its_start() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1, 2]))
    connect(core, instance="two")
    feed(core, Error(code=ErrorCode.UNSUPPORTED, message="no", about="watch"))
    assert sent(core) == [{"type": "watch", "session": "*", "start": "start"}]
    feed(core, Error(code=ErrorCode.UNSUPPORTED, message="no", about="watch"))
    assert sent(core) == []


def test_what_the_host_left_out_is_fetched_page_by_page() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1]), Lagged(session="s", epoch="e", from_seq=1, to_seq=2500), events([2501]))
    (asked,) = sent(core)
    assert {**asked, "id": ""} == {
        "type": "history", "id": "", "session": "s", "epoch": "e", "after": 1, "limit": 1000
    }  # fmt: skip
    feed(core, Lagged(session="s", epoch="e", from_seq=2501, to_seq=2600))
    assert sent(core) == []

    def page(id: str, first: int, last: int) -> Page:
        return Page(id=id, session="s", epoch="e", events=[event(9, last)], first=first, last=last, more=True)

    feed(core, page("somebody else's", 2, 2600))
    assert sent(core) == []
    feed(core, page(asked["id"], 2, 1001))
    (asked,) = sent(core)
    assert asked["after"] == 1001
    # What was not fetched is asked for on the next connection.
    again = [frame for frame in connect(core) if frame["type"] == "history"]
    assert [frame["after"] for frame in again] == [1001]
    feed(core, page(again[0]["id"], 1002, 2600))
    assert sent(core) == []
    assert [frame["type"] for frame in connect(core)] == ["watch"]


@pytest.mark.parametrize("answer", ["error", "another epoch", "nothing", "gone"])
def test_what_cannot_be_fetched_is_not_asked_for_for_ever(answer: str) -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, Lagged(session="s", epoch="e", from_seq=1, to_seq=9))
    (asked,) = sent(core)
    empty = Page(id=asked["id"], session="s", epoch="e", events=[], first=0, last=0, more=False)
    frames: dict[str, Frame] = {
        "error": Error(code=ErrorCode.NOT_FOUND, message="no", about=asked["id"]),
        "another epoch": empty.model_copy(update={"epoch": "f"}),
        "nothing": empty,
        "gone": Gone(sessions=("s",)),
    }
    feed(core, frames[answer])
    assert sent(core) == []
    assert [frame["type"] for frame in connect(core)] == ["watch"]


def test_another_instance_starts_over_even_where_the_first_was_followed_from_its_head() -> None:
    core = ClientCore(Target("local", "ws://h", start_at_head=True))
    connect(core, pos=40)
    assert connect(core, pos=9, instance="two") == [{"type": "watch", "session": "*", "start": "start"}]


def test_a_log_that_was_rolled_back_is_resumed_by_what_it_says_of_its_sessions() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1, 2, 3]))
    place = {"s": {"epoch": "e", "seq": 3}}
    assert connect(core, pos=2) == [{"type": "watch", "session": "*", "after": place}]
    feed(core, Watching(session="*", from_pos=0, through=2), events([1], epoch="f"))
    assert core.pos == 1


@pytest.mark.parametrize("again", ["by another instance", "by another console"])
def test_a_log_of_the_same_epoch_that_ends_sooner_is_read_anew_as_another_one(again: str) -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1, 2, 3]), Events(session="other", epoch="e", events=[event(4, seq=1)]))
    if again == "by another console":
        core = ClientCore(replace(TARGET, places={"s": ("e", 3), "other": ("e", 1)}))
    connect(core, pos=2, instance="two")
    [told] = feed(core, Sessions(sessions=(summary("s", "e", 2), summary("other", "e", 1))))
    ours = "e (went back 1)"
    assert isinstance(told, Received)
    assert isinstance(told.frame, Sessions)
    assert [one.epoch for one in told.frame.sessions] == [ours, "e"]
    # Everything of it is wanted, of the others only what follows; the host hears its epoch as it calls it.
    places = {"s": {"epoch": "e", "seq": 0}, "other": {"epoch": "e", "seq": 1}}
    assert sent(core) == [{"type": "watch", "session": "*", "after": places}]
    # The first watch is answered before the second one.
    feed(core, Watching(session="*", from_pos=2, through=2), Watching(session="*", from_pos=0, through=2))
    [arrival] = feed(core, events([1, 2, 3]))
    assert isinstance(arrival, Received)
    assert isinstance(arrival.frame, Events)
    assert (arrival.frame.epoch, arrival.raw) == (ours, None)
    assert core.pos == 3
    asked = json.loads(core.outgoing(History(id="h", session="s", epoch=ours, before=3)))
    assert asked["epoch"] == "e"
    feed(core, Lagged(session="s", epoch="e", from_seq=3, to_seq=5))
    assert [frame["epoch"] for frame in sent(core)] == ["e"]
    # It goes back once more, and is another one once more; where it stands as it was, it is the same.
    connect(core, pos=1, instance="three")
    [told] = feed(core, Sessions(sessions=(summary("s", "e", 1),)))
    assert isinstance(told, Received)
    assert isinstance(told.frame, Sessions)
    assert told.frame.sessions[0].epoch == "e (went back 2)"
    feed(core, Watching(session="*", from_pos=0, through=1), Watching(session="*", from_pos=0, through=1))
    feed(core, events([1]))
    assert connect(core, pos=1, instance="three") == [{"type": "watch", "session": "*", "after": 1}]


def test_a_head_that_is_told_late_is_no_log_that_went_back() -> None:
    core = ClientCore(TARGET)
    connect(core)
    feed(core, events([1, 2, 3]))
    connect(core, pos=3)
    [told] = feed(core, Sessions(sessions=(summary("s", "e", 2),)))
    assert isinstance(told, Received)
    assert isinstance(told.frame, Sessions)
    assert told.frame.sessions[0].epoch == "e"
    assert sent(core) == []


def test_a_watched_session_whose_log_went_back_is_read_anew() -> None:
    core = ClientCore(replace(TARGET, record=Record.WATCHED))
    connect(core)
    core.outgoing(Watch(session="s", start="start"))
    feed(core, events([1, 2, 3]))
    connect(core, pos=2, instance="two")
    feed(core, Sessions(sessions=(summary("s", "e", 2),)))
    assert sent(core) == [{"type": "watch", "session": "s", "start": "start"}]
    [arrival] = feed(core, events([1]))
    assert isinstance(arrival, Received)
    assert isinstance(arrival.frame, Events)
    assert arrival.frame.epoch == "e (went back 1)"


def test_a_watched_session_is_watched_again_after_what_was_received() -> None:
    core = ClientCore(Target("local", "ws://h", record=Record.WATCHED))
    connect(core)
    core.outgoing(Watch(session="s", start="start"))
    core.outgoing(Watch(session="t"))
    frame = Events(session="s", epoch="e", events=[event(20, 1), event(25, 2), event(40, 4)])
    feed(core, frame, Events(session="other", epoch="e", events=[event(21, 1)]))
    again = connect(core)
    assert again == [
        {"type": "watch", "session": "s", "after": 25},
        {"type": "watch", "session": "t"},
    ]
    feed(core, Events(session="s", epoch="e", events=[event(30, 3), event(40, 4)]))
    core.outgoing(Unwatch(session="t"))
    assert connect(core) == [{"type": "watch", "session": "s", "after": 40}]
    assert core.pos is None


def test_what_a_watched_session_no_longer_has_is_not_waited_for() -> None:
    core = ClientCore(Target("local", "ws://h", record=Record.WATCHED))
    connect(core)
    core.outgoing(Watch(session="s", start="start"))
    feed(core, Events(session="s", epoch="e", events=[event(900, 501), event(905, 502)]))
    assert connect(core) == [{"type": "watch", "session": "s", "start": "start"}]
    feed(core, Events(session="s", epoch="e", events=[event(900, 501), event(905, 502)]), Beat(now=9, pos=999))
    assert connect(core) == [{"type": "watch", "session": "s", "after": 905}]


@pytest.mark.parametrize(
    "ended",
    [
        Gone(sessions=("s",)),
        Error(code=ErrorCode.NOT_FOUND, message="no such session", about="watch", session="s"),
        Error(code=ErrorCode.NOT_FOUND, message="no such session", session="s"),
    ],
)
def test_a_session_that_is_gone_is_not_watched_again(ended: Frame) -> None:
    core = ClientCore(Target("local", "ws://h", record=Record.WATCHED))
    connect(core)
    core.outgoing(Watch(session="s"))
    core.outgoing(Watch(session="t"))
    feed(core, ended)
    assert connect(core) == [{"type": "watch", "session": "t"}]


def test_a_session_watched_from_its_head_resumes_from_what_came_first() -> None:
    core = ClientCore(Target("local", "ws://h", record=Record.WATCHED))
    connect(core)
    core.outgoing(Watch(session="s"))
    feed(core, Events(session="s", epoch="e", events=[event(70, 7), event(71, 8)]))
    assert connect(core) == [{"type": "watch", "session": "s", "after": 71}]


def test_a_session_watched_after_a_cursor_counts_from_there() -> None:
    core = ClientCore(Target("local", "ws://h", record=Record.WATCHED))
    connect(core)
    core.outgoing(Watch(session="s", after={"s": WireCursor(epoch="e", seq=6)}))
    feed(core, Events(session="s", epoch="e", events=[event(71, 8)]))
    assert connect(core)[0]["after"] == {"s": {"epoch": "e", "seq": 6}}
    feed(core, Events(session="s", epoch="e", events=[event(70, 7), event(71, 8)]))
    assert connect(core) == [{"type": "watch", "session": "s", "after": 71}]


@pytest.mark.parametrize("instance", ["one", "two"])
def test_a_watched_session_with_another_log_is_read_from_its_start(instance: str) -> None:
    core = ClientCore(Target("local", "ws://h", record=Record.WATCHED))
    connect(core)
    core.outgoing(Watch(session="s"))
    feed(core, Events(session="s", epoch="e", events=[event(70, 7)]))
    if instance == "one":
        feed(core, Events(session="s", epoch="f", events=[event(80, 2)]))
    place = {"start": "start"} if instance == "one" else {"after": {"s": {"epoch": "e", "seq": 7}}}
    assert connect(core, instance=instance) == [{"type": "watch", "session": "s", **place}]
    feed(core, Events(session="s", epoch="g", events=[event(3, 1), event(4, 2)]))
    assert connect(core, instance=instance) == [{"type": "watch", "session": "s", "after": 4}]


def test_where_everything_is_followed_a_session_is_watched_for_its_details_only() -> None:
    core = ClientCore(TARGET)
    connect(core)
    raw = core.outgoing(Watch(session="s", start="start"))
    assert json.loads(raw) == {"type": "watch", "session": "s", "start": "head"}
    feed(core, events([1]))
    assert connect(core, pos=1) == [
        {"type": "watch", "session": "*", "after": 1},
        {"type": "watch", "session": "s", "start": "head"},
    ]


def test_everything_may_be_watched_and_left_by_hand() -> None:
    core = ClientCore(Target("local", "ws://h", record=Record.NONE))
    connect(core)
    core.outgoing(Watch(session="*", after=10))
    feed(core, events([11, 12]))
    assert connect(core, pos=12) == [{"type": "watch", "session": "*", "after": 12}]
    core.outgoing(Unwatch(session="*"))
    assert connect(core) == []


def test_a_watch_from_the_head_learns_from_the_host_where_that_was() -> None:
    core = ClientCore(Target("local", "ws://h", record=Record.NONE))
    connect(core)
    core.outgoing(Watch(session="*"))
    assert connect(core, pos=30) == [{"type": "watch", "session": "*"}]
    feed(core, Watching(session="*", from_pos=30, through=30), events([31]))
    assert connect(core, pos=40) == [{"type": "watch", "session": "*", "after": 31}]


# --- commands ----------------------------------------------------------------------------------


def test_a_command_is_in_flight_until_its_outcome() -> None:
    core = ClientCore(TARGET)
    connect(core)
    first, second = command("1"), command("2")
    assert json.loads(core.command(first)) == json.loads(encode(first))
    core.command(second)
    assert core.pending() == (first, second)
    arrivals = feed(core, Outcome(id="1", outcome=OutcomeKind.APPLIED, info={}, at=1))
    assert outcomes(arrivals) == [("1", OutcomeKind.APPLIED)]
    assert core.pending() == (second,)


def test_a_command_that_cannot_be_written_is_not_in_flight() -> None:
    core = ClientCore(TARGET)
    connect(core)
    with pytest.raises(ProtocolError):
        core.command(Command(id="1", session="s", do=DoSend(text="\ud800")))
    assert core.pending() == ()


def test_commands_without_an_outcome_are_recalled() -> None:
    core = ClientCore(TARGET)
    connect(core)
    for id in ("1", "2", "3"):
        core.command(command(id))
    feed(core, Outcome(id="2", outcome=OutcomeKind.APPLIED, info={}, at=1))
    assert connect(core)[1:] == [{"type": "recall", "ids": ["1", "3"]}]
    feed(core, Outcome(id="1", outcome=OutcomeKind.APPLIED, info={}, at=1))
    assert connect(core)[1:] == [{"type": "recall", "ids": ["3"]}]


def test_many_commands_are_recalled_in_several_frames() -> None:
    core = ClientCore(TARGET)
    connect(core)
    ids = [str(number) for number in range(2001)]
    for id in ids:
        core.command(command(id))
    recalls = connect(core)[1:]
    assert [frame["type"] for frame in recalls] == ["recall"] * 3
    assert [id for frame in recalls for id in frame["ids"]] == ids


@pytest.mark.parametrize("named", ["one", None])
def test_never_received_is_believed_of_the_instance_that_would_have_received_it(named: str | None) -> None:
    core = ClientCore(TARGET)
    connect(core)
    core.command(command("1"))
    connect(core)
    frame = Outcome(id="1", outcome=OutcomeKind.UNDELIVERED, info={}, at=1, instance=named)
    raw = encode(frame)
    assert core.receive(raw) == [Received(frame, raw)]
    assert core.pending() == ()


def test_never_received_is_not_believed_of_a_host_that_may_have_forgotten() -> None:
    core = ClientCore(TARGET)
    connect(core, instance="")
    core.command(command("1"))
    connect(core, instance="")
    arrivals = feed(core, Outcome(id="1", outcome=OutcomeKind.UNDELIVERED, info={}, at=1))
    assert outcomes(arrivals) == [("1", OutcomeKind.UNKNOWN)]


def test_another_instance_makes_commands_in_flight_unknown() -> None:
    core = ClientCore(TARGET)
    connect(core)
    core.command(command("1", "a"))
    core.command(
        Command(id="2", session="b", attempt=3, do=DoApprove(request="r", option="yes", digest="sha256:0", note=None))
    )
    core.opened()
    greeting, *lost = feed(core, welcome(instance="two", now=900))
    assert isinstance(greeting, Received)
    assert isinstance(greeting.frame, Welcome)
    assert outcomes(lost) == [("1", OutcomeKind.UNKNOWN), ("2", OutcomeKind.UNKNOWN)]
    second = lost[1]
    assert isinstance(second, Received)
    assert second.raw is None
    assert isinstance(second.frame, Outcome)
    assert (second.frame.session, second.frame.attempt, second.frame.request) == ("b", 3, "r")
    assert (second.frame.at, second.frame.instance) == (900, "two")
    assert second.frame.reason
    assert core.pending() == ()
    assert [frame["type"] for frame in sent(core)] == ["watch"]


def test_a_host_of_another_protocol_at_the_same_address_changes_nothing() -> None:
    core = ClientCore(TARGET)
    connect(core)
    core.command(command("1"))
    feed(core, events([1, 2]))
    core.opened()
    stranger = welcome(instance="two").model_copy(update={"protocol": "watchfloor.v9"})
    assert outcomes(feed(core, stranger)) == []
    assert sent(core) == []
    assert connect(core, pos=2) == [
        {"type": "watch", "session": "*", "after": 2},
        {"type": "recall", "ids": ["1"]},
    ]


def test_a_host_that_cannot_recall_leaves_commands_unknown() -> None:
    core = ClientCore(TARGET)
    connect(core)
    core.command(command("1"))
    connect(core)
    core.command(command("2"))
    arrivals = feed(core, Error(code=ErrorCode.UNSUPPORTED, message="no recall here", about="recall"))
    assert outcomes(arrivals) == [("1", OutcomeKind.UNKNOWN)]
    assert core.pending() == (command("2"),)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.MALFORMED, OutcomeKind.INVALID),
        (ErrorCode.TOO_LARGE, OutcomeKind.INVALID),
        (ErrorCode.NOT_PERMITTED, OutcomeKind.NOT_PERMITTED),
        (ErrorCode.UNSUPPORTED, OutcomeKind.CAPABILITY_NOT_SUPPORTED),
        (ErrorCode.NOT_FOUND, OutcomeKind.STALE_TARGET),
    ],
)
def test_an_error_about_a_command_is_its_outcome(code: ErrorCode, kind: OutcomeKind) -> None:
    core = ClientCore(TARGET)
    connect(core)
    core.command(command("1"))
    arrivals = feed(core, Error(code=code, message="no", about="1"))
    assert outcomes(arrivals) == [("1", kind)]
    assert core.pending() == ()


def test_an_error_about_something_else_leaves_commands_alone() -> None:
    core = ClientCore(TARGET)
    connect(core)
    core.command(command("1"))
    assert len(feed(core, Error(code=ErrorCode.OTHER, message="no", about="query"))) == 1
    assert len(core.pending()) == 1


@given(
    st.lists(
        st.tuples(st.sampled_from(["send", "outcome", "cut", "restart"]), st.integers(0, 5)),
        max_size=40,
    )
)
def test_every_command_gets_one_outcome_or_stays_pending(steps: list[tuple[str, int]]) -> None:
    """A host that answers at its own time, is cut off and restarted; only a restart makes a command unknown."""
    core = ClientCore(TARGET)
    connect(core)
    instance, made, known = 0, 0, dict[str, int]()
    told: dict[str, list[OutcomeKind]] = {}

    def take(arrivals: Sequence[Arrival]) -> None:
        for id, outcome in outcomes(arrivals):
            told.setdefault(id, []).append(outcome)

    def frame_out(frame: ClientFrame) -> None:
        core.outgoing(frame)

    for step, which in steps:
        match step:
            case "send":
                made += 1
                frame_out(command(str(made)))
                known[str(made)] = instance
            case "outcome" if core.pending():
                pending = core.pending()
                id = pending[which % len(pending)].id
                take(feed(core, Outcome(id=id, outcome=OutcomeKind.APPLIED, info={}, at=1)))
            case "cut" | "restart":
                before = [waiting.id for waiting in core.pending()]
                instance += step == "restart"
                core.opened()
                take(feed(core, welcome(instance=str(instance) if instance else "one")))
                recalled = [frame["ids"] for frame in sent(core) if frame["type"] == "recall"]
                if step == "restart":
                    assert recalled == []
                    assert all(told[id] == [OutcomeKind.UNKNOWN] for id in before)
                else:
                    assert recalled == ([before] if before else [])
            case _:
                pass
    assert all(len(kinds) == 1 for kinds in told.values())
    assert {*told, *(waiting.id for waiting in core.pending())} == {str(n) for n in range(1, made + 1)}
    assert not {*told} & {waiting.id for waiting in core.pending()}


def test_a_console_that_starts_again_asks_from_where_it_stood() -> None:
    core = ClientCore(Target("h", "ws://h", places={"a": ("e1", 7), "b": ("e2", 3)}))
    [watch] = [frame for frame in connect(core, pos=20) if frame["type"] == "watch"]
    assert watch["session"] == "*"
    assert watch["after"] == {"a": {"epoch": "e1", "seq": 7}, "b": {"epoch": "e2", "seq": 3}}
    watched = ClientCore(Target("h", "ws://h", record=Record.WATCHED, places={"a": ("e1", 7)}))
    assert [frame for frame in connect(watched) if frame["type"] == "watch"] == []
