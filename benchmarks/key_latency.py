"""How long a key takes to be seen, with a thousand sessions and thousands of events a second coming in.

    python -m benchmarks.key_latency [--agents N] [--rate EVENTS_PER_S] [--keys N] [--size COLUMNSxROWS]

Each key raises a number on the screen by one. Keys are sent on schedule, whether or not the one before was answered,
so that a stall is not hidden. The time runs from the sending of a key to the read that holds its number, or a higher
one. A minimal application of the toolkit, which has nothing else to do, is measured in the same run.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, NamedTuple

from benchmarks.plain import READY
from benchmarks.terminal import CONSOLE, PLAIN, Chunk, Run, load

_GAP_MS: Final = (30, 70)
_SETTLES_S: Final = 3.0
_TAIL_S: Final = 1.5
_NUMBER: Final = re.compile(rb"keys=(\d+)(?!\d)")


class Figures(NamedTuple):
    """Milliseconds of the keys that were seen, in order of size, and how many never were."""

    taken: list[float]
    lost: int

    def at(self, share: float) -> float:
        """The time within which this share of the keys was seen."""
        return self.taken[min(len(self.taken) - 1, int(share * len(self.taken)))] if self.taken else float("nan")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.key_latency", description="from key to paint")
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--rate", type=int, default=2_000, help="events a second of all of them")
    parser.add_argument("--keys", type=int, default=300)
    parser.add_argument("--size", default="160x50")
    args = parser.parse_args()
    columns, _, rows = args.size.partition("x")
    size = (int(columns), int(rows))
    with tempfile.TemporaryDirectory(prefix="watchfloor-bench-") as folder:
        env = {"XDG_CONFIG_HOME": folder, "XDG_STATE_HOME": folder, "WATCHFLOOR_RUNTIME_DIR": f"{folder}/run"}
        env["WATCHFLOOR_DEBUG_KEYS"] = "1"
        with _Load(args.agents, args.rate) as source:
            ready = (b"STATE", f"{args.agents:,} sessions".encode())
            console = _measure((*CONSOLE, "connect", source.url), size, env, ready, args.keys)
        plain = _measure(PLAIN, size, env, (READY.encode(),), args.keys)
    print(f"from key to paint at {args.size}, {args.keys} keys; {load()}")
    print(f"{args.agents:,} sessions; {source.rate:,.0f} events/s taken of {args.rate:,} sent")
    for what, figures in (("minimal application", plain), ("console", console)):
        worst = figures.taken[-1] if figures.taken else float("nan")
        print(
            f"  {what:20} p50 {figures.at(0.5):5.1f} ms   p90 {figures.at(0.9):5.1f}   p99 {figures.at(0.99):5.1f}"
            f"   max {worst:5.1f}   lost {figures.lost}"
        )
    return 0


def _measure(
    argv: Sequence[str], size: tuple[int, int], env: dict[str, str], ready: tuple[bytes, ...], keys: int
) -> Figures:
    rng = random.Random(1)  # noqa: S311 - the gaps are the same each time
    with Run(argv, size, env) as run:
        run.wait_for(*ready)
        run.take_in(time.monotonic_ns() + int(_SETTLES_S * 1e9))
        sent: list[int] = []
        due = time.monotonic_ns()
        for _ in range(keys):
            sent.append(run.press(b"j"))
            due += int(rng.uniform(*_GAP_MS) * 1e6)
            run.take_in(due)
        run.take_in(time.monotonic_ns() + int(_TAIL_S * 1e9))
        return _figures(sent, run.chunks)


def _figures(sent: Sequence[int], chunks: Sequence[Chunk]) -> Figures:
    shown: list[tuple[int, int]] = []
    carry = b""
    for at, data in chunks:
        text = carry + data
        # A number at the very end may go on in the next piece.
        found = [match for match in _NUMBER.finditer(text) if match.end() < len(text)]
        shown.extend((at, int(match[1])) for match in found)
        carry = text[max(found[-1].end() if found else 0, len(text) - 16) :]
    taken: list[float] = []
    for number, key in enumerate(sent, 1):
        seen = next((at for at, value in shown if value >= number and at >= key), None)
        if seen is not None:
            taken.append((seen - key) / 1e6)
    return Figures(sorted(taken), len(sent) - len(taken))


class _Load:
    """A host that streams, in a process of its own. A context manager."""

    def __init__(self, agents: int, rate: int) -> None:
        words = [sys.executable, "-m", "benchmarks.stream", "--sessions", str(agents), "--rate", str(rate)]
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.url = self._line().partition("listening on ")[2]
        self.rate = float("nan")
        """Events a second that its client took, once it has ended."""

    def __enter__(self) -> _Load:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        sent, _, took = self._line().partition(" ")
        if sent and float(took):
            self.rate = int(sent) / float(took)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _line(self) -> str:
        return self._process.stdout.readline().strip() if self._process.stdout is not None else ""


if __name__ == "__main__":
    sys.exit(main())
