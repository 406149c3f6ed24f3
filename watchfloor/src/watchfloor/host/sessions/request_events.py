"""The events that tell how a request began and ended."""

from __future__ import annotations

from watchfloor.protocol.events import RequestOpened, RequestResolved
from watchfloor.protocol.given import given
from watchfloor.protocol.lines import action_line
from watchfloor.protocol.model import RequestModel, Subject


def opened(request: RequestModel, subject: Subject, now: int) -> RequestOpened:
    """A request was asked."""
    return RequestOpened(
        at=now,
        request=subject.id,
        request_kind=subject.kind,
        digest=request.digest,
        text=request_line(subject, request.about),
    )


def ended(request: RequestModel, id: str, now: int, why: str | None) -> RequestResolved:
    """A request is no longer open: by its decision where it has one, else for this reason."""
    decision = request.decision
    rest = given(why=why)
    if decision is not None:
        rest |= given(option=decision.option, option_kind=decision.kind, by=decision.by, note=decision.note)
    return RequestResolved(at=now, request=id, state=request.state, **rest)


def request_line(subject: Subject, about: str | None) -> str:
    """What is asked, in one line: the exact action where there is one, else what the agent says about it."""
    if subject.actions:
        action = subject.actions[0]
        rest = f" (and {len(subject.actions) - 1} more)" if len(subject.actions) > 1 else ""
        return f"{action.tool}  {action_line(action.text, action.arguments)}".strip() + rest
    return about or ", ".join(field.label or field.name for field in subject.fields) or subject.kind.value
