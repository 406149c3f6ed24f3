"""Whose transcripts are followed, whose are read once, and whose are left until somebody looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from console.connectors.aion import offers
from console.connectors.aion.feed import Feed, Session
from console.connectors.aion.following import SETTLE_S, Attending, past
from console.connectors.aion.history import Attempt
from console.connectors.aion.server import Refused, Server
from watchfloor.foreign import Mirror

AT_ONCE: Final = 6
"""Transcripts that are read at the same time."""
FOLLOWED: Final = 400
"""Transcripts that are followed without anybody looking: each takes a socket, and of those a process has so many."""
RECENT: Final = 20
"""Sessions that ended and whose past is read without anybody looking, where everything is followed."""


class Attendance:
    """`everything`: are all transcripts wanted, or those of the sessions in `watched` alone? `start` runs a task."""

    def __init__(
        self,
        feed: Feed,
        mirror: Mirror,
        server: Callable[[], Server],
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        *,
        everything: bool,
        followed: int = FOLLOWED,
    ) -> None:
        self._feed, self._mirror, self._server, self._start = feed, mirror, server, start
        self._everything, self._most = everything, followed
        self.watched: set[str] = set()
        self._attending: dict[tuple[str, int], tuple[Attending, asyncio.Task[None]]] = {}
        self._finished: set[tuple[str, int]] = set()
        self._opened = False
        self._old: set[tuple[str, int]] = set()
        """Attempts that were over before we came: they are read when somebody looks."""
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def begin(self) -> None:
        """A connection stands, and what there is has been read."""
        # What waits for a human is read before anything is shown: the command line looks once only.
        await asyncio.gather(*(self._questions_of(session) for session in list(self._feed.sessions.values())))
        if self._everything and not self._opened:
            for session in self._recent():
                self._start(self.fetch(session))
            self._old |= set(self._ended())
        self._opened = True
        self.attend(self._feed.workflows)

    def end(self) -> None:
        """The connection is over; its tasks are ended elsewhere."""
        self._attending = {}

    def looked_away(self, session: str) -> None:
        """Nobody looks at it any more: it is followed on only where all are, or where it may ask something."""
        self.watched.discard(session)
        known = self._feed.sessions.get(session)
        if self._everything or (known is not None and self._may_ask(known)):
            return
        for key in [key for key in self._attending if key[0] == session]:
            self._attending.pop(key)[1].cancel()
            if known is not None:
                known.transcript(key[1]).interrupted()

    def forget(self, sessions: Iterable[str]) -> None:
        """These sessions are gone; one that comes back under its id is a new one."""
        gone = set(sessions)
        for key in [key for key in self._attending if key[0] in gone]:
            self._attending.pop(key)[1].cancel()
        self._finished = {key for key in self._finished if key[0] not in gone}
        self._old = {key for key in self._old if key[0] not in gone}

    def attend(self, workflows: Iterable[str]) -> None:
        """Follow the attempts that live and that somebody wants to see, and end with those that are over."""
        for session in [each for key in workflows for each in self._feed.sessions_of(self._feed.workflows[key])]:
            if not (self._everything or self._must(session)):
                continue
            for attempt in list(session.activity.attempts.values()):
                key = (session.id, attempt.number)
                alive = self._feed.alive(session, attempt.number) and not attempt.end
                if alive and key not in self._attending:
                    if len(self._attending) >= self._most and not self._must(session):
                        self._feed.not_followed(session, attempt.number, self._most)
                        continue
                    attending = Attending(self._server(), self._feed, self._mirror, session, attempt.number)
                    task = self._start(self._attended(attending, session, attempt))
                    self._attending[key] = (attending, task)
                elif key in self._attending:
                    if self._gone(session, attempt):
                        self._attending[key][0].over()
                elif attempt.end and key not in self._old and key not in self._finished:
                    # It was over before anybody could follow it.
                    self._old.add(key)
                    self._start(self._fetch_late(session))

    def _must(self, session: Session) -> bool:
        """Is it followed however many are?"""
        return session.id in self.watched or self._may_ask(session)

    def _may_ask(self, session: Session) -> bool:
        """Can its agent be answered? Then what it asks must not be missed, whether anybody looks or not."""
        live = self._feed.live.get(session.workflow.key, {})
        mine = (session.activity.run, session.activity.id)
        return any(axes[:2] == mine and offers.APPROVAL in primitives for axes, primitives in live.items())

    async def _questions_of(self, session: Session) -> None:
        latest = session.latest
        if latest is None or not self._may_ask(session):
            return
        async with self._gate:
            try:
                await past(self._server(), self._feed, session, latest.number)
            except Refused as refused:
                self._feed.unreadable(session, latest.number, str(refused))

    def _gone(self, session: Session, attempt: Attempt) -> bool:
        """Is the attempt over? One that no worker holds may come back."""
        ended = bool(attempt.end) or (session.workflow.over or session.activity.run != session.workflow.run)
        return ended and (bool(attempt.end) or not self._feed.alive(session, attempt.number))

    async def _attended(self, attending: Attending, session: Session, attempt: Attempt) -> None:
        key = (session.id, attempt.number)
        try:
            async with self._gate:
                await self.fetch(session)
                await attending.begin()
            await attending.run()
            self._feed.finish(session, attempt)
            self._finished.add(key)
        except Refused as refused:
            # It will be asked for once more when somebody looks; how the attempt ended is known all the same.
            self._feed.unreadable(session, attempt.number, str(refused))
            if self._gone(session, attempt):
                self._feed.finish(session, attempt)
        finally:
            if self._attending.get(key, (None,))[0] is attending:
                del self._attending[key]

    def _ended(self) -> list[tuple[str, int]]:
        return [
            (session.id, attempt.number)
            for session in self._feed.sessions.values()
            for attempt in session.activity.attempts.values()
            if attempt.end
        ]

    def _recent(self) -> list[Session]:
        ended = [session for session in self._feed.sessions.values() if (session.latest or Attempt(0)).end]
        return sorted(ended, key=lambda session: -(session.latest or Attempt(0)).ended_at)[:RECENT]

    async def _fetch_late(self, session: Session) -> None:
        await asyncio.sleep(SETTLE_S)
        async with self._gate:
            await self.fetch(session)

    async def fetch(self, session: Session) -> None:
        """Read the attempts that are over, oldest first."""
        for number in sorted(session.activity.attempts):
            attempt, key = session.activity.attempts[number], (session.id, number)
            alive = self._feed.alive(session, number)
            # An agent may say more after its attempt is over, as one that was given up for its time.
            if key in self._attending or (alive and not attempt.end) or (key in self._finished and not alive):
                continue
            read = True
            try:
                await past(self._server(), self._feed, session, number)
            except Refused as refused:
                read = False
                self._feed.unreadable(session, number, str(refused))
            if self._gone(session, attempt):
                self._feed.finish(session, attempt)
                if read:
                    self._finished.add(key)
