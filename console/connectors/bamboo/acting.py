"""What an operator does, carried out on the server, each command at most once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from console.connectors.bamboo.api import body_of, no_session, of, said
from console.connectors.bamboo.feed import Feed
from console.connectors.bamboo.requests import APPROVE, answer_body, child_body, decision_body, words_of
from console.connectors.bamboo.sending import Sending
from console.connectors.bamboo.server import Server
from console.connectors.bamboo.state import Gate, Session
from console.connectors.web.http import Answer
from console.connectors.web.reading import flag, part, text
from watchfloor.errors import ConnectionLost, Denied, StaleTarget
from watchfloor.foreign import Handled, Mirror
from watchfloor.protocol.frames import Command, DoAnswer, DoApprove, DoDelete, DoInterrupt, DoSend
from watchfloor.protocol.model import Decision, JsonObject
from watchfloor.words import OptionKind, OutcomeKind

ANOTHER: Final = "another client"
ANSWERS_S: Final = 25.0
"""The server itself waits up to 15 s for the run that asked to end."""
FINALIZING_S: Final = (1.0, 2.0, 4.0, 8.0)
"""Waits between tries while the run that asked is still ending: the server says that the answer was not taken."""
RUN_HEADER: Final = "Bamboo-Run-Id"
_RESUMES: Final = frozenset({"started", "already_running"})
_RESOLVED: Final = "permission_decision_already_resolved"


class Acting:
    """Carries out commands."""

    def __init__(self, feed: Feed, server: Server, mirror: Mirror) -> None:
        self._feed = feed
        self._server = server
        self._mirror = mirror
        self._sending = Sending(feed, server, mirror)

    async def execute(self, command: Command, by: str) -> Handled:
        session = self._feed.sessions.get(command.session)
        if session is None:
            raise StaleTarget("the server has no such session any more")
        do = command.do
        try:
            match do:
                case DoApprove():
                    return await self._approve(session, do, by)
                case DoAnswer():
                    return await self._answer(session, do, by)
                case DoSend():
                    return await self._sending.send(session, do, command, by)
                case DoInterrupt():
                    return await self._interrupt(session, command, by)
                case DoDelete():
                    return await self._delete(session)
                case _:
                    return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason="a bamboo session has no such control")
        except Denied as denied:
            # A 401 is given before anything is done.
            return Handled(OutcomeKind.NOT_PERMITTED, reason=str(denied))
        except ConnectionLost:
            self._server.read_again(session.id)
            raise

    # --- decisions

    async def _approve(self, session: Session, do: DoApprove, by: str) -> Handled:
        gate = next((gate for gate in session.gates.values() if gate.id == do.request), None)
        if gate is not None:
            return await self._approve_child(session, gate, do, by)
        pending = session.pending
        if pending is None or session.asked != do.request:
            return Handled(OutcomeKind.STALE_TARGET, reason="the session asks this no more")
        kind = OptionKind.ALLOW if do.option.startswith(("allow", APPROVE)) else OptionKind.DENY
        decision = Decision(option=do.option, kind=kind, by=by, at=self._mirror.now(), note=do.note)
        if not part(pending, "permission_request"):
            answer, tries = await self._decide(session, "respond", answer_body(pending, do.option))
            return self._responded(session, answer, decision, tries)
        try:
            body = decision_body(pending, do.option)
        except KeyError:
            return Handled(OutcomeKind.STALE_TARGET, reason="the server does not offer this any more")
        answer, tries = await self._decide(session, "permission-decisions", body)
        handled = self._permitted(session, answer, decision, tries)
        if do.note and handled.applied and handled.reason is None:
            return replace(handled, reason="decided; the server takes no reason, so the agent was not told it")
        return handled

    async def _answer(self, session: Session, do: DoAnswer, by: str) -> Handled:
        pending = session.pending
        if pending is None or session.asked != do.request:
            return Handled(OutcomeKind.STALE_TARGET, reason="the session asks this no more")
        words = words_of(do)
        if words is None:
            return Handled(OutcomeKind.INVALID, reason="nothing was answered")
        answer, tries = await self._decide(session, "respond", answer_body(pending, words))
        note = words if len(words) <= 500 else f"{words[:499]}…"
        decision = Decision(kind=OptionKind.ANSWER, by=by, at=self._mirror.now(), note=note)
        return self._responded(session, answer, decision, tries)

    async def _decide(self, session: Session, path: str, body: JsonObject) -> tuple[Answer, int]:
        """Send a decision; the answer, and how often it was sent. Only where the server says that it was not taken is
        it sent again."""
        api = self._server.api
        for tries, wait_s in enumerate(FINALIZING_S, 1):
            answer = await api.post(of(session.id, path), body, timeout_s=ANSWERS_S)
            if answer.status != 503:
                return answer, tries
            await asyncio.sleep(wait_s)
        return await api.post(of(session.id, path), body, timeout_s=ANSWERS_S), len(FINALIZING_S) + 1

    def _responded(self, session: Session, answer: Answer, decision: Decision, tries: int) -> Handled:
        """What became of an answer to `respond`."""
        words = said(answer)
        match answer.status:
            case 200:
                return self._taken(session, answer, decision)
            case 400 if words.startswith("No pending question"):
                self._feed.elsewhere(session)
                self._server.read_again(session.id)
                if tries > 1:
                    reason = "it was answered between two tries, and nothing says by whom"
                    return Handled(OutcomeKind.UNKNOWN, reason=reason)
                return Handled(OutcomeKind.ALREADY_DECIDED, reason="it has an answer already, or is asked no more")
            case 400:
                return Handled(OutcomeKind.INVALID, reason=words)
            case _:
                return self._not_taken(session, answer)

    def _permitted(self, session: Session, answer: Answer, decision: Decision, tries: int) -> Handled:
        """What became of a decision on a permission."""
        body = body_of(answer)
        match answer.status:
            case 200 if flag(body, "replayed") and tries > 1:
                # It was recorded before the server said that it had not been taken.
                return self._taken(session, answer, decision)
            case 200 if flag(body, "replayed"):
                return self._first(session, decision.option or "", answer)
            case 200:
                return self._taken(session, answer, decision)
            case 409 if text(body, "conflict") == _RESOLVED:
                return self._first(session, text(body, "current_decision", "decision") or "", answer)
            case 400:
                return Handled(OutcomeKind.INVALID, reason=said(answer))
            case 403:
                return Handled(OutcomeKind.NOT_PERMITTED, reason=said(answer))
            case _:
                return self._not_taken(session, answer)

    def _taken(self, session: Session, answer: Answer, decision: Decision) -> Handled:
        body = body_of(answer)
        resumed = part(body, "resume") or body
        run, how = text(resumed, "run_id"), text(body, "auto_resume_status") or text(resumed, "auto_resume_status")
        self._feed.decided(session, decision, run)
        info: JsonObject = {"run": run, "resume": how}
        # The server goes on by itself: nothing is executed from here.
        reason = None if how in _RESUMES or run is not None else f"taken; the run goes on: {how or 'not said'}"
        return Handled(OutcomeKind.APPLIED, reason=reason, info=info)

    def _first(self, session: Session, option: str, answer: Answer) -> Handled:
        """Somebody else was first, with this option."""
        kind = OptionKind.ALLOW if option.startswith("allow") else OptionKind.DENY if option else None
        decided = Decision(option=option or None, kind=kind, by=ANOTHER, at=self._mirror.now())
        self._feed.decided(session, decided, None)
        self._server.read_again(session.id)
        reason = f"{ANOTHER} was first: {option or said(answer)}"
        return Handled(OutcomeKind.ALREADY_DECIDED, reason=reason, decided=decided)

    def _not_taken(self, session: Session, answer: Answer) -> Handled:
        """A refusal that does not depend on what was decided."""
        self._server.read_again(session.id)
        words = said(answer)
        match answer.status:
            case 404:
                return Handled(OutcomeKind.STALE_TARGET, reason=words)
            case 409:
                return Handled(OutcomeKind.STALE_TARGET, reason=f"it asks for something else now: {words}")
            case 503:
                reason = f"not taken: {words}"
                return Handled(OutcomeKind.REFUSED, reason=reason, retry_after_s=5.0)
            case status if status >= 500:
                return Handled(OutcomeKind.UNKNOWN, reason=f"the server failed (HTTP {status}): {words}")
            case status:
                return Handled(OutcomeKind.REFUSED, reason=f"HTTP {status}: {words}")

    async def _approve_child(self, session: Session, gate: Gate, do: DoApprove, by: str) -> Handled:
        approved = do.option == APPROVE
        answer = await self._server.api.post(of(gate.child, "child-approval"), child_body(gate, approved=approved))
        if answer.status == 200 and flag(body_of(answer), "delivered") is True:
            kind = OptionKind.ALLOW if approved else OptionKind.DENY
            decision = Decision(option=do.option, kind=kind, by=by, at=self._mirror.now(), note=do.note)
            self._feed.gates.end(session, gate.request, "", decision)
            return Handled(OutcomeKind.APPLIED)
        if answer.status in (404, 409):
            self._feed.gates.end(session, gate.request, "it waits for no decision any more")
            reason = "not delivered: it was decided, ran out of time, or its child is gone"
            return Handled(OutcomeKind.STALE_TARGET, reason=reason)
        if answer.status == 400:
            return Handled(OutcomeKind.INVALID, reason=said(answer))
        return self._not_taken(session, answer)

    # --- the run, and the session

    async def _interrupt(self, session: Session, command: Command, by: str) -> Handled:
        run = command.turn or session.run
        if command.turn is not None and command.turn != session.run:
            return Handled(OutcomeKind.STALE_TARGET, reason="another run goes on, or none")
        exact = self._server.exact_stop and run is not None
        headers = {RUN_HEADER: run} if exact and run is not None else {}
        answer = await self._server.api.post(of(session.id, "stop"), {}, headers=headers)
        self._server.read_again(session.id)
        match answer.status:
            case 200:
                self._feed.interrupting(session, by)
                return Handled(OutcomeKind.APPLIED, info={"run": run, "exact": exact})
            case 404:
                return Handled(OutcomeKind.STALE_TARGET, reason=f"nothing runs: {said(answer)}")
            case 409:
                return Handled(OutcomeKind.STALE_TARGET, reason=f"another run goes on: {said(answer)}")
            case _:
                return self._not_taken(session, answer)

    async def _delete(self, session: Session) -> Handled:
        tree = self._feed.tree(session.id)
        answer = await self._server.api.ask("DELETE", of(session.id), timeout_s=ANSWERS_S)
        for id in tree:
            self._server.read_again(id)
        if answer.ok:
            return Handled(OutcomeKind.APPLIED, info={"sessions": len(tree)})
        if answer.status == 404 or no_session(answer):
            return Handled(OutcomeKind.STALE_TARGET, reason=said(answer))
        if answer.status == 401:
            raise Denied(f"{self._server.api.where} refuses this client: {said(answer)}")
        return self._not_taken(session, answer)
