"""What is done by a key, written as a command line that does the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final, NamedTuple

from console.actions import Action, Needs
from console.fleet.decisions.decide import option_deny, option_once
from console.fleet.facts import FieldFact
from console.fleet.state import Request, Session
from watchfloor.text import Clean
from watchfloor.words import OptionKind, Primitive, RequestKind

_VERBS: Final[Mapping[str, tuple[str, ...]]] = {
    "send": ("send", "TEXT"),
    "pause": ("pause",),
    "pause_now": ("pause", "--interrupt"),
    "interrupt": ("interrupt",),
    "resume": ("resume",),
    "reseed": ("reseed", "--mode", "MODE"),
    "stop": ("stop",),
    "budget": ("budget", "--tokens", "N", "--turns", "N"),
    "fork": ("fork",),
    "notify": ("notify", "SUBSCRIBER"),
    "delete": ("delete", "--yes"),
    "acts": ("act", "ACT"),
}
"""The verb of an act that steers, and what follows the session."""
_TURNED: Final = frozenset({Primitive.INTERRUPT})
"""What is aimed at the turn that runs."""


class Spelled(NamedTuple):
    """A command line, or why there is none. What is to be filled in is written in capitals."""

    text: Clean
    reason: Clean = Clean("")


def spelled(action: Action, where: str, session: Session | None, request: Request | None) -> Spelled:
    """The act of a key as a command line for the source `where`, its name in the configuration or its URL; "" for a
    source that no other program reaches."""
    if not action.intervenes:
        return _none("only what changes something has a command line")
    if session is None:
        return _none("no session is selected")
    if not where:
        return _none("this demo ends with its console and is reached by no other program")
    if action.needs is Needs.REQUEST:
        words = _decision(action, session, request) if request is not None else None
        if words is None:
            return _none("nothing waits here")
    else:
        verb, *rest = _VERBS[action.id]
        words = [verb, session.key.session, *rest]
    if session.attempt is not None:
        words += ["--attempt", str(session.attempt)]
    if action.primitive in _TURNED and session.turn is not None:
        words += ["--turn", session.turn]
    words.insert(1, where)
    if not all(word.isprintable() for word in words):
        return _none("an id in it holds characters that no command line can")
    # An id that begins with a dash would pass for an option.
    if any(word.startswith("-") for word in (where, session.key.session, request.key.request if request else "")):
        return _none("an id in it begins with a dash")
    return Spelled(Clean(shlex.join(["watchfloor", *words])))


def _none(reason: str) -> Spelled:
    return Spelled(Clean(""), Clean(reason))


def _decision(action: Action, session: Session, request: Request) -> list[str] | None:
    fact = request.fact
    question = request.kind is RequestKind.QUESTION
    verb = "answer" if action.id == "answer" or (question and action.id == "options") else "approve"
    if action.option is OptionKind.DENY:
        verb = "deny"
    words = [verb, session.key.session, request.key.request]
    single = {"approve": option_once, "deny": option_deny}.get(verb)
    option = single(fact) if fact is not None and single is not None and action.id != "options" else None
    if option is not None:
        words += ["--option", option.id]
    elif action.id == "options":
        words += ["--option", "ID"]
    elif verb == "answer":
        words += _answer(fact.fields if fact is not None else ())
    if action.id == "deny_reason":
        words += ["--note", "TEXT"]
    return [*words, "--digest", request.digest]


def _answer(fields: tuple[FieldFact, ...]) -> list[str]:
    if not fields:
        return ["--text", "TEXT"]
    import json

    return ["--fields", json.dumps({field.name: "VALUE" for field in fields})]
