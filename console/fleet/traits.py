"""What traits make of an intervention: what they forbid, what has to be confirmed, what is worth saying."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from console.fleet.facts import Intent, ProfileFact, Refusal
from console.fleet.reseeds import RESEED_LOSES
from console.fleet.state import Session
from console.fleet.store import Store
from watchfloor.text import clean_line
from watchfloor.words import TERMINAL, Lifecycle, OutcomeKind, Primitive, Priority

WORKING = frozenset({Lifecycle.RUNNING, Lifecycle.WAITING, Lifecycle.STARTING})


class Consequences(NamedTuple):
    """How to send, what to ask first, the way around it, and what to say."""

    priority: Priority
    confirm: tuple[str, ...] = ()
    gentle: Priority | None = None
    notes: tuple[str, ...] = ()


def has(profile: ProfileFact | None, trait: str) -> bool:
    """Is a yes-or-no trait set?"""
    return profile is not None and bool(profile.traits.get(trait))


def forbids(session: Session, profile: ProfileFact | None, primitive: Primitive) -> str | None:
    """Why a trait rules the primitive out at this moment, whatever its arguments."""
    if not session.open_requests():
        return None
    if primitive is Primitive.RESUME and has(profile, "resume_approves"):
        return "resume would approve what is pending: decide the request first"
    if primitive is Primitive.SEND and has(profile, "send_approves") and not _queues(profile):
        return "a message would approve what is pending: decide the request first"
    return None


def consequences(store: Store, session: Session, profile: ProfileFact | None, intent: Intent) -> Consequences | Refusal:
    """What follows from the intervention besides what it is for."""
    match intent.primitive:
        case Primitive.SEND:
            return _send(session, profile, intent)
        case Primitive.PAUSE:
            return _pause(session, profile, intent)
        case Primitive.STOP:
            return Consequences(intent.priority, confirm=_stop(store, session, profile, intent))
        case Primitive.RESEED if (lost := RESEED_LOSES.get(intent.mode or "")) is not None:
            return Consequences(intent.priority, confirm=(lost,))
        case Primitive.DELETE:
            return Consequences(intent.priority, confirm=(f"{_name(session)} is deleted for good",))
        case Primitive.ACT:
            return Consequences(intent.priority, confirm=_act(profile, intent))
        case _:
            return Consequences(intent.priority)


def _send(session: Session, profile: ProfileFact | None, intent: Intent) -> Consequences | Refusal:
    priority = intent.priority
    if intent.text is None or not intent.text.strip():
        return Refusal(OutcomeKind.INVALID, "there is no text to send")
    waiting = session.open_requests()
    if waiting and has(profile, "send_approves") and priority is not Priority.QUEUE:
        # The form that does not run: it waits until the request is decided. `forbids` has seen that there is one.
        return Consequences(Priority.QUEUE, notes=("queued: sent at once it would approve what is pending",))
    confirm: list[str] = []
    if waiting and has(profile, "send_drops_requests") and priority is not Priority.QUEUE:
        confirm.append(
            "sending now withdraws the open request" if len(waiting) == 1
            else f"sending now withdraws {len(waiting)} open requests"
        )  # fmt: skip
    if session.lifecycle in WORKING and has(profile, "send_interrupts") and priority is Priority.NORMAL:
        confirm.append("sending now interrupts the running turn")
    gentle = Priority.QUEUE if confirm and _queues(profile) else None
    return Consequences(priority, tuple(confirm), gentle)


def _queues(profile: ProfileFact | None) -> bool:
    options = profile.options.get(Primitive.SEND, {}) if profile is not None else {}
    priorities: Collection[str] = options.get("priorities", ())
    return Priority.QUEUE in priorities


def _pause(session: Session, profile: ProfileFact | None, intent: Intent) -> Consequences:
    notes = () if _is_barrier(profile) else ("a call in flight still runs after it is paused",)
    confirm: tuple[str, ...] = ()
    if intent.interrupt and session.mail_queued and has(profile, "pause_drops_mail"):
        may = session.lifecycle is Lifecycle.FAILED
        one = "a message that waits unread", "may be discarded" if may else "is discarded"
        many = f"{session.mail_queued:,} messages that wait unread", "may be discarded" if may else "are discarded"
        confirm = (" ".join(one if session.mail_queued == 1 else many),)
    return Consequences(intent.priority, confirm=confirm, notes=notes)


def _is_barrier(profile: ProfileFact | None) -> bool:
    return profile is None or bool(profile.traits.get("pause_is_barrier", True))


def _stop(store: Store, session: Session, profile: ProfileFact | None, intent: Intent) -> tuple[str, ...]:
    own = session.controls.get(Primitive.STOP)
    # A source that says itself what its control does knows better than our own table.
    done = f": {own}" if own else " is killed at once" if intent.kill else " is stopped"
    lines = [f"{_name(session)}{done}"]
    alive = [
        child
        for child in store.children.get(session.key, ())
        if child in store.sessions and store.sessions[child].lifecycle not in TERMINAL
    ]
    if alive:
        lines.append("its child may live on" if len(alive) == 1 else f"its {len(alive)} children may live on")
    if has(profile, "stop_leaves_requests") and session.open_requests():
        lines.append("its open requests stay: decide them as well")
    if has(profile, "stop_leaves_process"):
        lines.append("its process lives on")
    return tuple(lines)


def _act(profile: ProfileFact | None, intent: Intent) -> tuple[str, ...]:
    options = profile.options.get(Primitive.ACT, {}) if profile is not None else {}
    for act in options.get("acts", ()):
        if act.get("id") == intent.extra.get("act"):
            words = (act.get("label"), act.get("effect"), "this destroys something" if act.get("danger") else None)
            return tuple(str(word) for word in words if word)
    return ()


def _name(session: Session) -> str:
    return session.name or clean_line(session.key.session)
