"""What an option grants: exactly what it will match, as far as its source says, and what it would have matched lately.

Options are taken as they are offered. A grant is read here to be shown, never to be made: what is not understood is
shown in the source's words, and is said not to be known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from console.fleet.decisions.reach import REACH, lasts
from console.fleet.decisions.risk.calls import INTERPRETERS, SHELLS, base, unwrap, words_of
from console.fleet.decisions.risk.places import absolute, throwaway
from console.fleet.decisions.risk.shell import Command, read
from console.fleet.facts import ActionFact, OptionFact, RequestFact, RequestKey
from console.fleet.state import Request, Session
from console.fleet.store import Store
from watchfloor.text import Clean, clean_line, cut
from watchfloor.words import DECIDED, OptionKind, RequestKind, RequestState, Scope

_LATEST: Final = 200
"""Ended requests that are looked through, the newest first."""
_SHOWN: Final = 5
_NAMED = re.compile(r"([\w.-]{1,100})\((.*)\)", re.DOTALL)
_BEGINS = re.compile(r"every command that begins with: (\[.*\])", re.DOTALL)
_BELOW = re.compile(r"writing below (.+)", re.DOTALL)


class Width(StrEnum):
    """How much a grant lets through."""

    EXACT = "exact"
    BEGINNING = "beginning"
    PATTERN = "pattern"
    TOOL = "tool"
    PLACE = "place"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Grant:
    """One thing that an option grants. `said`: in its source's words; `pattern`: what is compared, by `width`; `tool`:
    the only tool that it counts for, None where it names none."""

    said: Clean
    width: Width
    pattern: str
    tool: str | None = None

    @property
    def words(self) -> Clean:
        """What it matches, in ours."""
        said = cut(clean_line(self.pattern), 300)
        match self.width:
            case Width.EXACT:
                return Clean(f'"{said}", exactly')
            case Width.BEGINNING:
                return Clean(f'whatever begins with "{said}"')
            case Width.PATTERN:
                return Clean(f'whatever fits "{said}"')
            case Width.TOOL:
                return Clean(f"every call of {said}")
            case Width.PLACE:
                return Clean(f"writing anything below {said}")
            case _:
                return Clean(f"in its source's words: {cut(self.said, 300)}")


@dataclass(frozen=True, slots=True)
class Match:
    """A request that the grant would have decided. `how`: how it was decided instead, such as "denied"."""

    key: RequestKey
    line: Clean
    how: Clean
    denied: bool


@dataclass(frozen=True, slots=True)
class Granting:
    """What taking an option means beyond the request. `reach`: how far and how long; `grants`: what it will match.

    `lately`: what it would have decided among the last `looked_at` requests that ended, the newest first, `denied` of
    them otherwise than it would; None: what it matches is not known. `wide`: why it is not taken from here, else empty.
    """

    reach: Clean
    beyond: bool
    grants: tuple[Grant, ...]
    known: bool
    lately: tuple[Match, ...] | None
    matched: int
    denied: int
    looked_at: int
    wide: Clean

    def lines(self) -> tuple[Clean, ...]:
        """All of it in words, a line each."""
        return (self.reach, *self.told(), *([self.wide] if self.wide else [])) if self.beyond else (self.reach,)

    def told(self) -> tuple[Clean, ...]:
        """What it will match, and what it would have matched lately, a line each."""
        told = [Clean(f"will match {grant.words}") for grant in self.grants]
        if not self.known:
            told.append(Clean("what else it will match its source does not say"))
        if self.lately is None:
            told.append(Clean("what it would have matched lately cannot be told"))
        else:
            but = f", {self.denied:,} of which were denied" if self.denied else ""
            told.append(Clean(f"would have matched {self.matched:,} of the last {self.looked_at:,} requests{but}"))
            told += [Clean(f"  {match.how}: {cut(match.line, 200)}") for match in self.lately]
        return tuple(told)


def granting(store: Store, session: Session, fact: RequestFact, option: OptionFact) -> Granting:
    """What this option of a request means beyond it."""
    beyond = lasts(option)
    grants = grants_of(fact, option) if beyond else ()
    # An option that lasts and names nothing lets through whatever its source thinks it should.
    known = not beyond or (bool(grants) and all(grant.width is not Width.UNKNOWN for grant in grants))
    reach = REACH[option.scope] + ("; stays in force after this session" if option.persists else "")
    ended = _ended(store, session, option.scope) if beyond else []
    found = [match for request in ended if (match := _match(request, grants)) is not None]
    return Granting(
        reach=Clean(reach),
        beyond=beyond,
        grants=grants,
        known=known,
        lately=tuple(found[:_SHOWN]) if known else None,
        matched=len(found),
        denied=sum(match.denied for match in found),
        looked_at=len(ended),
        wide=too_wide(fact, option),
    )


def grants_of(fact: RequestFact, option: OptionFact) -> tuple[Grant, ...]:
    """Each grant of an option, read as far as its form is known."""
    return tuple(_read(grant, fact.actions) for grant in option.grants)


def too_wide(fact: RequestFact, option: OptionFact) -> Clean:
    """Why an option is not taken from here: it would let through more than the command that was read, and that command
    is one of which only the whole says what it does. Empty: there is no such reason."""
    if option.kind is not OptionKind.ALLOW or not lasts(option):
        return Clean("")
    wide = [grant for grant in grants_of(fact, option) if grant.width in (Width.BEGINNING, Width.PATTERN, Width.TOOL)]
    if not wide:
        return Clean("")
    for action in fact.actions:
        if why := whole_only(str(action.text)):
            return Clean(f"not taken from here: {wide[0].words}, and {why}")
    return Clean("")


@lru_cache(maxsize=256)
def whole_only(text: str) -> str:
    """Why only the whole of a command says what it does: it has several parts, or its words are a program. "": no."""
    script = read(text)
    commands = script.commands
    if len(commands) > 1 or not script.judged or not script.closed or any(_composed(command) for command in commands):
        return "this command has several parts"
    for command in commands:
        for layer in unwrap(command.words):
            name = base(layer[0].value)
            if name in _RUN_ANYTHING or layer[0].expands:
                return f"{cut(clean_line(name), 40)} runs whatever it is given"
    return ""


_RUN_ANYTHING: Final = (
    SHELLS
    | INTERPRETERS
    | words_of("env sudo doas xargs find ssh eval exec npx pnpx uvx awk make parallel docker podman nice nohup timeout")
)
"""Programs that run what their words say."""


def _composed(command: Command) -> bool:
    if any(word.inside for word in (*command.words, *(redirect.word for redirect in command.redirects))):
        return True
    return any(
        redirect.op not in ("<", "<&", ">&") and not throwaway(redirect.word.value) for redirect in command.redirects
    )


# --- reading -------------------------------------------------------------------------------


def _read(said: Clean, actions: Iterable[ActionFact]) -> Grant:
    text = str(said)
    for action in actions:
        if text in (action.text, action.line, f"{action.tool}: {action.text}", f"{action.tool}({action.text})"):
            return Grant(said, Width.EXACT, str(action.text), str(action.tool))
        if text == action.tool:
            return Grant(said, Width.TOOL, text, text)
    if (begins := _BEGINS.fullmatch(text)) is not None and (words := _list(begins[1])) is not None:
        return Grant(said, Width.BEGINNING, " ".join(words))
    if (below := _BELOW.fullmatch(text)) is not None:
        return Grant(said, Width.PLACE, below[1])
    if (named := _NAMED.fullmatch(text)) is not None:
        tool, pattern = named[1], named[2]
        if pattern == "*":
            return Grant(said, Width.TOOL, tool, tool)
        if pattern.endswith(":*"):
            return Grant(said, Width.BEGINNING, pattern.removesuffix(":*"), tool)
        width = Width.PATTERN if "*" in pattern else Width.EXACT
        return Grant(said, width, pattern, tool)
    return Grant(said, Width.UNKNOWN, text)


def _list(text: str) -> list[str] | None:
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else None


# --- what it would have matched ------------------------------------------------------------


def _ended(store: Store, session: Session, scope: Scope) -> list[Request]:
    """Approvals that ended by a decision within this scope, the newest first."""
    found = []
    for request in reversed(store.requests.values()):
        if request.state is not RequestState.RESOLVED or request.kind is not RequestKind.APPROVAL:
            continue
        if request.fact is None or not request.fact.actions or not _within(store, session, request, scope):
            continue
        found.append(request)
        if len(found) == _LATEST:
            break
    return found


def _within(store: Store, session: Session, request: Request, scope: Scope) -> bool:
    if request.key.source != session.key.source:
        return False
    if request.key.owner == session.key or scope is Scope.GLOBAL:
        return True
    other = store.sessions.get(request.key.owner)
    if other is None:
        return False
    if scope is Scope.WORKSPACE:
        return session.cwd is not None and other.cwd == session.cwd
    return scope is Scope.AGENT and session.name is not None and other.name == session.name


def _match(request: Request, grants: tuple[Grant, ...]) -> Match | None:
    fact = request.fact
    if fact is None or not all(any(matches(grant, action) for grant in grants) for action in fact.actions):
        return None
    kind = request.decision.kind if request.decision is not None else None
    return Match(request.key, fact.actions[0].line, Clean(DECIDED[kind]), kind is OptionKind.DENY)


def matches(grant: Grant, action: ActionFact) -> bool:
    """Would the grant let this action through? False as well where that cannot be told."""
    if grant.tool is not None and grant.tool.casefold() != action.tool.casefold():
        return False
    text = str(action.text)
    match grant.width:
        case Width.EXACT:
            return text == grant.pattern
        case Width.BEGINNING:
            return text == grant.pattern or text.startswith(f"{grant.pattern} ")
        case Width.PATTERN:
            return fnmatchcase(text, grant.pattern)
        case Width.TOOL:
            return True
        case Width.PLACE:
            where = absolute(text, str(action.cwd) if action.cwd else None)
            return where is not None and (where + "/").startswith(grant.pattern.rstrip("/") + "/")
        case _:
            return False
