"""The audit files of this machine as one list to be read: each line in words, searched, and whether it is vouched for.

What stands in a file may have been written by anybody: it is cleaned here like all that comes from outside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Final

from console.audit import Verified, verify
from console.auditing import Checked, Entry, check, entries_of, files
from watchfloor.text import NOTHING, Clean, clean_line, cut, redact

KEEP: Final = 5_000
"""Lines that are kept to be looked through, the newest; the rest is printed by the command line."""
_SAID: Final = 2_000
_REMEMBERED: Final = 10_000
"""Commands of which more may be told further on in a file."""
_ENDS: Final = frozenset({"outcome", "effect"})
_SEALS: Final = frozenset({"prev", "self"})
_FIRST: Final = ("what", "at", "by", "policy", "second_key", "primitive", "option", "option_kind", "outcome", "effect")
"""What of a line is shown first, in this order."""


@dataclass(frozen=True, slots=True)
class Told:
    """A line in words: when, what happened, by whom, what they did, where, and what was said about it."""

    when: Clean
    what: Clean
    by: Clean
    did: Clean
    where: Clean
    said: Clean

    @property
    def line(self) -> Clean:
        """All of it on one line."""
        return Clean(
            "  ".join(part for part in (self.when, self.what, self.by, self.did, self.where, self.said) if part)
        )


class Telling:
    """Tells the lines of a file in words, one after the other: what became of a command is told with what it was.

    What a line lacks is empty. `tz`: the zone of times; None: that of the machine.
    """

    def __init__(self, tz: tzinfo | None) -> None:
        self._tz = tz
        self._asked: dict[str, Told] = {}

    def tell(self, entry: Entry) -> Told:
        what, id = entry.text("what"), entry.text("id")
        when = _time(entry.at, self._tz)
        if what in _ENDS:
            word = _word(entry.text(what).replace("_", " "))
            said = "; ".join(part for part in (entry.text("reason"), _decided(entry)) if part)
            asked = self._asked.get(id)
            if asked is None:
                return Told(when, _word(what), NOTHING, word, _word(id[:8]), _word(said))
            return Told(when, _word(what), asked.by, Clean(f"{word} ({asked.did})"), asked.where, _word(said))
        made = _asked(entry, when)
        if what == "requested":
            self._asked[id] = made
            if len(self._asked) > _REMEMBERED:
                del self._asked[next(iter(self._asked))]
        return made


def _asked(entry: Entry, when: Clean) -> Told:
    fields = entry.fields
    denies = entry.text("option_kind") == "deny"
    by = f"policy {entry.text('policy')}" if fields.get("policy") is not None else entry.text("by")
    where = " ".join(part for part in (entry.text("source"), entry.text("session"), entry.text("request")) if part)
    did = "deny" if denies else entry.text("primitive")
    return Told(when, _word(entry.text("what")), _word(by), _word(did), _word(where), _word(_said(fields)))


def _decided(entry: Entry) -> str:
    by = entry.text("decided_by")
    return f"decided by {by}" if by else ""


def _said(fields: Mapping[str, Any]) -> str:
    said = [str(fields[name]) for name in ("option", "text", "note", "reason") if fields.get(name) is not None]
    if fields.get("second_key") is not None:
        said.append(f"second key for policy {fields['second_key']}")
    risks = fields.get("risks")
    if isinstance(risks, list):
        said.append(f"risky: {', '.join(map(str, risks))}")
    return "; ".join(said)


def _word(text: str) -> Clean:
    return redact(clean_line(text[:_SAID]))[0]


def _time(at: int, tz: tzinfo | None) -> Clean:
    try:
        return Clean(f"{datetime.fromtimestamp(at / 1000, tz):%Y-%m-%d %H:%M:%S}")
    except (ArithmeticError, ValueError, OSError):
        return Clean("at no time")


def details(entry: Entry) -> list[tuple[Clean, Clean]]:
    """Every member of a line by its name, what matters first, its seals last."""
    order = {name: at for at, name in enumerate(_FIRST)}
    names = sorted(entry.fields, key=lambda name: (name in _SEALS, order.get(name, len(order))))
    return [(cut(clean_line(name), 40), _value(name, entry.fields[name])) for name in names]


def _value(name: str, value: Any) -> Clean:
    if name in ("risks", "answers") and isinstance(value, list):
        value = ", ".join(map(str, value))
    text = clean_line(str(value)[:_SAID])
    return text if name in _SEALS or name == "digest" else redact(text)[0]


@dataclass(frozen=True, slots=True)
class BookLine:
    """One line, and its place in its file, from 1. `fault`: why nothing vouches for it; empty: it is whole."""

    place: int
    entry: Entry
    told: Told
    fault: Clean

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from every other."""
        return self.entry.file, self.place

    def holds(self, words: Sequence[str]) -> bool:
        """Does it hold all of these words, folded?"""
        if not words:
            return True
        held = f"{self.told.line} {self.entry.file} {self.entry.text('id')} {self.entry.text('digest')}".casefold()
        return all(word in held for word in words)


