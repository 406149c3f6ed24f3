"""A decision or an answer, sent, and what became of it: nobody but the thread tells that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from console.connectors.codex.asking import ELSEWHERE, Asking
from console.connectors.codex.decisions import kind_of, provable, result_of, runs_in_silence, stood
from console.connectors.codex.requests import COMMAND, Asked
from console.connectors.codex.rpc import CallRefused, Rpc
from console.connectors.codex.state import Fate, Thread
from console.connectors.web.reading import Json, text
from watchfloor.errors import ConnectionFailed
from watchfloor.foreign import Handled, Mirror
from watchfloor.protocol.frames import DoAnswer, DoApprove
from watchfloor.protocol.model import Decision, JsonObject
from watchfloor.words import OptionKind, OutcomeKind, RequestState

RESOLVED_S: Final = 10.0
"""Seconds that the server may take to take up an answer."""
PROOF_S: Final = 10.0
"""Seconds after that in which the thread must show whose answer counted."""
REFUSED_S: Final = 3.0
"""Seconds after which a tool of an MCP server that was refused would have ended: the server does that at once."""
ASK_AGAIN_S: Final = 0.3
"""Between two looks for the command that was allowed."""
_APPLIED: Final = OutcomeKind.APPLIED
_NOT_SHOWN: Final = "the server does not show whose answer it took"
_NOT_REFUSED: Final = "the call goes on: the server does not show whose answer it took, and would have ended it at once"


class Server(Protocol):
    """What is needed of the connection."""

    @property
    def rpc(self) -> Rpc: ...

    async def processes(self, thread: Thread) -> list[Json]: ...

    async def moved(self) -> None: ...


async def until(server: Server, met: Callable[[], bool], within_s: float) -> bool:
    """Wait for something that the server tells."""
    try:
        async with asyncio.timeout(within_s):
            while not met():
                await server.moved()
    except TimeoutError:
        return met()
    return True


class Deciding:
    """Answers the server's requests, each at most once.

    `show` tells the roster of a thread; `tell_why` tells its agent why something was denied, and who says so.
    """

    def __init__(
        self,
        asking: Asking,
        server: Server,
        mirror: Mirror,
        show: Callable[[Thread], None],
        tell_why: Callable[[Thread, str, str], Awaitable[None]],
    ) -> None:
        self._asking = asking
        self._server = server
        self._mirror = mirror
        self._show = show
        self._tell_why = tell_why

    async def decide(self, thread: Thread, do: DoApprove | DoAnswer, by: str) -> Handled:
        asked = next((asked for asked in thread.asked.values() if asked.id == do.request), None)
        if do.request == thread.unread or (asked is not None and asked.request.state is RequestState.UNREAD):
            return Handled(OutcomeKind.INVALID, reason="what it asks could not be read")
        if asked is None:
            return Handled(OutcomeKind.STALE_TARGET, reason="the server asks this no more")
        try:
            result = result_of(asked, do)
        except ValueError as fault:
            return Handled(OutcomeKind.INVALID, reason=str(fault))
        fate = self._asking.answering(thread, asked)
        try:
            await self._server.rpc.answer(asked.rpc, result)
            known = await self._until(thread, lambda: fate.resolved or fate.turn_ended is not None, RESOLVED_S)
            if known:
                await self._look(thread, asked, do, fate)
        except BaseException:
            self._asking.unanswered(thread, asked)
            raise
        if thread.id not in self._mirror:
            return Handled(OutcomeKind.UNKNOWN, reason="the thread was deleted before it showed what became of this")
        if not known:
            self._asking.unanswered(thread, asked)
            return Handled(OutcomeKind.UNKNOWN, reason="the server has not taken up the answer")
        handled = self._concluded(thread, asked, do, by, fate)
        self._show(thread)
        if handled.applied and isinstance(do, DoApprove) and do.note and kind_of(asked, do) is OptionKind.DENY:
            return await self._with_why(thread, handled, do.note, by)
        return handled

    async def _until(self, thread: Thread, met: Callable[[], bool], within_s: float) -> bool:
        """Wait for something that the thread tells, as long as it is there; False where it did not tell it."""
        await until(self._server, lambda: met() or thread.id not in self._mirror, within_s)
        return met()

    async def _look(self, thread: Thread, asked: Asked, do: DoApprove | DoAnswer, fate: Fate) -> None:
        """Wait until the thread shows whose answer counted, as long as that makes sense."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (REFUSED_S if runs_in_silence(asked, do) else PROOF_S)

        def shown() -> bool:
            return stood(asked, do, fate) is not None

        while not shown() and thread.id in self._mirror:
            left = deadline - loop.time()
            if left <= 0:
                return
            last = self._last_look(asked, fate)
            if asked.method == COMMAND:
                # A command that runs in silence tells nothing by itself, but the server lists it.
                await self._server.processes(thread)
            fate.looked = fate.looked or last
            if not shown():
                await self._until(thread, lambda: shown() or self._last_look(asked, fate), min(left, ASK_AGAIN_S))

    def _last_look(self, asked: Asked, fate: Fate) -> bool:
        """Is a look due that proves something? That a command is in no list does so once it cannot begin any more."""
        over = fate.turn_ended is not None or fate.went_on
        return over and not fate.looked and self._asking.would_see(asked)

    def _concluded(self, thread: Thread, asked: Asked, do: DoApprove | DoAnswer, by: str, fate: Fate) -> Handled:
        now, proven = self._mirror.now(), stood(asked, do, fate)
        silent = (
            proven is None and fate.turn_ended is None and runs_in_silence(asked, do) and asked.call in thread.begun
        )
        if proven or silent:
            note = do.note if isinstance(do, DoApprove) else None
            decision = Decision(option=do.option, kind=kind_of(asked, do), by=by, at=now, note=note)
            self._asking.answered(thread, asked, decision)
            proof = _NOT_REFUSED if silent else None if provable(asked) else _NOT_SHOWN
            info: JsonObject = {} if proof is None else {"proof": proof}
            return Handled(_APPLIED, info=info)
        if proven is False and (fate.ran or fate.declined):
            # What the call did is what somebody else has answered.
            decided = Decision(kind=OptionKind.ALLOW if fate.ran else OptionKind.DENY, by=ELSEWHERE, at=now)
            self._asking.answered(thread, asked, decided)
            return Handled(OutcomeKind.ALREADY_DECIDED, reason=f"{ELSEWHERE} was first", decided=decided)
        if proven is False:
            why = f"its turn was {fate.turn_ended or 'over'} before this counted"
            self._asking.answered(thread, asked, None, why, RequestState.WITHDRAWN)
            return Handled(OutcomeKind.STALE_TARGET, reason=why)
        why = "an answer was taken, and nothing shows whether it was this one"
        self._asking.answered(thread, asked, None, why)
        return Handled(OutcomeKind.UNKNOWN, reason=why)

    async def _with_why(self, thread: Thread, handled: Handled, why: str, by: str) -> Handled:
        """The server takes no reason with a refusal: the agent is told in a message."""
        if thread.turn is None or not thread.active:
            return Handled(handled.outcome, reason="the agent was not told why: its turn is over", info=handled.info)
        try:
            await self._tell_why(thread, why, by)
        except (CallRefused, ConnectionFailed, TimeoutError) as fault:
            why_not = str(fault) or "no answer came"
            return Handled(handled.outcome, reason=f"the agent was not told why: {why_not}", info=handled.info)
        return handled


def commands_of(entries: list[Json]) -> list[str]:
    """The commands that run, as they were given."""
    return [text(entry, "command") or "?" for entry in entries]
