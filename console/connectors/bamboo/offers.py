"""What a session advertises, and what of it cannot be used now."""

from __future__ import annotations

from typing import Final

from console.connectors.bamboo.state import WAITS_FOR_CHILDREN, Session, shown
from console.connectors.web.reading import number
from watchfloor.protocol.model import Capabilities, NoOptions, Replay, SendOptions, Traits
from watchfloor.words import Priority

TRAITS: Final = Traits(replay=Replay.SEQ)
OFFERS: Final = Capabilities(
    send=SendOptions(priorities=(Priority.NORMAL, Priority.QUEUE)),
    interrupt=NoOptions(),
    approve=NoOptions(),
    answer=NoOptions(),
    delete=NoOptions(),
)


def blocked(session: Session, now: int) -> dict[str, str]:
    """Primitive -> why it cannot be used now."""
    reasons: dict[str, str] = {}
    if session.pending is not None:
        reasons["interrupt"] = "it waits for a decision, and the server ends only what runs: decide it"
    elif session.interrupting is not None:
        reasons["interrupt"] = "it is being interrupted: the tool at work has to give way"
    elif not session.running:
        waits = shown(session, now).native == WAITS_FOR_CHILDREN
        reasons["interrupt"] = "it waits for its children: interrupt those" if waits else "nothing runs"
    return reasons


def controls(session: Session) -> dict[str, str]:
    """What a control does now, where its name does not say it."""
    said: dict[str, str] = {}
    if session.pending is not None:
        said["send"] = "Send (read after the decision)"
    elif session.running:
        said["send"] = "Send (read after this round)"
    if children := number(session.info, "subagent_count") or 0:
        said["delete"] = f"Delete with its {children} {'child' if children == 1 else 'children'}"
    return said
