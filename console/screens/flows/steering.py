"""The flows that steer a session: what is asked first, and the intent that comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias
from uuid import uuid4

from console.fleet.facts import Intent, Refusal
from console.fleet.gate import Gated
from console.fleet.state import Session
from console.fleet.transcript.sent import sent_before
from console.fleet.views.wording import masked, name_of, one_line
from console.screens.flows import effects
from console.screens.flows.asking import Answer, Ask, Choice, Drafts, TextBox
from console.screens.flows.desk import Desk
from watchfloor.text import NOTHING, Clean, clean_line
from watchfloor.words import Primitive, verb
from widgets.tones import Segment

_QUOTED: Final = 400
"""Characters of the message that is answered."""
Told: TypeAlias = Callable[[], tuple[Segment, ...]]
"""What stands in a question besides what has to be agreed to, read again all the time."""


def whom(desk: Desk, session: Session) -> Clean:
    """A session and where it is."""
    source = desk.fleet.sources.get(session.key.source)
    return Clean(f"{name_of(session)} ({source.shown if source else clean_line(session.key.source)})")


def intent(desk: Desk, session: Session, primitive: Primitive, **rest: Any) -> Intent:
    """A command at what the session shows now: its attempt, and the turn where one is named."""
    return Intent(id=str(uuid4()), primitive=primitive, target=session.key, by=desk.by, attempt=session.attempt, **rest)


def gone(desk: Desk, session: Session) -> Callable[[], Clean]:
    """Says that the session is gone, once it is."""
    return lambda: NOTHING if session.key in desk.fleet.sessions else Clean("the session is gone")


def allowed(desk: Desk, command: Intent) -> Gated | None:
    """The command as it may go out; None once it was said why it may not."""
    gated = desk.gate(command)
    if isinstance(gated, Refusal):
        desk.say(Clean(gated.reason), "attention")
        return None
    return gated


def written(text: str) -> Clean:
    """A text must say something."""
    return NOTHING if text.strip() else Clean("nothing is written")


def send(desk: Desk, session: Session) -> None:
    """Ask for a message; the line above the text says what sending will do as things stand."""

    draft = (Primitive.SEND, session.key, session.attempt)

    def then(answer: Answer) -> None:
        desk.submit(intent(desk, session, Primitive.SEND, text=answer.text, turn=session.turn), drafts=[draft])

    desk.ask(
        Ask(
            title=((Clean(f"send to {whom(desk, session)}"), "plain"),),
            live=lambda: ((Clean(f"now: {_sending(desk, session)}"), "plain"),),
            text=TextBox(check=written, past=sent_before(desk.fleet, session, desk.by)),
            then=then,
            ended=gone(desk, session),
            draft=draft,
        )
    )


def reply(desk: Desk, session: Session, *, to: str, text: Clean) -> None:
    """Ask for a message that answers the one with the ref `to`, which says `text`."""

    def command(text: str) -> Intent:
        return intent(desk, session, Primitive.SEND, text=text, reply_to=to, turn=session.turn)

    if allowed(desk, command("-")) is None:
        return
    draft = (Primitive.SEND, session.key, session.attempt, to)
    desk.ask(
        Ask(
            title=((Clean(f"answer {clean_line(to)} of {whom(desk, session)}"), "plain"),),
            about=((Clean(f"it says: {one_line(masked(text))[:_QUOTED]}"), "quiet"),) if text else (),
            live=lambda: ((Clean(f"now: {_sending(desk, session)}"), "plain"),),
            text=TextBox(check=written, past=sent_before(desk.fleet, session, desk.by)),
            then=lambda answer: desk.submit(command(answer.text), drafts=[draft]),
            ended=gone(desk, session),
            draft=draft,
        )
    )


def _sending(desk: Desk, session: Session) -> Clean:
    """What sending will do as things stand: as the gate would send it, which may be gentler than asked for."""
    gated = desk.gate(intent(desk, session, Primitive.SEND, text="-", turn=session.turn))
    if isinstance(gated, Refusal):
        return clean_line(gated.reason)
    if gated.priority is not gated.intent.priority:
        return Clean("; ".join(gated.notes))
    return effects.sending(session)


def pause(desk: Desk, session: Session) -> None:
    """Pause where the agent next can."""
    desk.submit(intent(desk, session, Primitive.PAUSE))


def pause_now(desk: Desk, session: Session) -> None:
    """Pause and cut off what runs; what is lost with it has to be agreed to, just as it was told."""
    command = intent(desk, session, Primitive.PAUSE, interrupt=True)
    gated = desk.gate(command)
    if isinstance(gated, Refusal) or not gated.confirm:
        desk.submit(command)
        return
    gone, told = changed(desk, session), gated.confirm

    def ended() -> Clean:
        now = desk.gate(command)
        other = isinstance(now, Gated) and now.confirm != told
        return gone() or (Clean("what it would discard has changed since") if other else NOTHING)

    confirm(desk, session, gated, lambda: command, asks="pause now", yes="pause it now", ended=ended)


def interrupt(desk: Desk, session: Session) -> None:
    """End the turn that is shown."""
    desk.submit(intent(desk, session, Primitive.INTERRUPT, turn=session.turn))


def resume(desk: Desk, session: Session) -> None:
    """Go on, start, retry or relaunch."""
    desk.submit(intent(desk, session, Primitive.RESUME))


def stop(desk: Desk, session: Session) -> None:
    """Stop the session, gently or at once; what goes with it has to be agreed to."""
    variants = [("stop", "y", "stop it", False)]
    profile = desk.fleet.profile(session)
    if profile is not None and profile.options.get(Primitive.STOP, {}).get("kill"):
        variants.append(("kill", "K", "kill it, without waiting", True))
    commands: dict[str, Intent] = {}
    choices: list[Choice] = []
    for value, key, label, kill in variants:
        command = intent(desk, session, Primitive.STOP, kill=kill)
        gated = allowed(desk, command)
        if gated is None:
            return
        commands[value] = command
        told = (*(Clean(line) for line in gated.confirm[1:]), *effects.stopping(session, profile, kill=kill))
        choices.append(Choice(value, Clean(key), Clean(label), told, tone="failed"))
    desk.ask(
        Ask(
            title=((Clean(f"stop {named(desk, session)}?"), "failed"),),
            choices=tuple(choices),
            then=lambda answer: desk.submit(commands[answer.values[0]], sure=True),
            ended=changed(desk, session),
        )
    )


def confirm(
    desk: Desk,
    session: Session,
    gated: Gated,
    again: Callable[[], Intent],
    *,
    drafts: Drafts = (),
    asks: str = "",
    yes: str = "",
    told: Told = tuple,
    ended: Callable[[], Clean] | None = None,
) -> None:
    """Ask for what the gate wants agreed to, then send what `again` makes of the command.

    A way without those consequences is offered first, where there is one. `asks` is put before the name of the session,
    `yes` behind the word yes; both say what is done, where one word does not. `told` says more of what will happen,
    `ended` why it can be agreed to no more, where that is not the change of its attempt alone.
    """
    choices: list[Choice] = []
    if gated.gentle is not None:
        choices.append(Choice("gently", Clean("u"), Clean("rather queue it until the turn ends")))
    done = verb(gated.primitive.value, gated.option.kind if gated.option is not None else None)
    label = yes or (f"{done} it" if gated.primitive is Primitive.SEND else done)
    choices.append(Choice("yes", Clean("y"), Clean(f"yes, {label}"), tone="failed"))

    def then(answer: Answer) -> None:
        command = again()
        if answer.values[0] == "gently" and gated.gentle is not None:
            command = replace(command, priority=gated.gentle)
        desk.submit(command, sure=True, drafts=drafts)

    desk.ask(
        Ask(
            title=((Clean(f"{asks or done} {named(desk, session)}?"), "failed"),),
            about=tuple((Clean(line), "plain") for line in gated.confirm),
            live=told,
            choices=tuple(choices),
            then=then,
            ended=ended or changed(desk, session),
        )
    )


def named(desk: Desk, session: Session) -> Clean:
    """A session, where it is, and its attempt."""
    attempt = "" if session.attempt is None else f", attempt {session.attempt}"
    return Clean(f"{whom(desk, session)}{attempt}")


def changed(desk: Desk, session: Session) -> Callable[[], Clean]:
    """Says that the session is not the one any more that the confirmation names."""
    attempt = session.attempt

    def ended() -> Clean:
        if session.key not in desk.fleet.sessions:
            return Clean("the session is gone")
        if session.attempt != attempt:
            return Clean(f"attempt {session.attempt} has begun")
        return NOTHING

    return ended
