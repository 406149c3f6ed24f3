"""Does a session advertise what a command asks for?"""

from __future__ import annotations

from watchfloor.host.quoting import shown
from watchfloor.protocol.frames import Do, DoAct, DoBudget, DoPause, DoReseed, DoSend, DoStop, UnknownDo
from watchfloor.protocol.model import Capabilities
from watchfloor.words import Primitive


def not_offered(has: Capabilities, do: Do | UnknownDo) -> str | None:
    """Why a session with these capabilities cannot take the command at all, or None."""
    if isinstance(do, UnknownDo) or not has.advertises(Primitive(do.primitive)):
        return _not(shown(do.primitive))
    match do:
        case DoSend() if has.send is not None and do.priority not in has.send.priorities:
            return _not(f"send with priority {do.priority.value}")
        case DoPause(interrupt=True) if has.pause is not None and not has.pause.interrupt:
            return _not("pause at once")
        case DoStop(kill=True) if has.stop is not None and not has.stop.kill:
            return _not("stop by force")
        case DoReseed() if has.reseed is not None and do.mode not in has.reseed.modes:
            return _not(f"reseed with mode {do.mode.value}")
        case DoBudget(tokens=int()) if has.budget is not None and not has.budget.tokens:
            return _not("a budget of tokens")
        case DoBudget(turns=int()) if has.budget is not None and not has.budget.turns:
            return _not("a budget of turns")
        case DoAct() if has.act is not None and all(act.id != do.act for act in has.act.acts):
            return _not(f"the act '{shown(do.act)}'")
    return None


def _not(what: str) -> str:
    return f"{what} is not advertised by this session"
