"""What the app-server asks, as requests: with every decision that it offers, and none that it does not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from console.connectors.codex.changes import complete, diff_of, kind_of, path_of
from console.connectors.codex.forms import fields_of, questions_of
from console.connectors.web.reading import Json, each, flag, number, part, text, texts, word
from watchfloor.protocol.model import Action, FormField, Option, RequestModel, Subject
from watchfloor.words import OptionKind, RequestKind, RequestState, Scope, Then

COMMAND: Final = "item/commandExecution/requestApproval"
FILES: Final = "item/fileChange/requestApproval"
PERMISSIONS: Final = "item/permissions/requestApproval"
QUESTIONS: Final = "item/tool/requestUserInput"
ELICITATION: Final = "mcpServer/elicitation/request"
ASKS: Final = frozenset({COMMAND, FILES, PERMISSIONS, QUESTIONS, ELICITATION})
NOT_FOR_US: Final = frozenset({"item/tool/call", "attestation/generate", "account/chatgptAuthTokens/refresh"})
"""What only the client that offered it can answer."""

EXECPOLICY: Final = "acceptWithExecpolicyAmendment"
NETWORK: Final = "applyNetworkPolicyAmendment"
ALWAYS: Final = "accept:always"
FOR_SESSION: Final = "accept:session"
_UNLISTED: Final = "the server does not list this decision, and takes it"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the server that is open: how it is answered there (`rpc`, `method`, `params`), and ours."""

    rpc: int | str
    method: str
    params: Json
    id: str
    request: RequestModel
    call: str | None = None
    """The item that waits for it."""

    def option(self, id: str) -> Option | None:
        return next((option for option in self.request.read().options if option.id == id), None)


def is_tool_approval(params: Json) -> bool:
    """Does an MCP elicitation ask whether a tool may run, and not something of the user?"""
    return text(params, "_meta", "codex_approval_kind") == "mcp_tool_call"


def request_of(
    id: str, method: str, params: Json, *, changes: Sequence[Json] | None, call: str | None, now: int
) -> RequestModel:
    """The request. `changes`: those of the files that it is about, None where they are not known here."""
    kind = RequestKind.APPROVAL
    actions: list[Action] = []
    fields: tuple[FormField, ...] = ()
    options: tuple[Option, ...] = ()
    match method:
        case "item/commandExecution/requestApproval":
            actions, options = _command_actions(params, call), _command_options(params)
        case "item/fileChange/requestApproval":
            actions, options = _file_actions(params, changes, call), _file_options(params)
        case "item/permissions/requestApproval":
            actions, options = _permission_actions(params, call), _permission_options(params)
        case "item/tool/requestUserInput":
            kind, fields = RequestKind.QUESTION, questions_of(params)
        case _ if is_tool_approval(params):
            actions, options = _tool_actions(params, call), _tool_options(params)
        case _:
            kind, actions, fields, options = _elicited(params)
    rest: dict[str, Any] = {}
    if actions:
        rest["actions"] = tuple(actions)
    if fields:
        rest["fields"] = fields
    if options:
        rest["options"] = options
    subject = Subject(session=text(params, "threadId") or "", id=id, kind=kind, **rest)
    asked: dict[str, Any] = {"asked_at": number(params, "startedAtMs") or now}
    if (wait_ms := number(params, "autoResolutionMs")) is not None:
        asked |= {"deadline": now + wait_ms, "at_deadline": "the agent goes on without an answer"}
    if flag(params, "isBlocking") is False:
        asked["blocks"] = False
    if (about := _about(method, params)) is not None:
        asked["about"] = about
    return RequestModel.ask(subject, **asked)


def unread(id: str, thread: str, *, question: bool, why: str, now: int) -> RequestModel:
    """Stands for a request of which nothing but its being there is known."""
    kind = RequestKind.QUESTION if question else RequestKind.APPROVAL
    subject = Subject(session=thread, id=id, kind=kind)
    return RequestModel.ask(subject, asked_at=now, state=RequestState.UNREAD, about=why)


def _about(method: str, params: Json) -> str | None:
    if method == ELICITATION:
        return text(params, "message") or text(params, "description")
    return text(params, "reason")


def _of_call(call: str | None) -> dict[str, Any]:
    return {"call": call} if call is not None else {}


# --- commands


