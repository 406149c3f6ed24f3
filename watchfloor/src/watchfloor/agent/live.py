"""Live agents of a recipe: spawned on a host, and answered there."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from watchfloor.agent.answers import AnswerOutcome, Response, command, plan_mode, read
from watchfloor.agent.permissions import granted
from watchfloor.agent.session import Session
from watchfloor.errors import InvalidResponse, NotSuspended
from watchfloor.harness.base import AgentHarness
from watchfloor.host.serving.live import LiveAgent
from watchfloor.host.serving.server import Host

if TYPE_CHECKING:
    from watchfloor.agent.runtime import Runtime


def spawn(runtime: Runtime, host: Host, harness: AgentHarness, session: Session, name: str | None) -> LiveAgent:
    """A live agent that begins with what the session remembers.

    The record of one that lived on a host which has ended keeps its handle: it comes back as that host's log has it.
    """
    again = session.live and session.id not in host.core.roster
    record = session if again else session.branch(f"agent-{secrets.token_hex(8)}")
    record.live = True
    record.name = name or record.name or "agent"
    host.add(
        harness,
        name=record.name,
        id=record.id,
        cwd=record.cwd,
        labels=record.labels,
        messages=record.messages,
        model=record.model,
        start=False,
    )
    runtime.runs.sessions.save(record)
    runtime.runs.active.hosts[record.id] = host
    for grant in record.grants:
        runtime.permissions.grant(grant)
    return LiveAgent(host, record.id)


def hosted_answer(host: Host, session: Session, response: Response | str) -> AnswerOutcome:
    """Answer the oldest request of a live agent. Raises NotSuspended, InvalidResponse."""
    core = host.core.session(session.id)
    asked = core.requests.open()
    if not asked:
        raise NotSuspended(f"{session.id!r} waits for no answer: it is {core.lifecycle.value}")
    request = asked[0]
    subject = request.read()
    given = response if isinstance(response, Response) else read(subject, response)
    handled = host.command(session.id, command(subject, request.digest, given), by=given.by)
    if not handled.applied:
        raise InvalidResponse(handled.reason or handled.outcome.value)
    option = core.requests.option(subject.id, given.option)
    grants = granted(subject, option, turn=core.turn or "", workspace=session.cwd)
    ended = core.requests.ended(subject.id) or request
    kind = option.kind if option is not None else None
    mode = plan_mode(session.copy(), subject, kind) if kind is not None else None
    return AnswerOutcome(session, ended, tuple(grants), mode)
