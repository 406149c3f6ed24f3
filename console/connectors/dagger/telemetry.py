"""What telemetry says of agents: OTLP in protobuf JSON, where ids are base64 and numbers are strings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from console.connectors.dagger.reading import Json, items, obj, text

AGENT_SCOPE: Final = "dagger.io/agent"
_OF_AGENT: Final = "dagger.io/agent."
_CONTROL: Final = "dagger.io/agent.control."
Value = str | int | bool | list[str]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of work. `start` and `end` are in milliseconds since 1970 UTC; `end` is None while it lasts.

    `handle` is set on the spans of an agent itself, and `name` is the agent's there.
    """

    id: str
    parent: str
    name: str
    start: int
    end: int | None
    handle: str = ""


@dataclass(frozen=True, slots=True)
class StateRecord:
    """An agent's state, as of `at` (milliseconds since 1970 UTC). `revision` is 0 where records have none.

    `handle` is empty in the older form: the record's span tells whose it is. `state` None: it says nothing of it.
    """

    span: str
    at: int
    handle: str = ""
    name: str = ""
    state: str | None = None
    stop_reason: str = ""
    failure: str = ""
    parent: str = ""
    waiting_on: str = ""
    incarnation: str = ""
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Subscription:
    """`subscriber` is sent a message when the agent comes into one of these states."""

    handle: str
    subscriber: str
    states: tuple[str, ...]
    revision: int = 0


def spans(data: str) -> list[Span]:
    """The spans of one event of the stream of traces."""
    return [span for raw in _records(data, "resourceSpans", "scopeSpans", "spans") if (span := _span(raw)) is not None]


def records(data: str) -> list[StateRecord | Subscription]:
    """What one event of the stream of logs says of agents. What programs print is no word of that."""
    found = (_record(raw) for raw in _records(data, "resourceLogs", "scopeLogs", "logRecords"))
    return [record for record in found if record is not None]


def _records(data: str, *path: str) -> Iterator[Json]:
    try:
        parsed: JsonValue = json.loads(data)
    except (ValueError, RecursionError):
        return
    level: list[JsonValue] = [parsed]
    for name in path:
        level = [inner for outer in level for inner in items(obj(outer).get(name))]
    for record in level:
        yield obj(record)


def _span(raw: Json) -> Span | None:
    id = text(raw.get("spanId"))
    if not id:
        return None
    values = _attributes(raw)
    handle = _text(values, "dagger.io/agent.id") if values.get("dagger.io/agent") is True else ""
    name = _text(values, "dagger.io/agent.name") if handle else text(raw.get("name"))
    start, end = _millis(raw.get("startTimeUnixNano")) or 0, _millis(raw.get("endTimeUnixNano"))
    return Span(id, text(raw.get("parentSpanId")), name, start, end, handle)


def _record(raw: Json) -> StateRecord | Subscription | None:
    values = _attributes(raw)
    if not any(key.startswith(_OF_AGENT) for key in values):
        return None
    handle = _text(values, "dagger.io/agent.id")
    revision = _number(values.get(f"{_CONTROL}revision"))
    if _text(values, f"{_CONTROL}kind") == "subscription":
        states = values.get("dagger.io/agent.subscription.states")
        subscriber = _text(values, "dagger.io/agent.subscription.subscriber")
        return Subscription(handle, subscriber, tuple(states) if isinstance(states, list) else (), revision)
    state = values.get("dagger.io/agent.state")
    return StateRecord(
        span=text(raw.get("spanId")),
        at=_millis(raw.get("timeUnixNano")) or 0,
        handle=handle,
        name=_text(values, "dagger.io/agent.name"),
        state=state if isinstance(state, str) and state else None,
        stop_reason=_text(values, "dagger.io/agent.stop.reason"),
        failure=_text(values, "dagger.io/agent.failure"),
        parent=_text(values, "dagger.io/agent.parent"),
        waiting_on=_text(values, "dagger.io/agent.waiting_on"),
        incarnation=_text(values, f"{_CONTROL}incarnation"),
        revision=revision,
    )


def _attributes(raw: Json) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for attribute in items(raw.get("attributes")):
        key, value = text(obj(attribute).get("key")), obj(obj(attribute).get("value"))
        for form, inner in value.items():
            match form, inner:
                case "stringValue", str():
                    found[key] = inner
                case "boolValue", bool():
                    found[key] = inner
                case "intValue", str() | int():
                    found[key] = _number(inner)
                case "arrayValue", dict():
                    found[key] = [text(obj(one).get("stringValue")) for one in items(inner.get("values"))]
                case _:
                    pass
    return found


def _text(values: dict[str, Value], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    try:
        return int(value) if isinstance(value, str | int) else 0
    except ValueError:
        return 0


def _millis(value: JsonValue | None) -> int | None:
    """Nanoseconds as milliseconds; None for a time that has not come: 0, or before 1970 without its sign."""
    nanoseconds = _number(value)
    return nanoseconds // 1_000_000 or None if 0 < nanoseconds < 2**63 else None
