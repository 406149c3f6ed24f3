"""Tolerant reading of foreign JSON: what is missing, or of another type than expected, is not there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

Json: TypeAlias = Mapping[str, Any]
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def parsed(raw: str | bytes) -> Any:
    """What a JSON text says. Half of a character, which no text of ours can hold, becomes a question mark.

    Raises ValueError for what is no JSON, RecursionError where it is nested too deep.
    """
    words = raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
    value = json.loads(words)
    if _SURROGATE.search(words) is None:
        return value
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def part(of: object, *path: str) -> Json:
    """The object at the path, an empty one where there is none."""
    for name in path:
        of = of.get(name) if isinstance(of, Mapping) else None
    return of if isinstance(of, Mapping) else {}


def text(of: object, *path: str) -> str | None:
    """The text at the path."""
    value = part(of, *path[:-1]).get(path[-1])
    return value if isinstance(value, str) else None


def number(of: object, *path: str) -> int | None:
    """The integer at the path."""
    value = part(of, *path[:-1]).get(path[-1])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(of: object, *path: str) -> bool | None:
    value = part(of, *path[:-1]).get(path[-1])
    return value if isinstance(value, bool) else None


def each(of: object, *path: str) -> list[Json]:
    """The objects in the list at the path; whatever else stands there is left out."""
    value = part(of, *path[:-1]).get(path[-1])
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def texts(of: object, *path: str) -> list[str]:
    """The texts in the list at the path."""
    value = part(of, *path[:-1]).get(path[-1])
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def word(of: object, name: str) -> str:
    """What a value that is a word, or an object of one key that is the word, says: "other", {"http": {…}}; else ""."""
    value = part(of).get(name)
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value))
    return value if isinstance(value, str) else ""


def millis(of: object, *path: str) -> int | None:
    """The time at the path (RFC 3339, any number of decimals) in milliseconds since 1970 UTC."""
    value = text(of, *path)
    if value is None:
        return None
    try:
        # Nanoseconds, as these servers write them, are more than the parser of older Pythons takes.
        head, dot, rest = value.partition(".")
        digits = len(rest) - len(rest.lstrip("0123456789"))
        at = datetime.fromisoformat(
            f"{head}{dot}{rest[: min(digits, 6)].ljust(6, '0')}{rest[digits:]}" if dot else value
        )
        return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
