"""Our commands as aion's interventions, and its three answers as our outcomes."""

from __future__ import annotations

from typing import Final

from console.connectors.aion.approvals import DECISIONS
from console.connectors.aion.reading import Json, obj, tagged, text
from watchfloor.errors import NotAHost
from watchfloor.foreign import Handled
from watchfloor.protocol.frames import Do, DoApprove, DoBudget, DoPause, DoResume, DoSend, DoStop, UnknownDo
from watchfloor.words import OutcomeKind, Priority

NO_REASON: Final = "cancelled by an operator"
HARNESS: Final = (
    "harness reported failure:",
    "protocol error:",
    "transport error:",
    "capability not supported:",
)
"""How a refusal of the agent itself begins, which aion answers as a stale target."""


def intervention(do: Do | UnknownDo, call: str = "") -> Json | None:
    """The body's `kind`; None for what is no intervention. `call`: the call that the decision is about."""
    match do:
        case DoSend(text=said, priority=priority):
            word = "Interrupt" if priority is Priority.INTERRUPT else "Normal"
            return {"kind": "InjectMessage", "text": said, "priority": {"priority": word}}
        case DoStop(reason=reason):
            return {"kind": "Cancel", "reason": reason or NO_REASON}
        case DoPause():
            return {"kind": "PauseResume", "paused": True}
        case DoResume():
            return {"kind": "PauseResume", "paused": False}
        case DoBudget(tokens=tokens, turns=turns):
            return {"kind": "UpdateBudget", "max_tokens": tokens, "max_turns": turns}
        case DoApprove(option=option, note=note) if option in DECISIONS and call:
            decision: Json = {"decision": DECISIONS[option]}
            return {"kind": "RespondToApproval", "call_id": call, "decision": decision, "note": note}
        case _:
            return None


def outcome(answer: object) -> tuple[OutcomeKind, str]:
    """The outcome in an answer, with aion's own words. Raises NotAHost for one that is none of the three."""
    found = obj(obj(answer).get("outcome"))
    match tagged(found, "outcome"):
        case "Applied":
            return OutcomeKind.APPLIED, ""
        case "CapabilityNotSupported":
            named = tagged(found.get("primitive"), "primitive") or "this"
            return OutcomeKind.CAPABILITY_NOT_SUPPORTED, f"the agent does not support {named}"
        case "StaleTarget":
            return OutcomeKind.STALE_TARGET, text(found.get("detail")) or "the target is stale"
        case _:
            raise NotAHost("the answer to an intervention says none of the three outcomes that aion has")


def stale(detail: str, *, alive: bool) -> Handled:
    """A stale target, after the attempts were read again: gone, or only refused by an agent that lives on."""
    if alive and detail.startswith(HARNESS):
        return Handled(OutcomeKind.REFUSED, reason=f"{detail} (the attempt lives on)")
    after = "the attempt is listed as live again: look, and decide anew" if alive else ""
    return Handled(OutcomeKind.STALE_TARGET, reason=f"{detail} ({after})" if after else detail, info={"live": alive})