def _command_actions(params: Json, call: str | None) -> list[Action]:
    actions = []
    command, cwd = text(params, "command"), text(params, "cwd")
    where: dict[str, Any] = {"cwd": cwd} if cwd is not None else {}
    network = part(params, "networkApprovalContext")
    tool = {"writeStdin": "input to a running command"}.get(text(params, "kind") or "", "command")
    if network:
        target = f"{text(network, 'protocol') or '?'}://{text(network, 'host') or '?'}"
        actions.append(Action(tool="network access", text=target))
    if command is not None:
        actions.append(Action(tool=tool, text=command, **where, **_of_call(call)))
    elif not network:
        actions.append(Action(tool=tool, text="", complete=False, **where, **_of_call(call)))
    if more := part(params, "additionalPermissions"):
        actions.append(Action(tool="more permissions", arguments=_known(more)))
    return actions


def _command_options(params: Json) -> tuple[Option, ...]:
    listed = params.get("availableDecisions")
    # A server that lists none takes these; older ones do not list them.
    decisions = listed if isinstance(listed, list) and listed else ["accept", "decline", "cancel"]
    options = [option for decision in decisions if (option := _decision(decision)) is not None]
    if all(option.id != "decline" for option in options):
        at = next((n for n, option in enumerate(options) if option.id == "cancel"), len(options))
        options.insert(at, Option(id="decline", label="Decline", kind=OptionKind.DENY, note=_UNLISTED))
    return tuple(options)


def unknown_decisions(params: Json) -> list[str]:
    """What the server offers for a command and this console cannot give, in the server's words."""
    listed = params.get("availableDecisions")
    unknown = [decision for decision in listed if _decision(decision) is None] if isinstance(listed, list) else []
    return [decision if isinstance(decision, str) else json.dumps(decision) for decision in unknown]


def _decision(decision: object) -> Option | None:
    """A decision that the server lists; None for one that this console does not know."""
    match decision:
        case "accept":
            return Option(id="accept", label="Accept", kind=OptionKind.ALLOW)
        case "acceptForSession":
            return _for_session("acceptForSession", "the same is not asked again in this thread")
        case "decline":
            return Option(id="decline", label="Decline", kind=OptionKind.DENY)
        case "cancel":
            return Option(id="cancel", label="Cancel", kind=OptionKind.DENY, then=Then.ENDS_TURN)
        case {"acceptWithExecpolicyAmendment": rule}:
            return _by_rule(rule)
        case {"applyNetworkPolicyAmendment": rule}:
            return _by_host(part(rule, "network_policy_amendment"))
        case _:
            return None


def _for_session(id: str, note: str) -> Option:
    return Option(id=id, label="Accept for this session", kind=OptionKind.ALLOW, scope=Scope.SESSION, note=note)


def _by_rule(rule: object) -> Option:
    words = texts(rule, "execpolicy_amendment")
    return Option(
        id=EXECPOLICY,
        label="Accept by a new rule",
        kind=OptionKind.ALLOW,
        scope=Scope.GLOBAL,
        grants=(f"every command that begins with: {json.dumps(words, ensure_ascii=False)}",),
        persists=True,
        note="written to the server's rules: for this thread and all that begin later, also after a restart",
        confirm=True,
    )


def network_id(amendment: Json) -> str:
    return f"{NETWORK}:{text(amendment, 'action') or '?'}:{text(amendment, 'host') or '?'}"


def _by_host(amendment: Json) -> Option:
    host, allows = text(amendment, "host") or "?", text(amendment, "action") == "allow"
    return Option(
        id=network_id(amendment),
        label=f"{'Always allow' if allows else 'Never allow'} {host}",
        kind=OptionKind.ALLOW if allows else OptionKind.DENY,
        scope=Scope.GLOBAL,
        grants=(f"network access to {host}",) if allows else (),
        persists=True,
        note="written to the server's rules",
        confirm=allows,
    )


# --- files and permissions


def _file_actions(params: Json, changes: Sequence[Json] | None, call: str | None) -> list[Action]:
    actions = [
        Action(
            tool="change files",
            text=f"{kind_of(change)} {path_of(change)}",
            diff=diff_of(change),
            complete=complete(change),
            **_of_call(call),
        )
        for change in changes or ()
    ]
    if not actions:
        # Its changes were told before we came, and the server does not tell them again.
        unknown = "changes of files that the server does not show to a client that joined later"
        actions.append(Action(tool="change files", text=unknown, complete=False, **_of_call(call)))
    if (root := text(params, "grantRoot")) is not None:
        actions.append(Action(tool="write access", text=root))
    return actions


def _file_options(params: Json) -> tuple[Option, ...]:
    root = text(params, "grantRoot")
    grants = (f"writing below {root}",) if root is not None else ()
    session = _for_session("acceptForSession", "the same files are not asked about again in this thread")
    return (
        Option(id="accept", label="Accept", kind=OptionKind.ALLOW, grants=grants),
        session.model_copy(update={"grants": grants}),
        Option(id="decline", label="Decline", kind=OptionKind.DENY),
        Option(id="cancel", label="Cancel", kind=OptionKind.DENY, then=Then.ENDS_TURN),
    )


