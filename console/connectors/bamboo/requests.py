"""What a session asks of a person, as requests: with every decision that the server allows, and none besides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from console.connectors.bamboo.state import Gate
from console.connectors.web.reading import Json, each, flag, number, part, text, texts
from watchfloor.protocol.frames import DoAnswer
from watchfloor.protocol.model import (
    Action,
    Choice,
    FieldType,
    FormField,
    JsonObject,
    Option,
    RequestModel,
    Subject,
)
from watchfloor.words import OptionKind, RequestKind, Scope, Then

APPROVE: Final = "Approve"
DENY: Final = "Deny"
ANSWER: Final = "answer"
"""The only field of a question."""
_SCOPES: Final = {
    "once": (Scope.ONCE, "once"),
    "session": (Scope.SESSION, "for this session"),
    "workspace": (Scope.WORKSPACE, "for this workspace"),
    "global": (Scope.GLOBAL, "everywhere"),
}
_NEEDS_REVISION: Final = frozenset({"workspace", "global"})
_MATCHERS: Final = {
    "exact_resource": "exactly",
    "path_subtree": "everything below",
    "command_prefix": "every command that begins with",
    "http_origin": "everything at",
    "tool_action": "every",
}
_REASONS: Final = {
    "risk_threshold": "asked because of its risk",
    "hard_dangerous": "asked every time: it is dangerous",
    "configured_always_ask": "asked every time by the policy",
    "explicit_deny": "a rule denies it",
    "mode_denied": "the mode denies it",
    "platform_hard_deny": "the server denies it",
}
"""Why a permission is asked for, in words."""
GIVEN: Final = "watchfloor.given"
"""Where the arguments of a question's tool call are put, as nothing of the server's is called so."""
_ASKED: Final = frozenset({"question", "options", "allow_custom"})
_COMMAND_ARGUMENTS: Final = ("command", "cmd")


def is_permission(pending: Json, permission_calls: frozenset[str] | set[str] = frozenset()) -> bool:
    """Is a permission asked for? Older servers say so only by an event: those calls are in `permission_calls`."""
    kind = text(pending, "interaction_kind")
    if kind is not None:
        return kind == "permission"
    return bool(part(pending, "permission_request")) or text(pending, "tool_call_id") in permission_calls


def source_id(pending: Json) -> str:
    """The server's identity of what is asked."""
    call = text(pending, "tool_call_id") or "question"
    generation = text(pending, "permission_request", "request_generation")
    return f"{call}/{generation}" if generation is not None else call


def request_of(
    session: str, id: str, pending: Json, *, now: int, permission_calls: frozenset[str] | set[str] = frozenset()
) -> RequestModel:
    """The request for what a session waits for (the answer to `respond/pending`)."""
    if is_permission(pending, permission_calls):
        asked = part(pending, "permission_request")
        options = tuple(_decisions(asked)) if asked else tuple(_words(pending))
        subject = Subject(
            session=session, id=id, kind=RequestKind.APPROVAL, actions=(_action(pending),), options=options
        )
        return RequestModel.ask(subject, asked_at=now, about=_about(pending))
    subject = Subject(session=session, id=id, kind=RequestKind.QUESTION, fields=(_field(pending),))
    return RequestModel.ask(subject, asked_at=now, about=_given(pending))


def _about(pending: Json) -> str:
    asked = part(pending, "permission_request")
    if not asked:
        return text(pending, "question") or ""
    lines = [text(asked, "operation_summary") or text(pending, "question") or ""]
    risk, reason, mode = (text(asked, name) for name in ("risk_level", "reason_code", "effective_mode"))
    told = [f"risk {risk}" if risk else "", _REASONS.get(reason or "", reason or ""), f"mode {mode}" if mode else ""]
    rule = asked.get("matched_rule")
    if isinstance(rule, str) and rule:
        told.append(f"by the rule {rule}")
    return "\n".join([*lines, ", ".join(entry for entry in told if entry)]).strip()


def _given(pending: Json) -> str | None:
    """What the tool that asks was given besides the question itself."""
    given = {name: value for name, value in part(pending, GIVEN).items() if name not in _ASKED}
    lines = [f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in given.items()]
    return "\n".join(lines) or None


def _action(pending: Json) -> Action:
    asked, arguments = part(pending, "permission_request"), pending.get("tool_arguments")
    tool = text(pending, "tool_name") or text(asked, "tool_name") or "?"
    whole = arguments is not None and flag(pending, "tool_arguments_truncated") is not True
    rest: dict[str, Any] = {}
    command = next((line for name in _COMMAND_ARGUMENTS if (line := text(arguments, name)) is not None), None)
    if command is None and arguments is None:
        command = text(asked, "resource")
    if command is not None:
        rest["text"] = command
    if arguments is not None and not (command is not None and len(part(arguments)) == 1):
        # A command that is the only argument is shown as what it is.
        rest["arguments"] = arguments
    cwd = next((at for name in ("workdir", "cwd") if (at := text(arguments, name)) is not None), None)
    cwd = cwd or text(asked, "workspace_path")
    if cwd is not None:
        rest["cwd"] = cwd
    if (call := text(pending, "tool_call_id")) is not None:
        rest["call"] = call
    return Action(tool=tool, complete=whole, **rest)


