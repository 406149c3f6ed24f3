"""May a tool be called without asking? Rules, and what operators granted, in the scope that they gave and no wider."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from watchfloor.canonical import canonical, stringify_numbers
from watchfloor.protocol.model import Option, Subject
from watchfloor.words import OptionKind, Scope


class Permission(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Grant:
    """What an operator allowed for more than once.

    `what`: names of tools, as the option that was taken lists them. Empty: the very same call only, whose arguments in
    canonical JSON are `arguments`. `session`, `turn` and `workspace` say where it holds, by its scope.
    """

    scope: Scope
    what: tuple[str, ...] = ()
    tool: str = ""
    arguments: str = ""
    session: str | None = None
    turn: str | None = None
    workspace: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that is about to be made. `reads`: it changes nothing, says whoever built the agent."""

    session: str
    turn: str
    tool: str
    arguments: object
    reads: bool = False
    gated: bool = True
    workspace: str | None = None


class PermissionChecker(Protocol):
    """Decides about calls, and takes what operators grant. Called on the event loop."""

    def check(self, call: Call) -> Permission: ...

    def grant(self, grant: Grant) -> None: ...


class Permissions:
    """Asks for every call of a gated tool, unless its name is allowed or denied, or a grant covers the call."""

    def __init__(self, *, allow: Collection[str] = (), deny: Collection[str] = ()) -> None:
        self._allow = frozenset(allow)
        self._deny = frozenset(deny)
        self._grants: list[Grant] = []

    @property
    def grants(self) -> tuple[Grant, ...]:
        return tuple(self._grants)

    def check(self, call: Call) -> Permission:
        if call.tool in self._deny:
            return Permission.DENY
        if not call.gated or call.tool in self._allow or any(covers(grant, call) for grant in self._grants):
            return Permission.ALLOW
        return Permission.ASK

    def grant(self, grant: Grant) -> None:
        if grant.scope is not Scope.ONCE and grant not in self._grants:
            self._grants.append(grant)


def covers(grant: Grant, call: Call) -> bool:
    """Does the grant hold for this call, and here?"""
    match grant.scope:
        case Scope.TURN:
            here = grant.session == call.session and grant.turn == call.turn
        case Scope.SESSION:
            here = grant.session == call.session
        case Scope.WORKSPACE:
            here = grant.workspace is not None and grant.workspace == call.workspace
        case Scope.AGENT | Scope.GLOBAL:
            here = True
        case _:
            return False
    if not here:
        return False
    if grant.what:
        return call.tool in grant.what
    return call.tool == grant.tool and exact(call.arguments) == grant.arguments


def granted(subject: Subject, option: Option | None, *, turn: str, workspace: str | None) -> list[Grant]:
    """What the taken option grants beyond this once; nothing where it allows once, or denies."""
    if option is None or option.kind is not OptionKind.ALLOW or option.scope is Scope.ONCE:
        return []
    scope = option.scope
    if scope is Scope.WORKSPACE and workspace is None:
        # A session without a folder has no workspace for which it could hold.
        return []
    here = Grant(
        scope=scope,
        session=subject.session if scope in (Scope.TURN, Scope.SESSION) else None,
        turn=turn if scope is Scope.TURN else None,
        workspace=workspace if scope is Scope.WORKSPACE else None,
    )
    if option.grants:
        return [replace(here, what=option.grants)]
    return [replace(here, tool=action.tool, arguments=exact(action.arguments)) for action in subject.actions]


def exact(arguments: object) -> str:
    """Arguments in canonical JSON. Raises CanonicalError for what is no JSON."""
    return canonical(stringify_numbers(arguments)).decode("utf-8")
