"""Pages of older events that were asked for, until they come. Pure but for the futures that are waited for."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from console.fleet.facts import EventFact, EventsFact, FaultFact, SessionKey
from watchfloor.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.fleet.facts import Fact
    from watchfloor.protocol.frames import History, HostFrame, UnknownFrame

PAGE: Final = 500
"""Events of one page."""


class OlderPage(NamedTuple):
    """Events before those that were known, the oldest first; `more`: there are still older ones."""

    epoch: str
    events: tuple[EventFact, ...]
    more: bool


class Pages:
    """What was asked for and has not come yet."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._asked: dict[str, tuple[str, asyncio.Future[OlderPage]]] = {}

    def ask(self, key: SessionKey, epoch: str, before: int) -> tuple[History, asyncio.Future[OlderPage]]:
        """The frame that asks for what is before this number, and what will hold the answer."""
        from watchfloor.protocol.frames import History  # models load behind the first frame

        id = f"older-{next(self._numbers)}"
        future: asyncio.Future[OlderPage] = asyncio.get_running_loop().create_future()
        self._asked[id] = key.source, future
        return History(id=id, session=key.session, epoch=epoch, before=before, limit=PAGE), future

    def forget(self, asked: History) -> None:
        """Nobody waits for this page any more."""
        self._asked.pop(asked.id, None)

    def take(self, source: str, frame: HostFrame | UnknownFrame, facts: Sequence[Fact]) -> None:
        """If the frame answers what was asked, hand over what the intake made of it."""
        if frame.type not in ("page", "error") or not self._asked:
            return
        about = str(getattr(frame, "id" if frame.type == "page" else "about", ""))
        asked = self._asked.get(about)
        if asked is None or asked[0] != source or asked[1].done():
            return
        if frame.type == "error":
            asked[1].set_exception(ProtocolError(next((str(f.reason) for f in facts if isinstance(f, FaultFact)), "")))
            return
        for fact in facts:
            if isinstance(fact, EventsFact) and fact.stored:
                asked[1].set_result(OlderPage(fact.epoch, fact.events, bool(getattr(frame, "more", False))))
                return
