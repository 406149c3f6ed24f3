"""What a thread can be told, in the state that it is in."""

from __future__ import annotations

from typing import Final

from console.connectors.codex.state import Thread
from console.connectors.web.reading import flag
from watchfloor.protocol.model import (
    Act,
    ActOptions,
    BudgetOptions,
    Capabilities,
    FieldType,
    FormField,
    NoOptions,
    PauseOptions,
    Replay,
    ReseedOptions,
    SendOptions,
    Traits,
)
from watchfloor.words import Priority, ReseedMode

TRAITS: Final = Traits(stop_leaves_process=True, pause_is_barrier=False, replay=Replay.KEY)

END_PROCESSES: Final = "end_processes"
NAME: Final = "name"
ARCHIVE: Final = "archive"
UNARCHIVE: Final = "unarchive"
SET_GOAL: Final = "set_goal"
CLEAR_GOAL: Final = "clear_goal"
UNQUEUE: Final = "unqueue"

_NEEDS: Final = {
    END_PROCESSES: "thread/backgroundTerminals/clean",
    NAME: "thread/name/set",
    ARCHIVE: "thread/archive",
    UNARCHIVE: "thread/unarchive",
    SET_GOAL: "thread/goal/set",
    CLEAR_GOAL: "thread/goal/clear",
    UNQUEUE: "thread/queue/delete",
}


class Methods:
    """The methods that the server has. Where it does not tell, all that we use are taken to be there."""

    def __init__(self, known: frozenset[str] | None = None) -> None:
        self._known = known

    def __contains__(self, method: str) -> bool:
        return self._known is None or method in self._known


def capabilities_of(thread: Thread, has: Methods) -> Capabilities:
    """What the thread advertises."""
    if thread.archived:
        act = ActOptions(acts=_acts((UNARCHIVE,), has))
        return Capabilities(act=act, delete=NoOptions() if "thread/delete" in has else None)
    priorities = [Priority.NORMAL]
    if "thread/queue/add" in has:
        priorities.append(Priority.QUEUE)
    modes = [
        mode
        for mode, method in (
            (ReseedMode.COMPACT, "thread/compact/start"),
            (ReseedMode.REWIND, "thread/revert"),
            (ReseedMode.MODEL, "thread/settings/update"),
        )
        if method in has
    ]
    offered: dict[str, object] = {
        "send": SendOptions(priorities=tuple(priorities)),
        "interrupt": NoOptions(),
        "approve": NoOptions(),
        "answer": NoOptions(),
    }
    if modes:
        offered["reseed"] = ReseedOptions(modes=tuple(modes))
    if "thread/fork" in has:
        offered["fork"] = NoOptions()
    if "thread/delete" in has:
        offered["delete"] = NoOptions()
    acts = [END_PROCESSES, NAME, ARCHIVE, SET_GOAL]
    if thread.queue:
        acts.append(UNQUEUE)
    if thread.goal is not None and "thread/goal/set" in has:
        offered |= {"pause": PauseOptions(), "resume": NoOptions(), "budget": BudgetOptions(tokens=True)}
        acts.append(CLEAR_GOAL)
    offered["act"] = ActOptions(acts=_acts(tuple(acts), has))
    return Capabilities.model_validate(offered)


def _acts(ids: tuple[str, ...], has: Methods) -> tuple[Act, ...]:
    return tuple(_ACTS[id] for id in ids if _NEEDS[id] in has)


_ACTS: Final = {
    act.id: act
    for act in (
        Act(
            id=END_PROCESSES,
            label="End its processes",
            effect="ends the commands of this thread that an interrupt left running",
            danger=True,
        ),
        Act(
            id=NAME,
            label="Name it",
            effect="gives the thread a name that every client shows",
            fields=(FormField(name="name", type=FieldType.TEXT, label="Name"),),
        ),
        Act(
            id=ARCHIVE,
            label="Archive it",
            effect="cuts a running turn, and takes the thread out of the ordinary lists",
        ),
        Act(id=UNARCHIVE, label="Unarchive it", effect="puts the thread back into the ordinary lists"),
        Act(
            id=SET_GOAL,
            label="Set a goal",
            effect="the agent works on it, turn after turn, until it calls it done or is paused",
            fields=(FormField(name="objective", type=FieldType.TEXT, label="Objective"),),
        ),
        Act(id=CLEAR_GOAL, label="Clear the goal", effect="no new turn begins by itself"),
        Act(
            id=UNQUEUE,
            label="Take a message from the queue",
            effect="the message is not given to the agent",
            fields=(FormField(name="ref", type=FieldType.TEXT, label="Its ref, such as #3"),),
        ),
    )
}


def blocked(thread: Thread) -> dict[str, str]:
    """What is advertised and cannot be used now, with the server's reason."""
    reasons: dict[str, str] = {}
    if thread.archived:
        return reasons
    if flag(thread.info, "canAcceptDirectInput") is False:
        reasons["send"] = "the server takes no direct input for this thread"
    if not thread.active and thread.turn is None:
        reasons["interrupt"] = "no turn runs"
    goal = thread.goal_status
    if thread.goal is not None:
        if goal != "active":
            reasons["pause"] = f"its goal is {goal or 'in no known state'}"
        if goal != "paused":
            reasons["resume"] = f"its goal is {goal or 'in no known state'}"
    return reasons


def controls(thread: Thread) -> dict[str, str]:
    """What a control does now, where its name does not say it."""
    said = {"pause": "Pause the goal", "resume": "Resume the goal"} if thread.goal is not None else {}
    if thread.active:
        said["reseed"] = "Reseed (cuts the running turn)"
    if not thread.loaded and not thread.archived:
        said["send"] = "Send (loads the thread)"
    return said
