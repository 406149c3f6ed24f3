"""The gate: may this intervention go out, and exactly at what? Pure; every way in (keys, command line) passes it.

It looks at what a session advertises, at what its source says is blocked, and at traits; never at the kind
of system. What passes names attempt, turn and digest as they were shown, so that the source can refuse
what has moved on meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

from console.fleet.decisions import decide
from console.fleet.facts import Intent, OptionFact, ProfileFact, Refusal, RequestKey, SessionKey
from console.fleet.state import Session, Source
from console.fleet.store import Store
from console.fleet.traits import Consequences, consequences, forbids
from watchfloor.text import Clean, clean_line, since
from watchfloor.words import Contact, OutcomeKind, Primitive, Priority, RequestKind, Role

ARM_MS: Final = 300
"""How long a decision is refused after the card, or anything on it, has changed."""
UNASKED: Final = {Primitive.APPROVE: "nothing waits for approval", Primitive.ANSWER: "no question is open"}
"""Why a decision does not work where nothing is asked for."""


class Gated(NamedTuple):
    """A command that may go out, with everything that it names.

    `priority` is the one to send with, which a trait may have made gentler than asked for. `confirm` holds what the
    operator has to agree to first, a line each; empty: nothing. `gentle`: a priority without those consequences.
    `notes`: worth saying, no reason to ask.
    """

    intent: Intent
    target: SessionKey
    attempt: int | None
    turn: str | None
    priority: Priority
    request: RequestKey | None = None
    digest: str | None = None
    option: OptionFact | None = None
    confirm: tuple[str, ...] = ()
    gentle: Priority | None = None
    notes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.intent.id

    @property
    def primitive(self) -> Primitive:
        return self.intent.primitive


class Allowed(NamedTuple):
    """The control works now. `label`: what it will do, where its source says so ("Retry (attempt 3)")."""

    label: Clean | None = None


class Greyed(NamedTuple):
    """The control exists and does not work now."""

    reason: str


@dataclass(frozen=True, slots=True)
class Hidden:
    """The session does not advertise the control."""


def gate(
    store: Store,
    intent: Intent,
    now: int,
    *,
    steady: int | None = None,
    read_only: bool = False,
    arm_ms: int = ARM_MS,
) -> Gated | Refusal:
    """Let an intervention through or say why not.

    `now` is the local time in milliseconds; `steady` the same by the clock in which `Seen.since_local` is counted,
    where that is another.
    """
    session = store.sessions.get(intent.target)
    if session is None or session.placeholder:
        return Refusal(OutcomeKind.STALE_TARGET, f"there is no session {clean_line(intent.target.session)}")
    profile = store.profile(session)
    source = store.sources[session.key.source]
    primitive = intent.primitive
    refusal = (
        _not_offered(session, profile, primitive)
        or _option_not_offered(profile, intent)
        or _unreachable(source, now, read_only)
        or _superseded(session, intent)
    )
    if refusal is not None:
        return refusal
    verdict: decide.Verdict | None = None
    if primitive in (Primitive.APPROVE, Primitive.ANSWER):
        moment = decide.Moment(now, now if steady is None else steady, arm_ms)
        made = decide.decide(store, session, profile, source, intent, moment)
        if isinstance(made, Refusal):
            return made
        verdict = made
    if (reason := session.blocked.get(primitive)) is not None:
        return Refusal(OutcomeKind.INVALID, reason)
    if (why := forbids(session, profile, primitive)) is not None:
        return Refusal(OutcomeKind.INVALID, why)
    effects = consequences(store, session, profile, intent)
    if isinstance(effects, Refusal):
        return effects
    return _let_through(session, intent, verdict, effects)


def can(
    store: Store, key: SessionKey, primitive: Primitive, now: int, *, read_only: bool = False
) -> Allowed | Greyed | Hidden:
    """What the footer and the command line show for a control on a session."""
    session = store.sessions.get(key)
    if session is None or session.placeholder:
        return Hidden()
    profile = store.profile(session)
    if _not_offered(session, profile, primitive) is not None:
        return Hidden()
    refusal = _unreachable(store.sources[key.source], now, read_only)
    if refusal is not None:
        return Greyed(refusal.reason)
    asked_for = {Primitive.APPROVE: RequestKind.APPROVAL, Primitive.ANSWER: RequestKind.QUESTION}.get(primitive)
    if asked_for is not None and not session.asks(asked_for):
        return Greyed(UNASKED[primitive])
    if (reason := session.blocked.get(primitive)) is not None:
        return Greyed(reason)
    if (why := forbids(session, profile, primitive)) is not None:
        return Greyed(why)
    return Allowed(session.controls.get(primitive))


def _let_through(session: Session, intent: Intent, verdict: decide.Verdict | None, effects: Consequences) -> Gated:
    names_turn = intent.primitive in (Primitive.INTERRUPT, Primitive.SEND)
    turn = intent.turn if intent.turn is not None else session.turn if names_turn else None
    attempt = session.attempt
    if verdict is None:
        return Gated(
            intent, session.key, attempt, turn, effects.priority,
            confirm=effects.confirm, gentle=effects.gentle, notes=effects.notes,
        )  # fmt: skip
    return Gated(
        intent,
        session.key,
        attempt,
        turn,
        effects.priority,
        request=verdict.request.key,
        digest=verdict.digest,
        option=verdict.option,
        confirm=(*verdict.confirm, *effects.confirm),
        notes=(*verdict.notes, *effects.notes),
    )


def _not_offered(session: Session, profile: ProfileFact | None, primitive: Primitive) -> Refusal | None:
    if profile is None:
        return Refusal(OutcomeKind.CAPABILITY_NOT_SUPPORTED, "its source has not said what this session can do")
    if primitive in profile.primitives:
        return None
    offered = ", ".join(p.value for p in Primitive if p in profile.primitives)
    reason = f"the session does not offer {primitive.value}; it offers {offered}" if offered else "observe only"
    return Refusal(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason)


def unoffered(profile: ProfileFact | None, primitive: Primitive) -> Clean:
    """Why a control is hidden, in the words of a screen that shows everything else about the session."""
    if profile is None:
        return Clean("its source has not said what this session can do")
    if not profile.primitives:
        return Clean("this session can only be observed")
    return Clean(f"this session does not offer {primitive.value}")


def _option_not_offered(profile: ProfileFact | None, intent: Intent) -> Refusal | None:
    options = profile.options.get(intent.primitive, {}) if profile is not None else {}
    missing: str | None = None
    match intent.primitive:
        case Primitive.SEND:
            offered: Collection[str] = options.get("priorities", (Priority.NORMAL,))
            if intent.priority not in offered:
                missing = f"send with priority {intent.priority.value}; it offers {', '.join(map(str, offered))}"
            elif intent.reply_to is not None and not options.get("replies"):
                missing = "a message that answers another one"
        case Primitive.PAUSE if intent.interrupt and not options.get("interrupt"):
            missing = "to pause at once, only at the next step"
        case Primitive.STOP if intent.kill and not options.get("kill"):
            missing = "to be killed, only to be stopped"
        case Primitive.RESEED:
            modes: Collection[str] = options.get("modes", ())
            if intent.mode is None or intent.mode not in modes:
                named = intent.mode.value if intent.mode is not None else "without a mode"
                missing = f"reseed {named}; it offers {', '.join(map(str, modes)) or 'no mode'}"
        case Primitive.BUDGET:
            wanted = [name for name in ("tokens", "turns") if intent.extra.get(name) is not None]
            if not wanted:
                return Refusal(OutcomeKind.INVALID, "a budget needs tokens or turns")
            refused = [name for name in wanted if not options.get(name)]
            missing = f"a budget of {refused[0]}" if refused else None
        case Primitive.ACT:
            act = next((act for act in options.get("acts", ()) if act.get("id") == intent.extra.get("act")), None)
            if act is None:
                missing = f"the act {clean_line(str(intent.extra.get('act')))}"
            else:
                given = intent.extra.get("fields", {})
                if (why := decide.unfit_fields(act.get("fields", ()), given, "the act")) is not None:
                    return Refusal(OutcomeKind.INVALID, why)
    if missing is None:
        return None
    return Refusal(OutcomeKind.CAPABILITY_NOT_SUPPORTED, f"the session does not offer {missing}")


def _unreachable(source: Source, now: int, read_only: bool) -> Refusal | None:
    if source.recorded:
        return Refusal(OutcomeKind.NOT_PERMITTED, "this is a recording")
    if read_only:
        return Refusal(OutcomeKind.NOT_PERMITTED, "this console only watches (--read-only)")
    if not source.live:
        return Refusal(OutcomeKind.UNDELIVERED, _not_heard(source, now))
    if source.role is not Role.OPERATOR:
        who = f"{source.principal} may" if source.principal else "this console may"
        return Refusal(OutcomeKind.NOT_PERMITTED, f"{who} only watch on {source.shown}")
    return None


def _not_heard(source: Source, now: int) -> str:
    match source.contact:
        case Contact.CONNECTING if source.lost_since is None:
            return f"{source.shown} is not connected yet"
        case Contact.SILENT:
            return f"{source.shown} has been silent for {since(now - source.contact_since)}"
        case Contact.REFUSED:
            return f"{source.shown} refused the connection" + (f": {source.why}" if source.why else "")
        case Contact.UNATTACHED:
            return f"{source.shown} is not attached"
        case _:
            return f"contact with {source.shown} was lost {since(now - (source.lost_since or now))} ago"


def _superseded(session: Session, intent: Intent) -> Refusal | None:
    attempt, turn = session.attempt, session.turn
    # A source that counts no attempts is never asked about them.
    if intent.attempt is not None and attempt is not None and intent.attempt != attempt:
        return Refusal(OutcomeKind.STALE_TARGET, f"attempt {intent.attempt} is not the one that runs: {attempt} does")
    if intent.turn is not None and intent.turn != turn:
        now_runs = f"turn {clean_line(turn)} runs" if turn is not None else "no turn runs"
        return Refusal(OutcomeKind.STALE_TARGET, f"turn {clean_line(intent.turn)} is over: {now_runs}")
    return None
