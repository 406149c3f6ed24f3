"""The flows that set how much a session may use, and that branch a new session off it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from console.fleet.facts import Intent, UsageFact
from console.fleet.state import Session
from console.fleet.views.wording import short_count
from console.screens.flows.asking import Answer, Ask, Drafts, TextBox
from console.screens.flows.desk import Desk
from console.screens.flows.steering import allowed, changed, confirm, intent, named
from watchfloor.text import NOTHING, Clean, numeral
from watchfloor.words import Primitive
from widgets.tones import Segment

_LIMITS: Final = ("tokens", "turns")
_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)([kM]?)")
_UNITS: Final[Mapping[str, int]] = {"": 1, "k": 1_000, "M": 1_000_000}
MOST: Final = 2**53 - 1
"""The largest number that every reader of the protocol takes for the same."""


def budget(desk: Desk, session: Session) -> None:
    """Ask for each limit that the session takes, then set those that were given."""
    profile = desk.fleet.profile(session)
    options = profile.options.get(Primitive.BUDGET, {}) if profile is not None else {}
    _limit(desk, session, tuple(name for name in _LIMITS if options.get(name)), {})


def _limit(desk: Desk, session: Session, names: tuple[str, ...], given: Mapping[str, int]) -> None:
    """Ask for the next of the limits; behind the last one, set them. One that is left open has no number in `given`."""
    asked = len(given)
    if asked == len(names):
        _set(desk, session, {name: limit for name, limit in given.items() if limit >= 0})
        return
    name = names[asked]
    place = f" ({asked + 1} of {len(names)})" if len(names) > 1 else ""
    draft = _draft(session, name)

    def then(answer: Answer) -> None:
        limit = number(answer.text)
        _limit(desk, session, names, {**given, name: -1 if limit is None else limit})

    desk.ask(
        Ask(
            title=((Clean(f"most {name}{place}"), "plain"),),
            about=(
                (Clean(f"budget of {named(desk, session)}"), "plain"),
                (Clean(f"{_HOW[name]}; empty leaves it as it is"), "quiet"),
            ),
            live=lambda: _used(session.usage),
            text=TextBox(check=_check),
            enter=Clean("sets it" if asked + 1 == len(names) else "goes on"),
            then=then,
            ended=changed(desk, session),
            draft=draft,
        )
    )


_HOW: Final[Mapping[str, str]] = {
    "tokens": "tokens in and out, such as 200000, 200k or 1.5M",
    "turns": "such as 40",
}


def number(text: str) -> int | None:
    """A count as it was written, such as 200,000 or 200k; None for what is none."""
    found = _NUMBER.fullmatch(text.strip().replace(",", "").replace("_", ""))
    if found is None:
        return None
    whole = float(found[1]) * _UNITS[found[2]] if "." in found[1] else int(found[1]) * _UNITS[found[2]]
    return int(whole) if whole == int(whole) and whole <= MOST else None


def _check(text: str) -> Clean:
    if not text.strip() or number(text) is not None:
        return NOTHING
    return Clean("a whole number is wanted, such as 40, 200k or 1.5M")


def _set(desk: Desk, session: Session, limits: Mapping[str, int]) -> None:
    if not limits:
        desk.say(Clean("the budget stays as it is: no limit was given"))
        return
    drafts = [_draft(session, name) for name in limits]
    command = intent(desk, session, Primitive.BUDGET, extra=dict(limits))
    reached = _reached(session.usage, limits)
    if not reached:
        desk.submit(command, drafts=drafts)
        return
    gated = allowed(desk, command)
    if gated is None:
        return
    told: Segment = (Clean(f"new limit: {', '.join(_amount(name, limit) for name, limit in limits.items())}"), "plain")
    confirm(
        desk,
        session,
        gated,
        lambda: command,
        drafts=drafts,
        asks="set the budget of",
        yes="set it",
        told=lambda: (*_reached(session.usage, limits), told, *_used(session.usage)),
    )


def _reached(usage: UsageFact | None, limits: Mapping[str, int]) -> tuple[Segment, ...]:
    """Which of the limits are used up already."""
    used = _counts(usage)
    return tuple(
        (Clean(f"{numeral(limit)} {name} are used up already: a turn that runs is suspended"), "attention")
        for name, limit in limits.items()
        if name in used and used[name] >= limit
    )


def _used(usage: UsageFact | None) -> tuple[Segment, ...]:
    used = _counts(usage)
    if usage is None:
        return ((Clean("what is used so far is not known here"), "quiet"),)
    set_to = {"tokens": usage.budget_tokens, "turns": usage.budget_turns}
    limits = [f"{_amount(name, limit)}" for name, limit in set_to.items() if limit is not None]
    words = ", ".join(_amount(name, count) for name, count in used.items())
    return (
        (Clean(f"used so far: {words}"), "plain"),
        (Clean(f"limit now: {', '.join(limits) if limits else 'none that is known here'}"), "plain"),
    )


def _amount(name: str, count: int) -> str:
    shown = short_count(count) if name == "tokens" else numeral(count)
    return f"{shown} {name if count != 1 else name[:-1]}"


def _counts(usage: UsageFact | None) -> dict[str, int]:
    return {} if usage is None else {"tokens": usage.input_tokens + usage.output_tokens, "turns": usage.turns}


def _draft(session: Session, name: str) -> tuple[object, ...]:
    return (Primitive.BUDGET, name, session.key, session.attempt)


# --- fork ----------------------------------------------------------------------------------


def fork(desk: Desk, session: Session) -> None:
    """Ask for the name of the new session, then branch it off."""
    draft = (Primitive.FORK, session.key, session.attempt)

    def made(text: str) -> Intent:
        name = text.strip()
        return intent(desk, session, Primitive.FORK, extra={"name": name} if name else {})

    drafts: Drafts = [draft]
    desk.ask(
        Ask(
            title=((Clean("name of the new session"), "plain"),),
            about=(
                (Clean(f"fork {named(desk, session)}"), "plain"),
                (Clean("it begins with what this one remembers; this one goes on as it is"), "quiet"),
                (Clean("left empty its source names it"), "quiet"),
            ),
            enter=Clean("forks it"),
            text=TextBox(check=lambda text: Clean("one line is wanted") if "\n" in text.strip() else NOTHING),
            then=lambda answer: desk.submit(made(answer.text), drafts=drafts),
            ended=changed(desk, session),
            draft=draft,
        )
    )
