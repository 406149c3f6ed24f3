"""What the console uses of a processor while nothing happens, with one source of a thousand sessions.

    python -m benchmarks.idle [--seconds N] [--rounds N]

Per cent of one processor, as the system counts it for the whole process.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Final

from benchmarks.figures import Figure, spread, told
from benchmarks.load import Sender, cpu_s
from benchmarks.place import place
from benchmarks.terminal import CONSOLE, Run, load

SESSIONS: Final = 1_000
SECONDS: Final = 60.0
_SETTLES_S: Final = 5.0
_SIZE: Final = (160, 50)


def measure(seconds: float = SECONDS, rounds: int = 1) -> list[Figure]:
    """One figure."""
    used: list[float] = []
    with place() as env, Sender(events=0, sessions=SESSIONS, hold=True) as sender:
        for _ in range(rounds):
            with Run((*CONSOLE, "connect", sender.url), _SIZE, env) as run:
                run.wait_for(f"{SESSIONS:,} sessions".encode())
                run.take_in(time.monotonic_ns() + int(_SETTLES_S * 1e9))
                begun, cpu = time.monotonic(), cpu_s(run.process.pid)
                run.take_in(time.monotonic_ns() + int(seconds * 1e9))
                used.append((cpu_s(run.process.pid) - cpu) / (time.monotonic() - begun) * 100)
    return [Figure(f"processor use, idle, {SESSIONS:,} sessions", spread(used), "%", 3.0, 1.0)]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle", description="processor use while idle")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    figures = measure(args.seconds, args.rounds)
    print(f"over {args.seconds:g} s; {load()}")
    print(told(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
