"""Summaries through the door: each field of a session by itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Any, Final

from console.fleet.facts import LastFact, PendingFact, RequestRefFact, ResultFact, UsageFact
from console.intake.bounds import KEEP_ID, KEEP_LABELS, KEEP_LIST, Reading, a_line, a_prose, line, prose
from watchfloor.protocol import model as m
from watchfloor.text import Clean, clean_line
from watchfloor.words import Primitive

_PRIMITIVES: Final = {p.value: p for p in Primitive}


def summary_fields(summary: m.Summary, given: Collection[str], r: Reading) -> dict[str, Any]:
    """The attributes of a session that the fields `given` of its summary tell; see `SummaryFact`."""
    fields: dict[str, Any] = {}
    for name in given:
        if (one := _ONE.get(name)) is not None:
            attribute, convert = one
            fields[attribute] = convert(r, name, getattr(summary, name))
        elif (several := _SEVERAL.get(name)) is not None:
            fields |= several(r, getattr(summary, name))
    return fields


def _same(r: Reading, name: str, value: Any) -> Any:
    return value


def _line(r: Reading, name: str, value: str | None) -> Clean | None:
    return a_line(value)


def _prose(r: Reading, name: str, value: str | None) -> Clean | None:
    return a_prose(value)


def _word(r: Reading, name: str, value: str) -> str:
    return str(value)


def _by_primitive(r: Reading, name: str, reasons: Mapping[str, str]) -> dict[Primitive, Clean]:
    return {primitive: line(reasons[word]) for word, primitive in _PRIMITIVES.items() if word in reasons}


def _pending(r: Reading, name: str, pending: m.Pending | None) -> PendingFact | None:
    if pending is None:
        return None
    return PendingFact(pending.overlay, line(pending.by), r.time("pending.since", pending.since))


def _usage(r: Reading, name: str, usage: m.Usage | None) -> UsageFact | None:
    if usage is None:
        return None
    return UsageFact(
        r.count("usage", usage.input_tokens),
        r.count("usage", usage.output_tokens),
        r.count("usage", usage.turns),
        r.a_count("usage", usage.budget_tokens),
        r.a_count("usage", usage.budget_turns),
    )


def _last(r: Reading, name: str, last: m.Last | None) -> LastFact | None:
    return LastFact(r.time("last.at", last.at), line(last.kind), line(last.text)) if last is not None else None


def _result(r: Reading, name: str, result: m.Result | None) -> ResultFact | None:
    if result is None:
        return None
    text = result.text or result.final_message or ""
    return ResultFact(prose(text), result.cut, clean_line(result.stop_reason.value))


def _refs(r: Reading, name: str, refs: Collection[m.RequestRef]) -> tuple[RequestRefFact, ...]:
    kept = []
    for ref in refs:
        if len(ref.id) > KEEP_ID:
            r.id("requests.id", ref.id)
            continue
        asked_at, deadline = r.time("asked_at", ref.asked_at), r.a_time("deadline", ref.deadline)
        kept.append(RequestRefFact(ref.id, ref.kind, asked_at, deadline, r.id("digest", ref.digest)))
    return tuple(kept)


def _in_flight(r: Reading, items: Collection[m.InFlight]) -> dict[str, Any]:
    kept = tuple(
        (r.id("in_flight.id", item.id), line(item.name), r.time("in_flight.since", item.since))
        for item in islice(items, KEEP_LIST)
    )
    return {"in_flight": kept, "in_flight_more": len(items) - len(kept)}


def _labels(r: Reading, labels: Mapping[str, str]) -> dict[str, Any]:
    kept = {line(name): line(value) for name, value in islice(labels.items(), KEEP_LABELS)}
    return {"labels": kept, "labels_more": len(labels) - min(len(labels), KEEP_LABELS)}


def _mailbox(r: Reading, mailbox: m.Mailbox) -> dict[str, Any]:
    return {"mail_queued": r.count("mailbox", mailbox.queued), "mail_refs": r.count("mailbox", mailbox.refs)}


_ONE: Final[Mapping[str, tuple[str, Callable[[Reading, str, Any], Any]]]] = {
    "name": ("name", _line),
    "kind": ("kind", _word),
    "owned": ("owned", _same),
    "demo": ("demo", _same),
    "parent": ("parent", Reading.an_id),
    "attempt": ("attempt", Reading.a_count),
    "turn": ("turn", Reading.an_id),
    "epoch": ("epoch", Reading.id),
    "lifecycle": ("lifecycle", _same),
    "native_state": ("native_state", _line),
    "why": ("why", _line),
    "since": ("since", Reading.a_time),
    "profile": ("profile", Reading.an_id),
    "blocked": ("blocked", _by_primitive),
    "controls": ("controls", _by_primitive),
    "pending": ("pending", _pending),
    "requests": ("request_refs", _refs),
    "head": ("head", Reading.count),
    "usage": ("usage", _usage),
    "last": ("last", _last),
    "cwd": ("cwd", _line),
    "result": ("result", _result),
    "error": ("error", _prose),
}
"""Field of a summary -> attribute of a session, and the way there."""

_SEVERAL: Final[Mapping[str, Callable[[Reading, Any], dict[str, Any]]]] = {
    "in_flight": _in_flight,
    "labels": _labels,
    "mailbox": _mailbox,
}
"""Fields of a summary that become several attributes."""
