"""The fast streamer: it reads the orders aloud, piece by piece, at an even pace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from console.demo.project import ORDERS
from console.demo.stage import SLICE_S, Mail, Pace, Stage, forget
from console.demo.texts import CITIES, Order, pieces
from watchfloor.harness.run import Run

PIECES: Final = 4
FAST_PER_S: Final = 50.0
"""Above this a sentence is one piece: a host gathers what comes within some milliseconds, and would join the pieces."""
_NOTE_EVERY = 5  # sentences
_LEAST_S = 0.005  # a shorter rest is not worth a turn of the event loop


class Narrator:
    """Gives out `per_s` events a second, pieces included, beginning with the order of number `start`.

    A message that names a city makes it read that city's orders only; one that names none, all of them.
    """

    def __init__(self, stage: Stage, orders: Sequence[Order], *, per_s: float, start: int = 0) -> None:
        self._stage = stage
        self._all = orders
        self._orders = orders
        self._pieces = PIECES if per_s <= FAST_PER_S else 1
        self._pace = Pace(per_s)
        self._next = start
        self._mail: Mail = ()

    async def __call__(self, run: Run, mail: Mail) -> None:
        self._mail = mail
        while True:
            mail, self._mail = self._mail + await run.checkpoint(), ()
            for item in mail:
                await self._choose(run, item.text)
            if self._next % len(self._orders) == 0:
                await self._beat(run)
                await self._stage.shell(run, f"wc -l {ORDERS}")
            await self._tell(run, self._orders[self._next % len(self._orders)])
            self._next += 1
            if self._next % _NOTE_EVERY == 0:
                await self._beat(run)
                run.progress(f"order {self._next % len(self._orders)} of {len(self._orders)}")
            forget(run)

    async def _tell(self, run: Run, order: Order) -> None:
        async with run.stream() as out:
            for piece in pieces(order.sentence(), self._pieces):
                await self._beat(run)
                await out.write(piece)
            await self._beat(run)

    async def _beat(self, run: Run) -> None:
        """Wait for the next event's place in time."""
        left = self._pace.take(asyncio.get_running_loop().time())
        while left > _LEAST_S:
            await run.sleep(min(left, SLICE_S))
            left -= SLICE_S
            if left > 0:
                self._mail += await run.checkpoint()

    async def _choose(self, run: Run, text: str) -> None:
        city = next((city for city in CITIES if city.lower() in text.lower()), None)
        self._orders = [order for order in self._all if city in (None, order.city)]
        self._next = 0
        await run.say(f"From here on the orders of {city} only." if city else "From here on all orders.")
