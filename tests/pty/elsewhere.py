"""Servers that go on in a thread while a test waits for its terminal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager
from typing import Any, TypeVar

from tests.pty.kit import SLOW_S

T = TypeVar("T")


class Elsewhere:
    """An event loop in a thread, for servers that go on while the test waits for its terminal."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        done: Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        return done.result(3 * SLOW_S)

    def call(self, function: Callable[[], T]) -> T:
        """What a function gives that belongs to what runs there."""

        async def called() -> T:
            return function()

        return self.run(called())

    def __enter__(self) -> Elsewhere:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.stack.aclose())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(SLOW_S)
        self.loop.close()


@contextmanager
def elsewhere() -> Iterator[Elsewhere]:
    with Elsewhere() as made:
        yield made
