"""Follows the transcript of one attempt: its past first, then what is said, then what was said last."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from console.connectors.aion.feed import Feed, Session
from console.connectors.aion.reading import Json, obj
from console.connectors.aion.server import LINES, Refused, Server
from console.connectors.aion.sockets import LAGGED, Following
from watchfloor.errors import ConnectionFailed, NotAHost
from watchfloor.foreign import Mirror
from watchfloor.protocol.events import Level, Notice, Raw

PAST: Final = 5000
"""Stored events of an attempt's past that are read at most."""
SETTLE_S: Final = 0.3
"""Stored events come up to this much later than the news that their attempt is over, or than pieces after them."""
READ_EVERY_S: Final = 5.0
"""Between two looks at a transcript that cannot be followed over a socket."""


async def past(server: Server, feed: Feed, session: Session, attempt: int) -> None:
    """Read what is stored and was not read. Told at once: a request that was decided long ago must not show as open."""
    transcript, axes = session.transcript(attempt), session.axes(attempt)
    seq = transcript.next
    events: list[object] = []
    page, more, head = await server.transcript(axes, seq)
    if head < seq:
        # Asked again, for the answer may be older than what a socket has told since.
        await asyncio.sleep(SETTLE_S)
        _, _, head = await server.transcript(axes, seq)
        if head < seq:
            feed.apply(session, attempt, transcript.lost(head))
        seq = transcript.next
        page, more, head = await server.transcript(axes, seq)
    if not seq and head > PAST:
        seq = head - PAST
        page, more, head = await server.transcript(axes, seq)
        feed.apply(session, attempt, transcript.begin_at(seq))
    events += page
    while more and page and seq + len(events) < head:
        page, more, head = await server.transcript(axes, seq + len(events), LINES)
        events += page
    feed.said(session, attempt, events)


class Attending:
    """Follows one attempt that lives. `over` ends it in good order."""

    def __init__(
        self, server: Server, feed: Feed, mirror: Mirror, session: Session, attempt: int, settle_s: float = SETTLE_S
    ) -> None:
        self._server, self._feed, self._mirror = server, feed, mirror
        self._session, self._attempt, self._settle_s = session, attempt, settle_s
        self._over = asyncio.Event()
        self._gap: asyncio.Task[None] | None = None
        self._breaks = 0

    def over(self) -> None:
        """The attempt has ended."""
        self._over.set()

    async def begin(self) -> None:
        """Read its past."""
        try:
            await past(self._server, self._feed, self._session, self._attempt)
        except Refused as refused:
            # The socket sends everything from the start then.
            self._warn("past", f"its past cannot be read ({refused}); it is asked for again with what follows")

    async def run(self) -> None:
        """Follow it from where its past was read to."""
        self._session.transcript(self._attempt).joins()
        follow = Following(self._server, self._arm, self._take, self._broken)
        following = asyncio.create_task(self._followed(follow))
        ended = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait({following, ended}, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
            await self._over.wait()
            await asyncio.sleep(self._settle_s)
        finally:
            for task in (following, ended, self._gap):
                if task is not None:
                    task.cancel()
            await asyncio.gather(following, ended, return_exceptions=True)
        await past(self._server, self._feed, self._session, self._attempt)

    async def _followed(self, follow: Following) -> None:
        said = False
        while True:
            try:
                await follow.run()
            except Refused as refused:
                return self._warn("refused", f"the server does not let its transcript be followed: {refused}")
            except NotAHost as failed:
                if not said:
                    every = f"it is read every {READ_EVERY_S:g} s instead, and what passes in between is not seen"
                    self._warn("no_socket", f"its transcript cannot be followed ({failed}): {every}")
                said = True
            await asyncio.sleep(READ_EVERY_S)
            await past(self._server, self._feed, self._session, self._attempt)

    def _arm(self) -> Json:
        axes = self._session.axes(self._attempt).body()
        next_ = self._session.transcript(self._attempt).next
        return {"transcript": axes | ({"after_seq": next_ - 1} if next_ else {})}

    def _take(self, frame: Json) -> None:
        self._mirror.heard()
        self._breaks = 0
        if frame.get("kind") != "activity_event":
            self._mirror.emit(self._session.id, Raw(at=0, data=frame, note="a frame of aion that cannot be read"))
            return
        self._feed.said(self._session, self._attempt, [obj(frame.get("event"))])
        missing = self._session.transcript(self._attempt).missing()
        if missing is not None and (self._gap is None or self._gap.done()):
            self._gap = asyncio.create_task(self._fill(missing))

    async def _fill(self, missing: int) -> None:
        """Read what is missing between two stored events, unless it comes by itself."""
        transcript = self._session.transcript(self._attempt)
        await asyncio.sleep(self._settle_s)
        if transcript.missing() != missing:
            return
        with suppress(Refused, ConnectionFailed):
            await past(self._server, self._feed, self._session, self._attempt)
        if transcript.missing() == missing:
            self._feed.apply(self._session, self._attempt, transcript.give_up())

    async def _read_again(self) -> None:
        await asyncio.sleep(self._settle_s)
        with suppress(Refused, ConnectionFailed):
            await past(self._server, self._feed, self._session, self._attempt)

    def _broken(self, code: str, words: str) -> None:
        self._session.transcript(self._attempt).interrupted()
        self._breaks += 1
        if code == LAGGED:
            words = "pieces of what is being said were left out here: the server sent faster than it lets anybody read"
            self._notice(Level.INFO, LAGGED, f"{words}; stored events are complete")
            return
        # A server that comes back at once may have lost what it stored.
        if self._gap is None or self._gap.done():
            self._gap = asyncio.create_task(self._read_again())
        if self._breaks == 1 or code:
            self._warn("broken", f"its stream broke, and is asked for again after the last stored event: {words}")

    def _warn(self, code: str, words: str) -> None:
        self._notice(Level.WARNING, code, words)

    def _notice(self, level: Level, code: str, words: str) -> None:
        self._mirror.emit(self._session.id, Notice(at=0, attempt=self._attempt, level=level, code=code, text=words))
