"""Commands by id: none is executed twice, and each can be asked about later."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from typing import Final

from watchfloor.host.clients.between import Between
from watchfloor.host.effects import Handled
from watchfloor.host.quoting import shown
from watchfloor.host.sessions.answers import check_fields
from watchfloor.host.sessions.hosted import Forwarded, HostedSession
from watchfloor.host.sessions.session import SessionCore
from watchfloor.protocol.events import Intervention
from watchfloor.protocol.frames import (
    Command,
    Do,
    DoAct,
    DoAnswer,
    DoApprove,
    DoFork,
    DoNotify,
    DoSend,
    Outcome,
    UnknownDo,
)
from watchfloor.protocol.given import given
from watchfloor.words import OptionKind, OutcomeKind

REMEMBERED: Final = 10_000
"""Commands whose outcome is kept, and as many of which it was said that they never came."""
_LATE: Final = "it came only after a recall was answered that it had not: it was not carried out"

_FULL: Final = "too many messages wait for this session already: send it once it has read some"


class Outcomes:
    """What became of the commands that this host took, as far as it remembers.

    What was said to have never come must not run when it comes late: whoever was told so may have acted on it.
    """

    def __init__(self, instance: str, limit: int = REMEMBERED) -> None:
        self._instance = instance
        self._limit = limit
        self._known: OrderedDict[str, tuple[bytes, Outcome]] = OrderedDict()
        self._never: OrderedDict[str, Outcome] = OrderedDict()
        self._forgot = False

    def again(self, command: Command, now: int) -> Outcome | None:
        """The outcome of a command that came before, or was said to have never come.

        An id that stood for another command is `invalid`.
        """
        known = self._known.get(command.id)
        if known is None:
            never = self._never.get(command.id)
            return never and never.model_copy(update={"reason": _LATE, "at": now})
        fingerprint, outcome = known
        if fingerprint == _fingerprint(command):
            return outcome
        return another_command(command, now)

    def remember(self, command: Command, outcome: Outcome) -> None:
        self._known[command.id] = (_fingerprint(command), outcome)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)
            self._forgot = True

    def recall(self, id: str, now: int, *, final: bool) -> Outcome:
        """What became of a command, `undelivered` where it never arrived here. With `final` that is settled.

        Not so where who asks may give no commands, and could only keep others from doing so.
        """
        known = self._known.get(id)
        if known is not None:
            return known[1].model_copy(update={"instance": self._instance})
        if id in self._never:
            return self._never[id]
        kind, reason = OutcomeKind.UNDELIVERED, "this host never received it"
        if self._forgot:
            kind, reason = OutcomeKind.UNKNOWN, "never received, or longer ago than this host remembers"
        never = Outcome(id=id, outcome=kind, reason=reason, info={}, at=now, instance=self._instance)
        if final:
            self._never[id] = never
            if len(self._never) > self._limit:
                self._never.popitem(last=False)
        return never


def another_command(command: Command, now: int) -> Outcome:
    """The command's id stands for another one."""
    reason = "this id was used before, for another command"
    return Outcome(id=command.id, outcome=OutcomeKind.INVALID, reason=reason, info={}, at=now)


def execute(core: HostedSession, command: Command, by: str, now: int, between: Between) -> Handled | Forwarded:
    """Carry out a command on its session, unless it is aimed at something that is over."""
    missing = core.not_advertised(command.do)
    if missing is not None:
        return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason=missing)
    # How a request ended says more than that its attempt or turn is over.
    ended = isinstance(command.do, DoApprove | DoAnswer) and command.do.request not in core.requests
    if not ended:
        stale = _stale(core, command)
        if stale is not None:
            return Handled(OutcomeKind.STALE_TARGET, reason=stale)
    if (unmeant := _unmeant(core, command.do)) is not None:
        return Handled(OutcomeKind.INVALID, reason=unmeant)
    if isinstance(core, SessionCore):
        if isinstance(command.do, DoSend) and core.mailbox.full(command.do.text):
            return Handled(OutcomeKind.REFUSED, reason=_FULL)
        return carry_out(core, command.do, by, now, between)
    return core.command(command.do, by, now)


def _unmeant(core: HostedSession, do: Do | UnknownDo) -> str | None:
    """Why nobody can mean the command, whatever the session is at; its values are not repeated."""
    match do:
        case DoSend() if not do.text.strip():
            return "there is no text to send: write one"
        case DoAct():
            offered = core.capabilities.act
            act = next((act for act in offered.acts if act.id == do.act), None) if offered is not None else None
            return check_fields(act.fields, do.fields, "the act") if act is not None else None
        case _:
            return None


def carry_out(core: SessionCore, do: Do | UnknownDo, by: str, now: int, between: Between) -> Handled:
    """Carry out what was asked of a session that this host runs, whatever that advertises."""
    match do:
        case DoFork():
            return between.fork(core, do)
        case DoNotify():
            return between.notify(core, do, now)
        case _:
            return core.carry_out(do, by, now)


def _stale(core: HostedSession, command: Command) -> str | None:
    if command.attempt is not None and command.attempt != core.attempt:
        return f"attempt {command.attempt} is not the current one: {core.attempt} is"
    if command.turn is not None and command.turn != core.turn:
        runs = f"{core.turn} runs" if core.turn is not None else "none runs"
        return f"turn {shown(command.turn)} is over: {runs}"
    return None


def outcome_of(command: Command, handled: Handled, now: int, attempt: int | None) -> Outcome:
    """The outcome frame for a command."""
    rest = given(reason=handled.reason, info=handled.info or None, decided=handled.decided, attempt=attempt)
    rest |= given(retry_after_s=handled.retry_after_s)
    if isinstance(command.do, DoApprove | DoAnswer):
        rest["request"] = command.do.request
    return Outcome(id=command.id, outcome=handled.outcome, at=now, session=command.session, **rest)


def intervention(command: Command, handled: Handled, by: str, now: int, core: HostedSession) -> Intervention:
    """The command as an event of its session."""
    rest = given(turn=core.turn, reason=handled.reason, info=handled.info or None, **_decision(command, core))
    return Intervention(
        at=now,
        attempt=core.attempt,
        primitive=shown(command.do.primitive),
        command=command.id,
        by=by,
        outcome=handled.outcome,
        **rest,
    )


def _decision(command: Command, core: HostedSession) -> dict[str, object]:
    """The option that a decision is about. One that its request lacks is not repeated: it may be a secret's value."""
    do = command.do
    if not isinstance(do, DoApprove | DoAnswer):
        return {}
    option = core.requests.option(do.request, do.option)
    if option is not None:
        automatic = isinstance(do, DoApprove) and do.automatic
        return {"option": option.id, "option_kind": option.kind, **({"automatic": True} if automatic else {})}
    answers = isinstance(do, DoAnswer) and do.option is None
    return {"option_kind": OptionKind.ANSWER} if answers else {}


def _fingerprint(command: Command) -> bytes:
    # Not pydantic's own JSON: an argument of a command line may hold half a character, which that cannot write.
    return hashlib.sha256(json.dumps(command.model_dump(mode="json"), sort_keys=True).encode()).digest()
