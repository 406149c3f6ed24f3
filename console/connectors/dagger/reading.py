"""Taking foreign JSON apart without trusting its shape: what is not there, or of another kind, reads as empty."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import JsonValue

Json: TypeAlias = dict[str, JsonValue]


def obj(value: JsonValue | None) -> Json:
    return value if isinstance(value, dict) else {}


def items(value: JsonValue | None) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def text(value: JsonValue | None) -> str:
    return value if isinstance(value, str) else ""


def count(value: JsonValue | None) -> int:
    """A number that counts something, 0 where there is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def down(value: JsonValue | None, *path: str) -> JsonValue | None:
    """What lies at the end of a path of names."""
    for name in path:
        value = obj(value).get(name)
    return value


def sendable(value: str) -> bool:
    """Can the text go into a request? What came with half a character in it cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
