"""Only what is set is written on the wire, and goes into a digest."""

from __future__ import annotations

from typing import Any


def given(**fields: Any) -> dict[str, Any]:
    """The fields that have a value: one that is None was never set."""
    return {name: value for name, value in fields.items() if value is not None}
