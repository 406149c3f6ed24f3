"""Takes secrets out of what is written for others: exports, and recordings.

Known forms of tokens, and credentials that are named. What only binds or names something (ids, digests) stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from watchfloor.text import clean, redact

EXACT: Final = frozenset(
    {
        "call", "child", "command", "digest", "epoch", "id", "instance", "item", "key", "kind", "option", "parent",
        "profile", "ref", "request", "session", "state", "subscriber", "turn", "type",
    }
)  # fmt: skip
"""Members that name something: another value in their place would be another thing."""


TOO_DEEP: Final = "[masked: too deep to be looked through]"


def scrubbed(value: Any, secrets: Sequence[str] = ()) -> Any:
    """The JSON value with what is secret in its texts masked; everything else exactly as it was, and the same object
    where nothing was secret. `TOO_DEEP` where it cannot be looked through."""
    try:
        return _scrubbed(value, secrets)
    except RecursionError:
        return TOO_DEEP


def _scrubbed(value: Any, secrets: Sequence[str]) -> Any:
    match value:
        case str():
            masked, count = redact(clean(value), secrets)
            return str(masked) if count else value
        case list():
            items = [_scrubbed(item, secrets) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        case dict():
            members = {
                name: item if name in EXACT and isinstance(item, str) else _scrubbed(item, secrets)
                for name, item in value.items()
            }
            return members if any(members[name] is not item for name, item in value.items()) else value
        case _:
            return value
