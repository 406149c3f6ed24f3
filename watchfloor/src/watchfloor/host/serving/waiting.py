"""Whoever waits for something to come about on a host: rest, delivery, an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from watchfloor.errors import Deadlock, NotDelivered
from watchfloor.host.clients.between import cyclic_wait
from watchfloor.host.running.port import PortHost
from watchfloor.host.sessions.mailbox import Letter
from watchfloor.host.sessions.state import Phase
from watchfloor.protocol.events import MailState
from watchfloor.words import Delivery


class Waiting:
    """The waits on one host. `look` is called after everything that happened."""

    def __init__(self, host: PortHost) -> None:
        self._host = host
        self._conditions: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self._for: dict[str, list[str]] = {}

    def look(self) -> None:
        """Something happened: who waited for it goes on."""
        for future, holds in list(self._conditions.items()):
            if holds():
                del self._conditions[future]
                if not future.done():
                    future.set_result(None)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds."""
        while not holds():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._conditions[future] = holds
            try:
                await future
            finally:
                self._conditions.pop(future, None)

    def waits(self, waiter: str) -> tuple[str, ...]:
        """The sessions for which an agent waits in its turn."""
        return tuple(self._for.get(waiter, ()))

    @asynccontextmanager
    async def for_other(self, waiter: str, session: str) -> AsyncIterator[None]:
        """While an agent waits for another session. Raises Deadlock where that would never end."""
        circle = cyclic_wait(self._for, waiter, session)
        if circle is not None:
            raise Deadlock(f"waiting would never end: {' waits for '.join(circle)}")
        self._for.setdefault(waiter, []).append(session)
        try:
            yield
        finally:
            self._for[waiter].remove(session)
            if not self._for[waiter]:
                del self._for[waiter]

    async def delivery(self, session: str, ref: str) -> Delivery:
        """See `Host.delivery`."""
        letter = self._letter(session, ref)
        if letter.delivery is not Delivery.QUEUED:
            await self.until(lambda: letter.state is not MailState.SENT or session not in self._host.core.roster)
            if letter.state is not MailState.CONSUMED and not letter.consumed:
                raise NotDelivered(letter.item.ref, letter.error or "the session is gone", permanent=True)
        return letter.delivery

    async def response(self, session: str, ref: str) -> str:
        """See `Host.response`."""
        letter = self._letter(session, ref)
        core = self._host.core.session(session)

        def hopeless() -> bool:
            gone = session not in self._host.core.roster
            waits_in_vain = letter.state is MailState.SENT and core.phase is Phase.FAILED
            return gone or waits_in_vain or letter.state is MailState.ERROR

        await self.until(lambda: letter.response is not None or hopeless())
        if letter.response is not None:
            return letter.response
        if letter.state is MailState.SENT and session in self._host.core.roster:
            why = f"the session has failed ({core.error}): the message waits until it is resumed"
            raise NotDelivered(letter.item.ref, why, permanent=False)
        raise NotDelivered(letter.item.ref, letter.error or "the session is gone", permanent=True)

    def _letter(self, session: str, ref: str) -> Letter:
        return self._host.core.session(session).mailbox.letter(ref)
