"""An answer to what a suspended run has asked: checked, recorded, and stored with all that follows from it at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from watchfloor.agent.permissions import Grant, granted
from watchfloor.agent.session import DEFAULT_MODE, PLAN_MODE, Session
from watchfloor.agent.tools import ENTER_PLAN, LEAVE_PLAN
from watchfloor.errors import InvalidResponse
from watchfloor.harness.base import Decided
from watchfloor.host.sessions.answers import takes_text
from watchfloor.host.sessions.kept import KeptAnswers
from watchfloor.host.sessions.requests import Rejected, Requests, Taken
from watchfloor.protocol.frames import DoAnswer, DoApprove
from watchfloor.protocol.model import RequestModel, Subject
from watchfloor.words import OptionKind, RequestKind


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: an option by its id, words, or the fields of a form. `note` goes with an approval."""

    option: str | None = None
    text: str | None = field(default=None, repr=False)
    fields: dict[str, Any] | None = field(default=None, repr=False)
    note: str | None = None
    by: str = "user"


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """What became of an answer.

    `grants`: what it allows from now on beyond the one call. `plan_mode`: the permission mode that it brought; None
    where it changed none.
    """

    session: Session
    request: RequestModel
    grants: tuple[Grant, ...] = ()
    plan_mode: str | None = None


def answer(session: Session, response: Response | str, now: int) -> AnswerOutcome:
    """Take the answer into the session; nothing is saved yet. Raises InvalidResponse, and changes nothing then."""
    pending = session.pending
    assert pending is not None  # noqa: S101 - whoever calls has looked
    subject = pending.read()
    requests = Requests(session.id)
    requests.put_back([pending])
    given = response if isinstance(response, Response) else read(subject, response)
    taken = _decide(requests, pending, subject, given, now)
    kept = KeptAnswers()
    kept.put_back(session.answers)
    decided = Decided(
        subject.id,
        taken.decision.option,
        taken.kind,
        taken.decision.by,
        taken.decision.note if taken.kind is not OptionKind.ANSWER else None,
        taken.text,
        taken.fields,
    )
    kept.keep(pending, decided)
    session.answers = kept.answers()
    turn = f"t{session.turns}"
    grants = granted(subject, taken.option, turn=turn, workspace=session.cwd)
    session.grants += [grant for grant in grants if grant.session is not None]
    session.pending = None
    return AnswerOutcome(session, taken.request, tuple(grants), plan_mode(session, subject, taken.kind))


def plan_mode(session: Session, subject: Subject, kind: OptionKind) -> str | None:
    """Enter or leave plan mode, where that was what was asked and it was allowed; returns the new mode."""
    tools = {action.tool for action in subject.actions}
    if kind is not OptionKind.ALLOW:
        return None
    if ENTER_PLAN in tools and session.mode != PLAN_MODE:
        session.mode, session.mode_before = PLAN_MODE, session.mode
        return session.mode
    if LEAVE_PLAN in tools and session.mode == PLAN_MODE:
        session.mode, session.mode_before = session.mode_before or DEFAULT_MODE, None
        return session.mode
    return None


def read(subject: Subject, words: str) -> Response:
    """What a plain text answers: an option by its id or label, or in words. Raises InvalidResponse."""
    ids = [option.id for option in subject.options if option.id == words]
    found = ids or [option.id for option in subject.options if option.label == words]
    if len(found) == 1:
        return Response(option=found[0])
    if subject.kind is RequestKind.QUESTION and takes_text(subject):
        return Response(text=words)
    raise InvalidResponse(f"that is no option of this request: {_options(subject)}")


def command(subject: Subject, digest: str, given: Response) -> DoApprove | DoAnswer:
    """The decision as a host takes it. Raises InvalidResponse."""
    if subject.kind is RequestKind.APPROVAL:
        if given.option is None:
            raise InvalidResponse(f"an approval is decided by an option: {_options(subject)}")
        return DoApprove(request=subject.id, option=given.option, digest=digest, note=given.note)
    return DoAnswer(request=subject.id, digest=digest, option=given.option, text=given.text, fields=given.fields)


def _decide(requests: Requests, pending: RequestModel, subject: Subject, given: Response, now: int) -> Taken:
    do = command(subject, pending.digest, given)
    done = requests.approve(do, given.by, now) if isinstance(do, DoApprove) else requests.answer(do, given.by, now)
    if isinstance(done, Rejected):
        raise InvalidResponse(f"{done.reason}; the options: {_options(subject)}")
    return done


def _options(subject: Subject) -> str:
    return ", ".join(f"{option.id} ({option.label})" for option in subject.options) or "none, answer in words"
