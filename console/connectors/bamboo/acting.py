"""What an operator does, carried out on the server, each command at most once."""

from __future__ import annotations

from typing import Final

from console.connectors.bamboo.api import no_session, of, said
from console.connectors.bamboo.deciding import ANSWERS_S, Deciding
from console.connectors.bamboo.feed import Feed
from console.connectors.bamboo.sending import Sending
from console.connectors.bamboo.server import Server
from console.connectors.bamboo.state import Session
from console.connectors.web.http import Answer
from watchfloor.errors import ConnectionLost, Denied, StaleTarget
from watchfloor.foreign import Handled, Mirror
from watchfloor.protocol.frames import Command, DoAnswer, DoApprove, DoDelete, DoInterrupt, DoSend
from watchfloor.words import OutcomeKind

RUN_HEADER: Final = "Bamboo-Run-Id"


class Acting:
    """Carries out commands."""

    def __init__(self, feed: Feed, server: Server, mirror: Mirror) -> None:
        self._feed = feed
        self._server = server
        self._mirror = mirror
        self._sending = Sending(feed, server, mirror)
        self._deciding = Deciding(feed, server, mirror, self._sending)

    async def execute(self, command: Command, by: str) -> Handled:
        session = self._feed.sessions.get(command.session)
        if session is None:
            raise StaleTarget("the server has no such session any more")
        do = command.do
        try:
            match do:
                case DoApprove():
                    return await self._deciding.approve(session, do, command, by)
                case DoAnswer():
                    return await self._deciding.answer(session, do, by)
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
                return _refused(answer)

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
        return _refused(answer)


def _refused(answer: Answer) -> Handled:
    words = said(answer)
    if answer.status in (429, 503):
        return Handled(OutcomeKind.REFUSED, reason=f"not taken: {words}", retry_after_s=5.0)
    if answer.status >= 500:
        return Handled(OutcomeKind.UNKNOWN, reason=f"the server failed (HTTP {answer.status}): {words}")
    return Handled(OutcomeKind.REFUSED, reason=f"HTTP {answer.status}: {words}")
