"""Count the lines of the text files below a folder, again and again, one file at a time."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

SUFFIXES = frozenset({".csv", ".md", ".py", ".tsv", ".txt"})


def texts(folder: Path) -> list[Path]:
    """The text files below the folder, in order of their names."""
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())


def counts(folder: Path) -> Iterator[tuple[Path, int]]:
    """Each file with its lines; what went away since it was listed is left out."""
    for path in texts(folder):
        try:
            with path.open("rb") as file:
                lines = sum(1 for _ in file)
        except OSError:
            continue
        yield path.relative_to(folder), lines


def main() -> None:
    """Count until somebody ends this program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rest", type=float, default=0.0, metavar="SECONDS", help="between two files")
    args = parser.parse_args()
    number = 0
    while True:
        number += 1
        files = total = 0
        for path, lines in counts(args.folder):
            files += 1
            total += lines
            print(f"{lines:>7,}  {path}", flush=True)
            time.sleep(args.rest)
        print(f"{total:>7,}  in {files} files, round {number}", flush=True)
        time.sleep(args.rest)


if __name__ == "__main__":
    main()
