"""What a source is asked for beyond its overview: sessions that the operator stays with, and older events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from console.hub.pages import OlderPage, Pages
from console.hub.watching import Order, Watches
from watchfloor.errors import ConnectionLost, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from console.fleet.facts import Fact, SessionKey
    from watchfloor.connector import Clock
    from watchfloor.protocol.frames import ClientFrame, HostFrame, UnknownFrame


class Detail:
    """Asks through `send`, which takes a source's name and a frame. `steady` gives milliseconds of a clock that is
    never set; `reachable`: is the session known, and its source heard?"""

    def __init__(
        self,
        steady: Clock,
        send: Callable[[str, ClientFrame], Awaitable[None]],
        reachable: Callable[[SessionKey], bool],
    ) -> None:
        self._steady = steady
        self._send = send
        self._reachable = reachable
        self._watches = Watches()
        self._pages = Pages()
        self._tellings: set[asyncio.Task[None]] = set()

    def look(self, key: SessionKey | None, *, opened: bool = False) -> None:
        """The operator looks at this session; `opened`: by a key for it."""
        self._watches.look(key, self._steady(), opened=opened)
        self.tick()

    def tick(self) -> None:
        """Send what the passing of time has made due."""
        for order in self._watches.due(self._steady(), self._reachable):
            telling = asyncio.create_task(self._order(order), name=f"watch {order.key.session}")
            self._tellings.add(telling)
            telling.add_done_callback(self._tellings.discard)

    async def _order(self, order: Order) -> None:
        try:
            await self._send(order.key.source, order.frame())
        except (ConnectionLost, ProtocolError):
            if order.watch:
                self._watches.failed(order.key, self._steady())

    async def older(self, key: SessionKey, epoch: str, before: int, *, wait_s: float) -> OlderPage:
        """Events of this epoch of a session before number `before`.

        Raises ConnectionLost, TimeoutError after `wait_s` seconds, and ProtocolError where the source refuses.
        """
        frame, page = self._pages.ask(key, epoch, before)
        try:
            await self._send(key.source, frame)
            return await asyncio.wait_for(page, wait_s)
        finally:
            self._pages.forget(frame)

    def take(self, source: str, frame: HostFrame | UnknownFrame, facts: Sequence[Fact]) -> None:
        """A frame arrived, and the intake made these facts of it."""
        self._pages.take(source, frame, facts)

    def parted(self, source: str) -> None:
        """The connection to the source has ended."""
        self._watches.parted(source)

    async def close(self) -> None:
        """Wait for what is being sent."""
        await asyncio.gather(*self._tellings, return_exceptions=True)