@dataclass(frozen=True, slots=True)
class Pages:
    """What was read: the newest lines first, how many there are, and what was found of each file."""

    lines: tuple[BookLine, ...] = ()
    total: int = 0
    checked: tuple[Checked, ...] = ()

    @property
    def broken(self) -> tuple[Checked, ...]:
        """The files of which something is missing, or was touched."""
        return tuple(one for one in self.checked if one.fault is not None)


@dataclass(frozen=True, slots=True)
class _File:
    """What was read of one file, the newest lines first. `stamp`: as which it was there then."""

    stamp: object
    verified: Verified
    lines: tuple[BookLine, ...]
    count: int


class AuditBook:
    """Reads the folder as often as asked; a file that stayed what it was is neither read nor checked again."""

    def __init__(self, folder: Path, tz: tzinfo | None) -> None:
        self.folder: Final = folder
        self._tz = tz
        self._stamp: object = None
        self._read: dict[str, _File] = {}
        self._pages = Pages()

    def read(self) -> Pages:
        """All that stands there now. Raises OSError."""
        found = [(path, path.stat()) for path in files(self.folder)]
        stamp = [(path.name, stat.st_size, stat.st_mtime_ns) for path, stat in found]
        if stamp == self._stamp:
            return self._pages
        kept: dict[str, _File] = {}
        for (path, _), is_now in zip(found, stamp, strict=True):
            before = self._read.get(path.name)
            kept[path.name] = before if before is not None and before.stamp == is_now else self._take(path, is_now)
        self._read = kept
        checked = tuple(
            check(self.folder, verified=lambda path: kept[path.name].verified if path.name in kept else verify(path))
        )
        faults = {one.file: one for one in checked if one.fault is not None}
        lines: list[BookLine] = []
        for path, _ in reversed(found):
            if len(lines) < KEEP:
                lines += _marked(kept[path.name].lines, faults.get(path.name))
        total = sum(one.count for one in kept.values())
        self._stamp, self._pages = stamp, Pages(tuple(lines[:KEEP]), total, checked)
        return self._pages

    def _take(self, path: Path, stamp: object) -> _File:
        lines: deque[BookLine] = deque(maxlen=KEEP)
        telling = Telling(self._tz)
        place = 0
        for place, entry in enumerate(entries_of(path), 1):
            lines.appendleft(BookLine(place, entry, telling.tell(entry), NOTHING))
        return _File(stamp, verify(path), tuple(lines), place)


def _marked(lines: Sequence[BookLine], found: Checked | None) -> Sequence[BookLine]:
    """The lines of a file; behind its first fault none is vouched for."""
    if found is None or found.fault is None:
        return lines
    why = clean_line(found.fault)
    return [one if one.place <= found.vouched else replace(one, fault=why) for one in lines]
