"""How long until something of use is on the screen, against the first paint of a minimal application of the toolkit.

    python -m benchmarks.first_frame [--rounds N] [--size COLUMNSxROWS]

First the header of the roster, and how each source is heard, with two sources that nobody answers for. Then the first
row of a session of a source that is live. All three programs run in turns, so that whatever else the machine does falls
on each. Times run from the start of the process to the read that completes the text.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from benchmarks.figures import ROUNDS, Figure, spread, told
from benchmarks.load import Sender
from benchmarks.place import place
from benchmarks.plain import READY
from benchmarks.terminal import CONSOLE, PLAIN, Run, load
from benchmarks.traffic import name

_SOURCES: Final = {"alpha": "ws://127.0.0.1:9", "beta": "ws://127.0.0.1:10"}
_SIZE: Final = (120, 40)


def measure(rounds: int = ROUNDS, size: tuple[int, int] = _SIZE) -> list[Figure]:
    """Milliseconds to the first frame, and to the first live row."""
    plain: list[float] = []
    frame: list[float] = []
    row: list[float] = []
    heard = [f"{source} connecting".encode() for source in _SOURCES]
    with place(_SOURCES) as env, place() as other, Sender(events=0, sessions=8, hold=True) as sender:
        # The first round fills the caches of the interpreter and of the system, and does not count.
        for counts in [False, *[True] * rounds]:
            a = _shown(PLAIN, size, env, READY.encode())
            b = _shown(CONSOLE, size, env, b"STATE", *heard)
            c = _shown((*CONSOLE, "connect", sender.url), size, other, name(1).encode())
            if counts:
                plain.append(a)
                frame.append(b)
                row.append(c)
    base = spread(plain)
    return [
        Figure("first frame with roster header and contacts", spread(frame), "ms", 1.5, 1.2, base),
        Figure("first live row", spread(row), "ms", 3.0, 2.0, base),
    ]


def _shown(argv: tuple[str, ...], size: tuple[int, int], env: dict[str, str], *texts: bytes) -> float:
    """Milliseconds from the start until all texts are out."""
    with Run(argv, size, env) as run:
        return (run.wait_for(*texts) - run.begun) / 1e6


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_frame", description="time to the first frame")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--size", default="120x40")
    args = parser.parse_args()
    columns, _, rows = args.size.partition("x")
    figures = measure(args.rounds, (int(columns), int(rows)))
    print(f"at {args.size}, {args.rounds} rounds in turns; {load()}")
    print(told(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
