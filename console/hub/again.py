"""What the journal had no room for: asked for once more, as soon as it has. Pure but for the tasks that send."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from watchfloor.connector import Streamed
from watchfloor.errors import ConnectionLost, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from console.connectors.supervisor import Item
    from console.journal.journal import Journal
    from console.journal.records import Missed
    from watchfloor.protocol.frames import ClientFrame

PAGE: Final = 1_000
"""Events that are asked for at a time."""
AT_ONCE: Final = 4
"""Pages that are on their way at most: they must not fill the journal again."""
PATIENCE_MS: Final = 30_000
"""After this long without a page it is asked for again: a connection may have ended meanwhile."""


class _Asked(NamedTuple):
    hole: Missed
    at: int


class Again:
    """What is missing of a journal, until it has come."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._wanted: deque[Missed] = deque()
        self._asked: dict[str, _Asked] = {}
        self._numbers = count(1)
        self._tellings: set[asyncio.Task[None]] = set()

    def ask(
        self, send: Callable[[str, ClientFrame], Awaitable[None]], heard: Callable[[str], bool], steady: int
    ) -> None:
        """Ask sources that are heard for what has room by now. `steady`: milliseconds of a clock that is never set."""
        self._wanted.extend(self._journal.missed())
        for id, asked in list(self._asked.items()):
            if steady - asked.at >= PATIENCE_MS:
                del self._asked[id]
                self._wanted.append(asked.hole)
        if not self._wanted or not self._journal.roomy:
            return
        from watchfloor.protocol.frames import History

        for _ in range(len(self._wanted)):
            if len(self._asked) >= AT_ONCE:
                return
            hole = self._wanted.popleft()
            if not heard(hole.source):
                self._wanted.append(hole)
                continue
            id = f"missed-{next(self._numbers)}"
            self._asked[id] = _Asked(hole, steady)
            limit = min(PAGE, hole.last - hole.first + 1)
            frame = History(id=id, session=hole.session, epoch=hole.epoch, after=hole.first - 1, limit=limit)
            telling = asyncio.create_task(self._tell(send, hole.source, frame), name=f"ask again {hole.session}")
            self._tellings.add(telling)
            telling.add_done_callback(self._tellings.discard)

    async def _tell(self, send: Callable[[str, ClientFrame], Awaitable[None]], source: str, frame: ClientFrame) -> None:
        try:
            await send(source, frame)
        except (ConnectionLost, ProtocolError, KeyError):
            return  # asked for again when nothing has come

    def take(self, source: str, items: Sequence[Item]) -> None:
        """These have arrived, and the journal has them."""
        if not self._asked:
            return
        for item in items:
            if isinstance(item, Streamed):
                continue  # it answers nothing
            frame = getattr(item, "frame", None)
            about = str(getattr(frame, "id" if getattr(frame, "type", "") == "page" else "about", ""))
            asked = self._asked.get(about)
            if frame is None or asked is None or asked.hole.source != source:
                continue
            del self._asked[about]
            hole, events = asked.hole, getattr(frame, "events", ())
            came = [event.seq for event in events if event.seq is not None and hole.first <= event.seq <= hole.last]
            self._journal.made_good(len(came))
            if came and max(came) < hole.last:
                self._wanted.append(hole._replace(first=max(came) + 1))

    async def close(self) -> None:
        """Wait for nothing more."""
        for telling in self._tellings:
            telling.cancel()
        await asyncio.gather(*self._tellings, return_exceptions=True)
