"""How an attempt ended: the outcome record, and the classes of failure that matter to an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from console.connectors.aion.history import RETRYABLE, Attempt
from console.connectors.aion.reading import Elided, obj
from watchfloor.protocol.model import Result
from watchfloor.words import StopReason

FIELDS: Final = ("text", "final_message", "stop_reason", "session_id")
TEXT: Final = 100_000
CONTRACT: Final = "contract"
POLICY: Final = "policy_refusal"
EXHAUSTED: Final = "exhausted"
_CLASSES: Final = ("retryable:", "terminal:")
_CONTRACT: Final = "agent-outcome contract refusal"
_POLICY: Final = "provider policy refused"


@dataclass(frozen=True, slots=True)
class Failure:
    """`code`: contract, policy_refusal, exhausted or empty; `text` without the class that aion puts before it."""

    code: str
    text: str
    final: bool


def failure(attempt: Attempt) -> Failure:
    """What a failed attempt's message means. Only its words tell a contract failure from a policy refusal."""
    said = attempt.error
    inner = said.rpartition("last refusal: ")[2] if said.startswith("exhausted:") else said
    for name in _CLASSES:
        inner = inner.removeprefix(name)
    code = EXHAUSTED if said.startswith("exhausted:") else ""
    if attempt.error_kind == "PolicyRefused" or inner.startswith(_POLICY):
        code = POLICY
    elif inner.startswith(_CONTRACT):
        code = CONTRACT
    shown = said if said.startswith("exhausted:") else inner
    return Failure(code, shown, attempt.error_kind != RETRYABLE)


def record(value: JsonValue | Elided) -> Result | None:
    """The outcome record in a result: four texts, all there. None for anything else, which is no record."""
    found = obj(value)
    if not all(isinstance(found.get(name), str) for name in FIELDS):
        return None
    said = str(found["text"])
    known = {reason.value for reason in StopReason}
    stop = str(found["stop_reason"])
    return Result(
        text=said[:TEXT],
        cut=len(said) > TEXT,
        final_message=str(found["final_message"])[:TEXT],
        stop_reason=StopReason(stop) if stop in known else StopReason.OTHER,
        session_id=str(found["session_id"]),
    )


def lacking(value: JsonValue | Elided) -> list[str]:
    """The fields that a result lacks as a record; empty where it is none at all, as of a command."""
    found = obj(value)
    missing = [name for name in FIELDS if not isinstance(found.get(name), str)]
    return missing if len(missing) < len(FIELDS) else []
