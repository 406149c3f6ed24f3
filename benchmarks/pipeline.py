"""How many events a second the console takes in, from the socket to what is painted, while keys are pressed.

    python -m benchmarks.pipeline [--events N] [--rounds N]

The console runs in a real terminal on ten thousand sessions; a sender sends all events as fast as they are taken. The
time runs from the first byte that is sent until the end is on the screen. In the same run, in turns, a bare loop takes
the same events at one a frame: it receives them and has pydantic validate them, and keeps nothing. Live: twenty keys a
second are pressed meanwhile. Flat out: one every two seconds, as by somebody who only watches.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median
from typing import Final, NamedTuple

from benchmarks.figures import ROUNDS, Figure, Spread, spread, told
from benchmarks.keys import DEBUG, Times, Typist
from benchmarks.load import Sender, bare, resident_mb
from benchmarks.place import place
from benchmarks.terminal import CONSOLE, Run, load

SESSIONS: Final = 10_000
EVENTS: Final = 300_000
BATCH: Final = 50
_SIZE: Final = (160, 50)
_PATIENCE_S: Final = 120.0
_LIVE_GAP_MS: Final = (30, 70)
_FLAT_GAP_MS: Final = (1_900, 2_100)
_LIVE_MS: Final = 50.0
_FLAT_MS: Final = 500.0


class Taken(NamedTuple):
    """One run: events a second, what became of the keys, the sender's share of a processor, megabytes at the end."""

    rate: float
    keys: Times
    sender: float
    resident: float


def console(events: int, *, batch: int, gap_ms: tuple[int, int], patience_s: float = _PATIENCE_S) -> Taken:
    """Let the console take so many events. Raises TimeoutError where their end does not come to be painted."""
    ready = f"{SESSIONS:,} sessions".encode()
    end = f"{SESSIONS + 1:,} sessions".encode()
    with (
        place() as env,
        Sender(events=events, sessions=SESSIONS, batch=batch) as sender,
        Run((*CONSOLE, "connect", sender.url), _SIZE, {**env, **DEBUG}) as run,
    ):
        run.wait_for(ready)
        typist = Typist(run, gap_ms)
        at = typist.press_until(end, patience_s)
        if at is None:
            raise TimeoutError("the end of what was sent is not on the screen")
        run.take_in(time.monotonic_ns() + 500_000_000)
        sent = sender.sent(5.0)
        if sent is None:
            raise TimeoutError("the sender does not say what it has sent")
        # What is on its way when all is sent is taken in behind that: the end on the screen is what counts.
        took_s = (at - sent.begun) / 1e9
        return Taken(events / took_s, typist.times(), sent.cpu_s / sent.took_s, resident_mb(run.process.pid))


def one_a_frame(events: int) -> float:
    """Events a second of the bare loop."""
    with Sender(events=events, sessions=SESSIONS) as sender:
        return bare(sender.url).rate


def measure(rounds: int = ROUNDS, events: int = EVENTS) -> list[Figure]:
    """Four ways to take the same load, in turns with the bare loop."""
    ways = {
        ("live", 1): (_LIVE_GAP_MS, 0.2, 0.4),
        ("live", BATCH): (_LIVE_GAP_MS, 0.8, 1.5),
        ("flat out", 1): (_FLAT_GAP_MS, 0.35, 0.6),
        ("flat out", BATCH): (_FLAT_GAP_MS, 1.0, 2.0),
    }
    loop: list[float] = []
    runs: dict[tuple[str, int], list[Taken]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, (gap_ms, _, _) in ways.items():
            loop.append(one_a_frame(events))
            runs[way].append(console(events, batch=way[1], gap_ms=gap_ms))
    figures: list[Figure] = []
    for (name, batch), taken in runs.items():
        _, must, aim = ways[name, batch]
        held = "one event a frame" if batch == 1 else f"{batch} events a frame"
        figures.append(
            Figure(
                f"pipeline {name}, {held}",
                spread([one.rate for one in taken]),
                "events/s",
                must,
                aim,
                spread(loop),
                more=True,
                note=_note(name, taken),
            )
        )
    return figures


def _note(name: str, taken: list[Taken]) -> str:
    if name == "live":
        p99 = median(one.keys.at(0.99) for one in taken)
        keys = f"keys meanwhile: p99 {p99:.0f} ms ({'within' if p99 <= _LIVE_MS else 'beyond'} {_LIVE_MS:.0f})"
    else:
        worst = max(one.keys.worst for one in taken)
        keys = f"slowest key {worst:.0f} ms ({'within' if worst <= _FLAT_MS else 'beyond'} {_FLAT_MS:.0f})"
    sender = median(one.sender for one in taken)
    return f"{keys}; the sender used {sender:.0%} of a processor; {_resident(taken)} MB resident at the end"


def _resident(taken: list[Taken]) -> Spread:
    return spread([one.resident for one in taken])


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description="events a second")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    figures = measure(args.rounds, args.events)
    print(f"{args.events:,} events of {SESSIONS:,} sessions, {args.rounds} rounds; {load()}")
    print(told(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
