"""A thread as a line on the roster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from console.connectors.codex import items
from console.connectors.codex.offers import blocked, controls
from console.connectors.codex.state import Thread
from console.connectors.web.reading import Json, number, part, text
from watchfloor.protocol.model import InFlight, Mailbox, Pending, Usage
from watchfloor.words import Lifecycle, Overlay

NAME: Final = 80
"""Code points of the first message that stand for a name."""
WORK: Final = 200
"""Code points of a command that name it while it runs."""


def status_of(status: Json) -> tuple[str, frozenset[str]]:
    """The word of a status, and its flags."""
    flags = status.get("activeFlags")
    kept = frozenset(flag for flag in flags if isinstance(flag, str)) if isinstance(flags, list) else frozenset()
    return text(status, "type") or "", kept


def lifecycle_of(thread: Thread) -> Lifecycle:
    if thread.archived:
        return Lifecycle.IDLE
    match thread.status:
        case "active":
            return Lifecycle.WAITING if thread.waiting else Lifecycle.RUNNING
        case "systemError":
            return Lifecycle.FAILED
        case "idle" | "notLoaded":
            return Lifecycle.PAUSED if thread.goal_status == "paused" else Lifecycle.IDLE
        case _:
            return Lifecycle.UNKNOWN


def native_state(thread: Thread) -> str:
    if thread.archived:
        return "archived"
    return " ".join([thread.status, *sorted(thread.flags)]) or "unknown"


def fields_of(thread: Thread) -> dict[str, Any]:
    """The summary of the thread."""
    info = thread.info
    parent = text(info, "parentThreadId") or text(info, "source", "subAgent", "thread_spawn", "parent_thread_id")
    return {
        "name": name_of(info),
        "parent": parent,
        "turn": thread.turn,
        "lifecycle": lifecycle_of(thread),
        "native_state": native_state(thread),
        "why": _why(thread),
        "pending": _pending(thread),
        "error": thread.error,
        "blocked": blocked(thread),
        "controls": controls(thread),
        "in_flight": tuple(_in_flight(thread)),
        "mailbox": Mailbox(queued=len(thread.queue), refs=len(thread.refs)),
        "usage": usage_of(thread),
        "labels": _labels(thread),
        "cwd": text(info, "cwd"),
    }


def name_of(info: Json) -> str:
    """Its name, else its nickname as a sub-agent, else how it begins, else its id."""
    named = text(info, "name") or text(info, "agentNickname")
    if named:
        return named
    begins = " ".join((text(info, "preview") or "").split())
    if not begins:
        return text(info, "id") or ""
    return begins if len(begins) <= NAME else f"{begins[: NAME - 1]}…"


def _why(thread: Thread) -> str | None:
    goal = thread.goal_status
    if goal is None:
        return None
    objective = text(thread.goal, "objective") or ""
    return f"goal {goal}: {objective[:WORK]}"


def _pending(thread: Thread) -> Pending | None:
    """A goal that is paused lets the running turn end."""
    if not thread.active or thread.goal_status != "paused":
        return None
    return Pending(overlay=Overlay.PAUSING, since=1000 * (number(thread.goal, "updatedAt") or 0))


def _in_flight(thread: Thread) -> Iterable[InFlight]:
    for id, begun in thread.begun.items():
        if items.is_work(begun.item) and not begun.waits:
            name = items.name_of(begun.item)[:WORK]
            # What outlived its turn is no longer awaited by the agent.
            lives_on = begun.turn != thread.turn
            yield InFlight(id=id, name=f"lives on: {name}" if lives_on else name, since=begun.since)


def usage_of(thread: Thread) -> Usage | None:
    """Totals of the thread, and the budget of its goal."""
    total = part(thread.usage, "total")
    budget = number(thread.goal, "tokenBudget")
    if not total and budget is None:
        return None
    spent = {"input_tokens": number(total, "inputTokens") or 0, "output_tokens": number(total, "outputTokens") or 0}
    if thread.turns:
        spent["turns"] = len(thread.turns)
    return Usage(**spent) if budget is None else Usage(**spent, budget_tokens=budget)


def _labels(thread: Thread) -> dict[str, str]:
    info = thread.info
    source = info.get("source")
    kind = next(iter(source), None) if isinstance(source, dict) else source
    labels = {
        "model": thread.model or text(info, "model"),
        "provider": text(info, "modelProvider"),
        "source": kind if isinstance(kind, str) else None,
        "role": text(info, "agentRole"),
        "branch": text(info, "gitInfo", "branch"),
        "forked from": text(info, "forkedFromId"),
    }
    return {name: value for name, value in labels.items() if value}
