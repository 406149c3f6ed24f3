"""`watchfloor audit`: what stands in the audit files of this machine, whether all of it is there, and its figures."""

from __future__ import annotations

import json
from argparse import Namespace
from datetime import UTC
from pathlib import Path

from console.audit import Head
from console.audit_book import Telling
from console.auditing import check, entries, figures, files, heads
from console.cli import out
from console.cli.exits import OK, USAGE, Fail
from console.files import expanded, read
from console.places import state_folder
from watchfloor.text import Clean, clean_line, since

BROKEN = USAGE
"""The exit status of `--verify` where something is missing or was touched, as of `doctor`."""


def audit(args: Namespace) -> int:
    """Print the audit, or what is asked about it. Raises Fail, ConfigError."""
    folder = state_folder() / "audit"
    if args.against is not None and not args.verify:
        raise Fail("--against goes with --verify", USAGE)
    try:
        if args.verify:
            return _verify(args, folder)
        if args.head:
            _heads(args, folder)
        elif args.figures:
            _figures(args, folder)
        else:
            _entries(args, folder)
    except OSError as error:
        raise Fail(f"{error.filename or folder}: it cannot be read: {error.strerror or error}", USAGE) from None
    return OK


def _verify(args: Namespace, folder: Path) -> int:
    checked = check(folder, _kept(args.against) if args.against is not None else None)
    broken = [one for one in checked if one.fault is not None]
    for one in checked if args.json else broken:
        if args.json:
            out.record({"file": one.file, "lines": one.lines, "fault": one.fault})
        else:
            out.fail(f"{folder / one.file}: {one.fault}")
    if not args.json and not broken:
        lines = sum(one.lines for one in checked)
        out.line(
            clean_line(f"{folder}: {len(checked):,} files, {lines:,} lines: nothing is missing, nothing was changed")
        )
        if args.against is None and checked:
            out.note(
                "lines cut off the newest file are found by heads that were kept elsewhere: --head, then --against"
            )
    return BROKEN if broken else OK


def _kept(named: str) -> dict[str, Head]:
    path = expanded(named)
    found: dict[str, Head] = {}
    for line in read(path).decode("utf-8", "replace").splitlines():
        try:
            kept = json.loads(line)
            found[str(kept["file"])] = Head(int(kept["n"]), str(kept["hash"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise Fail(f"{path}: it is not what `watchfloor audit --head --json` prints", USAGE) from None
    return found


def _heads(args: Namespace, folder: Path) -> None:
    for name, head in heads(folder).items():
        if args.json:
            out.record({"file": name, "n": head.n, "hash": head.hash})
        else:
            out.line(clean_line(f"{name}  {head.n}  {head.hash}"))


def _figures(args: Namespace, folder: Path) -> None:
    found = figures(entries(folder))
    if args.json:
        out.record(
            {
                "decisions": found.decisions,
                "automatic": found.automatic,
                "kinds": found.kinds,
                "outcomes": found.outcomes,
                "median_ms": found.median_ms,
                "slowest_ms": found.slowest_ms,
                "early": found.early,
            }
        )
        return
    out.line(Clean(f"decisions        {found.decisions:,}, {found.automatic:,} of them by policies"))
    for name, count in sorted(found.kinds.items()):
        out.line(clean_line(f"  {name:<14} {count:,} ({count / found.decisions:.0%})"))
    if found.median_ms is not None and found.slowest_ms is not None:
        out.line(Clean(f"time to answer   median {since(found.median_ms)}, longest {since(found.slowest_ms)}"))
    for name, count in sorted(found.outcomes.items()):
        out.line(clean_line(f"  {name:<14} {count:,}"))
    out.line(Clean(f"keys too early   {found.early:,}"))


def _entries(args: Namespace, folder: Path) -> None:
    if not files(folder):
        if not args.json:
            out.line(clean_line(f"{folder}: nothing is written down yet"))
        return
    telling = Telling(UTC)
    for entry in entries(folder):
        if args.json:
            out.record({"file": entry.file, **entry.fields})
        else:
            out.line(telling.tell(entry).line)
