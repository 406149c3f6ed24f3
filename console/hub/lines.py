"""The connection for each source: dialled, kept, replaced and ended; what arrives becomes facts here."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from console.hub.unfit import unfit
from watchfloor.words import Contact

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from console.connectors.supervisor import Item, Supervisor
    from console.fleet.facts import Fact
    from console.hub.detail import Detail
    from console.hub.past import Past
    from watchfloor.connector import Clock, Target
    from watchfloor.protocol.frames import ClientFrame

_log = logging.getLogger(__name__)
HEARD: Final = frozenset({Contact.LIVE, Contact.SILENT})
"""A connection stands, silent or not."""


@dataclass(slots=True)
class _Line:
    """One source: what keeps it connected, and the task in which that runs."""

    supervisor: Supervisor
    task: asyncio.Task[None]


class Lines:
    """The connections of one console, by the names of their sources.

    `take` is given the facts of each batch of arrivals, `on_items` a source's name and the arrivals themselves before
    that. `given_up` is told of a source, and why, when nobody can say any more what became of what was sent there.
    `detail` hears of every connection that ends, and of every frame; `past` keeps what arrives, before anything else is
    done with it.
    """

    def __init__(
        self,
        clock: Clock,
        detail: Detail,
        past: Past,
        *,
        take: Callable[[list[Fact]], None],
        on_items: Callable[[str, Sequence[Item]], None] | None,
        given_up: Callable[[str, str], None],
    ) -> None:
        self._clock = clock
        self._detail = detail
        self._past = past
        self._take = take
        self._on_items = on_items
        self._given_up = given_up
        self._lines: dict[str, _Line] = {}
        self._beside: set[asyncio.Task[None]] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._lines

    def address(self, name: str) -> str:
        """The URL at which the source is dialled; "" for one that was never started."""
        line = self._lines.get(name)
        return line.supervisor.target.url if line is not None else ""

    def dial(self, target: Target) -> None:
        """Connect to the source from now on. Must be called on the event loop."""
        from console.connectors.registry import connector_for
        from console.connectors.supervisor import ContactChange, Supervisor
        from console.intake import Intake
        from console.recording.address import is_recording
        from watchfloor.connector import Received, Streamed

        intake = Intake(target.name, self._clock, recorded=is_recording(target.url))

        def sink(items: Sequence[Item]) -> None:
            if self._lines.get(target.name) is not line:
                return  # another host is this source by now
            if any(isinstance(item, ContactChange) and item.contact not in HEARD for item in items):
                self._detail.parted(target.name)
            facts: list[Fact] = []
            self._past.take(target, items)
            if self._on_items is not None:
                try:
                    self._on_items(target.name, items)
                except Exception as fault:
                    facts.append(unfit(target.name, fault))
            for item in items:
                try:
                    told = [intake.contact(item)] if isinstance(item, ContactChange) else intake.arrival(item)
                    facts += told
                    facts += self._past.kept(target.name, told)
                    # What streams answers nothing.
                    if isinstance(item, Received) and not isinstance(item, Streamed):
                        self._detail.take(target.name, item.frame, told)
                        if (look := intake.looked_through(item)) is not None:
                            self._later(look)
                except Exception as fault:
                    facts.append(unfit(target.name, fault))
            self._take(facts)

        places: dict[str, tuple[str, int]] = {}

        async def keep() -> None:
            try:
                places.update(await self._past.places(target))
            except Exception:
                # Whatever is wrong with what is kept of it, it is there to be watched.
                _log.exception("what is kept of %r could not be read", target.name)
            await supervisor.run()
            if self._lines.get(target.name) is line and supervisor.let_go_for is not None:
                self._given_up(target.name, supervisor.let_go_for)

        rng = random.Random()  # noqa: S311 - spreads retries in time, nothing depends on its secrecy
        supervisor = Supervisor(
            lambda to: connector_for(replace(to, places=places)), target, sink, self._clock, rng, room=self._past.room
        )
        line = self._lines[target.name] = _Line(supervisor, asyncio.create_task(keep(), name=f"source {target.name}"))

    def _later(self, look: Callable[[], list[Fact]]) -> None:
        async def looks() -> None:
            self._take(await asyncio.to_thread(look))

        self._keep(asyncio.create_task(looks(), name="look through a list"))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def replace(self, target: Target) -> None:
        """Connect the source of this name to another address, or with another token, from now on.

        Raises KeyError for a source that was never started.
        """
        line = self._lines[target.name]

        async def part() -> None:
            await line.supervisor.close()
            await line.task

        self._keep(asyncio.create_task(part(), name=f"parting from {target.name}"))
        self._detail.parted(target.name)
        self._given_up(target.name, "another host has taken the place of the one that it was sent to")
        self.dial(target)

    def let_go(self, name: str, why: str) -> None:
        """Dial the source no more once its connection has ended. Raises KeyError for one that was never started."""
        self._lines[name].supervisor.let_go(why)

    def retry(self, name: str) -> None:
        """Try a lost source again at once."""
        if (line := self._lines.get(name)) is not None:
            line.supervisor.retry_now()

    async def send(self, name: str, frame: ClientFrame) -> None:
        """Hand a frame to a source.

        Raises ConnectionLost where it certainly did not leave, ProtocolError where it cannot be written, KeyError for a
        source that was never started.
        """
        await self._lines[name].supervisor.send(frame)

    async def close(self) -> None:
        """End every connection."""
        lines = list(self._lines.values())
        await asyncio.gather(*(line.supervisor.close() for line in lines), return_exceptions=True)
        await asyncio.gather(*(line.task for line in lines), *self._beside, return_exceptions=True)
