"""A session as the roster shows it."""

from __future__ import annotations

from typing import Any

from console.connectors.bamboo import offers
from console.connectors.bamboo.state import Session, result_of, shown
from console.connectors.web.reading import Json, number, part, text
from watchfloor.protocol.model import Pending, Usage
from watchfloor.words import Overlay


def fields_of(session: Session, parent: str | None, now: int) -> dict[str, Any]:
    """The summary fields of a session."""
    info, state = session.info, shown(session, now)
    pending: Pending | None = None
    if session.interrupting is not None and session.running:
        by, since = session.interrupting
        pending = Pending(overlay=Overlay.INTERRUPTING, by=by, since=since)
    return {
        "name": text(info, "title") or "",
        "parent": parent,
        "lifecycle": state.lifecycle,
        "native_state": state.native,
        "why": state.why,
        "error": state.error,
        "turn": session.run,
        "blocked": offers.blocked(session, now),
        "controls": offers.controls(session),
        "cwd": text(info, "workspace_path"),
        "labels": _labels(session),
        "result": result_of(session),
        "usage": _usage(session),
        "in_flight": tuple(
            {"id": call, "name": name, "since": since} for call, (name, since) in session.in_flight.items()
        ),
        "pending": pending,
    }


def _labels(session: Session) -> dict[str, str]:
    info = session.info
    named = {
        "model": text(info, "model"),
        "mode": text(info, "permission_mode"),
        "role": text(info, "subagent_type"),
        "context": session.context or context(part(info, "token_usage")),
        "last_run": session.status,
    }
    return {name: value for name, value in named.items() if value}


def context(usage: Json) -> str | None:
    """How full the context is, in words; None where that is not said."""
    total, most = number(usage, "total_tokens"), number(usage, "max_context_tokens")
    return None if total is None else f"{total:,}" + (f" of {most:,}" if most else "") + " tokens"


def _usage(session: Session) -> Usage | None:
    if session.usage is None:
        return None
    return Usage(
        input_tokens=number(session.usage, "total_token_usage", "prompt_tokens") or 0,
        output_tokens=number(session.usage, "total_token_usage", "completion_tokens") or 0,
        turns=number(session.usage, "total_rounds") or 0,
    )
