"""The flows that decide a request: which option a key stands for, what is asked first, and the intent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from console.fleet.decisions.decide import TOO_LARGE, option_deny, option_once
from console.fleet.facts import Intent, OptionFact, RequestFact
from console.fleet.state import Request, Session
from console.fleet.views.wording import name_of
from console.screens.flows.asking import Answer, Ask, Choice, TextBox
from console.screens.flows.desk import Desk
from console.screens.flows.effects import option_note
from console.screens.flows.steering import intent, written
from watchfloor.text import NOTHING, Clean
from watchfloor.words import OptionKind, Primitive, RequestKind, Scope

_KEYS: Final = "123456789bcefghilmnpqrtvwxz"
"""Keys of listed choices; none of those that move the cursor, mark, skip, ask for words or confirm."""

_SINGLE: Final[Mapping[OptionKind, Callable[[RequestFact], OptionFact | None]]] = {
    OptionKind.ALLOW: option_once,
    OptionKind.DENY: option_deny,
}


def ended(request: Request) -> Callable[[], Clean]:
    """Says that the request takes no decision any more, or is not what was read, once that is so."""
    digest = request.digest

    def reason() -> Clean:
        if not request.open:
            return Clean("the request has ended")
        if request.digest != digest:
            return Clean("the request has changed")
        return NOTHING

    return reason


def approve(desk: Desk, session: Session, request: Request) -> None:
    """Take the one option that allows this once."""
    _take(desk, session, request, OptionKind.ALLOW, "approve")


def deny(desk: Desk, session: Session, request: Request) -> None:
    """Take the one option that denies."""
    _take(desk, session, request, OptionKind.DENY, "deny")


def deny_reason(desk: Desk, session: Session, request: Request) -> None:
    """Ask for a reason, then deny with it. A question is declined at once: an answer carries no reason."""
    if request.kind is RequestKind.QUESTION:
        deny(desk, session, request)
        return
    option = _single(desk, request, OptionKind.DENY, "deny")
    if option is None:
        return

    draft = (OptionKind.DENY, request.key, request.digest)

    def then(answer: Answer) -> None:
        desk.submit(decision(desk, session, request, option=option.id, note=answer.text), drafts=[draft])

    desk.ask(
        Ask(
            title=((Clean(f"deny {name_of(session)}: why?"), "plain"),),
            about=((Clean("the agent is told this"), "quiet"),),
            text=TextBox(check=written),
            then=then,
            ended=ended(request),
            draft=draft,
        )
    )


def options(desk: Desk, session: Session, request: Request) -> None:
    """List every option of the request, word for word."""
    fact = request.fact
    if fact is None or not fact.options:
        desk.say(Clean("the request lists no options"), "attention")
        return
    from console.fleet.decisions.grants import granting  # reading commands is for later than the first frame

    by_id = {option.id: option for option in fact.options}
    granted = [granting(desk.fleet, session, fact, option) for option in fact.options]
    choices = [
        Choice(
            option.id,
            Clean(key),
            option.label,
            option_note(option, given),
            tone="failed" if option.persists or option.scope not in (Scope.ONCE, Scope.TURN) else "plain",
            blocked=_blocked(fact, option) or given.wide,
        )
        for key, option, given in zip(choice_keys(len(fact.options)), fact.options, granted, strict=True)
    ]
    desk.ask(
        Ask(
            title=((Clean(f"options for {name_of(session)}"), "plain"),),
            choices=tuple(choices),
            cursor=True,
            enter=Clean("takes it"),
            then=lambda answer: take_option(desk, session, request, by_id[answer.values[0]]),
            ended=ended(request),
        )
    )


def _blocked(fact: RequestFact, option: OptionFact) -> Clean:
    if option.kind is OptionKind.EDIT:
        return Clean("editing the action is not possible here")
    return Clean(TOO_LARGE) if fact.too_large and option.kind is not OptionKind.DENY else NOTHING


# --- options -------------------------------------------------------------------------------


def _take(desk: Desk, session: Session, request: Request, kind: OptionKind, verb: str) -> None:
    option = _single(desk, request, kind, verb)
    if option is not None:
        take_option(desk, session, request, option)


def _single(desk: Desk, request: Request, kind: OptionKind, verb: str) -> OptionFact | None:
    """The option that a single key stands for, never a wider one; None, and why, where there is none."""
    fact = request.fact
    if fact is None:
        desk.say(Clean("its text has not come yet"), "attention")
        return None
    option = _SINGLE[kind](fact)
    if option is None:
        wider = any(one.kind is kind for one in fact.options)
        why = f"it offers no way to {verb} just this once" if wider else f"it offers no way to {verb}"
        desk.say(Clean(f"{why}; A lists what it offers" if fact.options else why), "attention")
    return option


def take_option(desk: Desk, session: Session, request: Request, option: OptionFact) -> None:
    desk.submit(decision(desk, session, request, option=option.id))


def decision(desk: Desk, session: Session, request: Request, **given: Any) -> Intent:
    """A decision on what the operator has had before them, as of now."""
    primitive = Primitive.APPROVE if request.kind is RequestKind.APPROVAL else Primitive.ANSWER
    return intent(desk, session, primitive, request=request.key.request, seen=desk.seen(request), **given)


def choice_keys(count: int) -> list[str]:
    """A key for each of `count` choices; those beyond have none and are reached by the cursor."""
    return [_KEYS[at] if at < len(_KEYS) else "" for at in range(count)]
