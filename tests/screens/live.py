"""The real application on a real host over a real socket, driven by keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from console.app import Watchfloor
from console.audit import Audit
from console.config import Config
from console.fleet.facts import Intent, Seen, SessionKey
from console.fleet.gate import ARM_MS
from console.fleet.state import Session
from console.hub import Hub, steady_ms
from console.screens.quiet import QUIET_MS, WORD_MS
from tests.screens.stage import LARGE, until
from tests.screens.widget_kit import lines
from watchfloor.connector import Target
from watchfloor.host.serving.server import Host, wall_clock
from watchfloor.words import Lifecycle, Primitive
from widgets.action_footer import ActionFooter
from widgets.request_card import RequestCard
from widgets.status_bar import StatusBar

SOURCE = "local"


class Hand:
    """A hand that takes its time for each key. It is the console's steady clock that goes on meanwhile: keys that a
    test presses at once are none of a text, whatever the machine is busy with, and nobody waits for real."""

    def __init__(self) -> None:
        self._rested_ms = 0

    def rest(self, ms: int = WORD_MS) -> None:
        self._rested_ms += ms

    def steady(self) -> int:
        """Milliseconds, for the console."""
        return steady_ms() + self._rested_ms


class Console:
    """A console under test: what it shows, and keys. Without a `hand` its clock is moved by the test."""

    def __init__(self, app: Watchfloor, pilot: Pilot[int], hand: Hand | None = None) -> None:
        self.app = app
        self.pilot = pilot
        self._hand = hand

    async def press(self, *keys: str) -> None:
        """Press keys, each by itself."""
        for key in keys:
            self._rest(WORD_MS)
            await self.pilot.press(key)

    def _rest(self, ms: int) -> None:
        if self._hand is not None:
            self._hand.rest(ms)

    async def type(self, text: str) -> None:
        await self.pilot.press(*text)

    async def until(self, holds: Callable[[], object], what: str) -> None:
        await until(self.pilot, holds, lambda: f"{what}\n{self.text()}")

    def session(self, name: str) -> Session:
        return self.app.hub.fleet.sessions[SessionKey(SOURCE, name)]

    async def knows(self, *names: str) -> None:
        """Wait until the console lists these sessions and has selected one."""
        fleet = self.app.hub.fleet
        await self.until(
            lambda: all(
                (found := fleet.sessions.get(SessionKey(SOURCE, name))) is not None and not found.placeholder
                for name in names
            ),
            f"{names} listed",
        )
        screen = self.app.fleet_screen
        await self.until(lambda: screen.furnished and screen.selected is not None, "a session selected")

    async def select(self, name: str) -> None:
        """Move the cursor to a session, by keys."""
        wanted = SessionKey(SOURCE, name)
        await self.press("g")
        for _ in range(len(self.app.hub.fleet.sessions)):
            if self.app.fleet_screen.selected == wanted:
                return
            await self.press("j")
        assert self.app.fleet_screen.selected == wanted

    async def state(self, name: str, *lifecycles: Lifecycle) -> None:
        await self.until(lambda: self.session(name).lifecycle in lifecycles, f"{name} {lifecycles}")

    async def asked(self, name: str) -> None:
        await self.until(lambda: self.session(name).open_requests(), f"{name} asks")

    async def paused(self) -> None:
        """Wait until keys act again after a text was written."""
        self._rest(QUIET_MS)
        screen = self.app.fleet_screen
        await self.until(lambda: not screen.writing, "a pause after what was written")

    async def armed(self) -> None:
        """Wait until the card on the screen counts keys."""
        self._rest(ARM_MS)
        await self.until(lambda: (card := self.card.card) is not None and card.armed == "armed", "the card is armed")

    @property
    def card(self) -> RequestCard:
        return self.app.fleet_screen.query_one(RequestCard)

    def carded(self) -> bool:
        """Is the card on the screen?"""
        return bool(self.card.display)

    @property
    def notice(self) -> str:
        return "\n".join(lines(self.app.fleet_screen.query_one("#notice", StatusBar))).strip()

    @property
    def trail(self) -> str:
        return "\n".join(lines(self.app.fleet_screen.query_one("#trail", StatusBar))).strip()

    @property
    def footer(self) -> str:
        return "\n".join(lines(self.app.fleet_screen.query_one(ActionFooter)))

    @property
    def asking(self) -> str:
        """What the drawer asks; "" while it is closed."""
        drawer = self.app.fleet_screen.query_one("#drawer")
        if not drawer.has_class("-open"):
            return ""
        parts = [part for part in drawer.query("StatusBar, Choices, _Label") if part.display and part.size.height]
        return "\n".join(line for part in parts for line in lines(part))

    def text(self) -> str:
        """Everything on the screen, for messages."""
        parts = list(self.app.fleet_screen.query("StatusBar, Roster, RequestCard, EventLog, ActionFooter"))
        return "\n".join(line for part in parts if part.display for line in lines(part))


@asynccontextmanager
async def watching(
    host: Host, folder: Path, *, size: tuple[int, int] = LARGE, url: str | None = None, **rest: Any
) -> AsyncIterator[Console]:
    """A console on this host, or on what stands before it at `url`."""
    hand = Hand()
    app = Watchfloor(
        targets=[Target(name=SOURCE, url=url or host.url, user="ann")],
        config=Config(path=folder / "config.toml"),
        clock=wall_clock,
        steady=hand.steady,
        by="ann",
        audit=Audit(folder / "audit", clock=wall_clock),
        **rest,
    )
    async with app.run_test(size=size) as pilot:
        yield Console(app, pilot, hand)


class Relay:
    """Passes bytes between a console and a host; what the host says can be held back for a while."""

    def __init__(self, url: str) -> None:
        address, _, port = url.removeprefix("ws://").rpartition(":")
        self._host = address, int(port)
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    def hold(self) -> None:
        """From now on nothing that the host says gets through."""
        self._open.clear()

    def release(self) -> None:
        """Let everything through that was held back."""
        self._open.set()

    async def __aenter__(self) -> Relay:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_host, to_host = await asyncio.open_connection(*self._host)
        for source, sink, gate in ((reader, to_host, None), (from_host, writer, self._open)):
            task = asyncio.create_task(self._pump(source, sink, gate))
            self._tasks.add(task)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, gate: asyncio.Event | None) -> None:
        try:
            while data := await source.read(1 << 16):
                if gate is not None:
                    await gate.wait()
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            pass
        finally:
            sink.close()


@asynccontextmanager
async def colleague(host: Host, folder: Path, name: str = "bob") -> AsyncIterator[Hub]:
    """Another operator's hub on the same host."""
    hub = Hub(clock=wall_clock, audit=Audit(folder / name, clock=wall_clock), by=name)
    hub.start([Target(name=SOURCE, url=host.url, user=name)])
    try:
        yield hub
    finally:
        await hub.close()


async def decide(hub: Hub, session: str, option: str) -> None:
    """Decide what waits in a session, from another console."""
    key = SessionKey(SOURCE, session)

    def there() -> bool:
        found = hub.fleet.sessions.get(key)
        waiting: Sequence[Any] = found.open_requests() if found is not None else ()
        return bool(waiting) and waiting[0].fact is not None

    assert await hub.until(there, 20.0)
    request = hub.fleet.sessions[key].open_requests()[0]
    trail = await hub.submit(
        Intent(
            id=f"{hub.by}-1",
            primitive=Primitive.APPROVE,
            target=key,
            by=hub.by,
            request=request.key.request,
            option=option,
            seen=Seen(request.digest, 0, whole=True),
        )
    )
    await asyncio.wait_for(hub.answered(trail.id, 20.0), 20.0)
