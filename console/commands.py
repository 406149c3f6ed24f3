"""From what the gate let through to the frame that goes out. Loads the models: import it once the network is needed."""

from __future__ import annotations

from typing import Any, assert_never

from console.fleet.gate import Gated
from watchfloor.protocol.frames import (
    Command,
    DoAct,
    DoAnswer,
    DoApprove,
    DoBudget,
    DoDelete,
    DoFork,
    DoInterrupt,
    DoNotify,
    DoPause,
    DoReseed,
    DoResume,
    DoSend,
    DoStop,
)
from watchfloor.protocol.given import given
from watchfloor.words import Primitive, Priority

_Do = (
    DoSend
    | DoPause
    | DoResume
    | DoInterrupt
    | DoStop
    | DoReseed
    | DoFork
    | DoBudget
    | DoApprove
    | DoAnswer
    | DoNotify
    | DoDelete
    | DoAct
)


def command(gated: Gated) -> Command:
    """The frame of a command. Raises pydantic.ValidationError where the intent lacks what its primitive needs."""
    fields = {
        "id": gated.id,
        "session": gated.target.session,
        "attempt": gated.attempt,
        "turn": gated.turn,
        "do": _do(gated),
    }
    return Command.model_validate(given(**fields))


def _do(gated: Gated) -> _Do:
    intent = gated.intent
    match gated.primitive:
        case Primitive.SEND:
            priority = None if gated.priority is Priority.NORMAL else gated.priority
            return DoSend.model_validate(given(text=intent.text, priority=priority, reply_to=intent.reply_to))
        case Primitive.PAUSE:
            return DoPause.model_validate(given(interrupt=intent.interrupt or None))
        case Primitive.RESUME:
            return DoResume()
        case Primitive.INTERRUPT:
            return DoInterrupt()
        case Primitive.STOP:
            return DoStop.model_validate(given(kill=intent.kill or None, reason=intent.reason))
        case Primitive.RESEED:
            return DoReseed.model_validate(given(mode=intent.mode, to=intent.to, text=intent.text))
        case Primitive.APPROVE:
            automatic = {"automatic": True} if intent.policy is not None else {}
            return DoApprove.model_validate(given(**_decides(gated), note=intent.note, **automatic))
        case Primitive.ANSWER:
            return DoAnswer.model_validate(given(**_decides(gated), text=intent.text, fields=intent.fields))
        case Primitive.FORK:
            return DoFork.model_validate(dict(intent.extra))
        case Primitive.BUDGET:
            return DoBudget.model_validate(dict(intent.extra))
        case Primitive.NOTIFY:
            return DoNotify.model_validate(dict(intent.extra))
        case Primitive.DELETE:
            return DoDelete()
        case Primitive.ACT:
            return DoAct.model_validate(dict(intent.extra))
        case _ as unreachable:
            assert_never(unreachable)


def _decides(gated: Gated) -> dict[str, Any]:
    option = gated.option.id if gated.option is not None else None
    return {"request": gated.intent.request, "digest": gated.digest, "option": option}
