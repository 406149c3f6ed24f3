"""What a risk is, and the rules by name: a policy that allows something risky has to name each rule or its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from watchfloor.text import Clean, clean_line


class RiskKind(StrEnum):
    """What may come of it. The values are what policies and the audit say."""

    DESTRUCTIVE = "destructive"
    NETWORK_TO_SHELL = "network-to-shell"
    PRIVILEGE = "privilege"
    SECRETS = "secrets"
    OUTSIDE = "outside-workspace"
    DISGUISED = "disguised"
    UNJUDGED = "unjudged"


class RiskLevel(IntEnum):
    NONE = 0
    MEDIUM = 1
    HIGH = 2


@dataclass(frozen=True, slots=True)
class Risk:
    """One finding. It points at `start`..`end` of `shown_text(action)`; an empty span: at the action as a whole."""

    rule: str
    kind: RiskKind
    level: RiskLevel
    reason: Clean
    start: int
    end: int


class Rule(NamedTuple):
    kind: RiskKind
    level: RiskLevel = RiskLevel.HIGH


_D, _N, _P = RiskKind.DESTRUCTIVE, RiskKind.NETWORK_TO_SHELL, RiskKind.PRIVILEGE
_S, _O, _G = RiskKind.SECRETS, RiskKind.OUTSIDE, RiskKind.DISGUISED

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "delete-tree": Rule(_D),
        "delete-many": Rule(_D),
        "delete-in-code": Rule(_D),
        "overwrite-disk": Rule(_D),
        "empty-file": Rule(_D),
        "change-modes": Rule(_D),
        "git-loses-work": Rule(_D),
        "git-rewrites-remote": Rule(_D),
        "cloud-delete": Rule(_D),
        "containers-delete": Rule(_D),
        "database-delete": Rule(_D),
        "package-withdraw": Rule(_D),
        "kills-processes": Rule(_D),
        "stops-machine": Rule(_D),
        "stops-service": Rule(_D, RiskLevel.MEDIUM),
        "exhausts-machine": Rule(_D),
        "opens-firewall": Rule(_D),
        "runs-download": Rule(_N),
        "installs-from-address": Rule(_N, RiskLevel.MEDIUM),
        "remote-shell": Rule(_N),
        "sends-file": Rule(_N, RiskLevel.MEDIUM),
        "becomes-another": Rule(_P),
        "gives-rights": Rule(_P),
        "container-of-host": Rule(_P),
        "kernel": Rule(_P),
        "runs-later": Rule(_P),
        "skips-checks": Rule(_P),
        "secret-file": Rule(_S),
        "secret-shown": Rule(_S),
        "secret-sent": Rule(_S),
        "secret-in-text": Rule(_S),
        "writes-outside": Rule(_O, RiskLevel.MEDIUM),
        "writes-system": Rule(_O),
        "works-outside": Rule(_O, RiskLevel.MEDIUM),
        "hidden-characters": Rule(_G),
        "look-alikes": Rule(_G),
        "pushed-out-of-sight": Rule(_G),
        "spelled-out": Rule(_G),
        "decoded-and-run": Rule(_G),
        "program-in-variable": Rule(_G),
        "unjudged": Rule(RiskKind.UNJUDGED, RiskLevel.HIGH),
    }
)


def risk(rule: str, reason: str, span: tuple[int, int]) -> Risk:
    """A finding of this rule. Raises KeyError for a rule that the table does not have.

    The reason may name what a shell would make of clean text, which can be any character: it is cleaned here.
    """
    kind, level = RULES[rule]
    return Risk(rule, kind, level, clean_line(reason), *span)
