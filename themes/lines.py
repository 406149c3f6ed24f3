"""On which line of a TOML file something stands, for whoever has to tell what is wrong with it."""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, TypeAlias

Key: TypeAlias = tuple[str | int, ...]
"""The way to a value: names of tables and keys, and places in arrays."""


def line_of(text: str, key: Key) -> int:
    """The line where the statement begins that brings the key, found by the parser itself: the first beginning of the
    file that is TOML and holds the key. 1 where nothing does. Slow: only run it to tell a fault."""
    lines = text.splitlines(keepends=True)

    def held(begin: int) -> bool:
        """Is the key held by the shortest beginning of the file that is TOML and has so many lines at least?"""
        for end in range(begin, len(lines) + 1):
            try:
                return _holds(tomllib.loads("".join(lines[:end])), key)
            except ValueError:
                continue  # inside of a value of several lines
        return False

    found = bisect_left(range(1, len(lines) + 1), True, key=held) + 1
    return found if found <= len(lines) else 1


def near_line(text: str, key: Key) -> int:
    """The line of the key; where it is missing that of the nearest table which would hold it, else 1."""
    parts: Sequence[str | int] = key
    while parts:
        try:
            data = tomllib.loads(text)
        except ValueError:
            return 1
        if _holds(data, tuple(parts)):
            return line_of(text, tuple(parts))
        parts = parts[:-1]
    return 1


def _holds(data: Any, key: Key) -> bool:
    for part in key:
        try:
            data = data[part]
        except (LookupError, TypeError):
            return False
    return True
