"""What a source is asked for beyond its overview: sessions that the operator stays with, and older events. And what it
is told for other operators: which card is open here, and what this operator takes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from console.hub.attending import Attending, Look
from console.hub.pages import OlderPage, Pages
from console.hub.watching import Order, Watches
from watchfloor.errors import ConnectionLost, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from console.fleet.facts import Fact, RequestKey, SessionKey
    from watchfloor.connector import Clock
    from watchfloor.protocol.frames import ClientFrame, HostFrame, UnknownFrame


class Detail:
    """Asks through `send`, which takes a source's name and a frame. `steady` gives milliseconds of a clock that is
    never set; `reachable`: is the session known, and its source heard? `hears`: is the source heard, and does it tell
    other operators who looks at what?"""

    def __init__(
        self,
        steady: Clock,
        send: Callable[[str, ClientFrame], Awaitable[None]],
        reachable: Callable[[SessionKey], bool],
        hears: Callable[[str], bool],
    ) -> None:
        self._steady = steady
        self._send = send
        self._reachable = reachable
        self._hears = hears
        self._watches = Watches()
        self._attending = Attending()
        self._pages = Pages()
        self._tellings: set[asyncio.Task[object]] = set()

    def look(self, key: SessionKey | None, *, opened: bool = False) -> None:
        """The operator looks at this session; `opened`: by a key for it."""
        self._watches.look(key, self._steady(), opened=opened)
        self.tick()

    def attend(self, key: RequestKey | None) -> None:
        """The card of this request is open; None: no card is."""
        self._attending.attend(key, self._steady())
        self._tell_looks()

    def claim(self, key: RequestKey, *, release: bool) -> None:
        """The operator takes the request, or lets go of it: the source tells others."""
        from watchfloor.protocol.frames import Claim  # models load behind the first frame

        frame = Claim(session=key.session, request=key.request, release=release)
        self._begin(self._advise(key.source, frame), f"claim {key.request}")

    def tick(self) -> None:
        """Send what the passing of time has made due."""
        for order in self._watches.due(self._steady(), self._reachable):
            self._begin(self._order(order), f"watch {order.key.session}")
        self._tell_looks()

    def _tell_looks(self) -> None:
        if looks := self._attending.due(self._steady(), self._hears):
            self._begin(self._look(looks), "looking")

    def _begin(self, work: Coroutine[Any, Any, object], name: str) -> None:
        telling = asyncio.create_task(work, name=name)
        self._tellings.add(telling)
        telling.add_done_callback(self._tellings.discard)

    async def _look(self, looks: Sequence[Look]) -> None:
        for look in looks:
            if not await self._advise(look.source, look.frame()):
                self._attending.failed(look)

    async def _advise(self, source: str, frame: ClientFrame) -> bool:
        """Send what is advice to others; False where it did not leave, which harms nobody."""
        try:
            await self._send(source, frame)
        except (ConnectionLost, ProtocolError):
            return False
        return True

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
        self._attending.parted(source)

    async def close(self) -> None:
        """Wait for what is being sent."""
        await asyncio.gather(*self._tellings, return_exceptions=True)
