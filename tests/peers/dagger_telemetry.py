"""The telemetry of a stand-in Dagger engine: rows of OTLP export requests in protobuf JSON, by cursor."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import time
from dataclasses import dataclass, field
from typing import Any, Final

TRACE: Final = base64.b64encode(bytes(range(16))).decode()


NOT_ENDED: Final = 11651379494838206464
"""Go's time of nothing in nanoseconds since 1970, taken for a number without a sign: what the engine sends."""


def attribute(key: str, value: str | bool | int | list[str]) -> dict[str, Any]:
    match value:
        case bool():
            typed: dict[str, Any] = {"boolValue": value}
        case int():
            typed = {"intValue": str(value)}
        case list():
            typed = {"arrayValue": {"values": [{"stringValue": one} for one in value]}}
        case _:
            typed = {"stringValue": value}
    return {"key": key, "value": typed}


@dataclass
class Span:
    """One span; an agent's where `handle` is set."""

    id: str
    parent: str
    name: str
    start: int
    end: int = 0
    handle: str = ""
    agent: str = ""


@dataclass
class Rows:
    """One stream: what was exported, and who waits for more."""

    kind: str
    """The name of its events: spans or logs."""
    rows: list[tuple[int, str]] = field(default_factory=list)
    more: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    def add(self, cursor: int, row: dict[str, Any]) -> None:
        self.rows.append((cursor, json.dumps(row)))
        self.wake()

    def close(self) -> None:
        self.closed = True
        self.wake()

    def wake(self) -> None:
        self.more.set()
        self.more = asyncio.Event()


class Telemetry:
    """What the engine tells of its agents. `controlled`: whole revisioned records instead of the older ones."""

    def __init__(self, *, controlled: bool) -> None:
        self.controlled = controlled
        self.traces = Rows("spans")
        self.logs = Rows("logs")
        self._cursor = itertools.count(1)
        self._ids = itertools.count(1)
        self._revisions = itertools.count(1)
        self.now_ns = 0

    def close(self) -> None:
        self.traces.close()
        self.logs.close()

    def span(self, name: str, parent: str = "", *, handle: str = "", agent: str = "") -> Span:
        """A span has begun."""
        id = base64.b64encode(next(self._ids).to_bytes(8, "big")).decode()
        span = Span(id, parent, name, self._tick(), handle=handle, agent=agent)
        self.export(span)
        return span

    def end(self, span: Span) -> None:
        span.end = self._tick()
        self.export(span)

    def export(self, span: Span) -> None:
        """Tell of a span as it is now; heartbeats do so again and again while it lasts."""
        attributes = []
        if span.handle:
            attributes = [
                attribute("dagger.io/agent", True),
                attribute("dagger.io/agent.id", span.handle),
                attribute("dagger.io/agent.name", span.agent),
                attribute("dagger.io/agent.call.digest", f"xxh3:{span.handle[:8]}"),
                attribute("gen_ai.agent.id", span.handle),
                attribute("gen_ai.agent.name", span.agent),
            ]
        told = {
            "traceId": TRACE,
            "spanId": span.id,
            "parentSpanId": span.parent,
            "name": span.name,
            "kind": "SPAN_KIND_INTERNAL",
            "startTimeUnixNano": str(span.start),
            "endTimeUnixNano": str(span.end or NOT_ENDED),
            "attributes": attributes,
            "status": {},
        }
        scope = {"scope": {"name": "dagger.io/core"}, "spans": [told]}
        self.traces.add(next(self._cursor), {"resourceSpans": [{"resource": {}, "scopeSpans": [scope]}]})

    def state(self, span: Span, state: str, *, stop: str = "", failure: str = "", parent: str = "") -> None:
        """An agent is in this state now."""
        attributes = [
            attribute("dagger.io/agent.state", state),
            attribute("dagger.io/agent.waiting_on", ""),
            attribute("dagger.io/agent.stop.reason", stop),
        ]
        if self.controlled:
            attributes += [
                *self._control("agent", span.handle),
                attribute("dagger.io/agent.name", span.agent),
                attribute("dagger.io/agent.parent", parent),
                attribute("dagger.io/agent.failure", failure),
                attribute("dagger.io/agent.activity", self.now_ns),
            ]
        self._log(span, attributes)

    def subscription(self, span: Span, subscriber: str, states: list[str]) -> None:
        if self.controlled:
            self._log(
                span,
                [
                    *self._control("subscription", span.handle),
                    attribute("dagger.io/agent.subscription.subscriber", subscriber),
                    attribute("dagger.io/agent.subscription.states", states),
                ],
            )

    def _control(self, kind: str, handle: str) -> list[dict[str, Any]]:
        return [
            attribute("dagger.io/agent.control.version", 1),
            attribute("dagger.io/agent.control.kind", kind),
            attribute("dagger.io/agent.control.session", "sess"),
            attribute("dagger.io/agent.control.trace", "00" * 16),
            attribute("dagger.io/agent.control.incarnation", "inc1"),
            attribute("dagger.io/agent.control.revision", next(self._revisions)),
            attribute("dagger.io/agent.id", handle),
        ]

    def _log(self, span: Span, attributes: list[dict[str, Any]]) -> None:
        record = {
            "timeUnixNano": str(self._tick()),
            "body": {"stringValue": ""},
            "traceId": TRACE,
            "spanId": span.id,
            "attributes": attributes,
        }
        scope = {"scope": {"name": "dagger.io/agent"}, "logRecords": [record]}
        self.logs.add(next(self._cursor), {"resourceLogs": [{"resource": {}, "scopeLogs": [scope]}]})

    def _tick(self) -> int:
        # No two rows are of the same time, so that the latest can be told.
        self.now_ns = max(time.time_ns(), self.now_ns + 1_000_000)
        return self.now_ns
