"""What a session can be told: exactly what its worker advertises for the attempt that lives now."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from console.connectors.aion.reading import Json, items, obj, tagged
from watchfloor.protocol.model import (
    Act,
    ActOptions,
    BudgetOptions,
    Capabilities,
    EffectsTrait,
    FieldType,
    FormField,
    NoOptions,
    PauseOptions,
    Replay,
    RequestsTrait,
    SendOptions,
    StopOptions,
    Traits,
)
from watchfloor.words import Priority

INJECT: Final = "InjectMessage"
CANCEL: Final = "Cancel"
PAUSE: Final = "PauseResume"
BUDGET: Final = "UpdateBudget"
APPROVAL: Final = "RespondToApproval"
PRIMITIVES: Final = frozenset({INJECT, CANCEL, PAUSE, BUDGET, APPROVAL})

AGENT_TRAITS: Final = Traits(
    pause_is_barrier=False, requests=RequestsTrait.DERIVED, effects=EffectsTrait.PARTIAL, replay=Replay.KEY
)
"""Of an intervention aion records none but a message: what becomes of the others shows by luck only."""
WORKFLOW_TRAITS: Final = Traits(effects=EffectsTrait.PARTIAL, replay=Replay.KEY)
"""Cancelling a workflow leaves its agents at work."""

CANCEL_WORKFLOW: Final = "cancel_workflow"
SIGNAL: Final = "signal"
REOPEN: Final = "reopen"
RESTART_WORKER: Final = "restart_worker"
CANCEL_ATTEMPT: Final = "cancel_attempt_"
"""Followed by its number."""
STEERS: Final = "Steer this attempt"
STOPS: Final = "Cancel this attempt (aion may start another)"


def supported(capabilities: object) -> frozenset[str]:
    """The primitives in aion's own form; those that we do not know grant nothing."""
    listed: Iterable[object] = items(obj(capabilities).get("supported"))
    return frozenset(tagged(entry, "primitive") for entry in listed) & PRIMITIVES


def of_attempt(primitives: Collection[str], *, restart: str = "") -> Capabilities:
    """`restart`: the worker that may be restarted from here, where it answers nobody any more."""
    return Capabilities(
        send=SendOptions(priorities=(Priority.NORMAL, Priority.INTERRUPT)) if INJECT in primitives else None,
        stop=StopOptions() if CANCEL in primitives else None,
        pause=PauseOptions() if PAUSE in primitives else None,
        resume=NoOptions() if PAUSE in primitives else None,
        budget=BudgetOptions(tokens=True, turns=True) if BUDGET in primitives else None,
        approve=NoOptions() if APPROVAL in primitives else None,
        act=ActOptions(acts=(_restart(restart),)) if restart else None,
    )


def cancels(capabilities: Capabilities, attempts: Collection[int]) -> Capabilities:
    """The same, and acts that end agents whose attempts are over."""
    acts = tuple(
        Act(
            id=f"{CANCEL_ATTEMPT}{number}",
            label=f"Cancel what is left of attempt {number}",
            effect="ends its agent, which works on although its attempt is over; nothing is tried again for it",
            danger=True,
        )
        for number in attempts
    )
    known = capabilities.act.acts if capabilities.act is not None else ()
    return capabilities.model_copy(update={"act": ActOptions(acts=(*known, *acts))}) if acts else capabilities


def controls(primitives: Collection[str]) -> dict[str, str]:
    """What the controls do here: all of them reach one attempt, and nothing of it outlives that."""
    said = {INJECT: ("send", STEERS), CANCEL: ("stop", STOPS)}
    return dict(pair for primitive, pair in said.items() if primitive in primitives)


def of_workflow(status: str) -> Capabilities:
    """A workflow takes no messages; its acts are durable, unlike those on its agents."""
    acts = [_CANCEL, _SIGNAL] if status in ("Running", "Paused") else []
    if status in ("Failed", "Cancelled"):
        acts.append(_REOPEN)
    return Capabilities(act=ActOptions(acts=tuple(acts)) if acts else None)


_CANCEL: Final = Act(
    id=CANCEL_WORKFLOW,
    label="Cancel the workflow",
    effect="ends the workflow for good; agents that are at work go on until each of them is cancelled",
    danger=True,
    fields=(FormField(name="reason", type=FieldType.TEXT, label="Reason"),),
)
_SIGNAL: Final = Act(
    id=SIGNAL,
    label="Send it a signal",
    effect="the workflow goes on where it waits for this signal; it stays in its history",
    fields=(
        FormField(name="name", type=FieldType.TEXT, label="Name of the signal"),
        FormField(name="payload", type=FieldType.TEXT, label="Payload, in JSON", required=False),
    ),
)
_REOPEN: Final = Act(
    id=REOPEN,
    label="Reopen it",
    effect="the workflow runs again from where it ended, with new attempts of what had failed",
    danger=True,
)


def _restart(worker: str) -> Act:
    return Act(
        id=RESTART_WORKER,
        label=f"Restart the worker {worker}",
        effect="every attempt that it holds begins again under its number, and what waits for it is taken",
        danger=True,
    )


def granted(whoami: Json, word: str) -> bool:
    """Has the caller this grant? Nothing that cannot be read is granted."""
    if whoami.get(f"{word}_granted") is True:
        return True
    grants = (obj(grant) for grant in items(whoami.get("grants")))
    return any(grant.get("word") == word and grant.get("granted") is True for grant in grants)
