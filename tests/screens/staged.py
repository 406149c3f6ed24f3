"""A staged console for tests: scripted hosts before it, and whatever it would send kept instead."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.fleet.facts import Intent, RequestKey
from console.fleet.state import Trail
from tests.screens.live import Console
from tests.screens.stage import LARGE, Clock, StagedHost, console, shown
from watchfloor.protocol import model as m
from watchfloor.words import OptionKind, Scope

ALLOW = m.Option(id="yes", label="Allow", kind=OptionKind.ALLOW)
WIDE = m.Option(id="wide", label="Always", kind=OptionKind.ALLOW, scope=Scope.SESSION, persists=True)
SURE = m.Option(id="sure", label="Allow it", kind=OptionKind.ALLOW, confirm=True, note="this cannot be undone")
DENY = m.Option(id="no", label="Deny", kind=OptionKind.DENY)


@dataclass
class Stage:
    """A console with a scripted host; what it would send is kept in `sent`."""

    console: Console
    clock: Clock
    host: StagedHost
    sent: list[Intent] = field(default_factory=list)

    async def show(self, ms: int = 0) -> None:
        self.clock.now += ms
        await shown(self.console.pilot, self.console.app)

    async def press(self, *keys: str) -> None:
        await self.console.press(*keys)
        await self.show()

    @property
    def said(self) -> str:
        return self.console.notice or self.console.trail

    def card(self) -> RequestKey | None:
        made = self.console.card.card
        key = made.key if made is not None and self.console.carded() else None
        assert key is None or isinstance(key, RequestKey)
        return key


@asynccontextmanager
async def staged(folder: Path, size: tuple[int, int] = LARGE, **rest: Any) -> AsyncIterator[Stage]:
    clock = Clock()
    app = console(clock, folder=folder, **rest)
    async with app.run_test(size=size) as pilot:
        stage = Stage(Console(app, pilot), clock, StagedHost(app, clock))

        async def dispatch(trail: Trail, *, hold_s: float = 0.0) -> None:
            stage.sent.append(trail.intent)

        app.hub.dispatch = dispatch  # type: ignore[method-assign]
        yield stage
