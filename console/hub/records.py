"""What the audit file says of a command, as fields. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchfloor.words import Primitive

if TYPE_CHECKING:
    from console.fleet.gate import Gated
    from console.fleet.state import Trail


def asked(gated: Gated, by: str) -> dict[str, object]:
    """A command that may go out. What is filled in to answer or to act is left out: any of it may be secret."""
    intent = gated.intent
    fields: dict[str, object] = {
        "by": by,
        "source": gated.target.source,
        "session": gated.target.session,
        "attempt": gated.attempt,
        "turn": gated.turn,
        "primitive": gated.primitive,
        "request": intent.request,
        "option": gated.option.id if gated.option is not None else None,
        "option_kind": gated.option.kind if gated.option is not None else None,
        "digest": gated.digest,
        "reason": intent.reason,
        "note": intent.note,
        "interrupt": intent.interrupt or None,
        "kill": intent.kill or None,
        "mode": intent.mode,
        "to": intent.to,
    }
    if gated.primitive is Primitive.ANSWER:
        fields["answers"] = sorted(intent.fields) if intent.fields is not None else None
    elif gated.primitive is Primitive.SEND:
        fields |= {"text": intent.text, "priority": gated.priority}
    elif gated.primitive is Primitive.ACT:
        fields |= {"act": intent.extra.get("act"), "fields": sorted(intent.extra.get("fields", ()))}
    elif intent.extra:
        fields["extra"] = sorted(intent.extra)
    return fields


def became(trail: Trail) -> dict[str, object]:
    """The outcome of a command."""
    fact = trail.fact
    decided = fact.decided if fact is not None else None
    return {
        "outcome": trail.outcome,
        "reason": trail.reason or None,
        "info": dict(fact.info) if fact is not None and fact.info else None,
        "decided_by": decided.by if decided is not None else None,
        "decided_option": decided.option if decided is not None else None,
        "decided_at": decided.at if decided is not None else None,
    }
