"""Words, times and tones that the views share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any, Final, Literal, TypeAlias

from console.fleet.facts import NO_TIME, SessionKey
from console.fleet.state import Request, Session, Trail
from watchfloor.text import NOTHING, Clean, clean_line, redact, since
from watchfloor.words import Lifecycle

Tone: TypeAlias = Literal["plain", "quiet", "attention", "running", "failed", "paused", "lost"]
"""What a text means, not how it looks."""

Segment: TypeAlias = tuple[Clean, Tone]

Glyphs: TypeAlias = Mapping[str, str]
"""Glyphs by the word for which they stand: states, overlays, `observed`, `branch last pipe blank` of the tree, `cut`,
`alert`, and `levels`, the bars of a chart from low to high."""

SCAN: Final = 1_000
"""Characters of a long text that a one-line cell looks at."""

MOST_SHORT: Final = 10**15
"""The most that fits into the few cells of a short count."""

UNKNOWN_CLOCK: Final = Clean("--:--:--")
"""Stands for a time that its source did not tell."""

TONE_OF: Final[Mapping[Lifecycle, Tone]] = {
    Lifecycle.STARTING: "running",
    Lifecycle.RUNNING: "running",
    Lifecycle.WAITING: "attention",
    Lifecycle.PAUSED: "paused",
    Lifecycle.FAILED: "failed",
    Lifecycle.IDLE: "plain",
    Lifecycle.COMPLETED: "quiet",
    Lifecycle.STOPPED: "quiet",
    Lifecycle.UNKNOWN: "quiet",
}


def clock_time(ms: int, tz: tzinfo | None) -> Clean:
    """A time of day such as 14:03:07; dashes for NO_TIME and for what no calendar holds."""
    if ms == NO_TIME:
        return UNKNOWN_CLOCK
    try:
        return Clean(f"{datetime.fromtimestamp(ms / 1000, tz):%H:%M:%S}")
    except (OverflowError, ValueError, OSError):
        return UNKNOWN_CLOCK


def elapsed(now: int, then: int) -> str:
    """How long ago something was, by one clock: "2:14", or "unknown time" where it is not known when."""
    return "unknown time" if then == NO_TIME else since(now - then)


def one_line(text: Clean) -> Clean:
    """Prose on one line: its line breaks become blanks."""
    return Clean(" ".join(text[:SCAN].split()))


def exact_line(text: Clean) -> Clean:
    """An exact text on one line: its line breaks stay visible."""
    return clean_line(text[:SCAN])


def first_line(text: Clean) -> tuple[Clean, int]:
    """The first line of an output that is not blank, and how many more there are."""
    lines = [line for line in text.strip("\n").split("\n") if line.strip()]
    return (exact_line(Clean(lines[0])), len(lines) - 1) if lines else (NOTHING, 0)


def masked(text: Clean) -> Clean:
    """The text with known shapes of secrets masked."""
    return redact(text)[0] if text else text


def name_of(session: Session) -> Clean:
    """How a session is called: its name, else its id."""
    return session.name or clean_line(session.key.session)


def name_by_key(sessions: Mapping[SessionKey, Session], key: SessionKey) -> Clean:
    session = sessions.get(key)
    return name_of(session) if session is not None else clean_line(key.session)


def asked_text(request: Request) -> Clean:
    """What a request asks, on one line."""
    fact = request.fact
    if fact is None:
        return Clean("a request whose text has not come yet")
    if fact.unread:
        return Clean(f"asks something that could not be read: {fact.fault}")
    if fact.actions:
        text = fact.actions[0].line
        return Clean(f"{text}  (and {len(fact.actions) - 1} more)") if len(fact.actions) > 1 else text
    if fact.fields:
        return fact.fields[0].label
    return one_line(fact.about) if fact.about else Clean(f"a request without a text ({fact.kind.value})")


def by_policy(trails: Mapping[str, Trail], data: Mapping[str, Any]) -> bool:
    """Was the command of an event taken by a rule and not by hand? Its host says so; of an older one we know it."""
    trail = trails.get(data.get("command", ""))
    return bool(data.get("automatic")) or (trail is not None and trail.intent.policy is not None)


def short_count(n: int) -> Clean:
    """A number in few cells: 940, 12.3k, 118k, 1.2M; 0 for a negative one."""
    value, unit = float(max(0, min(n, MOST_SHORT))), ""
    for bigger in ("k", "M", "G", "T"):
        if value < 999.5:
            break
        value, unit = value / 1_000, bigger
    return Clean(f"{value:.1f}{unit}" if unit and value < 99.95 else f"{value:.0f}{unit}")


def ago(now: int, then: int) -> str:
    return f"{since(now - then)} ago"
