"""How far an option reaches beyond the request that offers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from console.fleet.facts import OptionFact
from watchfloor.words import Scope

REACH: Final[Mapping[Scope, str]] = {
    Scope.ONCE: "this once",
    Scope.TURN: "until this turn ends",
    Scope.SESSION: "for this session",
    Scope.WORKSPACE: "for this workspace",
    Scope.AGENT: "for this agent, in all its sessions",
    Scope.GLOBAL: "everywhere",
}


def lasts(option: OptionFact) -> bool:
    """Does it let through, or refuse, more than this one request?"""
    return option.persists or option.scope is not Scope.ONCE