def _decisions(asked: Json) -> Iterator[Option]:
    """Every allowed decision, those that last once for each matcher that the server suggests."""
    matchers = each(asked, "suggested_matchers")
    for decision in texts(asked, "allowed_decisions"):
        way, _, width = decision.partition("_")
        if way not in ("allow", "deny") or width not in _SCOPES:
            continue
        revision = number(asked, "policy_revision")
        if width == "once":
            yield _decision(decision, way, width, {}, revision)
        elif width not in _NEEDS_REVISION or revision is not None:
            for matcher in matchers or ({},):
                yield _decision(decision, way, width, matcher, revision)


def _decision(decision: str, way: str, width: str, matcher: Json, revision: int | None) -> Option:
    scope, words = _SCOPES[width]
    allows = way == "allow"
    label, id = f"{'Allow' if allows else 'Deny'} {words}", decision
    rest: dict[str, Any] = {}
    if matcher:
        kind, value = text(matcher, "kind") or "", text(matcher, "value") or ""
        covered = f"{_MATCHERS.get(kind, kind)} {value}".strip()
        id = f"{decision}:{text(matcher, 'id') or ''}"
        if kind != "exact_resource":
            label = f"{label}: {kind.replace('_', ' ') or 'this'}"
        rest["grants" if allows else "note"] = (covered,) if allows else covered
    if width in _NEEDS_REVISION:
        rest |= {"persists": True, "confirm": allows}
        rest["note"] = f"written to the server's policy (revision {revision})"
    return Option(
        id=id,
        label=label,
        kind=OptionKind.ALLOW if allows else OptionKind.DENY,
        scope=scope,
        then=Then.CONTINUES,
        **rest,
    )


def _words(pending: Json) -> Iterator[Option]:
    """A permission without a description of itself: only the two words, and allowing needs a second look."""
    for word in texts(pending, "options") or [APPROVE, DENY]:
        if word == APPROVE:
            note = "the server does not say what exactly this allows"
            yield Option(id=word, label=word, kind=OptionKind.ALLOW, confirm=True, note=note)
        elif word == DENY:
            yield Option(id=word, label=word, kind=OptionKind.DENY)


def _field(pending: Json) -> FormField:
    question = text(pending, "question") or ""
    options = list(dict.fromkeys(texts(pending, "options")))
    # Where a server does not say whether it takes other words, it does.
    custom = flag(pending, "allow_custom") is not False
    if not options and custom:
        return FormField(name=ANSWER, type=FieldType.TEXT, label=question)
    choices = tuple(Choice(value=option, label=option) for option in options)
    return FormField(name=ANSWER, type=FieldType.CHOICE, label=question, choices=choices, free_text=custom)


# --- what is sent


def decision_body(pending: Json, option: str) -> JsonObject:
    """The body that takes an option of a permission. Raises KeyError for one that was not offered."""
    asked = part(pending, "permission_request")
    if option not in {offered.id for offered in _decisions(asked)}:
        raise KeyError(option)
    decision, _, matcher = option.partition(":")
    body: JsonObject = {"request_id": text(asked, "request_id") or text(pending, "tool_call_id"), "decision": decision}
    if (generation := text(asked, "request_generation")) is not None:
        body["request_generation"] = generation
    if matcher:
        body["matcher_id"] = matcher
    if decision.partition("_")[2] in _NEEDS_REVISION:
        body["expected_policy_revision"] = number(asked, "policy_revision")
    if decision == "allow_global":
        body["confirm_global"] = True
    return body


def answer_body(pending: Json, response: str) -> JsonObject:
    """The body that answers a question, if it is still this one."""
    call = text(pending, "tool_call_id")
    return {"response": response, **({"expected_tool_call_id": call} if call is not None else {})}


def words_of(do: DoAnswer) -> str | None:
    """What was answered; None where nothing was."""
    given = do.text if do.text is not None else (do.fields or {}).get(ANSWER, do.option)
    return given if isinstance(given, str) else None


# --- of children


def child_request(gate: Gate, *, now: int) -> RequestModel:
    """The request for a tool call of a child that a person decides."""
    redacted = gate.resource == "[redacted]"
    action = Action(tool=gate.tool, text=gate.resource, complete=not redacted)
    options = (
        Option(id=APPROVE, label=APPROVE, kind=OptionKind.ALLOW, confirm=redacted),
        Option(id=DENY, label=DENY, kind=OptionKind.DENY),
    )
    subject = Subject(session=gate.child, id=gate.id, kind=RequestKind.APPROVAL, actions=(action,), options=options)
    return RequestModel.ask(subject, asked_at=gate.since or now, about=gate.permission or None)


def child_body(gate: Gate, *, approved: bool) -> JsonObject:
    """The body that decides on a child's tool call: newer servers want its whole identity."""
    body: JsonObject = {"request_id": gate.request, "approved": approved}
    if gate.version is not None:
        body |= {
            "parent_session_id": gate.parent,
            "child_attempt": gate.attempt or 0,
            "expected_version": gate.version,
        }
    return body
