"""What the console holds of memory after a million events of ten thousand sessions.

    python -m benchmarks.memory [--events N]

Megabytes resident, a moment after the last event was painted.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from benchmarks import pipeline
from benchmarks.figures import Figure, spread, told
from benchmarks.terminal import load

EVENTS: Final = 1_000_000
_GAP_MS: Final = (1_900, 2_100)
_PATIENCE_S: Final = 400.0


def measure(events: int = EVENTS) -> list[Figure]:
    """One figure, from one run: it takes its time."""
    taken = pipeline.console(events, batch=1, gap_ms=_GAP_MS, patience_s=_PATIENCE_S)
    name = f"resident memory after {events:,} events of {pipeline.SESSIONS:,} sessions"
    return [Figure(name, spread([taken.resident]), "MB", 300, 200, note=f"taken in at {taken.rate:,.0f} events/s")]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description="resident memory")
    parser.add_argument("--events", type=int, default=EVENTS)
    args = parser.parse_args()
    figures = measure(args.events)
    print(load())
    print(told(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
