"""A message to a session: stored, and then run; or given to the run that goes on."""

from __future__ import annotations

import hashlib
from typing import Final

from console.connectors.bamboo.api import body_of, no_session, of, said
from console.connectors.bamboo.feed import Feed
from console.connectors.bamboo.server import Server
from console.connectors.bamboo.state import WAITS_FOR_CHILDREN, Session, shown
from console.connectors.web.http import Answer
from console.connectors.web.reading import text
from watchfloor.errors import ConnectionLost, Denied, WatchfloorError
from watchfloor.foreign import Handled, Mirror
from watchfloor.protocol.events import Level, Mail, MailState, Notice
from watchfloor.protocol.frames import Command, DoSend
from watchfloor.protocol.model import JsonObject
from watchfloor.words import Delivery, OutcomeKind, Priority

STARTS_S: Final = 8.0
"""Seconds in which a run has to begin that the server does not announce: newer ones take up what is stored."""
_CHAT: Final = "/api/v1/chat"


class Sending:
    def __init__(self, feed: Feed, server: Server, mirror: Mirror) -> None:
        self._feed = feed
        self._server = server
        self._mirror = mirror

    async def send(self, session: Session, do: DoSend, command: Command, by: str) -> Handled:
        if not do.text.strip():
            return Handled(OutcomeKind.INVALID, reason="the message is empty")
        # A message to a session that is not there would make one.
        if await self._server.api.find(of(session.id)) is None:
            self._server.read_again(session.id)
            return Handled(OutcomeKind.STALE_TARGET, reason="the server has no such session any more")
        waits = shown(session, self._mirror.now()).native == WAITS_FOR_CHILDREN
        if session.pending is None and (session.running or waits or do.priority is Priority.QUEUE):
            handled = await self.guide(session, do, command, by)
            if handled is not None:
                return handled
        return await self._store(session, do, command, by)

    # --- to a run

    async def guide(self, session: Session, do: DoSend, command: Command, by: str) -> Handled | None:
        """Give the message to the run that goes on; None where the server knows no such thing."""
        later = do.priority is Priority.QUEUE
        body: JsonObject = {"id": command.id, "text": do.text, "mode": "after_run" if later else "after_round"}
        self._begin(session, command.id, do.text)
        try:
            answer = await self._server.api.post(of(session.id, "guidance"), body)
        except BaseException:
            self._drop(session, command.id)
            raise
        if not answer.ok:
            self._drop(session, command.id)
        match answer.status:
            case 202 | 200:
                how = Delivery.QUEUED if later else Delivery.STEERED
                ref = self._sent(session, command.id, how, do.text, by)
                return Handled(OutcomeKind.APPLIED, info={"ref": ref, "delivery": how.value})
            case 404 | 405 if not no_session(answer):
                return None
            case 429 | 503:
                reason = f"not taken: {said(answer)}"
                return Handled(OutcomeKind.REFUSED, reason=reason, retry_after_s=5.0)
            case _:
                return _refused(answer)

    # --- to the conversation

    async def _store(self, session: Session, do: DoSend, command: Command, by: str) -> Handled:
        api = self._server.api
        before = session.run
        # Older servers tell of it under an id that they have not said yet.
        self._begin(session, command.id, do.text)
        body: JsonObject = {"session_id": session.id, "message": do.text}
        try:
            stored = await api.post(_CHAT, body, headers=_once(command, "chat"))
        except BaseException:
            self._drop(session, command.id)
            raise
        if not stored.ok:
            self._drop(session, command.id)
            return _refused(stored)
        id = text(body_of(stored), "message_id") or command.id
        session.refs[id] = session.ref(command.id)
        taken = self._drop(session, command.id)
        self._begin(session, id, do.text, taken=taken)
        if session.pending is not None:
            ref = self._sent(session, id, Delivery.QUEUED, do.text, by)
            reason = "stored: it is read after what is asked has been decided"
            return Handled(OutcomeKind.APPLIED, reason=reason, info={"ref": ref, "delivery": "queued"})
        try:
            answer = await api.post(of(session.id, "execute"), {}, headers=_once(command, "run"))
        except Denied as denied:
            return self._not_started(session, id, do, by, str(denied))
        except WatchfloorError as fault:
            ref = self._sent(session, id, Delivery.QUEUED, do.text, by)
            info: JsonObject = {"ref": ref, "stored": True}
            self._server.read_again(session.id)
            if not isinstance(fault, ConnectionLost):
                return self._not_started(session, id, do, by, str(fault))
            return Handled(OutcomeKind.UNKNOWN, reason=f"stored; whether it runs is not known: {fault}", info=info)
        return await self._ran(session, do, by, id, answer, before)

    async def _ran(self, session: Session, do: DoSend, by: str, id: str, answer: Answer, before: str | None) -> Handled:
        body = body_of(answer)
        if not answer.ok:
            return self._not_started(session, id, do, by, said(answer))
        run, status = text(body, "run_id"), text(body, "status")
        if status == "started" or (status == "already_running" and before is None):
            return self._started(session, id, do, by, run)
        if status == "already_running":
            ref = self._sent(session, id, Delivery.QUEUED, do.text, by)
            return Handled(OutcomeKind.APPLIED, info={"ref": ref, "delivery": "queued", "turn": run})
        # "completed": nothing was left to run. A newer server has begun by itself, or is about to.
        if await self._begins(session, before):
            return self._started(session, id, do, by, session.run)
        return self._not_started(session, id, do, by, f"the server says that nothing is left to run ({status or '?'})")

    async def _begins(self, session: Session, before: str | None) -> bool:
        return await self._server.until(lambda: session.run is not None and session.run != before, STARTS_S)

    def _started(self, session: Session, id: str, do: DoSend, by: str, run: str | None) -> Handled:
        ref = self._sent(session, id, Delivery.STARTED, do.text, by)
        self._feed.taken_up(session, id)
        return Handled(OutcomeKind.APPLIED, info={"ref": ref, "delivery": "started", "turn": run})

    def _not_started(self, session: Session, id: str, do: DoSend, by: str, why: str) -> Handled:
        """The message is in the conversation, and no run reads it: that is said as such."""
        ref = self._sent(session, id, Delivery.QUEUED, do.text, by)
        words = f"stored, not started: {why}"
        self._mirror.emit(session.id, Notice(at=0, level=Level.WARNING, code="stored_not_started", text=words))
        info: JsonObject = {"ref": ref, "delivery": "queued", "stored": True, "started": False}
        return Handled(OutcomeKind.APPLIED, reason=words, info=info)

    def _sent(self, session: Session, id: str, how: Delivery, said: str, by: str) -> str:
        ref = session.ref(id)
        mail = Mail(at=0, ref=ref, state=MailState.SENT, delivery=how, text=said, by=by, key=f"mail/{id}/sent")
        self._mirror.emit(session.id, mail)
        if session.sending.pop(id, False):
            self._feed.taken_up(session, id)
        return ref

    def _begin(self, session: Session, id: str, said: str, *, taken: bool = False) -> None:
        """A message is on its way: a run may take it up before the server has answered."""
        session.ref(id)
        session.sending[id] = taken
        session.unread_mail[id] = said

    def _drop(self, session: Session, id: str) -> bool:
        """It is not, under this id. Returns whether a run was seen to take it up."""
        session.unread_mail.pop(id, None)
        return session.sending.pop(id, False)


def _once(command: Command, what: str) -> dict[str, str]:
    """The mark by which the server knows a request again: of few characters, where a command's id is of any."""
    mark = hashlib.sha256(command.id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return {"idempotency-key": f"watchfloor:{what}:{mark}"}


def _refused(answer: Answer) -> Handled:
    """The message was not stored."""
    words = said(answer)
    if no_session(answer) or answer.status == 404:
        return Handled(OutcomeKind.STALE_TARGET, reason=words)
    if answer.status in (429, 503):
        return Handled(OutcomeKind.REFUSED, reason=words, retry_after_s=5.0)
    if answer.status >= 500:
        return Handled(OutcomeKind.UNKNOWN, reason=f"the server failed (HTTP {answer.status}): {words}")
    return Handled(OutcomeKind.INVALID if answer.status in (400, 413, 422) else OutcomeKind.REFUSED, reason=words)
