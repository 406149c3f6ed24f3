"""How long a key takes to be seen, with ten thousand sessions and thousands of events a second coming in.

    python -m benchmarks.key_latency [--agents N] [--rate EVENTS_PER_S] [--keys N] [--rounds N] [--size COLUMNSxROWS]

Each key raises a number on the screen by one. Keys are sent on schedule, whether or not the one before was answered,
so that a stall is not hidden. The time runs from the sending of a key to the read that holds its number, or a higher
one. A minimal application of the toolkit, which has nothing else to do, is measured in the same run. The best of the
rounds counts: what else the machine does can only add to it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from benchmarks.figures import Figure, Spread, spread, told
from benchmarks.keys import DEBUG, Times, Typist
from benchmarks.load import Sender, cpu_s
from benchmarks.place import place
from benchmarks.plain import READY
from benchmarks.terminal import CONSOLE, PLAIN, Run, load

SESSIONS: Final = 10_000
RATE: Final = 5_000
KEYS: Final = 1_000
ROUNDS: Final = 3
_SIZE: Final = (160, 50)
_GAP_MS: Final = (30, 70)
_SETTLES_S: Final = 3.0
_TAIL_S: Final = 1.5


class Measured(NamedTuple):
    """The keys of one run, and the share of a processor that the program used meanwhile."""

    keys: Times
    cpu: float


def measure(
    *, rounds: int = ROUNDS, keys: int = KEYS, sessions: int = SESSIONS, rate: int = RATE, size: tuple[int, int] = _SIZE
) -> list[Figure]:
    """The middle and the ninety-ninth of a hundred keys."""
    console: list[Measured] = []
    plain: list[Measured] = []
    taken: list[str] = []
    # Events for as long as keys are pressed, and some more.
    events = rate * int(keys * sum(_GAP_MS) / 2_000 + 20)
    with place() as env:
        for _ in range(rounds):
            with Sender(events=events, sessions=sessions, rate=rate) as sender:
                ready = (b"STATE", f"{sessions:,} sessions".encode())
                console.append(_measured((*CONSOLE, "connect", sender.url), size, {**env, **DEBUG}, ready, keys))
                done = sender.stop()
                taken.append(
                    f"{done.rate:,.0f} events/s sent with {done.cpu_s / done.took_s:.0%} of a processor" if done else ""
                )
            plain.append(_measured(PLAIN, size, {**env, **DEBUG}, (READY.encode(),), keys))
    best, base = min(console, key=_p99), min(plain, key=_p99)
    note = (
        f"{taken[console.index(best)]}; the console used {best.cpu:.0%}; {best.keys}; minimal application {base.keys}"
    )
    return [
        Figure("key to paint, p50", _best([one.keys.at(0.5) for one in console], best.keys.at(0.5)), "ms", 10, 5),
        Figure("key to paint, p99", _best([_p99(one) for one in console], _p99(best)), "ms", 50, 35, note=note),
    ]


def _p99(one: Measured) -> float:
    return one.keys.at(0.99)


def _best(taken: Sequence[float], best: float) -> Spread:
    return spread(taken)._replace(median=best)


def _measured(
    argv: Sequence[str], size: tuple[int, int], env: dict[str, str], ready: tuple[bytes, ...], keys: int
) -> Measured:
    with Run(argv, size, env) as run:
        run.wait_for(*ready)
        run.take_in(time.monotonic_ns() + int(_SETTLES_S * 1e9))
        begun, cpu = time.monotonic(), cpu_s(run.process.pid)
        typist = Typist(run, _GAP_MS)
        typist.press(keys)
        used = (cpu_s(run.process.pid) - cpu) / (time.monotonic() - begun)
        run.take_in(time.monotonic_ns() + int(_TAIL_S * 1e9))
        return Measured(typist.times(), used)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.key_latency", description="from key to paint")
    parser.add_argument("--agents", type=int, default=SESSIONS)
    parser.add_argument("--rate", type=int, default=RATE, help="events a second of all of them")
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--size", default="160x50")
    args = parser.parse_args()
    columns, _, rows = args.size.partition("x")
    figures = measure(
        rounds=args.rounds, keys=args.keys, sessions=args.agents, rate=args.rate, size=(int(columns), int(rows))
    )
    print(f"{args.agents:,} sessions at {args.size}, {args.keys} keys, best of {args.rounds}; {load()}")
    print(told(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
