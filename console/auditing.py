"""The audit files of this machine together: what stands in them, whether all of it is still there, and its figures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from console.audit import Head, Verified, head_of, verify

DECISIONS: Final = frozenset({"approve", "answer"})
"""Primitives that decide a request."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of an audit file: `file` is its name, `fields` all that stands in the line."""

    file: str
    fields: Mapping[str, Any]

    def text(self, name: str) -> str:
        """A field as a text; empty where it has none."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else "" if value is None else str(value)

    @property
    def at(self) -> int:
        """When it was written, in milliseconds since 1970 UTC; 0 where that cannot be told."""
        value = self.fields.get("at")
        return value if type(value) is int else 0


@dataclass(frozen=True, slots=True)
class Checked:
    """What is found of one file. `fault`: None = whole, as far as it and the files after it can tell. `vouched`: how
    many of its lines are still those that were written."""

    file: str
    lines: int
    fault: str | None
    vouched: int


def files(folder: Path) -> list[Path]:
    """The audit files in the folder, the oldest first."""
    return sorted(folder.glob("*.jsonl"))


def entries(folder: Path) -> Iterator[Entry]:
    """Every line that can be read, of one file after the other. Raises OSError."""
    for path in files(folder):
        yield from entries_of(path)


def entries_of(path: Path) -> Iterator[Entry]:
    """The same of one file. Raises OSError."""
    with path.open("rb") as file:
        for stored in file:
            try:
                line = json.loads(stored)
            except (ValueError, RecursionError):
                continue  # `check` tells of it
            if isinstance(line, dict):
                yield Entry(path.name, line)


def heads(folder: Path) -> dict[str, Head]:
    """The last line of each file, to be kept where nobody can rewrite it. Raises OSError."""
    found = ((path.name, head_of(path)) for path in files(folder))
    return {name: head for name, head in found if head is not None}


def check(
    folder: Path, kept: Mapping[str, Head] | None = None, *, verified: Callable[[Path], Verified] = verify
) -> list[Checked]:
    """Check every file by itself, and by what the first lines of later files say of where it ended.

    `kept`: heads that were written down elsewhere; a file that is gone, or shorter by now, is found by them.
    `verified`: what checks a file by itself. Raises OSError where the folder or a file cannot be read.
    """
    found: dict[str, Verified] = {}
    named: dict[str, list[tuple[str, Head]]] = {}
    for path in files(folder):
        found[path.name] = verified(path)
        for name, head in _after(path).items():
            named.setdefault(name, []).append((path.name, head))
    for name, head in (kept or {}).items():
        named.setdefault(name, []).append(("what was kept", head))
    checked = [_checked(name, one, named.get(name, ())) for name, one in found.items()]
    for name in sorted(named.keys() - found.keys()):
        by, head = named[name][0]
        checked.append(Checked(name, 0, f"it is gone; {by} says that it had {head.n} lines", 0))
    return checked


def _after(path: Path) -> dict[str, Head]:
    with path.open("rb") as file:
        first = file.readline()
    try:
        after = json.loads(first).get("after", {})
        return {str(name): Head(int(n), str(hash)) for name, (n, hash) in after.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _checked(name: str, one: Verified, named: Iterable[tuple[str, Head]]) -> Checked:
    """A file by itself, and what is missing at its end, or is another one, by those that have named its end."""
    fault, vouched = one.fault, one.lines
    for by, head in named:
        if 0 < head.n <= one.lines and one.hashes[head.n - 1] != head.hash:
            vouched = 0
            fault = fault or f"line {head.n}: it is not the one that {by} names: the file was written anew"
        elif head.n > one.lines:
            fault = fault or f"its end is missing: it has {one.lines} lines, and had {head.n}, as {by} says"
    return Checked(name, one.lines, fault, vouched)


# --- figures -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figures:
    """How requests were decided. `kinds`: decisions by what they did ("allow", "deny", "answer"), `outcomes`: what
    became of them. Times are milliseconds from when a request was raised to when it was decided; None: none is known.
    `automatic`: how many of them policies took, whose times do not count. `early`: keys that were refused because they
    came before what they were about had stood still.
    """

    decisions: int
    automatic: int
    kinds: Mapping[str, int]
    outcomes: Mapping[str, int]
    median_ms: int | None
    slowest_ms: int | None
    early: int

    @property
    def denied(self) -> float | None:
        """The share of decisions that denied, 0 to 1; None: there are no decisions."""
        return self.kinds.get("deny", 0) / self.decisions if self.decisions else None


def figures(lines: Iterable[Entry]) -> Figures:
    """Count what these lines tell of decisions. Pure, and total: what a line lacks is not counted."""
    kinds: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    waits: list[int] = []
    asked: set[str] = set()
    automatic = early = 0
    for line in lines:
        what, id = line.text("what"), line.text("id")
        if what == "refused":
            early += 1
        elif what == "requested" and line.text("primitive") in DECISIONS:
            asked.add(id)
            kinds[line.text("option_kind") or "answer"] += 1
            waited = line.fields.get("waited_ms")
            if line.fields.get("policy") is not None:
                automatic += 1
            elif type(waited) is int and waited >= 0:
                waits.append(waited)
        elif what == "outcome" and id in asked:
            outcomes[line.text("outcome")] += 1
    return Figures(
        decisions=sum(kinds.values()),
        automatic=automatic,
        kinds=dict(kinds),
        outcomes=dict(outcomes),
        median_ms=int(median(waits)) if waits else None,
        slowest_ms=max(waits, default=None),
        early=early,
    )
