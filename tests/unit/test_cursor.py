"""How far a client resumes, by properties: nothing that would have come is ever passed over."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence, Set
from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from watchfloor.client import ClientCore
from watchfloor.connector import Target
from watchfloor.cursor import MAX_ISLANDS, Cursor
from watchfloor.protocol.codec import encode
from watchfloor.protocol.events import Message
from watchfloor.protocol.frames import Beat, Events, Frame, HostInfo, Watching, Welcome
from watchfloor.words import PROTOCOL, Role


def events(positions: Iterable[int], session: str) -> Events:
    return Events(session=session, epoch="e", events=[Message(pos=pos, seq=pos, at=1, text="x") for pos in positions])


def connect(core: ClientCore, pos: int) -> int:
    """Open a connection to a host whose log ends at `pos`; returns after which pos the core resumes."""
    core.opened()
    info = HostInfo(name="h", version="1", instance="one")
    core.receive(
        encode(
            Welcome(protocol=PROTOCOL, host=info, principal="ann", role=Role.OPERATOR, pos=pos, heartbeat_s=15, now=7)
        )
    )
    [watch] = [json.loads(raw) for raw in core.to_send()]
    return int(watch.get("after", 0))


@given(st.lists(st.integers(1, 60)), st.integers(0, 20))
def test_a_cursor_stands_before_the_first_number_that_was_not_received(numbers: list[int], start: int) -> None:
    cursor = Cursor(start)
    held = set(range(1, start + 1))
    for number in numbers:
        cursor.add(number)
        held.add(number)
        assert cursor.through == min(set(range(1, 100)) - held) - 1


@given(st.lists(st.integers(1, 60)), st.integers(0, 60), st.lists(st.integers(1, 60)))
def test_a_cursor_that_skips_takes_what_it_skipped_as_received(
    before: list[int], skipped: int, after: list[int]
) -> None:
    cursor = Cursor()
    for number in before:
        cursor.add(number)
    cursor.skip_to(skipped)
    for number in after:
        cursor.add(number)
    held = {*before, *after, *range(skipped + 1)}
    assert cursor.through == min(set(range(1, 100)) - held) - 1


@given(st.lists(st.integers(1, 60)), st.lists(st.integers(1, 60)))
def test_a_cursor_that_settles_stands_at_the_highest_number(before: list[int], after: list[int]) -> None:
    cursor = Cursor()
    for number in before:
        cursor.add(number)
    cursor.settle()
    assert cursor.through == max(before, default=0)
    for number in after:
        cursor.add(number)
    held = {*range(max(before, default=0) + 1), *after}
    assert cursor.through == min(set(range(1, 100)) - held) - 1
    cursor.forget_beyond()
    stands = cursor.through
    cursor.settle()
    assert cursor.through == stands


def test_a_cursor_remembers_a_bounded_number_of_ranges_and_forgets_on_the_safe_side() -> None:
    cursor = Cursor()
    last = 2 * (MAX_ISLANDS + 10)
    for number in range(2, last + 1, 2):
        cursor.add(number)
    for number in range(1, last + 1, 2):
        cursor.add(number)
    assert 2 * MAX_ISLANDS <= cursor.through < last


class Log:
    """A host's log, of which some is forgotten: what a watch sends of it."""

    def __init__(self, sessions: Sequence[str], forgotten: Set[int]) -> None:
        self.pos = len(sessions)
        self.entries = [(pos, session) for pos, session in enumerate(sessions, start=1) if pos not in forgotten]
        self.kept = {pos for pos, _ in self.entries}

    def after(self, pos: int, size: int) -> list[Frame]:
        """The events beyond `pos` in their order, `size` at a time; a frame holds neighbours of one session."""
        rest = [entry for entry in self.entries if entry[0] > pos]
        frames: list[Frame] = []
        for begin in range(0, len(rest), size):
            for session, run in groupby(rest[begin : begin + size], key=lambda entry: entry[1]):
                frames.append(events([pos for pos, _ in run], session))
        return frames


connection = st.fixed_dictionaries(
    {
        "cut": st.integers(0, 40),
        "size": st.integers(1, 12),
        "answered": st.booleans(),
        "order": st.randoms(use_true_random=False),
        "repeat": st.floats(0, 0.5),
        "beats": st.floats(0, 0.5),
        "window": st.integers(1, 5),
    }
)


def shuffled(frames: list[Frame], window: int, rng: random.Random) -> list[Frame]:
    """Neighbouring events frames change places; no other frame is overtaken."""
    result: list[Frame] = []
    for plain, run in groupby(frames, key=lambda frame: isinstance(frame, Events)):
        part = list(run)
        for begin in range(0, len(part), window):
            few = part[begin : begin + window]
            if plain:
                rng.shuffle(few)
            result += few
    return result


def deliver(core: ClientCore, log: Log, how: dict[str, Any], received: set[int]) -> None:
    """One connection that delivers the log after what was asked for, badly, until it is cut."""
    after, rng = connect(core, log.pos), how["order"]
    frames: list[Frame] = [Watching(session="*", from_pos=after, through=log.pos)] if how["answered"] else []
    for frame in log.after(after, how["size"]):
        frames += [frame] * (1 + (rng.random() < how["repeat"]))
        frames += [Beat(now=1, pos=log.pos)] * (rng.random() < how["beats"])
    for frame in shuffled(frames, how["window"], rng)[: how["cut"]]:
        core.receive(encode(frame))
        if isinstance(frame, Events):
            received |= {event.pos for event in frame.events if event.pos is not None}
        assert core.pos is not None
        assert received >= {pos for pos in log.kept if pos <= core.pos}, "the cursor passed what would have come"
    core.closed()


@given(
    st.lists(st.sampled_from("abc"), max_size=40),
    st.sets(st.integers(1, 40)),
    st.lists(connection, max_size=8),
)
def test_however_connections_end_nothing_is_passed_over(
    sessions: list[str], forgotten: set[int], connections: list[dict[str, Any]]
) -> None:
    log, core, received = Log(sessions, forgotten), ClientCore(Target("local", "ws://h")), set[int]()
    for how in connections:
        deliver(core, log, how, received)
    for frame in log.after(connect(core, log.pos), 5):
        core.receive(encode(frame))
        assert isinstance(frame, Events)
        received |= {event.pos for event in frame.events if event.pos is not None}
    assert received == log.kept
    core.receive(encode(Beat(now=1, pos=log.pos)))
    assert core.pos == max(log.kept, default=0)
