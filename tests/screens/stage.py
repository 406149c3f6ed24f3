"""The real application, played to by scripted hosts: what they say goes through the intake into its own fleet."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from console.app import Watchfloor
from console.audit import Audit
from console.config import Config
from console.fleet.changes import Changes
from console.fleet.facts import ContactFact, RequestKey, SessionKey
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.protocol import frames as f
from watchfloor.text import NOTHING, clean_line
from watchfloor.words import Contact, Role

NOON = int(datetime(2026, 11, 30, 14, 5, 22, tzinfo=UTC).timestamp() * 1000)
SMALL, LARGE = (80, 24), (160, 50)
PATIENCE_S = 30.0
STEP_S = 0.01


class Clock:
    """A clock that stands until a test moves it. Milliseconds since 1970 UTC, `set_by` more than have gone by."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now
        self.set_by = 0

    def __call__(self) -> int:
        return self.now + self.set_by

    def steady(self) -> int:
        """The same without what the clock was set by."""
        return self.now


def console(
    clock: Clock,
    *,
    read_only: bool = False,
    ascii: bool = False,
    theme: str | None = None,
    folder: Path | None = None,
    **rest: Any,
) -> Watchfloor:
    """A console without sources of its own; times are shown in UTC."""
    where = folder or Path(tempfile.gettempdir()) / "watchfloor-stage"
    return Watchfloor(
        targets=rest.pop("targets", ()),
        config=Config(path=where / "config.toml", ascii=ascii, theme=theme),
        clock=clock,
        steady=clock.steady,
        by="ops",
        audit=Audit(where / "audit", clock=clock),
        read_only=read_only,
        tz=UTC,
        **rest,
    )


class StagedHost(ScriptedHost):
    """A host whose words come straight out of the console's intake."""

    def __init__(self, app: Watchfloor, clock: Clock, name: str = "local", *, role: Role = Role.OPERATOR) -> None:
        self._app = app
        self._clock = clock
        super().__init__(name=name, live=False)
        self.now = clock()
        self.fleet = app.hub.fleet
        self.contact(Contact.LIVE)
        self.welcome(role)
        self.tell(f.Watching(session="*", from_pos=0, through=0))

    def tell(self, *frames: f.HostFrame | f.UnknownFrame) -> Changes:
        self.now = self._clock()
        changes = super().tell(*frames)
        self._app.take(changes)
        return changes

    def contact(self, contact: Contact, why: str = "", tries: int = 0) -> Changes:
        self.now = self._clock()
        fact = ContactFact(self.name, contact, self.now, clean_line(why) if why else NOTHING, tries)
        changes = self.fleet.apply([fact], self.now)
        self._app.take(changes)
        return changes

    def ago(self, seconds: float) -> int:
        """A moment in the past, by the host's clock."""
        return self._clock() - int(seconds * 1000)


async def shown(pilot: Pilot[int], app: Watchfloor) -> None:
    """Let the screen take up everything that was said."""
    await until(pilot, lambda: app.fleet_screen.furnished, lambda: "the screen is there")
    app.fleet_screen.paint(everything=True)
    await pilot.pause()
    app.fleet_screen.paint(everything=True)
    await pilot.pause()


async def until(pilot: Pilot[Any], holds: Callable[[], object], what: Callable[[], str]) -> None:
    """Wait until the condition holds. Raises AssertionError with what `what` says where it never does."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"never: {what()}"
        await pilot.pause(STEP_S)


__all__ = ["LARGE", "NOON", "SMALL", "Clock", "RequestKey", "SessionKey", "StagedHost", "console", "shown", "until"]
