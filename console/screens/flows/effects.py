"""What an intervention will do, in words, for the prompts that come before it.

For a source that says so itself (`controls`) its own words are shown. For the others the lifecycle table is read; it
describes and decides nothing, for whether a control works is the gate's matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from console.fleet.facts import OptionFact, ProfileFact
from console.fleet.state import Session
from watchfloor.text import Clean, clean_line
from watchfloor.words import (
    TABLE,
    Cell,
    Consequence,
    Delivery,
    Lifecycle,
    Op,
    OptionKind,
    Primitive,
    Row,
    Scope,
    Then,
)

if TYPE_CHECKING:
    from console.fleet.decisions.grants import Granting

_ROW_OF: Final[Mapping[Lifecycle, Row]] = MappingProxyType(
    {
        Lifecycle.STARTING: Row.STARTING,
        Lifecycle.IDLE: Row.IDLE,
        Lifecycle.RUNNING: Row.RUNNING,
        Lifecycle.WAITING: Row.WAITING,
        Lifecycle.PAUSED: Row.PAUSED,
        Lifecycle.COMPLETED: Row.COMPLETED,
        Lifecycle.FAILED: Row.FAILED,
        Lifecycle.STOPPED: Row.STOPPED,
    }
)

_DELIVERS: Final[Mapping[Delivery, str]] = MappingProxyType(
    {
        Delivery.STARTED: "starts a turn",
        Delivery.STEERED: "steers the running turn",
        Delivery.QUEUED: "queues",
    }
)

_QUEUES_UNTIL: Final[Mapping[Lifecycle, str]] = MappingProxyType(
    {
        Lifecycle.STARTING: "queues until it has started",
        Lifecycle.PAUSED: "queues until it is resumed",
        Lifecycle.FAILED: "queues until it is retried",
    }
)

_ALSO: Final[Mapping[Consequence, str]] = MappingProxyType(
    {
        Consequence.AT_STEP: "the step that runs is finished first",
        Consequence.CANCELS_STEP: "the step that runs is cut off",
        Consequence.ENDS_MAIL: "messages that wait end undelivered",
        Consequence.WITHDRAWS_REQUESTS: "its open requests are withdrawn; the agent is told that they were denied",
        Consequence.ABANDONS_TURN: "the suspended turn is given up",
    }
)

_CUT_OFF: Final = "the step that runs is cut off: it is told to end, and killed if it does not within its time of grace"

_SCOPE: Final[Mapping[Scope, str]] = MappingProxyType(
    {
        Scope.ONCE: "this once",
        Scope.TURN: "for the rest of this turn",
        Scope.SESSION: "for the rest of this session",
        Scope.WORKSPACE: "for this workspace",
        Scope.AGENT: "for this agent, in all its sessions",
        Scope.GLOBAL: "everywhere",
    }
)

_DOES: Final[Mapping[OptionKind, str]] = MappingProxyType(
    {
        OptionKind.ALLOW: "allows",
        OptionKind.DENY: "denies",
        OptionKind.ANSWER: "answers",
        OptionKind.EDIT: "edits",
    }
)
_THEN: Final[Mapping[OptionKind, Mapping[Then, str]]] = MappingProxyType(
    {
        OptionKind.ALLOW: {
            Then.CONTINUES: "the turn goes on",
            Then.ENDS_TURN: "the turn ends after it",
            Then.ENDS_ATTEMPT: "the attempt ends after it",
            Then.WAITS_FOR_RESUME: "the agent then waits to be resumed",
        },
        OptionKind.DENY: {
            Then.CONTINUES: "the turn goes on without it",
            Then.ENDS_TURN: "the turn ends",
            Then.ENDS_ATTEMPT: "the attempt ends",
            Then.WAITS_FOR_RESUME: "the agent then waits to be resumed",
        },
    }
)


def cell(session: Session, op: Op) -> Cell | None:
    """What the table says of the operation in the session's state; None for a state that is not known."""
    row = _ROW_OF.get(session.lifecycle)
    if row is Row.PAUSED and session.open_requests():
        row = Row.PAUSED_OPEN
    return None if row is None else TABLE[row][op]


def sending(session: Session) -> Clean:
    """What a message would do now: start, steer or queue."""
    own = session.controls.get(Primitive.SEND)
    if own:
        return own
    found = cell(session, Op.SEND)
    if found is None or found.delivery is None:
        return Clean("what it does there is not known")
    words = _QUEUES_UNTIL.get(session.lifecycle, _DELIVERS[found.delivery])
    if found.delivery is Delivery.QUEUED and session.lifecycle is Lifecycle.PAUSED and session.open_requests():
        words = "queues until it is resumed; it does not answer the open request"
    elif session.lifecycle is Lifecycle.WAITING:
        words = "read once the open request is decided; it does not answer it"
    elif Consequence.NEW_ATTEMPT in found.also and session.attempt is not None:
        words = f"starts attempt {session.attempt + 1}"
    return Clean(words)


def stopping(session: Session, profile: ProfileFact | None, kill: bool) -> tuple[Clean, ...]:
    """What stopping would do, one line each."""
    own = session.controls.get(Primitive.STOP)
    if own:
        return (own,)
    found = cell(session, Op.STOP_KILL if kill else Op.STOP)
    says = dict(_ALSO)
    if profile is not None and profile.traits.get("stop_cuts_step"):
        says[Consequence.AT_STEP] = _CUT_OFF
    also = () if found is None else tuple(says[one] for one in Consequence if one in found.also and one in says)
    busy = session.lifecycle in (Lifecycle.RUNNING, Lifecycle.WAITING, Lifecycle.STARTING)
    told = [words for words in also if busy or "step" not in words]
    if not session.open_requests():
        told = [words for words in told if "request" not in words]
    if not session.mail_queued:
        told = [words for words in told if "messages" not in words]
    return tuple(Clean(words) for words in told)


def reseeding(session: Session) -> tuple[Clean, ...]:
    """What changing the conversation does besides, one line each."""
    found = cell(session, Op.RESEED)
    return () if found is None else tuple(Clean(_ALSO[one]) for one in Consequence if one in found.also)


def option_note(option: OptionFact, granted: Granting) -> tuple[Clean, ...]:
    """What an option does: reach and what follows, then what it will match from now on, and would have lately."""
    # A label is its source's: whatever it calls it, what it does is said in our words.
    words = [f"{_DOES[option.kind]} {_SCOPE[option.scope]}"]
    if option.persists:
        words.append("it stays in force after this session")
    if follows := _THEN.get(option.kind, {}).get(option.then):
        words.append(follows)
    lines = [Clean("; ".join(words))]
    if granted.beyond:
        lines.extend(granted.told())
    else:
        lines.extend(Clean(f"grants: {clean_line(grant)}") for grant in option.grants)
    if option.note:
        lines.append(Clean(f"the source says: {option.note}"))
    return tuple(lines)
