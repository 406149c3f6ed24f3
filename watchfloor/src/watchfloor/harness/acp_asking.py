"""Permission requests of an agent of the Agent Client Protocol, as requests to operators. No I/O and no clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from acp.schema import PermissionOption, ToolCallUpdate

from watchfloor.harness.acp_updates import Call, diffs
from watchfloor.harness.calls import new_id, sound
from watchfloor.protocol.given import given
from watchfloor.protocol.model import Action, Option, Subject
from watchfloor.words import OptionKind, RequestKind, Scope

_ALLOW, _DENY = OptionKind.ALLOW, OptionKind.DENY
_REMEMBERED: Final = "the agent remembers it; it does not say for how long"


def option(offered: PermissionOption) -> Option:
    """A button. A choice that the agent remembers is told as one that may outlast the session."""
    kind = _ALLOW if offered.kind.startswith("allow") else _DENY
    name = sound(offered.name) or offered.option_id
    if offered.kind.endswith("_once"):
        return Option(id=offered.option_id, label=name, kind=kind, scope=Scope.ONCE)
    return Option(id=offered.option_id, label=name, kind=kind, scope=Scope.SESSION, persists=True, note=_REMEMBERED)


def misfit(options: Sequence[PermissionOption]) -> str | None:
    """Why nobody could decide on these options; None where they can."""
    ids = [offered.option_id for offered in options]
    if not ids:
        return "no options are offered"
    if len(set(ids)) < len(ids):
        return "two options have the same id"
    if any(not id or not id.isprintable() for id in ids):
        return "an option has no usable id"
    return None


def subject(
    session: str, attempt: int, told: ToolCallUpdate, call: Call, options: Sequence[PermissionOption]
) -> Subject:
    """What is decided on: the call as far as the agent tells what it will do.

    An agent that gives neither arguments nor a change tells its title only, which may leave anything out.
    """
    changes = diffs(told)
    diff = "\n".join(text for text, _ in changes.values()) or "\n".join(call.diffs.values())
    whole = all(is_whole for _, is_whole in changes.values())
    more = given(arguments=call.arguments, text=call.command, diff=diff or None)
    complete = whole and bool(call.arguments or diff)
    action = Action(tool=call.name, call=told.tool_call_id, complete=complete, **more)
    return Subject(
        session=session,
        attempt=attempt,
        id=new_id("req"),
        kind=RequestKind.APPROVAL,
        actions=(action,),
        options=tuple(option(offered) for offered in options),
    )
