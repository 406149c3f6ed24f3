"""What a policy is, and which of them rules a request. Pure: the time is given, and nothing is sent from here.

The first policy that matches rules, in the order of the file; none after it is asked. Whatever a policy says, nothing
is decided automatically that is not known whole, or that holds a secret or what cannot be seen; and nothing risky is
approved unless the policy names each risk that was found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from console.fleet.decisions.alike import unknown
from console.fleet.decisions.decide import option_deny, option_once
from console.fleet.decisions.risk.actions import COMMAND_KEYS, PATH_KEYS, request_risks
from console.fleet.decisions.risk.calls import calls
from console.fleet.decisions.risk.model import Risk
from console.fleet.decisions.risk.places import absolute
from console.fleet.facts import ActionFact, OptionFact, RequestFact
from watchfloor.text import NOTHING, Clean, clean_line
from watchfloor.words import RequestKind

_BESIDE: Final = frozenset(("description", "explanation", "justification", "reason"))
"""Arguments beside a command that do nothing: what the agent says about it."""


class Does(StrEnum):
    """What a policy does with a request that it matches."""

    DENY = "deny"
    SECOND_KEY = "second-key"
    APPROVE = "approve"


@dataclass(frozen=True, slots=True)
class Policy:
    """One rule. What is None matches anything; `path` ends with "/" for whatever lies below it; `risks` are kinds or
    rules of risk that it allows; `until`: milliseconds since 1970 UTC, None: it does not end; `line`: in its file.
    """

    name: str
    does: Does
    command: str | None = None
    path: str | None = None
    tool: str | None = None
    agent: str | None = None
    source: str | None = None
    risks: frozenset[str] = frozenset()
    until: int | None = None
    line: int = 0

    def ended(self, now: int) -> bool:
        return self.until is not None and now >= self.until


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: the source's name, the session's name, and the folder that it works in, None where that is unknown.
    `ahead_ms`: the source's clock minus ours."""

    source: str
    agent: str
    workspace: str | None
    ahead_ms: int = 0


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the policies say about a request. `policy` None: none of them matches. `does` None: a human decides, for the
    reason `why`. `option`: what is taken, for a ruling that decides. `risks`: what was found in it.
    """

    policy: Policy | None
    does: Does | None
    option: OptionFact | None = None
    why: Clean = NOTHING
    risks: tuple[Risk, ...] = field(default=())

    @property
    def decides(self) -> bool:
        return self.option is not None


def rule(policies: tuple[Policy, ...], fact: RequestFact, asker: Asker, now: int) -> Ruling:
    """What the first of the policies that matches says. `now`: milliseconds since 1970 UTC."""
    if fact.kind is not RequestKind.APPROVAL:
        return Ruling(None, None, why=Clean("a question is answered by a human"))
    for policy in policies:
        if not policy.ended(now) and _matches(policy, fact, asker):
            return _ruled(policy, fact, asker, now)
    return Ruling(None, None)


def _ruled(policy: Policy, fact: RequestFact, asker: Asker, now: int) -> Ruling:
    risks = tuple(risk for found in request_risks(fact, asker.workspace) for risk in found)
    if policy.does is Does.SECOND_KEY:
        return Ruling(policy, Does.SECOND_KEY, risks=risks)

    def human(why: str) -> Ruling:
        return Ruling(policy, None, why=Clean(why), risks=risks)

    if why := unknown(fact):
        return human(why)
    if any(risk.rule == "secret-in-text" for risk in risks):
        return human("it holds what looks like a secret, which is masked")
    if fact.deadline is not None and now + asker.ahead_ms >= fact.deadline:
        return human("its deadline has passed")
    if policy.does is Does.DENY:
        option = option_deny(fact)
        return (
            Ruling(policy, Does.DENY, option, risks=risks) if option else human("it offers no option to deny just this")
        )
    unnamed = next((risk for risk in risks if risk.kind not in policy.risks and risk.rule not in policy.risks), None)
    if unnamed is not None:
        return human(
            f"it is risky, and the policy does not name {unnamed.kind.value} ({unnamed.rule}: {unnamed.reason})"
        )
    option = option_once(fact)
    if option is None:
        return human("it offers no option for just this once")
    if option.confirm:
        return human("its source wants the option to be confirmed")
    return Ruling(policy, Does.APPROVE, option, risks=risks)


# --- matching ------------------------------------------------------------------------------


def _matches(policy: Policy, fact: RequestFact, asker: Asker) -> bool:
    if policy.source is not None and policy.source != asker.source:
        return False
    if policy.agent is not None and policy.agent != asker.agent:
        return False
    if not fact.actions:
        return False
    # What is denied is denied for any of its actions; what is approved is approved for all of them.
    needed = all if policy.does is Does.APPROVE else any
    return needed(_matches_action(policy, action, asker) for action in fact.actions)


def _matches_action(policy: Policy, action: ActionFact, asker: Asker) -> bool:
    if policy.tool is not None and policy.tool != action.tool:
        return False
    exact = policy.does is Does.APPROVE
    if policy.command is not None and not _is_command(policy.command, action, exact=exact):
        return False
    return policy.path is None or _is_path(policy.path, action, asker, exact=exact)


def _is_command(command: str, action: ActionFact, *, exact: bool) -> bool:
    if action.text == command:
        return not (exact and action.diff)
    arguments = _arguments(action)
    if arguments is None:
        return False
    given = [value for name, value in arguments.items() if name.casefold() in COMMAND_KEYS]
    if exact and (len(given) != 1 or any(n not in _BESIDE and n.casefold() not in COMMAND_KEYS for n in arguments)):
        return False  # another argument may change what the command does
    return command in given


def _is_path(path: str, action: ActionFact, asker: Asker, *, exact: bool) -> bool:
    cwd = str(action.cwd) if action.cwd else asker.workspace
    named = list(_paths(action, words=not exact))
    if exact:
        return bool(named) and not action.diff and all(_lies(value, path, cwd) for value in named)
    return any(_lies(value, path, cwd) for value in named)


def _lies(value: str, path: str, cwd: str | None) -> bool:
    found, wanted = absolute(value, cwd), absolute(path, cwd)
    if found is None or wanted is None:
        return False
    return found == wanted or (path.endswith("/") and found.startswith(wanted.rstrip("/") + "/"))


def _paths(action: ActionFact, *, words: bool) -> Iterator[str]:
    """The paths that an action names in its arguments; with `words` whatever a command may name."""
    arguments = _arguments(action)
    if arguments is not None:
        for name, value in arguments.items():
            if name.casefold() in PATH_KEYS:
                yield value if isinstance(value, str) else ""
    if words:
        for call in calls(str(action.text))[0]:
            for word in (*call.args, *(redirect.word for redirect in call.command.redirects)):
                yield word.value
                yield word.value.partition("=")[2]
        if action.diff:
            yield from (line[4:].removeprefix("b/") for line in action.diff.split("\n") if line.startswith("+++ "))


def _arguments(action: ActionFact) -> Mapping[str, Any] | None:
    if not action.text.startswith("{"):
        return None
    try:
        arguments = json.loads(action.text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: of two with the same, readers take one or the other."""
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("two members of the same name")
    return dict(pairs)


def told(ruling: Ruling) -> Clean:
    """The ruling in words."""
    if ruling.policy is None:
        return ruling.why or Clean("no policy matches: a human decides")
    name = clean_line(ruling.policy.name)
    match ruling.does:
        case Does.SECOND_KEY:
            return Clean(f"policy {name} asks for a second key")
        case None:
            return Clean(f"policy {name} matches, and a human decides: {ruling.why}")
        case does:
            word = "denied" if does is Does.DENY else "approved"
            return Clean(f"{word} automatically, by policy {name}")


def meant(ruling: Ruling) -> Clean:
    """What the policy of a ruling wants done, where that is not done by itself; empty where none matches."""
    if ruling.policy is None:
        return NOTHING
    wants = {Does.DENY: "denies it", Does.APPROVE: "approves it", Does.SECOND_KEY: "asks for a second key"}
    return Clean(f"policy {clean_line(ruling.policy.name)} {wants[ruling.policy.does]}")
