"""The same as `test_fuzz`, led by what the interpreter covers: `python -m tests.unit.fuzz_atheris [-max_total_time=S]`.

Needs `atheris`, which is no dependency of ours, since it is not built for every interpreter.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path


def main() -> int:
    """Fuzz until the time is over; returns 0 as well where atheris is not installed, and says so."""
    try:
        atheris = import_module("atheris")
    except ImportError:
        print("atheris is not installed: only the tests of hypothesis were run")
        return 0
    with atheris.instrument_imports(include=["watchfloor.protocol", "watchfloor.client", "console.intake"]):
        from tests.unit.test_fuzz import SEEDS, Console

    def once(data: bytes) -> None:
        console = Console()
        for raw in data.split(b"\n"):
            console.takes(raw)
        console.reads()

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(SEEDS):
            (Path(corpus) / str(number)).write_bytes(seed)
        atheris.Setup([*sys.argv, corpus], once)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
