"""What is kept of a session, so that it comes back when its host does.

A record stands in the log in one transaction with the events that it follows from: history and state never differ.
What ran is cut then, for nobody knows how far it came: its turn comes back suspended, to be taken up by `resume` with
the same mail; a call that was being carried out ends as `unknown`, and is not repeated by the host; what was asked is
withdrawn, and is asked anew when the turn goes on. A session that was being stopped is stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from watchfloor.harness.base import ConversationMessage, MailItem
from watchfloor.host.effects import SessionEffect
from watchfloor.host.sessions.kept import KeptAnswer
from watchfloor.host.sessions.mailbox import Letter
from watchfloor.host.sessions.session import SessionCore
from watchfloor.host.sessions.state import Phase, Suspension
from watchfloor.protocol.events import Level, MailState, Notice, ToolResult, ToolStatus
from watchfloor.protocol.model import RequestModel, Result, Summary, Usage
from watchfloor.words import Delivery, Lifecycle, Overlay

CUT: Final = "the host ended while the turn ran"
NOT_KNOWN: Final = "the host ended while it ran: whether it was carried out, and how far, is not known"
NOT_RUN: Final = "the host ended before it was decided on: it was not carried out"
KEPT: Final = ("name", "parent", "labels", "cwd", "demo")
"""Of what never changes in a summary, that by which a session is known again when no program adds it any more."""


def record(core: SessionCore, fixed: Mapping[str, object]) -> str:
    """All that is kept of the session but its conversation, as JSON. `fixed`: what never changes in its summary."""
    data: dict[str, Any] = {
        "attempt": core.attempt,
        "phase": core.phase.value,
        "turns": core.turns,
        "begun": core.begun,
        "turn": core.turn,
        "lifecycle": core.lifecycle.value,
        "paused": core.paused,
        "why": core.why,
        "error": core.error,
        "since": core.since,
        "worked": core.worked,
        "stopping": Overlay.STOPPING in core.pending,
        "compacting": Overlay.RESEEDING in core.pending,
        "result": core.result and core.result.model_dump(mode="json", exclude_unset=True),
        "usage": core.usage and core.usage.model_dump(mode="json", exclude_unset=True),
        "budget": [core.budget.tokens, core.budget.turns],
        "model": core.conversation.model,
        "subscribers": {id: sorted(on) for id, on in core.subscribers.items()},
        "refs": core.mailbox.view.refs,
        "waiting": [_letter(letter) for letter in core.mailbox.waiting()],
        "consumed": [_letter(letter) for letter in core.mailbox.at_work()],
        "carry": [asdict(item) for item in core.carried],
        "calls": core.calls,
        "kept": core.kept.plain(),
        "notes": core.conversation.notes,
        "fixed": {name: fixed[name] for name in KEPT if fixed.get(name)},
        "asked": [request.model_dump(mode="json", exclude_unset=True) for request in core.requests.open()],
    }
    return json.dumps(data, separators=(",", ":"))


def fixed_of(saved: str) -> dict[str, Any]:
    """What never changes in the summary of the session that was kept. Raises ValueError for what is no record."""
    data = json.loads(saved)
    fixed = data.get("fixed", {}) if isinstance(data, dict) else None
    if not isinstance(fixed, dict):
        raise ValueError("no record of a session")
    kept = {name: fixed[name] for name in KEPT if name in fixed}
    Summary.model_validate({"id": "", **kept})
    return kept


def words(message: ConversationMessage) -> str:
    """One message of a conversation as JSON."""
    return json.dumps([message.role, message.text, message.ref])


def restore(core: SessionCore, saved: str, messages: Sequence[str], now: int) -> list[SessionEffect]:
    """Make of a new core the session that was kept. Raises ValueError for what is no record."""
    try:
        return _restore(core, json.loads(saved), [json.loads(message) for message in messages], now)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"no record of a session: {type(error).__name__} {error}") from None


def _restore(core: SessionCore, data: dict[str, Any], messages: list[Any], now: int) -> list[SessionEffect]:
    core.attempt, core.error, core.why = data["attempt"], data["error"], data["why"]
    core.turns, core.begun, core.worked = data["turns"], data["begun"], data["worked"]
    core.since = data["since"]
    core.result = Result.model_validate(data["result"]) if data["result"] else None
    core.usage = Usage.model_validate(data["usage"]) if data["usage"] else None
    core.budget.tokens, core.budget.turns = data["budget"]
    core.conversation.model = data["model"]
    core.conversation.notes.update(data.get("notes", {}))
    core.kept.put_back([KeptAnswer.of_plain(answer) for answer in data.get("kept", [])])
    for call, begun in data["calls"].items():
        if begun:
            # Whether it ran is not known: nothing of it may run by itself again.
            core.kept.begun(call)
    core.conversation.messages[:] = [ConversationMessage(*message) for message in messages]
    core.subscribers.update({id: frozenset(on) for id, on in data["subscribers"].items()})
    core.carried = tuple(MailItem(**item) for item in data["carry"])
    waiting, consumed = ([_read(letter) for letter in data[name]] for name in ("waiting", "consumed"))
    core.mailbox.put_back(data["refs"], waiting, consumed)
    core.requests.put_back([RequestModel.model_validate(request) for request in data["asked"]])
    phase = Phase(data["phase"])
    core.phase = Phase.NEVER_STARTED if phase in (Phase.STARTING, Phase.LIVE) else phase
    core.unloaded = core.phase is not phase
    core.paused = data["paused"]
    core.turn = data["turn"]
    events = _came_back(core, data)
    stopped = bool(data["stopping"]) and core.unloaded
    return core.come_back(now, Lifecycle(data["lifecycle"]), events, stopped=stopped)


def _came_back(core: SessionCore, data: dict[str, Any]) -> list[Any]:
    """What is to be told of the work that was cut; the session is suspended where a turn was under way."""
    events: list[Any] = []
    for call, begun in data["calls"].items():
        status = ToolStatus.UNKNOWN if begun else ToolStatus.CANCELLED
        events.append(ToolResult(at=0, call=call, status=status, text=NOT_KNOWN if begun else NOT_RUN))
    if data["compacting"]:
        text = "the conversation was not compacted: the host ended before"
        events.append(Notice(at=0, level=Level.ERROR, code="not_compacted", text=text))
    if core.turn is not None:
        if not core.paused:
            core.why = CUT
            events.append(Notice(at=0, level=Level.WARNING, code="cut", text=f"{CUT}: it can be resumed"))
        core.paused = True
        core.suspension = Suspension(cut=True)
    return events


def posted(letter: Letter) -> str:
    """A letter that has ended, as JSON."""
    return json.dumps({**_letter(letter), "consumed": letter.consumed})


def received(text: str) -> Letter:
    """The letter that was kept so. Raises ValueError for what is none."""
    try:
        data = json.loads(text)
        letter = _read(data)
        letter.consumed = bool(data["consumed"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"no letter: {type(error).__name__} {error}") from None
    return letter


def _letter(letter: Letter) -> dict[str, Any]:
    item = asdict(letter.item)
    return {"item": item, "delivery": letter.delivery.value, "steers": letter.steers, "at": letter.at, **_end(letter)}


def _end(letter: Letter) -> dict[str, Any]:
    return {"state": letter.state.value, "error": letter.error, "response": letter.response}


def _read(data: dict[str, Any]) -> Letter:
    return Letter(
        MailItem(**data["item"]),
        Delivery(data["delivery"]),
        data["steers"],
        data["at"],
        MailState(data["state"]),
        data["error"],
        data["response"],
    )
