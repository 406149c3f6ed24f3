"""What it costs to take events in, without a screen: decoded, cleaned, applied, and the roster arranged.

    python -m benchmarks.intake [--events N] [--rounds N]

Microseconds of the processor an event, with ten thousand sessions against a hundred: what an event costs must not hang
on how many sessions there are. The roster is arranged anew behind each 200 events, as at 5,000 a second.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from benchmarks.figures import ROUNDS, Figure, in_turns, told
from benchmarks.terminal import load
from benchmarks.traffic import BEGAN, EPOCH, Traffic, make, name
from console.fleet.apply import Fleet
from console.fleet.changes import Changes
from console.fleet.facts import Fact
from console.fleet.views.roster import RosterView
from console.intake import Intake
from themes.loader import load_glyphs
from watchfloor.client import ClientCore
from watchfloor.connector import Target

EVENTS: Final = 100_000
MANY: Final = 10_000
FEW: Final = 100
_AT_ONCE: Final = 200


class Console:
    """All of a console but its screen and its sockets, with so many sessions."""

    def __init__(self, sessions: int) -> None:
        self._core = ClientCore(Target(name="bench", url="ws://127.0.0.1:9"), streams=True)
        self._core.opened()
        self._intake = Intake("bench", lambda: BEGAN)
        self.fleet = Fleet()
        self.view = RosterView(self.fleet, glyphs())
        for raw in greeting(sessions):
            self.take([raw])
        self.view.refresh(None, BEGAN)

    def take(self, raws: Iterable[bytes]) -> Changes:
        """Take up some frames."""
        facts: list[Fact] = []
        for raw in raws:
            for arrival in self._core.receive(raw):
                facts += self._intake.arrival(arrival)
        return self.fleet.apply(facts, BEGAN)


def glyphs() -> dict[str, str]:
    """What rows are drawn with."""
    found = load_glyphs("unicode")
    return {**found.states, **found.overlays, **found.tree, **found.marks, "levels": found.levels}


def greeting(sessions: int) -> list[bytes]:
    """What a host of so many sessions says first."""
    host = {"name": "bench", "version": "1", "instance": "one"}
    welcome = {"type": "welcome", "protocol": "watchfloor.v1", "host": host, "principal": "bench", "role": "operator"}
    known = {"lifecycle": "running", "attempt": 1, "epoch": EPOCH, "profile": "p", "since": BEGAN}
    listed = [{"id": name(n), "name": name(n), **known} for n in range(sessions)]
    frames = [
        {**welcome, "pos": 0, "heartbeat_s": 15, "now": BEGAN},
        {"type": "profiles", "profiles": {"p": {"capabilities": {"pause": {}, "stop": {}}, "traits": {}}}},
        {"type": "sessions", "sessions": listed, "listed": True},
        {"type": "watching", "session": "*", "from_pos": 0, "through": 0},
    ]
    return [json.dumps(frame).encode() for frame in frames]


def cost(traffic: Traffic) -> float:
    """Microseconds of the processor for each event."""
    console = Console(traffic.sessions)
    raws = list(traffic.payloads())
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        begun = time.process_time()
        for at in range(0, len(raws), _AT_ONCE):
            console.view.refresh(console.take(raws[at : at + _AT_ONCE]), BEGAN)
        return (time.process_time() - begun) / traffic.events * 1e6
    finally:
        gc.enable()
        gc.unfreeze()


def measure(events: int = EVENTS, rounds: int = ROUNDS) -> list[Figure]:
    """One figure."""
    with tempfile.TemporaryDirectory(prefix="watchfloor-bench-") as folder:
        many = make(Path(folder) / "many", events=events, sessions=MANY)
        few = make(Path(folder) / "few", events=events, sessions=FEW)
        a, b = in_turns(lambda: cost(many), lambda: cost(few), rounds)
    return [Figure(f"cost per event, {MANY:,} sessions against {FEW}", a, "us", 1.3, 1.1, b)]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intake", description="cost per event")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    figures = measure(args.events, args.rounds)
    print(f"{args.events:,} events, {args.rounds} rounds in turns; {load()}")
    print(told(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
