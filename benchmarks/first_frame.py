"""How long until the first frame that is of use, against the first paint of a minimal application of the toolkit.

    python -m benchmarks.first_frame [--rounds N] [--size COLUMNSxROWS]

Of use is: the header of the roster stands, and how each source is heard. Both programs run in turns, so that whatever
else the machine does falls on both. Times run from the start of the process to the read that completes the text.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.plain import READY
from benchmarks.terminal import CONSOLE, PLAIN, Run, load

_SOURCES: Final = {"alpha": "ws://127.0.0.1:9", "beta": "ws://127.0.0.1:10"}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_frame", description="time to the first frame")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", default="120x40")
    args = parser.parse_args()
    columns, _, rows = args.size.partition("x")
    size = (int(columns), int(rows))
    plain: list[float] = []
    console: list[float] = []
    with tempfile.TemporaryDirectory(prefix="watchfloor-bench-") as folder:
        env = {"XDG_CONFIG_HOME": folder, "XDG_STATE_HOME": folder, "WATCHFLOOR_RUNTIME_DIR": f"{folder}/run"}
        config = Path(folder) / "watchfloor" / "config.toml"
        config.parent.mkdir()
        config.write_text("".join(f'[[source]]\nname = "{name}"\nurl = "{url}"\n' for name, url in _SOURCES.items()))
        heard = [f"{name} connecting".encode() for name in _SOURCES]
        # The first round fills the caches of the interpreter and of the system, and does not count.
        for counts in [False, *[True] * args.rounds]:
            a = _first_paint(PLAIN, size, env, READY.encode())
            b = _first_paint(CONSOLE, size, env, b"STATE", *heard)
            if counts:
                plain.append(a)
                console.append(b)
    print(f"first frame at {args.size}, {args.rounds} rounds in turns; {load()}")
    for what, figures in (("minimal application", plain), ("console", console)):
        print(f"  {what:20} median {median(figures):4.0f} ms   min {min(figures):4.0f}   max {max(figures):4.0f}")
    print(f"  {'ratio of medians':20} {median(console) / median(plain):.2f}")
    return 0


def _first_paint(argv: tuple[str, ...], size: tuple[int, int], env: dict[str, str], *texts: bytes) -> float:
    """Milliseconds from the start until all texts are out."""
    with Run(argv, size, env) as run:
        return (run.wait_for(*texts) - run.begun) / 1e6


if __name__ == "__main__":
    sys.exit(main())
