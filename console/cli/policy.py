"""`watchfloor policy`: are the policies in order, and what would they have decided of a host's log?"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

from console.cli import out
from console.cli.exits import OK, USAGE, Fail
from console.files import expanded
from watchfloor.text import Clean, clean_line, redact

if TYPE_CHECKING:
    from console.policies.replay import Replay, Replayed
    from console.policies.rules import Policy

_LONGEST_LINE: Final = 16 * 1024 * 1024
_STDIN: Final = "-"


def policy(args: Namespace) -> int:
    """Check the policies, or replay a log through them. Raises ConfigError, Fail."""
    from console.policies.file import load, policies_path

    where = expanded(args.file) if args.file is not None else None
    policies = load(where)
    shown = clean_line(str(where or policies_path()))
    if args.what == "check":
        if args.log is not None:
            raise Fail("check takes no log", USAGE)
        _check(args, policies, shown)
        return OK
    if args.log is None:
        raise Fail("test needs a log: what `watchfloor events URL --json` printed, or - for standard input", USAGE)
    _test(args, policies)
    return OK


# --- check ---------------------------------------------------------------------------------


def _check(args: Namespace, policies: tuple[Policy, ...], shown: Clean) -> None:
    now = int(datetime.now(UTC).timestamp() * 1000)
    for place, one in enumerate(policies, 1):
        if args.json:
            out.record({"place": place, "line": one.line, "ended": one.ended(now), **_fields(one)})
        else:
            over = "; its time is over" if one.ended(now) else ""
            out.line(Clean(f"{place}  {one.does.value}: {clean_line(one.name)}: {_conditions(one)}{over}"))
    if args.json:
        return
    if not policies:
        out.line(Clean(f"{shown}: no policies: nothing is decided automatically"))
        return
    count = len(policies)
    out.line(
        Clean(f"{shown} is in order: {count} {'policy' if count == 1 else 'policies'}, the first that matches rules")
    )


def _fields(one: Policy) -> dict[str, object]:
    named = {
        "name": one.name,
        "do": one.does.value,
        "command": one.command,
        "path": one.path,
        "tool": one.tool,
        "agent": one.agent,
        "source": one.source,
        "risks": sorted(one.risks) or None,
        "until": one.until,
    }
    return {name: value for name, value in named.items() if value is not None}


def _conditions(one: Policy) -> Clean:
    fields = {name: value for name, value in _fields(one).items() if name not in ("name", "do", "until")}
    said = [f"{name} {', '.join(value) if isinstance(value, list) else value}" for name, value in fields.items()]
    if one.until is not None:
        said.append(f"until {datetime.fromtimestamp(one.until / 1000, UTC):%Y-%m-%d %H:%M} UTC")
    return clean_line("; ".join(said))


# --- test ----------------------------------------------------------------------------------


def _test(args: Namespace, policies: tuple[Policy, ...]) -> None:
    from console.policies.replay import replay

    if args.log == _STDIN:
        replayed = replay(policies, _lines(sys.stdin))
    else:
        path = expanded(args.log)
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                replayed = replay(policies, _lines(file))
        except OSError as error:
            raise Fail(f"{path}: it cannot be read: {error.strerror or error}", USAGE) from None
    _tell(args, replayed)


def _lines(file: TextIO) -> Iterator[object]:
    """Every line as it was read from JSON; None for one that is none."""
    while line := file.readline(_LONGEST_LINE):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            yield None


def _tell(args: Namespace, replayed: Replay) -> None:
    from console.policies.rules import told

    found = replayed.by_risk()
    for one in found:
        if args.json:
            out.record(_record(one, told(one.ruling)))
            continue
        line, _ = redact(one.line)
        ended = f"; really: {one.ended}" if one.ended else ""
        out.line(Clean(f"{_risk(one):<8} {one.agent}  {line}"))
        out.line(Clean(f"         {told(one.ruling)}{ended}{'' if one.whole else '; judged by its line only'}"))
    if replayed.odd:
        out.note(f"{replayed.odd:,} lines are no events, and were left out")
    if args.json:
        return
    decided = [one for one in found if one.ruling.decides]
    risky = sum(bool(one.level) for one in decided)
    out.line(
        Clean(f"{len(found):,} approvals, {len(decided):,} of them decided automatically, {risky:,} of those risky")
    )


def _risk(one: Replayed) -> str:
    return one.level.name.lower() if one.level else "-"


def _record(one: Replayed, words: Clean) -> dict[str, object]:
    policy = one.ruling.policy
    return {
        "source": one.key.source,
        "session": one.key.session,
        "request": one.key.request,
        "at": one.at,
        "line": redact(one.line)[0],
        "whole": one.whole,
        "policy": policy.name if policy is not None else None,
        "decided": one.ruling.does.value if one.ruling.decides and one.ruling.does is not None else None,
        "why": words,
        "risk": one.level.name.lower(),
        "risks": [{"rule": risk.rule, "kind": risk.kind.value, "reason": risk.reason} for risk in one.risks],
        "ended": one.ended or None,
    }
