"""Which option a verb takes: the one that was named, else the only one that can be meant. Never a wider one."""

from __future__ import annotations

from collections.abc import Iterable

from console.fleet.decisions.decide import option_deny
from console.fleet.facts import OptionFact, Refusal, RequestFact
from watchfloor.text import clean_line
from watchfloor.words import OptionKind, OutcomeKind, Scope


def choose(verb: str, fact: RequestFact, named: str | None) -> str | Refusal | None:
    """The id of the option for `approve`, `deny` or `answer`; None for an answer in words or fields."""
    if verb == "answer":
        return named
    denies = verb == "deny"
    if named is not None:
        return _fitting(denies, fact, named)
    if denies:
        options = [option for option in fact.options if option.kind is OptionKind.DENY]
        # A denial for longer than the turn is as much a rule as a wide permission: the keys do not take it, either.
        narrow = options if option_deny(fact) is not None else []
        return _only(narrow, options, "denies just this", "deny")
    options = [option for option in fact.options if option.kind is OptionKind.ALLOW]
    once = [o for o in options if o.scope is Scope.ONCE and not o.persists and not o.confirm]
    return _only(once, options, "allows just this, once", "allow just this, once")


def _fitting(denies: bool, fact: RequestFact, named: str) -> str | Refusal:
    option = next((option for option in fact.options if option.id == named), None)
    if option is None or denies == (option.kind is OptionKind.DENY):
        return named  # what is no option at all is told by the gate
    reason = f"{clean_line(named)} does not deny; use approve" if denies else f"{clean_line(named)} denies; use deny"
    return Refusal(OutcomeKind.INVALID, reason)


def _only(fitting: list[OptionFact], named: list[OptionFact], does: str, do: str) -> str | Refusal:
    if len(fitting) == 1:
        return fitting[0].id
    which = f"several options that {do}" if fitting else f"no option that {does}"
    hint = f"; name one with --option: {listed(named)}" if named else ""
    return Refusal(OutcomeKind.INVALID, f"the request has {which}{hint}")


def listed(options: Iterable[OptionFact]) -> str:
    """The options with what tells them apart: `once (allow, once), always (allow, session, persists)`."""
    return ", ".join(
        f"{clean_line(o.id)} ({o.kind.value}, {o.scope.value}{', persists' if o.persists else ''})" for o in options
    )
