"""What policies would have decided of what a host's log tells, as `watchfloor events --json` prints it. Pure.

A log names what was asked on one line. Where the call of the tool that waited for it stands in the log as well, and
says the same, that is what is judged; else the line is. Options are not in a log: taken for granted are one that allows
just this once and one that denies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from console.fleet.decisions.risk.actions import level_of, request_risks
from console.fleet.decisions.risk.model import Risk, RiskLevel
from console.fleet.facts import ActionFact, OptionFact, RequestFact, RequestKey
from console.intake.bounds import Room, shown_json
from console.policies.rules import Asker, Policy, Ruling, rule
from watchfloor.protocol.lines import action_line
from watchfloor.text import NOTHING, Clean, clean, clean_line, count_hidden
from watchfloor.words import OptionKind, RequestKind, RequestState, Scope, Then

_CALLS: Final = 500
"""Calls of tools of one session that are remembered until what waits for them is asked."""
_OPTIONS: Final = tuple(
    OptionFact(kind.value, Clean(kind.value), kind, Scope.ONCE, (), False, None, Then.CONTINUES, False)
    for kind in (OptionKind.ALLOW, OptionKind.DENY)
)


@dataclass(slots=True)
class Replayed:
    """One request of the log: what it asked, what policies would have done, and how it really ended, "" while open.

    `whole`: the call that waited for it stands in the log; else only a line is known of it.
    """

    key: RequestKey
    agent: Clean
    at: int
    line: Clean
    whole: bool
    ruling: Ruling
    risks: tuple[Risk, ...]
    ended: Clean = NOTHING

    @property
    def level(self) -> RiskLevel:
        return level_of(self.risks)


class Replay:
    """Takes the lines of a log one by one. `names`: what sessions are called, by their ids, where that is known."""

    def __init__(self, policies: tuple[Policy, ...], names: Mapping[str, str] | None = None) -> None:
        self._policies = policies
        self._names = names or {}
        self._calls: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
        self.found: dict[RequestKey, Replayed] = {}
        self.odd = 0
        """Lines that are no events."""

    def take(self, line: object) -> None:
        """One line, as it was read from JSON. Never raises: what is no event is counted."""
        event = line.get("event") if isinstance(line, dict) else None
        if not isinstance(line, dict) or not isinstance(event, dict):
            self.odd += 1
            return
        source, session = _text(line, "source"), _text(line, "session")
        match event.get("kind"):
            case "tool_call":
                calls = self._calls.setdefault((source, session), {})
                calls[_said(event)] = event
                if len(calls) > _CALLS:
                    del calls[next(iter(calls))]
            case "request_opened":
                self._asked(source, session, event)
            case "request_resolved":
                found = self.found.get(RequestKey(source, session, _text(event, "request")))
                if found is not None:
                    found.ended = clean_line(_ended(event))

    def by_risk(self) -> list[Replayed]:
        """All of them: first what would have been decided automatically, and of that the riskiest; then as asked."""
        return sorted(self.found.values(), key=lambda one: (not one.ruling.decides, -one.level, one.at, one.key))

    def _asked(self, source: str, session: str, event: Mapping[str, Any]) -> None:
        if event.get("request_kind") != RequestKind.APPROVAL.value:
            return
        key = RequestKey(source, session, _text(event, "request"))
        said = _text(event, "text")
        call = self._calls.get((source, session), {}).get(said)
        at = event.get("at")
        at = at if type(at) is int else 0
        action = _action(call, said)
        fact = _fact(key, action, at, _text(event, "digest"))
        agent = self._names.get(session, session)
        workspace = str(action.cwd) if action.cwd else None
        self.found[key] = Replayed(
            key=key,
            agent=clean_line(agent),
            at=at,
            line=clean_line(said),
            whole=call is not None,
            ruling=rule(self._policies, fact, Asker(source, agent, workspace), at),
            risks=tuple(risk for found in request_risks(fact, workspace) for risk in found),
        )


def replay(policies: tuple[Policy, ...], lines: Iterable[object], names: Mapping[str, str] | None = None) -> Replay:
    """What these policies would have decided of a log."""
    made = Replay(policies, names)
    for line in lines:
        made.take(line)
    return made


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _said(call: Mapping[str, Any]) -> str:
    """The line by which a request names the call that waits for it."""
    text = call.get("text")
    try:
        line = action_line(text if isinstance(text, str) else None, call.get("arguments"))
    except (ValueError, RecursionError):
        line = ""
    return f"{_text(call, 'name')}  {line}".strip()


def _ended(event: Mapping[str, Any]) -> str:
    by = _text(event, "by")
    how = _text(event, "option_kind") or _text(event, "option") or _text(event, "state")
    return f"{how} by {by}" if by else how


def _action(call: Mapping[str, Any] | None, said: str) -> ActionFact:
    tool, parted, text = said.partition("  ")
    tool, text, cwd = (tool, text, "") if parted else ("", said, "")
    if call is not None:
        tool, cwd = _text(call, "name"), _text(call, "cwd")
        parts = [_text(call, "text")] if call.get("text") is not None else []
        if call.get("arguments") is not None:
            parts.append(shown_json(call["arguments"], Room().left)[0])
        text = "\n".join(parts)
    return ActionFact(
        tool=clean_line(tool),
        text=clean(text),
        line=clean_line(said),
        cwd=clean_line(cwd) if cwd else None,
        diff=None,
        call=None,
        # A line that names several actions, or whose arguments were cut, says only the beginning of them.
        complete=call is not None or not said.endswith((" more)", "…")),
        hidden=count_hidden(text),
    )


def _fact(key: RequestKey, action: ActionFact, at: int, digest: str) -> RequestFact:
    return RequestFact(
        key=key,
        attempt=None,
        kind=RequestKind.APPROVAL,
        actions=(action,),
        fields=(),
        options=_OPTIONS,
        per_action=False,
        asked_at=at,
        deadline=None,
        at_deadline=None,
        blocks=True,
        about=None,
        state=RequestState.OPEN,
        decision=None,
        digest=digest,
        sound=True,
    )