def _permission_actions(params: Json, call: str | None) -> list[Action]:
    cwd = text(params, "cwd")
    where: dict[str, Any] = {"cwd": cwd} if cwd is not None else {}
    return [Action(tool="permissions", arguments=_known(part(params, "permissions")), **where, **_of_call(call))]


def _permission_options(params: Json) -> tuple[Option, ...]:
    grants = tuple(permission_lines(part(params, "permissions")))
    allow = OptionKind.ALLOW
    return (
        Option(id="turn", label="Grant for this turn", kind=allow, scope=Scope.TURN, grants=grants),
        Option(id="session", label="Grant for this session", kind=allow, scope=Scope.SESSION, grants=grants),
        Option(id="nothing", label="Grant nothing", kind=OptionKind.DENY),
    )


def permission_lines(permissions: Json) -> list[str]:
    """What a set of permissions allows, a line each."""
    lines = []
    if flag(permissions, "network", "enabled"):
        lines.append("network access")
    files = part(permissions, "fileSystem")
    for entry in each(files, "entries"):
        path = part(entry, "path")
        where = text(path, "path") or text(path, "pattern") or word(part(path, "value"), "kind") or "?"
        lines.append(f"{text(entry, 'access') or '?'} {where}")
    # The server says the same in both ways, an older one in the second only.
    lines += [f"{access} {path}" for access in ("read", "write") for path in texts(files, access)]
    return list(dict.fromkeys(lines))


def _known(permissions: Json) -> dict[str, Any]:
    return {name: value for name, value in permissions.items() if value is not None}


# --- MCP servers


def _tool_actions(params: Json, call: str | None) -> list[Action]:
    meta, server = part(params, "_meta"), text(params, "serverName") or "?"
    name = f"{server}.{text(meta, 'tool_name') or '?'}"
    return [Action(tool=name, arguments=meta.get("tool_params"), complete="tool_params" in meta, **_of_call(call))]


def _tool_options(params: Json) -> tuple[Option, ...]:
    server, tool = text(params, "serverName") or "?", text(params, "_meta", "tool_name") or "?"
    grant = (f"{server}.{tool} with any arguments",)
    options = [Option(id="accept", label="Accept", kind=OptionKind.ALLOW)]
    kept = params.get("_meta", {}).get("persist")
    kept = [kept] if isinstance(kept, str) else texts(params, "_meta", "persist")
    if "session" in kept:
        session = _for_session(FOR_SESSION, "this tool is not asked about again in this thread")
        options.append(session.model_copy(update={"grants": grant}))
    if "always" in kept:
        options.append(
            Option(
                id=ALWAYS,
                label="Always accept",
                kind=OptionKind.ALLOW,
                scope=Scope.GLOBAL,
                grants=grant,
                persists=True,
                note="written to the server's configuration",
                confirm=True,
            )
        )
    return (*options, *_REFUSALS)


_REFUSALS: Final = (
    Option(id="decline", label="Decline", kind=OptionKind.DENY),
    Option(id="cancel", label="Cancel", kind=OptionKind.DENY, note="the MCP server is told that nobody decided"),
)


def _elicited(params: Json) -> tuple[RequestKind, list[Action], tuple[FormField, ...], tuple[Option, ...]]:
    """What an MCP server asks of the user."""
    server, mode = text(params, "serverName") or "?", text(params, "mode") or ""
    if mode == "url":
        action = Action(tool=f"{server} asks to open", text=text(params, "url") or "", complete="url" in params)
        done = Option(id="accept", label="Opened it", kind=OptionKind.ALLOW)
        return RequestKind.APPROVAL, [action], (), (done, *_REFUSALS)
    fields = fields_of(part(params, "requestedSchema")) if mode == "form" else None
    if fields is None:
        # A form that we cannot show whole must not be answered, only refused.
        shown = {k: v for k, v in params.items() if k not in ("threadId", "turnId", "_meta") and v is not None}
        return RequestKind.APPROVAL, [Action(tool=f"{server} asks", arguments=shown)], (), _REFUSALS
    if not fields:
        accept = Option(id="accept", label="Accept", kind=OptionKind.ALLOW)
        action = Action(tool=f"{server} asks", text=text(params, "message") or "")
        return RequestKind.APPROVAL, [action], (), (accept, *_REFUSALS)
    return RequestKind.QUESTION, [], fields, _REFUSALS
