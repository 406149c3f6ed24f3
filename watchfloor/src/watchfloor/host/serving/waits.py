"""Whoever waits for what becomes of a session, or of a message to one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from watchfloor.errors import StaleTarget
from watchfloor.harness.base import Rest
from watchfloor.host.core import HostCore
from watchfloor.host.serving.waiting import Waiting
from watchfloor.host.sessions.mailbox import Letter
from watchfloor.host.sessions.mirror import MirrorSession
from watchfloor.host.sessions.session import SessionCore
from watchfloor.words import Delivery


class Waits:
    """That side of a host."""

    _core: HostCore
    _waiting: Waiting

    async def wait(self, session: str) -> SessionCore:
        """Until nothing of the session runs or waits (it is idle or has ended); returns its state.

        Raises KeyError where this host runs none of this id; `rest` waits for those of other processes as well. A
        paused session blocks until somebody resumes, stops or removes it.
        """
        core = self._core.session(session)
        await self._waiting.until(lambda: core.settled or session not in self._core.roster)
        return core

    async def rest(self, session: str) -> Rest:
        """As `wait`, for any session of this host: how it came to rest. The process of one that has joined may be lost
        meanwhile: that one is `unknown` then, and its error says why.

        Raises KeyError where there is none.
        """
        core = self._core.roster.entry(session).core
        if not isinstance(core, MirrorSession):
            own = await self.wait(session)
            return Rest(own.lifecycle, own.last_words(), own.error)
        await self._waiting.until(lambda: core.settled or session not in self._core.roster)
        return core.rest()

    def message(self, session: str, ref: str) -> Letter:
        """A message of a session by its ref, "#3" or "3", and what became of it so far.

        Raises KeyError where there is no such session, NoSuchRef (a KeyError) where it has no such message.
        """
        return self._core.session(session).mailbox.letter(ref)

    async def delivery(self, session: str, ref: str) -> Delivery:
        """How a message reached its session, once that is certain: at once where it waits, else when it is consumed.

        Raises as `message` does, and NotDelivered where it ended before it was consumed.
        """
        return await self._waiting.delivery(session, ref)

    async def response(self, session: str, ref: str) -> str:
        """What the session answered to a message: the first of an explicit reply and the last words of the turn that
        consumed it. May be asked for again and again.

        Raises as `message` does, and NotDelivered where no answer comes: for ever where the message ended with an
        error, for now where it waits in a session that failed.
        """
        return await self._waiting.response(session, ref)

    async def wait_from(self, waiter: str, session: str) -> Rest:
        """As `wait`, on behalf of an agent in its turn. Raises Deadlock, or StaleTarget where there is no session."""
        if session not in self._core.roster:
            raise StaleTarget(f"this host has no session {session!r}")
        async with self._waiting.for_other(waiter, session):
            return await self.rest(session)

    @asynccontextmanager
    async def waits_for(self, waiter: str, session: str) -> AsyncIterator[None]:
        """While an agent waits for another one in its turn. Raises Deadlock where that would never end."""
        async with self._waiting.for_other(waiter, session):
            yield
