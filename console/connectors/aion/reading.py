"""Taking an aion server's JSON apart without trusting its shape: what is not there, or of another kind, is unknown."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Final, TypeAlias

from pydantic import JsonValue

from console.connectors.web.reading import parsed

Json: TypeAlias = dict[str, JsonValue]

NIL: Final = "00000000-0000-0000-0000-000000000000"
"""The agent id of what no agent said: the operator's messages, the output of commands."""
_FRACTION: Final = re.compile(r"\.(\d{6})\d+")
LARGEST: Final = 2**53 - 1
"""The largest number that every reader of JSON takes as it is."""


class Elided:
    """Stands for a payload that the server left out for its size."""


ELIDED: Final = Elided()


def obj(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def number(value: object) -> int | None:
    """A whole number from 0 up, that JSON can hold."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else None


def tagged(value: object, tag: str) -> str:
    """The variant of an internally tagged value: `{"role": "User"}` read with `role` is `User`."""
    return text(obj(value).get(tag))


def millis(value: object) -> int:
    """Milliseconds since 1970 UTC of an RFC 3339 time with any number of digits; 0 where it is none."""
    try:
        at = datetime.fromisoformat(_FRACTION.sub(r".\1", text(value)))
        seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0
    return max(int(seconds * 1000), 0)


def unpacked(payload: object) -> JsonValue | Elided:
    """What a payload holds: it comes as a list of byte values. None where there is none."""
    packed = obj(payload).get("bytes")
    if isinstance(packed, dict):
        return ELIDED
    try:
        value: JsonValue = parsed(bytes(packed))  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        return None
    return value


def shown(value: JsonValue) -> str:
    """A value as text: itself where it is one, JSON otherwise."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
