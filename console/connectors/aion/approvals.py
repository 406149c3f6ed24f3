"""Approvals over aion's raw channel.

aion has a way to answer (`RespondToApproval`) and none to ask. Agents that want to ask do it with a raw event:

    source: "approval/request"
    value:  {"call_id": ID, "action": TEXT or JSON, "options": ["approve", "deny"], "expires_at": TIME or null}

Nothing else is taken for a question: a tool call without a result is one that runs.
"""

from __future__ import annotations

from typing import Final

from console.connectors.aion.reading import Json, items, millis, obj, shown, text
from console.connectors.aion.steps import Asked
from watchfloor.protocol.model import Action, Option, RequestModel, Subject
from watchfloor.words import OptionKind, RequestKind

SOURCE: Final = "approval/request"
APPROVE: Final = "approve"
DENY: Final = "deny"
_OPTIONS: Final = {
    APPROVE: Option(id=APPROVE, label="Approve", kind=OptionKind.ALLOW),
    DENY: Option(id=DENY, label="Deny", kind=OptionKind.DENY),
}
DECISIONS: Final = {APPROVE: "Approve", DENY: "Deny"}
"""Option -> aion's word for it."""


def asked(value: object, *, name: str, at: int) -> Asked | None:
    """The request in a raw event's value; None where it names no call, and so could not be answered.

    `name` is the event's own, and makes the request's id.
    """
    body: Json = obj(value)
    call = text(body.get("call_id"))
    if not call:
        return None
    named = [option for option in items(body.get("options")) if isinstance(option, str)]
    options = tuple(_OPTIONS[name] for name in _OPTIONS if name in named) if named else tuple(_OPTIONS.values())
    return Asked(
        id=f"{name}:{call}",
        call=call,
        action=shown(body.get("action")) if body.get("action") is not None else "",
        options=options,
        asked_at=at,
        deadline=millis(body.get("expires_at")) or None,
    )


def request(asked: Asked, session: str, attempt: int) -> RequestModel:
    """The same as a console shows it."""
    action = Action(tool="approval", text=asked.action, call=asked.call, complete=bool(asked.action))
    subject = Subject(
        session=session,
        attempt=attempt,
        id=asked.id,
        kind=RequestKind.APPROVAL,
        actions=(action,),
        options=asked.options,
    )
    return RequestModel.ask(subject, asked_at=asked.asked_at, deadline=asked.deadline)
