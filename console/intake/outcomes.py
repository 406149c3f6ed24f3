"""Outcomes through the door: the details that the fleet and the command line read."""

from __future__ import annotations

from itertools import islice
from typing import Any

from pydantic import JsonValue

from console.intake.bounds import KEEP_LINE, KEEP_LIST, Reading, exact, line, shown_json
from watchfloor.protocol import frames as f
from watchfloor.words import Delivery


def outcome_info(frame: f.Outcome, r: Reading) -> dict[str, Any]:
    """What the fleet and the command line read of an outcome's details: ids raw, other texts clean."""
    info: dict[str, Any] = {}
    for name, value in islice(frame.info.items(), KEEP_LIST):
        if name in ("ref", "session") and isinstance(value, str):
            info[name] = r.id(name, value)
        elif name == "delivery":
            info[name] = Delivery(value) if isinstance(value, str) and value in Delivery.__members__.values() else None
        else:
            info[line(name)] = _detail(name, value, r)
    if frame.attempt is not None:
        info.setdefault("attempt", r.a_count("attempt", frame.attempt))
    if frame.retry_after_s is not None:
        info["retry_after_s"] = r.span_s("retry_after_s", frame.retry_after_s)
    return info


def _detail(name: str, value: JsonValue, r: Reading) -> Any:
    match value:
        case str():
            return line(value)
        case None | bool():
            return value
        case int() | float() if name.endswith("_s"):
            return r.span_s(name, value)
        case int() | float():
            return r.number(name, value)
        case _:
            text, more = shown_json(value)
            return exact(text, KEEP_LINE, more)
