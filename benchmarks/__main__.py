"""All figures of the table.

    python -m benchmarks [--only NAME…] [--quick] [--check]

Each is measured by a module of its own, in a process of its own, whose name may be given: first_frame, roster_table,
intake, kept, pipeline, key_latency, idle, memory. They are stored in benchmarks/results/latest.json and put into the
README. With `--check` they are compared to the stored ones instead: the exit status is 1 where one is more than 30 %
worse. `--quick` takes fewer rounds and fewer events: its figures are rougher, and are only printed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sys
import time
from typing import Any, Final

from benchmarks.figures import Figure, told
from benchmarks.one import measured
from benchmarks.table import BEGIN, markdown, put, store, stored, worse
from benchmarks.terminal import load

# What each takes when there is little time.
_QUICK: Final[dict[str, dict[str, Any]]] = {
    "first_frame": {"rounds": 3},
    "roster_table": {"rounds": 1},
    "intake": {"rounds": 2, "events": 50_000},
    "kept": {"rounds": 1, "events": 50_000},
    "pipeline": {"rounds": 1, "events": 50_000},
    "key_latency": {"rounds": 1, "keys": 200},
    "idle": {"seconds": 10.0},
    "memory": {"events": 100_000},
}
_LONGEST_S: Final = 1_800


def main() -> int:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="all figures of the table")
    parser.add_argument("--only", nargs="+", choices=[*_QUICK], default=[*_QUICK], metavar="NAME")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    figures: list[Figure] = []
    failed: list[str] = []
    # What one module leaves in memory must not be in the way of the next.
    fresh = multiprocessing.get_context("spawn")
    for name in args.only:
        print(f"{name}; {load()}", flush=True)
        try:
            with fresh.Pool(1) as pool:
                found = pool.apply_async(measured, (name, _QUICK[name] if args.quick else {})).get(_LONGEST_S)
        except Exception as fault:
            failed.append(f"{name}: {type(fault).__name__}: {fault}")
            print(failed[-1], flush=True)
            continue
        figures += found
        print(told(found), flush=True)
    if args.check:
        said = worse(figures, stored())
        print("\n".join([*said, *failed]) or "nothing is more than 30 % worse than what is stored")
        return 1 if said or failed else 0
    if not args.quick:
        about = {
            "on": time.strftime("%Y-%m-%d", time.gmtime()),
            "with CPython": platform.python_version(),
            "on cores": str(os.cpu_count()),
            "load average at the end": f"{os.getloadavg()[0]:.1f}",
        }
        store(figures, about)
        if not put(markdown(stored(), about)):
            print(f"the README has no place for the table: {BEGIN}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
