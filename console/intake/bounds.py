"""How much of what a source says is taken: one limit for each sort of value, declared here and nowhere else.

A number that lies beyond its limit would end whoever formats it, or say nothing; a text beyond its limit would hold the
screen while it is measured. What was cut off a text is said at its end. What else had to be changed is counted, and
why, by `Reading`.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import Final

from pydantic import JsonValue
from pydantic_core import to_json

from console.fleet.facts import NO_TIME
from watchfloor.text import Clean, clean, clean_line, clean_prose

MOST_COUNT: Final = 2**53 - 1
"""Counts and numbers of events: every reader of JSON keeps such a number exactly."""
LAST_TIME: Final = 32_503_680_000_000
"""The year 3000. Calendars of the standard library end with 9999, and the clocks of two hosts are added."""
MOST_MS: Final = 10 * 365 * 86_400_000
"""Ten years: no step of an agent takes as long, and a time plus this is still a time."""
MOST_S: Final = MOST_MS // 1000

KEEP_ID: Final = 1_024
"""Characters of an id. Sessions and requests with a longer one are refused, since a cut id would be another one."""
KEEP_LINE: Final = 4_096
"""Characters of what stands on one line: as long as a path may be."""
KEEP_PROSE: Final = 16_384
"""Characters of a body beside a session or a request: it is wrapped whenever its place on the screen is painted."""
KEEP_EVENT: Final = 65_536
"""Characters of one event."""
KEEP_ACTION: Final = 262_144
"""Characters of all actions of a request together."""
KEEP_ACTION_LINES: Final = 10_000
"""Lines of all actions of a request together: a line costs as much as many characters do."""
KEEP_LIST: Final = 200
"""Members of a list that a person reads: actions, options, fields, acts, what is in flight."""
KEEP_CHOICES: Final = 1_000
"""Choices of one field."""
KEEP_LABELS: Final = 64
KEEP_NAMES: Final = 16
"""People who look at a card, and words of a profile that are not known here."""


class Reading:
    """What of one frame could not be taken as it came: `odd` of its values, and of the newest `why` and `whose`."""

    __slots__ = ("kind", "odd", "unknown", "used", "whose", "why")

    def __init__(self) -> None:
        self.used = False
        """Was anything noted?"""
        self.unknown = 0
        """Events of a kind that is not known here, and (`kind`) that of the last."""
        self.kind = ""
        self.odd = 0
        self.why = ""
        self.whose: str | None = None
        """The session that it belongs to, in a frame about many."""

    def note(self, name: str, says: str) -> None:
        """Count one value that could not be taken."""
        self.used = True
        self.odd += 1
        self.why = f"{name} {says}"

    def strange(self, kind: str) -> None:
        """Count one event of a kind that is not known here."""
        self.used = True
        self.unknown += 1
        self.kind = kind

    def time(self, name: str, ms: int) -> int:
        """Milliseconds since 1970; NO_TIME for what is no time between 1970 and 3000."""
        if 0 <= ms < LAST_TIME:
            return ms
        self.note(name, "is no time between the years 1970 and 3000")
        return NO_TIME

    def a_time(self, name: str, ms: int | None) -> int | None:
        """As `time`, None where there is none or it cannot be told."""
        return (self.time(name, ms) or None) if ms is not None else None

    def count(self, name: str, n: int) -> int:
        """A count: never negative, at most MOST_COUNT."""
        if 0 <= n <= MOST_COUNT:
            return n
        self.note(name, "is negative" if n < 0 else "is beyond 2^53 - 1")
        return 0 if n < 0 else MOST_COUNT

    def a_count(self, name: str, n: int | None) -> int | None:
        """As `count`, None where there is none or it is negative."""
        if n is None:
            return None
        taken = self.count(name, n)
        return taken if n >= 0 else None

    def signed(self, name: str, n: int | None) -> int | None:
        """A number that may be negative (an exit status); None beyond ±MOST_COUNT."""
        if n is None or -MOST_COUNT <= n <= MOST_COUNT:
            return n
        self.note(name, "is beyond 2^53 - 1")
        return None

    def span_ms(self, name: str, ms: int | None) -> int | None:
        """A duration in milliseconds; None for one that is negative or longer than ten years."""
        if ms is None or 0 <= ms <= MOST_MS:
            return ms
        self.note(name, "is no duration of at most ten years")
        return None

    def span_s(self, name: str, seconds: float) -> float:
        """A duration in seconds: 0 for a negative one or none at all, never longer than ten years."""
        if 0 <= seconds <= MOST_S:
            return seconds
        self.note(name, "is no duration of at most ten years")
        return float(MOST_S) if seconds > 0 else 0.0

    def number(self, name: str, value: int | float) -> int | float | None:
        """Any number; None for one that is not finite or beyond ±MOST_COUNT."""
        if -MOST_COUNT <= value <= MOST_COUNT:  # never so for what is not a number at all
            return value
        self.note(name, "is not a number within 2^53 - 1")
        return None

    def id(self, name: str, value: str) -> str:
        """An id that only refers to something: a longer one is cut, each time at the same place."""
        if len(value) <= KEEP_ID:
            return value
        self.note(name, f"is an id of {size(len(value))}")
        return value[:KEEP_ID]

    def an_id(self, name: str, value: str | None) -> str | None:
        """As `id`, None where there is none."""
        return value if value is None or len(value) <= KEEP_ID else self.id(name, value)


# --- texts ---------------------------------------------------------------------------------


def size(n: int) -> str:
    """A number of bytes or characters in few cells: "312 bytes", "63.2 kB", "11.9 MB"."""
    if n < 1_000:
        return f"{n} bytes"
    return f"{n / 1_000:,.1f} kB" if n < 999_950 else f"{n / 1_000_000:,.1f} MB"


def _rest(text: str, kept: int, more: int = 0) -> str:
    return f"… {size(len(text[kept:].encode(errors='replace')) + more)} more not shown"


def line(text: str) -> Clean:
    """What names or acts, on one line; what is cut off is said."""
    if len(text) <= KEEP_LINE:
        return clean_line(text)
    return clean_line(text[:KEEP_LINE] + _rest(text, KEEP_LINE))


def a_line(text: str | None) -> Clean | None:
    """As `line`, None where there is none."""
    return line(text) if text is not None else None


def prose(text: str, most: int = KEEP_PROSE) -> Clean:
    """A body of text; what is cut off is said on a line of its own."""
    if len(text) <= most:
        return clean_prose(text)
    return clean_prose(f"{text[:most]}\n{_rest(text, most)}")


def a_prose(text: str | None) -> Clean | None:
    """As `prose`, None where there is none."""
    return prose(text) if text is not None else None


def exact(text: str, most: int = KEEP_EVENT, more: int = 0) -> Clean:
    """As `prose`, cleaned strictly. `more`: characters that the text lacks already."""
    if len(text) <= most and not more:
        return clean(text)
    return clean(f"{text[:most]}\n{_rest(text, most, more)}")


class Room:
    """What the actions of one request may take of memory and of the screen, together."""

    __slots__ = ("_lines", "_most")

    def __init__(self) -> None:
        self._most = KEEP_ACTION
        self._lines = KEEP_ACTION_LINES

    @property
    def left(self) -> int:
        """Characters for which there is room."""
        return self._most

    def take(self, text: str, more: int = 0) -> tuple[str, bool]:
        """As much of the text as there is room for, a remark on the rest behind it; and whether that is all.

        `more`: characters that the text lacks already.
        """
        kept = min(len(text), self._most)
        breaks = text.count("\n", 0, kept)
        if breaks >= self._lines:
            kept = _end_of_line(text, self._lines)
            breaks = self._lines
        self._most -= kept
        self._lines = max(0, self._lines - breaks)
        if kept == len(text) and not more:
            return text, True
        return f"{text[:kept]}\n{_rest(text, kept, more)}", False


def _end_of_line(text: str, lines: int) -> int:
    at = -1
    for _ in range(lines):
        at = text.index("\n", at + 1)
    return max(at, 0)


_WRITTEN: Final = json.JSONEncoder(ensure_ascii=False)
_TINY: Final = re.compile(r"\de-\d")


def shown_json(value: JsonValue, most: int = KEEP_EVENT) -> tuple[str, int]:
    """A JSON value as indented text, keys in the order in which they came, not cleaned; and about how much is left out.

    Writing stops behind `most` characters, since megabytes take seconds.
    """
    try:
        text = to_json(value, indent=2).decode()
    except ValueError:  # nested too deeply for it, no text, or a number that it does not know
        text = ""
    # Very small numbers have a spelling of their own there.
    if text and len(text) <= most and "0.0000" not in text and not ("e-" in text and _TINY.search(text)):
        return text, 0
    pieces: list[str] = []
    try:
        left = _write(value, "\n", pieces, most)
        if left < 0:
            return "".join(pieces), max(0, len(_WRITTEN.encode(value)) - most + left)
    except RecursionError:
        return "nested too deeply to be shown", 1
    except ValueError:
        return "a number in it is too long to be shown", 1
    return "".join(pieces), 0


def _write(value: JsonValue, margin: str, pieces: list[str], left: int) -> int:
    """Add the value to the pieces, until no room is left; returns how much is. `margin`: how a line of it begins.

    The standard library's indenting encoder writes the same, in several times the time.
    """
    if isinstance(value, str):
        text = encode_basestring(value)
    elif isinstance(value, dict) and value:
        inner = f"{margin}  "
        between = "{" + inner
        for name, one in value.items():
            head = f"{between}{encode_basestring(name)}: "
            pieces.append(head)
            left = _write(one, inner, pieces, left - len(head))
            if left < 0:
                return left
            between = "," + inner
        text = margin + "}"
    elif isinstance(value, list) and value:
        inner = f"{margin}  "
        between = "[" + inner
        for one in value:
            pieces.append(between)
            left = _write(one, inner, pieces, left - len(between))
            if left < 0:
                return left
            between = "," + inner
        text = margin + "]"
    else:
        # The encoder makes itself ready for what may be nested, which takes longer than to write a number.
        text = int.__repr__(value) if type(value) is int else _WRITTEN.encode(value)
    pieces.append(text)
    return left - len(text)
