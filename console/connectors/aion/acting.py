"""What an operator does, carried out on the server. Each of it is sent once, whatever becomes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from console.connectors.aion import offers
from console.connectors.aion.approvals import DECISIONS
from console.connectors.aion.feed import Feed, Session
from console.connectors.aion.history import Workflow
from console.connectors.aion.interventions import intervention, outcome, stale
from console.connectors.aion.reading import text
from console.connectors.aion.server import Refused, Server
from watchfloor.errors import ConnectionFailed, Denied, NotAHost
from watchfloor.foreign import Handled, Mirror
from watchfloor.protocol.frames import Command, DoAct, DoApprove, DoStop
from watchfloor.protocol.model import Decision
from watchfloor.words import OptionKind, OutcomeKind

UNANSWERED: Final = "worker dispatch failed"
"""What the server says of a worker that did not answer within 30 s."""
UNANSWERED_S: Final = 25.0
"""A failure after this long is one of a worker that did not answer, whatever its words."""
PATIENCE_S: Final = 3.0
"""An intervention that takes longer holds up every other one of its worker."""
_PRIMITIVE_OF: Final = {
    "send": offers.INJECT,
    "stop": offers.CANCEL,
    "pause": offers.PAUSE,
    "resume": offers.PAUSE,
    "budget": offers.BUDGET,
    "approve": offers.APPROVAL,
}
_KINDS: Final = {
    "namespace_denied": OutcomeKind.NOT_PERMITTED,
    "deploy_denied": OutcomeKind.NOT_PERMITTED,
    "grant_denied": OutcomeKind.NOT_PERMITTED,
    "not_found": OutcomeKind.STALE_TARGET,
    "not_running": OutcomeKind.STALE_TARGET,
    "invalid_input": OutcomeKind.INVALID,
    "invalid_state": OutcomeKind.INVALID,
    "unknown_query": OutcomeKind.INVALID,
    "not_owner": OutcomeKind.REFUSED,
    "sequence_conflict": OutcomeKind.REFUSED,
    "version_pinned": OutcomeKind.REFUSED,
    "lagged": OutcomeKind.REFUSED,
}


class Acting:
    """`reread` reads again which attempts of a workflow live."""

    def __init__(
        self,
        feed: Feed,
        mirror: Mirror,
        server: Callable[[], Server],
        reread: Callable[[Workflow], Awaitable[None]],
        patience_s: float = PATIENCE_S,
        unanswered_s: float = UNANSWERED_S,
    ) -> None:
        self._feed, self._mirror, self._server, self._reread = feed, mirror, server, reread
        self._patience_s, self._unanswered_s = patience_s, unanswered_s
        self._waiting: dict[tuple[str, str], list[float]] = {}
        """Since when interventions wait for their workers, by the event loop's clock."""

    async def execute(self, command: Command, by: str) -> Handled:
        try:
            if (workflow := self._feed.workflows.get(command.session)) is not None:
                return await self._on_workflow(workflow, command)
            if (session := self._feed.sessions.get(command.session)) is not None:
                if isinstance(command.do, DoAct):
                    return await self._act(session, command, command.do.act, by)
                return await self._intervene(session, command, by)
        except Refused as refused:
            return refusal(refused)
        except Denied as denied:
            return Handled(OutcomeKind.NOT_PERMITTED, reason=str(denied))
        except NotAHost as fault:
            # Something answered, so something arrived: what became of it nobody can tell.
            return Handled(OutcomeKind.UNKNOWN, reason=str(fault))
        return Handled(OutcomeKind.STALE_TARGET, reason="the session is there no more")

    # --- workflows

    async def _on_workflow(self, workflow: Workflow, command: Command) -> Handled:
        do, server = command.do, self._server()
        if not isinstance(do, DoAct):
            return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason="a workflow takes acts only")
        match do.act:
            case offers.CANCEL_WORKFLOW:
                await server.cancel(workflow.namespace, workflow.id, str(do.fields.get("reason") or "cancelled"))
                at_work = len(self._feed.live.get(workflow.key, {}))
                left = f"{at_work} of its agents may still be at work: cancel each of them" if at_work else None
                return Handled(OutcomeKind.APPLIED, reason=left)
            case offers.SIGNAL:
                return await self._signal(server, workflow, do)
            case offers.REOPEN:
                await server.reopen(workflow.namespace, workflow.id)
                return Handled(OutcomeKind.APPLIED)
            case _:
                return Handled(OutcomeKind.INVALID, reason="no such act")

    async def _signal(self, server: Server, workflow: Workflow, do: DoAct) -> Handled:
        name, written = do.fields.get("name"), do.fields.get("payload")
        if not isinstance(name, str) or not name:
            return Handled(OutcomeKind.INVALID, reason="a signal needs its name")
        payload: JsonValue = None
        if isinstance(written, str) and written.strip():
            try:
                payload = json.loads(written)
            except ValueError:
                return Handled(OutcomeKind.INVALID, reason="the payload is no JSON: a text needs its quotes")
        await server.signal(workflow.namespace, workflow.id, name, payload)
        return Handled(OutcomeKind.APPLIED)

    async def _act(self, session: Session, command: Command, act: str, by: str) -> Handled:
        if act == offers.RESTART_WORKER:
            return await self._restart(session)
        number = act.removeprefix(offers.CANCEL_ATTEMPT)
        if number == act or not number.isdecimal():
            return Handled(OutcomeKind.INVALID, reason="no such act")
        cancel = command.model_copy(update={"attempt": int(number), "do": DoStop()})
        return await self._intervene(session, cancel, by)

    async def _restart(self, session: Session) -> Handled:
        _, worker = self._feed.worker_of(session)
        if not worker:
            return Handled(OutcomeKind.INVALID, reason="no worker is known to hold it")
        await self._server().restart_worker(worker)
        return Handled(OutcomeKind.APPLIED, reason="its agents begin again, each under its attempt's number")

    # --- agents

    async def _intervene(self, session: Session, command: Command, by: str) -> Handled:
        do, latest = command.do, session.latest
        attempt = command.attempt if command.attempt is not None else latest.number if latest is not None else 0
        request = do.request if isinstance(do, DoApprove) else ""
        kind = intervention(do, session.open.get(request, ("", 0))[0])
        if kind is None:
            if request:
                return Handled(OutcomeKind.STALE_TARGET, reason="the agent asks this no more")
            return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason=f"aion has no {do.primitive}")
        worker = self._feed.worker_of(session)
        now = asyncio.get_running_loop().time()
        # Where the server does not say who runs what, nothing is known of the worker's other agents.
        waiting = self._waiting.setdefault(worker if worker[1] else (session.id, ""), [])
        if any(now - since > self._patience_s for since in waiting):
            reason = f"{worker[1] or 'its worker'} has not answered the intervention before this one: wait for that"
            return Handled(OutcomeKind.REFUSED, reason=reason)
        waiting.append(now)
        if request:
            self._feed.deciding(request)
        decision: Decision | None = None
        try:
            answer = await self._server().intervene(session.axes(attempt), kind)
            handled = await self._answered(session, attempt, command, answer)
            if isinstance(do, DoApprove) and handled.applied:
                decision = self._decision(do, by)
            return handled
        except Refused as refused:
            took_s = asyncio.get_running_loop().time() - now
            return await self._unanswered(worker, refused, took_s) or refusal(refused)
        finally:
            waiting.remove(now)
            if request:
                self._feed.decided(session, request, decision)

    async def _unanswered(self, worker: tuple[str, str], refused: Refused, took_s: float) -> Handled | None:
        """The outcome where the worker, which answers for the agent, gave no answer; None where it is another failure.

        The server has one message for it, and whoever changes that cannot change how long it waits.
        """
        failed = refused.status >= 500 and refused.status != 503
        if not failed or (str(refused) != UNANSWERED and took_s <= self._unanswered_s):
            return None
        reason = "the agent gave no answer, so it may have been done or not; do not repeat it"
        if not worker[1]:
            return Handled(OutcomeKind.UNKNOWN, reason=reason)
        why = f"{worker[1]} answers no intervention any more, on any of its agents: {await self._way_out(worker[1])}"
        self._feed.wedge(worker, why)
        return Handled(OutcomeKind.UNKNOWN, reason=f"{reason}. {why}")

    async def _way_out(self, worker: str) -> str:
        """How to have the worker answer again. The server restarts those that it runs itself."""
        try:
            self._feed.workers.managed = frozenset(text(row.get("name")) for row in await self._server().managed())
        except (ConnectionFailed, Refused):
            self._feed.workers.managed = frozenset({worker})
        if worker not in self._feed.workers.managed:
            return "restart it where it runs, for the server does not run it"
        if self._feed.deploys:
            return "restart it, which this session offers"
        return f"let somebody who may deploy restart it, by POST /workers/managed/{quote(worker, safe='')}/restart"

    async def _answered(self, session: Session, attempt: int, command: Command, answer: object) -> Handled:
        kind, words = outcome(answer)
        if kind is OutcomeKind.STALE_TARGET:
            try:
                await self._reread(session.workflow)
            except (ConnectionFailed, Refused) as failed:
                return Handled(kind, reason=f"{words} (whether it lives could not be read again: {failed})")
            return stale(words, alive=self._feed.alive(session, attempt))
        if kind is OutcomeKind.CAPABILITY_NOT_SUPPORTED:
            self._feed.refuse(session, attempt, _PRIMITIVE_OF.get(command.do.primitive, ""))
            return Handled(kind, reason=words)
        return Handled(kind, info={"attempt": attempt})

    def _decision(self, do: DoApprove, by: str) -> Decision:
        option = OptionKind.ALLOW if DECISIONS[do.option] == "Approve" else OptionKind.DENY
        return Decision(option=do.option, kind=option, by=by, at=self._mirror.now(), note=do.note)


def refusal(refused: Refused) -> Handled:
    """What the server's own refusal means: nothing was done, but for a failure inside it."""
    if refused.status >= 500 and refused.status != 503:
        return Handled(OutcomeKind.UNKNOWN, reason=f"the server failed ({refused}): it may have been done or not")
    if refused.status == 503:
        return Handled(OutcomeKind.REFUSED, reason=f"the server is stopping ({refused})")
    kind = _KINDS.get(refused.code)
    if kind is None:
        kind = OutcomeKind.INVALID if refused.status in (400, 415, 422) else OutcomeKind.REFUSED
    return Handled(kind, reason=str(refused))
