"""Events of a transcript, made by hand and taken from recordings, and what was told of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from console.connectors.aion.steps import Asked, CutShort, NoLongerAsked, Piece, Step, Tell
from tests.peers.aion_world import CHILD, MAIN, recording
from watchfloor.protocol.events import Event

Json = dict[str, Any]
E = TypeVar("E", bound=Event)
KINDS = (Tell, Piece, CutShort, Asked, NoLongerAsked)
__all__ = ["CHILD", "MAIN"]


def event(kind: Json, seq: int | None, *, worker: int | None = None, agent: tuple[str, str] = MAIN) -> Json:
    """One event of attempt 1; `seq` None is one that passes."""
    return {
        "workflow_id": "w", "run_id": "r", "activity_id": 0, "attempt": 1, "agent_id": agent[0], "agent_role": agent[1],
        "emitted_at": "2026-11-30T20:37:49.094728269Z", "worker_seq": seq if worker is None else worker,
        "store_seq": seq, "ephemeral": seq is None, "kind": kind,
    }  # fmt: skip


def message(text: str, seq: int, *, worker: int | None = None, agent: tuple[str, str] = MAIN) -> Json:
    kind = {"kind": "Message", "role": {"role": "Assistant"}, "text": text}
    return event(kind, seq, worker=worker, agent=agent)


def piece(text: str, worker: int, message_id: str = "m", agent: tuple[str, str] = MAIN) -> Json:
    kind = {"kind": "Delta", "message_id": message_id, "text_fragment": text}
    return event(kind, None, worker=worker, agent=agent)


def note(text: str, seq: int, worker: int | None = None) -> Json:
    return event({"kind": "Progress", "detail": {"detail": "Note", "text": text}}, seq, worker=worker)


def told(steps: list[Step], kind: type[E]) -> list[E]:
    return [step.event for step in steps if isinstance(step, Tell) and isinstance(step.event, kind)]


def sockets(name: str) -> Iterator[tuple[tuple[int, str, str, int, int], list[Json]]]:
    """What each transcript socket of a recording sent: its number and axes, and its events in order of arrival."""
    found: dict[tuple[int, str, str, int, int], list[Json]] = {}
    for line in recording(name):
        body = line.get("body")
        if line["kind"] == "ws" and line["event"] == "receive" and isinstance(body, dict) and "event" in body:
            said = body["event"]
            if "kind" in said:
                axes = (said["workflow_id"], said["run_id"], said["activity_id"], said["attempt"])
                found.setdefault((line["socket"], *axes), []).append(said)
    yield from found.items()


def histories(name: str) -> dict[str, list[Json]]:
    """The longest history that a recording holds of each workflow, read over HTTP or from its stream."""
    found: dict[str, dict[int, Json]] = {}
    for line in recording(name):
        events: list[Json] = []
        if line["kind"] == "http" and line["request"]["path"] == "/workflows/history":
            events = (line["response"].get("body") or {}).get("events") or []
        elif line["kind"] == "ws" and "payload" in (
            (line.get("body") or {}) if isinstance(line.get("body"), dict) else {}
        ).get("event", {}):
            events = [json.loads(bytes(line["body"]["event"]["payload"]["bytes"]))]
        for each in events:
            envelope = each["data"]["envelope"]
            if "__elided" not in json.dumps(each):
                found.setdefault(envelope["workflow_id"], {})[envelope["seq"]] = each
    return {id: [events[seq] for seq in sorted(events)] for id, events in found.items()}
