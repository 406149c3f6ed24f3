"""What counts as the effect of a command: one rule for each primitive."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from console.fleet.facts import EventFact, ProfileFact, SessionKey
from console.fleet.reseeds import reseed_seen
from console.fleet.state import Request, Session, Trail
from watchfloor.text import Clean, clean_line
from watchfloor.words import (
    ANSWERABLE,
    TERMINAL,
    Delivery,
    EffectState,
    Lifecycle,
    OptionKind,
    OutcomeKind,
    Primitive,
    Priority,
    RequestState,
)


class Scene(NamedTuple):
    """What a trail is judged by. `session` None: it is gone."""

    session: Session | None
    profile: ProfileFact | None
    request: Request | None
    sessions: Mapping[SessionKey, Session]
    children: Mapping[SessionKey, Collection[SessionKey]]


class Found(NamedTuple):
    state: EffectState
    text: Clean


CALLED_OFF: Final = "called off by a resume"
KEEP_SEEN: Final = 500
"""Messages, and calls, that are remembered for one command."""
DECLINED: Final = frozenset({"declined", "cancelled"})
AGENT_MOVES: Final = frozenset(
    {"message", "reasoning", "delta", "tool_call", "tool_output", "tool_result", "plan", "diff"}
)
BUSY: Final = frozenset({Lifecycle.RUNNING, Lifecycle.WAITING, Lifecycle.STARTING})


# --- noting --------------------------------------------------------------------------------


def note(trail: Trail, event: EventFact) -> None:
    """Keep of an event what the rules below ask for."""
    seen, data = trail.evidence, event.data
    match event.kind:
        case "mail":
            seen.mail[data.get("ref", "")] = event
            _forget_first(seen.mail)
        case "reseeded":
            seen.reseeded = True
        case "request_resolved":
            if data.get("request") == trail.intent.request:
                seen.resolved_seq = event.seq
        case "intervention":
            _note_intervention(trail, event)
    call = data.get("call")
    if call is not None and event.kind == "tool_result":
        seen.calls[call] = data.get("status", "")
    elif call is not None and event.kind == "tool_output":
        seen.calls.setdefault(call, "")
    _forget_first(seen.calls)
    if event.kind in AGENT_MOVES and seen.resolved_seq is not None:
        seen.moved_on = seen.moved_on or event.seq is None or event.seq > seen.resolved_seq


def _note_intervention(trail: Trail, event: EventFact) -> None:
    seen, data = trail.evidence, event.data
    if data.get("command") == trail.id:
        seen.taken = True
    elif seen.taken and data.get("primitive") == Primitive.RESUME and data.get("outcome") is OutcomeKind.APPLIED:
        seen.resumed_by = data.get("by", Clean(""))


def _forget_first(seen: dict[str, Any]) -> None:
    """A source may send more than anybody waits for while a command is on its way."""
    if len(seen) > KEEP_SEEN:
        del seen[next(iter(seen))]


# --- weighing ------------------------------------------------------------------------------


def weigh(trail: Trail, scene: Scene) -> Found | None:
    """The effect, where the session shows it or its contrary; None while it shows neither."""
    if scene.session is None:
        if trail.primitive in (Primitive.DELETE, Primitive.STOP):
            return _seen("the session is gone")
        return _contrary("the session is gone")
    rule = _RULES.get(trail.primitive)
    if rule is None:
        return Found(EffectState.UNOBSERVABLE, Clean("nothing on the session would show it"))
    return rule(trail, scene, scene.session)


def blind(scene: Scene) -> bool:
    """Does the source leave no trace of what it did?"""
    return scene.profile is not None and scene.profile.traits.get("effects") == "none"


def dim(scene: Scene) -> bool:
    """Does the source leave a trace of some things only, so that a missing one proves nothing?"""
    return scene.profile is not None and scene.profile.traits.get("effects") == "partial"


def held_back(trail: Trail, scene: Scene) -> Clean | None:
    """What the effect rightly waits for: then its absence is no alarm."""
    session = scene.session
    if session is None:
        return None
    if trail.primitive in (Primitive.PAUSE, Primitive.SEND) and session.open_requests():
        return Clean("after the open request is decided")
    queued = _delivery(trail) is Delivery.QUEUED or trail.intent.priority is Priority.QUEUE
    if trail.primitive is Primitive.SEND and session.lifecycle in BUSY and queued:
        return Clean("queued until the turn ends")
    return None


def _send(trail: Trail, scene: Scene, session: Session) -> Found | None:
    ref = trail.fact.info.get("ref") if trail.fact else None
    mails = trail.evidence.mail
    # Without a ref any message that was consumed since then has to do.
    mine = [mails[ref]] if ref in mails else [] if ref is not None else list(mails.values())
    for mail in mine:
        match mail.data.get("mail_state"):
            case "consumed":
                return _seen("read by the agent")
            case "error":
                return Found(EffectState.CONTRARY, Clean(mail.text or "not delivered"))
    if _delivery(trail) is Delivery.QUEUED and session.lifecycle in (Lifecycle.PAUSED, Lifecycle.FAILED):
        return _seen("queued until it goes on")
    return None


def _delivery(trail: Trail) -> Delivery | None:
    delivery = trail.fact.info.get("delivery") if trail.fact else None
    return delivery if isinstance(delivery, Delivery) else None


def _pause(trail: Trail, scene: Scene, session: Session) -> Found | None:
    if session.lifecycle is Lifecycle.PAUSED:
        return None if session.in_flight else _seen("paused")
    if (by := trail.evidence.resumed_by) is not None:
        return _contrary(f"called off: resumed by {by}" if by else CALLED_OFF)
    if session.lifecycle in TERMINAL and session.lifecycle is not trail.baseline.lifecycle:
        return _contrary(f"{session.lifecycle.value} before it paused")
    return None


_RESUMABLE: Final = frozenset({Lifecycle.PAUSED, *TERMINAL})


def _resume(trail: Trail, scene: Scene, session: Session) -> Found | None:
    base = trail.baseline
    if session.attempt is not None and base.attempt is not None and session.attempt > base.attempt:
        return Found(EffectState.SEEN, Clean(f"attempt {session.attempt}: {session.lifecycle.value}"))
    if session.lifecycle not in _RESUMABLE:
        return _seen(session.lifecycle.value)
    if session.lifecycle in TERMINAL and session.lifecycle is not base.lifecycle:
        return _contrary(session.lifecycle.value)
    return None


def _interrupt(trail: Trail, scene: Scene, session: Session) -> Found | None:
    turn = trail.baseline.turn
    if turn is not None and session.turn != turn:
        return _seen("the turn has ended")
    if turn is None and session.lifecycle not in BUSY:
        return _seen("the turn has ended")
    return None


def _stop(trail: Trail, scene: Scene, session: Session) -> Found | None:
    if session.lifecycle is not Lifecycle.STOPPED:
        if session.lifecycle in TERMINAL and session.lifecycle is not trail.baseline.lifecycle:
            return _seen(f"{session.lifecycle.value} before it was stopped")
        return None
    alive = [
        scene.sessions[child]
        for child in sorted(scene.children.get(session.key, ()))
        if child in scene.sessions and scene.sessions[child].lifecycle not in TERMINAL
    ]
    words = ["stopped"]
    if alive:
        names = ", ".join(child.name or clean_line(child.key.session) for child in alive[:3])
        words.append(f"still alive: {names}" + (f" and {len(alive) - 3} more" if len(alive) > 3 else ""))
    if scene.profile is not None and scene.profile.traits.get("stop_leaves_process"):
        words.append("its process may live on")
    if session.open_requests():
        words.append("its open requests stay")
    return Found(EffectState.SEEN, Clean("; ".join(words)))


def _reseed(trail: Trail, scene: Scene, session: Session) -> Found | None:
    return _seen(reseed_seen(trail.intent.mode)) if trail.evidence.reseeded else None


def _fork(trail: Trail, scene: Scene, session: Session) -> Found | None:
    name = trail.fact.info.get("session") if trail.fact else None
    if isinstance(name, str):
        new = scene.sessions.get(SessionKey(session.key.source, name))
    else:
        new = next(
            (
                other
                for key, other in scene.sessions.items()
                if key.source == session.key.source
                and key not in trail.baseline.sessions
                and other.parent == session.key.session
            ),
            None,
        )
    if new is None:
        return None
    return Found(EffectState.SEEN, Clean(f"new session {new.name or clean_line(new.key.session)}"))


def _budget(trail: Trail, scene: Scene, session: Session) -> Found | None:
    usage, wanted = session.usage, trail.intent.extra
    if usage is None:
        return None
    for name, shown in (("tokens", usage.budget_tokens), ("turns", usage.budget_turns)):
        if wanted.get(name) is not None and wanted[name] != shown:
            return None
    return _seen("the new budget is shown")


def _decided(trail: Trail, request: Request | None) -> Found | None:
    """Contrary where the request ended otherwise than by our decision."""
    if request is None or request.state in ANSWERABLE:
        return None  # one that is no longer listed is about to say how it ended
    if request.state is not RequestState.RESOLVED:
        return Found(EffectState.CONTRARY, Clean(request.ended_why or request.state.value))
    decision, ours = request.decision, trail.intent.option
    if decision is not None and None not in (decision.option, ours) and decision.option != ours:
        return Found(EffectState.CONTRARY, Clean(f"decided otherwise by {decision.by or 'somebody else'}"))
    return None


def _approve(trail: Trail, scene: Scene, session: Session) -> Found | None:
    request = scene.request
    if request is None:
        return None
    if (contrary := _decided(trail, request)) is not None:
        return contrary
    if request.state in ANSWERABLE:
        return None
    fact = request.fact
    calls = [action.call for action in fact.actions if action.call is not None] if fact else []
    if trail.option_kind is OptionKind.DENY:
        return _denied(trail, session, calls)
    results = trail.evidence.calls
    if any(results.get(call) in DECLINED for call in calls):
        return _contrary("the call did not run")
    if any(call in results for call in calls):
        return _seen("the call ran" if all(results.get(call) for call in calls) else "the call is running")
    if any(flying[0] in calls for flying in session.in_flight):
        return _seen("the call is running")
    if not calls and (trail.evidence.moved_on or session.lifecycle is not Lifecycle.WAITING):
        return _seen("the agent went on")
    return None


def _denied(trail: Trail, session: Session, calls: list[str]) -> Found | None:
    results = trail.evidence.calls
    if any(results.get(call) in DECLINED for call in calls):
        return _seen("the call was declined")
    if any(results.get(call) in ("ok", "error") for call in calls):
        return _contrary("the call ran although it was denied")
    if session.lifecycle not in BUSY or (trail.baseline.turn is not None and session.turn != trail.baseline.turn):
        return _seen("the turn has ended")
    if not calls and (trail.evidence.moved_on or session.lifecycle is not Lifecycle.WAITING):
        return _seen("the agent went on without it")
    return None


def _answer(trail: Trail, scene: Scene, session: Session) -> Found | None:
    request = scene.request
    if request is None:
        return None
    if (contrary := _decided(trail, request)) is not None:
        return contrary
    if request.state not in ANSWERABLE and (trail.evidence.moved_on or session.lifecycle is not Lifecycle.WAITING):
        return _seen("the agent went on")
    return None


def _delete(trail: Trail, scene: Scene, session: Session) -> Found | None:
    return None  # gone is what shows it, and then there is no session


_RULES: Final[Mapping[Primitive, Callable[[Trail, Scene, Session], Found | None]]] = MappingProxyType(
    {
        Primitive.SEND: _send,
        Primitive.PAUSE: _pause,
        Primitive.RESUME: _resume,
        Primitive.INTERRUPT: _interrupt,
        Primitive.STOP: _stop,
        Primitive.RESEED: _reseed,
        Primitive.FORK: _fork,
        Primitive.BUDGET: _budget,
        Primitive.APPROVE: _approve,
        Primitive.ANSWER: _answer,
        Primitive.DELETE: _delete,
    }
)


def _seen(text: str) -> Found:
    return Found(EffectState.SEEN, Clean(text))


def _contrary(text: str) -> Found:
    return Found(EffectState.CONTRARY, Clean(text))
