"""The journal's two lines of the table: how fast it writes, and what it costs the event loop.

    python -m benchmarks.kept [--events N] [--rounds N]

Rows a second: the numbered events of the common load, fifty events a frame, with their bytes as they came, until all
are in the file; against the bare loop, which receives and validates that load at one event a frame and keeps nothing.
The lag is by how much a timer of the loop fires too late while 5,000 events a second are read and kept.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks import journal as steady
from benchmarks.figures import ROUNDS, Figure, in_turns, spread, told
from benchmarks.pipeline import BATCH, SESSIONS, one_a_frame
from benchmarks.terminal import load
from benchmarks.traffic import make
from console.journal.journal import Journal
from console.journal.records import Retention
from watchfloor.connector import Received
from watchfloor.protocol.codec import decode_host

EVENTS: Final = 200_000
RATE: Final = 5_000.0
_LAG_S: Final = 5
_CHUNK: Final = 50


async def _rows(arrivals: list[Received], rows: int) -> float:
    with tempfile.TemporaryDirectory(prefix="watchfloor-bench-") as folder:
        journal = Journal(Path(folder) / "journal.db", clock=steady.now_ms, retention=Retention(None, None))
        journal.start()
        await journal.flushed()
        begun = time.perf_counter()
        for at in range(0, len(arrivals), _CHUNK):
            journal.take("bench", arrivals[at : at + _CHUNK])
            while journal.full:  # noqa: ASYNC110 - nobody is told when there is room
                await asyncio.sleep(0.005)
        await journal.flushed()
        took = time.perf_counter() - begun
        await journal.close()
        if journal.lost:
            raise SystemExit(f"{journal.lost} events were lost")
        return rows / took


async def _lag() -> float:
    with tempfile.TemporaryDirectory(prefix="watchfloor-bench-") as folder:
        journal = Journal(Path(folder) / "journal.db", clock=steady.now_ms)
        journal.start()
        raws = steady.frames(int(RATE * _LAG_S))
        late = await steady.lag(raws, RATE, lambda one: journal.take("bench", [one]))
        await journal.close()
        return late[len(late) * 99 // 100]


def measure(rounds: int = ROUNDS, events: int = EVENTS) -> list[Figure]:
    """Both figures."""
    with tempfile.TemporaryDirectory(prefix="watchfloor-bench-") as folder:
        traffic = make(Path(folder) / "load", events=events, sessions=SESSIONS, batch=BATCH)
        raws = list(traffic.payloads())
    arrivals = [Received(decode_host(raw).frame, raw) for raw in raws]
    rows = events - traffic.kinds["delta"]
    ours, loop = in_turns(lambda: asyncio.run(_rows(arrivals, rows)), lambda: one_a_frame(events), rounds)
    lags = [asyncio.run(_lag()) for _ in range(rounds)]
    return [
        Figure("journal with raw bytes", ours, "rows/s", 1.0, 1.8, loop, more=True),
        Figure("journal: lag of the event loop, p99", spread(lags), "ms", 10, 5),
    ]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kept", description="the journal's figures")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    figures = measure(args.rounds, args.events)
    print(f"{args.events:,} events, {args.rounds} rounds in turns; {load()}")
    print(told(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
