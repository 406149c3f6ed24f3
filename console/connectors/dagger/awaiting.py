"""Waiting for what becomes of the messages that were sent: for delivery and for answer, each by itself.

The engine holds such a question open until there is something to say. Giving up on one changes nothing there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from console.connectors.dagger import queries
from console.connectors.dagger.graph import Graph, Refused
from console.connectors.dagger.ledger import Sent
from console.connectors.dagger.reading import down, text
from watchfloor.errors import WatchfloorError

MOST: Final = 30
"""Messages that are waited for at once; each holds up to two connections."""


class Awaiting:
    """Each message is told to `delivered`, to `answered`, or to `failed` with the engine's reason."""

    def __init__(
        self,
        delivered: Callable[[Sent, str], None],
        answered: Callable[[Sent, str], None],
        failed: Callable[[Sent, str], None],
    ) -> None:
        self._delivered, self._answered, self._failed = delivered, answered, failed
        self._waits: dict[tuple[str, str], asyncio.Task[None]] = {}

    def begin(self, graph: Graph, sent: Sent) -> asyncio.Task[None] | None:
        """Wait for both; returns the wait for its delivery. The oldest are given up where there are too many."""
        if sent.delivery is None:
            self._start(graph, sent, queries.DELIVERY, "delivery", self._delivered)
        self._start(graph, sent, queries.RESPONSE, "response", self._answered)
        while len(self._waits) > 2 * MOST:
            next(iter(self._waits.values())).cancel()
            del self._waits[next(iter(self._waits))]
        return self._waits.get((sent.id, "delivery"))

    def end(self, sent: Sent) -> None:
        """Nothing more is to be heard of it, or nobody wants to."""
        for what in ("delivery", "response"):
            if (task := self._waits.pop((sent.id, what), None)) is not None:
                task.cancel()

    def __len__(self) -> int:
        return len(self._waits)

    async def close(self) -> None:
        tasks = list(self._waits.values())
        self._waits.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, graph: Graph, sent: Sent, query: str, what: str, told: Callable[[Sent, str], None]) -> None:
        key = (sent.id, what)
        if key in self._waits:
            return
        task = asyncio.get_running_loop().create_task(self._wait(graph, sent, query, what, told))
        self._waits[key] = task
        task.add_done_callback(lambda done: self._waits.pop(key, None) if self._waits.get(key) is done else None)

    async def _wait(self, graph: Graph, sent: Sent, query: str, what: str, told: Callable[[Sent, str], None]) -> None:
        try:
            answer = await graph.ask(query, {"id": sent.id}, waits=True)
        except Refused as refusal:
            self._failed(sent, str(refusal))
        except WatchfloorError:
            # Asked again with the next connection: to ask changes nothing.
            return
        else:
            told(sent, text(down(answer, "node", what)))
