"""Frames with pieces broken, doubled, cut and joined, from the seeds that are known to be odd.

Whatever comes of them is read or counted, and neither ends the console nor stays in its memory. `make torture` tries
more of them.
"""

from __future__ import annotations

import os
import random
from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.apply import Fleet
from console.fleet.state import KEEP_FAULTS
from console.fleet.views.sources import FaultRows, source_lines
from console.hub.unfit import unfit
from console.intake import Intake
from tests.fixtures.odd import NOW, ODD, UNREADABLE, batch, message, request, sessions, summary
from watchfloor.client import ClientCore
from watchfloor.connector import Target
from watchfloor.protocol.codec import encode
from watchfloor.protocol.frames import HostInfo, Welcome
from watchfloor.words import PROTOCOL, Role

TRIES: Final = 20_000 if "WATCHFLOOR_TORTURE" in os.environ else 150
LONGEST: Final = 20_000
"""Bytes of a seed that is mutated: longer ones only take longer."""
_WELCOME: Final = Welcome(
    protocol=PROTOCOL, host=HostInfo(name="h", version="1", instance="one"), principal="p", role=Role.OPERATOR, pos=0,
    heartbeat_s=15, now=NOW,
)  # fmt: skip
SEEDS: Final = (
    encode(_WELCOME),
    batch(message(1), message(2)),
    sessions(summary("s1"), summary("s2", parent="s1")),
    request(),
    b'{"type":"beat","now":1,"pos":3}',
    b'{"type":"gap","session":"s1","epoch":"e","from_seq":1,"to_seq":9}',
    b'{"type":"lagged","session":"s1","epoch":"e","from_seq":1,"to_seq":9}',
    b'{"type":"watching","session":"*","from_pos":0,"through":9}',
    b'{"type":"outcome","id":"1","outcome":"applied","at":1}',
    b'{"type":"gone","sessions":["s1"]}',
    *(raw for raw in (*UNREADABLE.values(), *ODD.values()) if len(raw) <= LONGEST),
)
_PIECES: Final = (
    b"null",
    b"{}",
    b"[]",
    b'""',
    b"NaN",
    b"-1",
    b"1e999",
    b"9" * 400,
    rb'"\ud800"',
    b"\xff",
    b"\x00",
    b'"s1"',
)


class Console:
    """One source from its bytes to what an operator reads."""

    def __init__(self) -> None:
        self._core = ClientCore(Target("here", "ws://h", client="c", version="1", user="ann"))
        self._core.opened()
        self._intake = Intake("here", lambda: NOW)
        self.fleet = Fleet(unfit)
        self.takes(encode(_WELCOME))

    def takes(self, raw: bytes) -> None:
        """What the network brings."""
        self.fleet.apply(self._intake.arrivals(self._core.receive(raw)), NOW)
        self._core.to_send()

    def reads(self) -> None:
        """What the screen of the sources shows of it."""
        source = self.fleet.sources["here"]
        rows = FaultRows(source)
        assert len(rows) <= KEEP_FAULTS
        for place in range(len(rows)):
            assert all(len(text) < 10_000 for text, _ in rows.row(place))
        assert source_lines(self.fleet, "here", NOW, None)


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """The same with one to four faults."""
    made = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(made) + 1)
        match rng.randrange(6):
            case 0:
                del made[at : at + rng.randint(1, 12)]
            case 1:
                made[at:at] = rng.choice(_PIECES)
            case 2:
                made[at:at] = made[at : at + rng.randint(1, 40)]
            case 3 if at < len(made):
                made[at] = rng.randrange(256)
            case 4:
                other = rng.choice(SEEDS)
                made[at:] = other[rng.randrange(len(other) + 1) :]
            case _:
                # A value for another one, which leaves the frame readable most often.
                end = made.find(b",", at)
                start = made.rfind(b":", 0, max(at, 1)) + 1
                if 0 < start < end:
                    made[start:end] = rng.choice(_PIECES)
    return bytes(made)


@settings(max_examples=TRIES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    picks=st.lists(st.tuples(st.integers(0, len(SEEDS) - 1), st.integers(0, 2**32)), min_size=1, max_size=12),
    whole=st.booleans(),
)
def test_nothing_made_of_odd_frames_ends_the_console_or_costs_the_next_frame(
    picks: list[tuple[int, int]], whole: bool
) -> None:
    console = Console()
    for pick, seed in picks:
        if whole:
            console.takes(SEEDS[pick])
        console.takes(mutated(SEEDS[pick], random.Random(seed)))
    console.takes(sessions(summary("after")))
    assert any(key.session == "after" for key in console.fleet.sessions)
    console.reads()


def test_what_cannot_be_read_does_not_pile_up_however_much_comes() -> None:
    console, rng = Console(), random.Random(5)
    for _ in range(20_000 if TRIES > 1_000 else 3_000):
        console.takes(mutated(rng.choice(SEEDS), rng))
    source = console.fleet.sources["here"]
    assert source.fault_count > 500
    kept = sum(len(fault.raw) + len(fault.reason) for fault in source.faults)
    assert kept < KEEP_FAULTS * 9_000
    assert len(console.fleet.sessions) < 2_000
    console.reads()
