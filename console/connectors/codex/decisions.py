"""What is sent for a decision or an answer, and what of it shows on the thread afterwards."""

from __future__ import annotations

from typing import Any, Final

from console.connectors.codex.forms import answers_to, content_of
from console.connectors.codex.requests import (
    ALWAYS,
    ELICITATION,
    EXECPOLICY,
    FOR_SESSION,
    NETWORK,
    PERMISSIONS,
    QUESTIONS,
    Asked,
    network_id,
)
from console.connectors.codex.state import Fate
from console.connectors.web.reading import Json, each, part
from watchfloor.protocol.frames import DoAnswer, DoApprove
from watchfloor.words import OptionKind, Then

_PERSIST: Final = {FOR_SESSION: "session", ALWAYS: "always"}


def result_of(asked: Asked, do: DoApprove | DoAnswer) -> Json:
    """The result that answers the server's request. Raises ValueError for an option that has none."""
    option = do.option
    match asked.method:
        case "item/tool/requestUserInput" if isinstance(do, DoAnswer):
            return {"answers": answers_to(asked.request.read().fields, do)}
        case "mcpServer/elicitation/request":
            return _elicited(asked, do)
        case "item/permissions/requestApproval" if option is not None:
            granted = {} if option == "nothing" else part(asked.params, "permissions")
            scope = "session" if option == "session" else "turn"
            return {"permissions": {k: v for k, v in granted.items() if v is not None}, "scope": scope}
        case _ if option is not None:
            return {"decision": _decision(asked.params, option)}
    raise ValueError(f"{asked.method} cannot be answered like this")


def _decision(params: Json, option: str) -> Any:
    if option != EXECPOLICY and not option.startswith(f"{NETWORK}:"):
        return option
    # As the server listed it, and not as we have read it: it is given back what it offered.
    for listed in each(params, "availableDecisions"):
        if option == EXECPOLICY and EXECPOLICY in listed:
            return dict(listed)
        if network_id(part(listed, NETWORK, "network_policy_amendment")) == option:
            return dict(listed)
    raise ValueError(f"{option} was not offered")


def _elicited(asked: Asked, do: DoApprove | DoAnswer) -> Json:
    if do.option in ("decline", "cancel"):
        return {"action": do.option, "content": None, "_meta": None}
    kept = _PERSIST.get(do.option or "")
    content = content_of(asked.request.read().fields, do) if isinstance(do, DoAnswer) else {}
    return {"action": "accept", "content": content, "_meta": {"persist": kept} if kept else None}


def kind_of(asked: Asked, do: DoApprove | DoAnswer) -> OptionKind:
    """Does it allow, deny or answer?"""
    option = asked.option(do.option) if do.option is not None else None
    return option.kind if option is not None else OptionKind.ANSWER


def provable(asked: Asked) -> bool:
    """Does the thread show whose answer counted? Only where a call waited for it."""
    return asked.call is not None and asked.method not in (QUESTIONS, PERMISSIONS)


def runs_in_silence(asked: Asked, do: DoApprove | DoAnswer) -> bool:
    """Does what was allowed tell nothing while it runs? A tool of an MCP server: it may take minutes."""
    return asked.method == ELICITATION and provable(asked) and kind_of(asked, do) is OptionKind.ALLOW


def stood(asked: Asked, do: DoApprove | DoAnswer, fate: Fate) -> bool | None:
    """Has our answer counted? None while nothing shows it.

    The server takes the first answer and says to nobody whose that was; a late one it drops without a word. So what
    the thread does is all the proof that there is.
    """
    if not fate.resolved and fate.turn_ended is None:
        return None
    if not provable(asked):
        return fate.resolved or None
    denies = kind_of(asked, do) is OptionKind.DENY
    if fate.ran:
        return not denies
    # A command that was allowed may run in silence also after the end of its turn: before that was looked at, nothing
    # is known. One that was refused may never be told to have ended.
    ended = fate.turn_ended if fate.looked else None
    if not denies:
        return False if fate.declined or ended is not None else None
    option = asked.option(do.option) if do.option is not None else None
    if option is not None and option.then is Then.ENDS_TURN:
        return _ENDED.get(fate.turn_ended or "") if fate.declined or ended is not None else None
    return True if fate.declined or ended is not None or (fate.went_on and fate.looked) else None


_ENDED: Final = {"interrupted": True, "completed": False, "failed": False}
"""Was a turn ended by who refused something in it? What a turn is called that we do not know of proves nothing."""
