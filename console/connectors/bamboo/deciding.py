"""Decisions on what sessions ask, each sent at most once, and what is known of them afterwards."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from console.connectors.bamboo.api import body_of, of, said
from console.connectors.bamboo.asking import ANOTHER
from console.connectors.bamboo.feed import Feed
from console.connectors.bamboo.history import Choice, choice_of
from console.connectors.bamboo.requests import (
    APPROVE,
    answer_body,
    child_body,
    decision_body,
    source_id,
    words_of,
)
from console.connectors.bamboo.sending import Sending
from console.connectors.bamboo.server import Server
from console.connectors.bamboo.state import Gate, Session
from console.connectors.web.http import Answer
from console.connectors.web.reading import Json, flag, part, text
from watchfloor.errors import ConnectionLost, Denied, Unreachable, WatchfloorError
from watchfloor.foreign import Handled, Mirror
from watchfloor.protocol.frames import Command, DoAnswer, DoApprove, DoSend
from watchfloor.protocol.model import Decision, JsonObject
from watchfloor.words import OptionKind, OutcomeKind

ANSWERS_S: Final = 25.0
"""The server itself waits up to 15 s for the run that asked to end."""
FINALIZING_S: Final = (1.0, 2.0, 4.0, 8.0)
"""Waits between tries while the run that asked is still ending: the server says that the answer was not taken."""
_RESUMES: Final = frozenset({"started", "already_running"})
_RESOLVED: Final = "permission_decision_already_resolved"
_NOT_TOLD: Final = "the agent was not told why"


class Deciding:
    """Approves, denies and answers."""

    def __init__(self, feed: Feed, server: Server, mirror: Mirror, sending: Sending) -> None:
        self._feed = feed
        self._server = server
        self._mirror = mirror
        self._sending = sending

    async def approve(self, session: Session, do: DoApprove, command: Command, by: str) -> Handled:
        gate = next((gate for gate in session.gates.values() if gate.id == do.request), None)
        if gate is not None:
            handled = await self._approve_child(session, gate, do, by)
        elif session.pending is None or session.asked != do.request:
            return Handled(OutcomeKind.STALE_TARGET, reason="the session asks this no more")
        else:
            handled = await self._permit(session, session.pending, do, by)
        if do.note and handled.applied:
            return await self._with_why(session, handled, do, command, by)
        return handled

    async def answer(self, session: Session, do: DoAnswer, by: str) -> Handled:
        pending = session.pending
        if pending is None or session.asked != do.request:
            return Handled(OutcomeKind.STALE_TARGET, reason="the session asks this no more")
        words = words_of(do)
        if words is None:
            return Handled(OutcomeKind.INVALID, reason="nothing was answered")
        note = words if len(words) <= 500 else f"{words[:499]}…"
        decision = Decision(kind=OptionKind.ANSWER, by=by, at=self._mirror.now(), note=note)
        return await self._respond(session, pending, words, decision)

    async def _permit(self, session: Session, pending: Json, do: DoApprove, by: str) -> Handled:
        kind = OptionKind.ALLOW if do.option.startswith(("allow", APPROVE)) else OptionKind.DENY
        decision = Decision(option=do.option, kind=kind, by=by, at=self._mirror.now(), note=do.note)
        if not part(pending, "permission_request"):
            return await self._respond(session, pending, do.option, decision)
        try:
            body = decision_body(pending, do.option)
        except KeyError:
            return Handled(OutcomeKind.STALE_TARGET, reason="the server does not offer this any more")
        with self._feed.asking.decided_here(session):
            answer, tries = await self._send(session, pending, "permission-decisions", body, do.option)
            return self._permitted(session, answer, decision, tries)

    async def _respond(self, session: Session, pending: Json, words: str, decision: Decision) -> Handled:
        with self._feed.asking.decided_here(session):
            answer, tries = await self._send(session, pending, "respond", answer_body(pending, words), words)
            if answer.status == 400 and said(answer).startswith("No pending question"):
                return await self._answered_before(session, pending, tries)
            match answer.status:
                case 200:
                    return self._taken(session, answer, decision)
                case 400:
                    return Handled(OutcomeKind.INVALID, reason=said(answer))
                case _:
                    return self._not_taken(session, answer)

    async def _send(
        self, session: Session, pending: Json, path: str, body: JsonObject, chosen: str
    ) -> tuple[Answer, int]:
        """Send a decision; the answer, and how often it was sent. Only where the server says that it was not taken is
        it sent again."""
        tries, unsure = 0, False
        try:
            for wait_s in (*FINALIZING_S, None):
                tries, unsure = tries + 1, True
                answer = await self._server.api.post(of(session.id, path), body, timeout_s=ANSWERS_S)
                # A server may have recorded what it says that it has not taken.
                unsure = answer.status >= 500
                if answer.status != 503 or wait_s is None:
                    return answer, tries
                await asyncio.sleep(wait_s)
            raise AssertionError("the last try returns")
        except (Unreachable, Denied):
            # This try at least did not arrive, or was not let in.
            unsure = False
            raise
        finally:
            if unsure or tries > 1:
                session.unsure.setdefault(source_id(pending), set()).add(chosen)

    # --- what became of it

    async def _answered_before(self, session: Session, pending: Json, tries: int) -> Handled:
        choice = await self._server.choice(session, pending)
        decided = self._feed.elsewhere(session, choice)
        if decided is not None and choice is not None:
            return Handled(OutcomeKind.ALREADY_DECIDED, reason=_first_was(choice), decided=decided)
        if tries > 1 or choice is not None:
            reason = "it was answered between two tries, and nothing says by whom"
            return Handled(OutcomeKind.UNKNOWN, reason=reason)
        return Handled(OutcomeKind.ALREADY_DECIDED, reason="it has an answer already, or is asked no more")

    def _permitted(self, session: Session, answer: Answer, decision: Decision, tries: int) -> Handled:
        """What became of a decision on a permission."""
        body = body_of(answer)
        match answer.status:
            case 200 if flag(body, "replayed") and tries > 1:
                # It was recorded before the server said that it had not been taken.
                return self._taken(session, answer, decision)
            case 200 if flag(body, "replayed"):
                return self._resolved(session, part(body, "receipt", "decision"), answer)
            case 200:
                return self._taken(session, answer, decision)
            case 409 if text(body, "conflict") == _RESOLVED:
                return self._resolved(session, part(body, "current_decision"), answer)
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

    def _resolved(self, session: Session, made: Json, answer: Answer) -> Handled:
        """It had this decision already."""
        choice = choice_of(made, None)
        decided = self._feed.elsewhere(session, choice)
        if choice is None:
            return Handled(OutcomeKind.ALREADY_DECIDED, reason=said(answer))
        if decided is None:
            reason = f"it is decided: {choice.chosen}, by an earlier try from here or by {ANOTHER}"
            return Handled(OutcomeKind.ALREADY_DECIDED, reason=reason)
        return Handled(OutcomeKind.ALREADY_DECIDED, reason=_first_was(choice), decided=decided)

    def _not_taken(self, session: Session, answer: Answer) -> Handled:
        """A refusal that does not depend on what was decided."""
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

    # --- of children

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
        self._server.read_again(session.id)
        return self._not_taken(session, answer)

    # --- why

    async def _with_why(self, session: Session, handled: Handled, do: DoApprove, command: Command, by: str) -> Handled:
        """No decision of the server's takes a reason: the run that goes on is told it in a message."""
        if not session.running:
            return replace(handled, reason=f"{_NOT_TOLD}: its run is over")
        try:
            told = await self._sending.guide(session, DoSend(text=do.note or ""), command, by)
        except ConnectionLost as lost:
            return replace(handled, reason=f"whether the agent was told why is not known: {lost}")
        except WatchfloorError as fault:
            return replace(handled, reason=f"{_NOT_TOLD}: {fault}")
        if told is None:
            return replace(handled, reason=f"{_NOT_TOLD}: this server takes no message for a run that goes on")
        return handled if told.applied else replace(handled, reason=f"{_NOT_TOLD}: {told.reason}")


def _first_was(choice: Choice) -> str:
    words = choice.chosen if len(choice.chosen) <= 200 else f"{choice.chosen[:199]}…"
    return f"{ANOTHER} was first: {words}"
