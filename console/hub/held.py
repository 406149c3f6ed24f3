"""Commands that were begun and have not left yet: for as long as they wait here they can be taken back."""

from __future__ import annotations

import asyncio


class Held:
    """The ids of the commands that wait."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Event] = {}

    async def rest(self, id: str, seconds: float) -> None:
        """Let a command wait so long, or until it is let go."""
        gone = self._waiting[id] = asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                await gone.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting.pop(id, None)

    def let_go(self, id: str) -> None:
        """It waits no longer."""
        if (gone := self._waiting.pop(id, None)) is not None:
            gone.set()
