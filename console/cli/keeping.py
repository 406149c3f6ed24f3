"""What the verbs for what is kept understand: `journal`, `record` and `replay`. Standard library only."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from console.cli import values


def arguments(add: Callable[..., Any], token: Callable[[Any], None]) -> None:
    """Add the verbs by `add(name, handler, does)`; `token` adds the ways to name a token."""
    _journal(add)
    _recording(add, token)


def _journal(add: Callable[..., Any]) -> None:
    verb = add(
        "journal",
        "journal:journal",
        "look at what the console keeps of its sources",
        epilog="Exit status: 0 in order, 2 not to be read, or not in order.",
    )
    verb.add_argument(
        "what",
        metavar="WHAT",
        choices=("stats", "check", "prune", "export"),
        help="stats: how much there is; check: is it in order; prune: let go of the oldest; export: print it as JSON, "
        "one object a line",
    )
    verb.add_argument("--file", metavar="F", help="another file than the console's own")
    verb.add_argument("--json", action="store_true", help="with stats and check: one JSON object")
    verb.add_argument("--rebuild", metavar="F", help="with check: make a new journal F of what can still be read")
    verb.add_argument("--days", metavar="N", type=values.number(0), help="with prune: keep what is no older")
    verb.add_argument(
        "--mb",
        metavar="N",
        type=values.number(1),
        help="with prune: keep no more than N megabytes; without both: as configured",
    )
    verb.add_argument("--source", metavar="S", help="with export: of this source only")
    verb.add_argument("--session", metavar="S", help="with export: of the session with this id only")
    verb.add_argument("--raw", action="store_true", help="with export: known forms of secrets are not masked")


def _recording(add: Callable[..., Any], token: Callable[[Any], None]) -> None:
    record = add(
        "record",
        "recording:record",
        "keep what a source sends in a file, to play it again",
        epilog="It begins with all that the host still has, and ends with Ctrl-C. Known forms of secrets are masked.",
    )
    record.add_argument("url", metavar="URL", help="a host's URL, or the name of a configured source or local host")
    record.add_argument("file", metavar="FILE", help="the file to make; it must not be there")
    record.add_argument("--from-now", action="store_true", help="only what happens from now on")
    record.add_argument("--seconds", metavar="N", type=values.seconds, default=None, help="end after N seconds")
    record.add_argument("--raw", action="store_true", help="known forms of secrets are not masked")
    token(record)
    replay = add("replay", "recording:replay", "open the console on a recording")
    replay.add_argument("file", metavar="FILE", help="what record has made")
    replay.add_argument("--speed", metavar="N", type=_speed, default=1.0, help="how many times as fast (default: 1)")


def _speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 / 64 <= value <= 4096:
        raise argparse.ArgumentTypeError(f"{values.quoted(text)} is not a speed, 0.02 to 4096")
    return value
