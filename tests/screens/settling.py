"""When an application under test has done all that it was told.

The toolkit's own pilot takes a process that used little processor time in the last 20 ms for one that is done: too
early where the machine is busy, and late everywhere else, twice for each key. Here it is done when nothing is left to
run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from textual import app as toolkit_app
from textual import pilot as toolkit_pilot
from textual.app import App
from textual.pilot import Pilot

_LONGEST_S: Final = 1.0
"""What never comes to rest, such as an agent that works without end in the same loop, is waited for no longer."""


@contextmanager
def settling() -> Iterator[None]:
    """As long as it lasts, every pilot waits until its application is done."""
    press = Pilot.press

    async def pressed(self: Pilot[Any], *keys: str) -> None:
        for key in keys:
            await press(self, key)
            await settle(self.app)

    async def paused(self: Pilot[Any], delay: float | None = None) -> None:
        if delay:
            await asyncio.sleep(delay)
        await settle(self.app)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toolkit_app, "wait_for_idle", _run_out)
        patch.setattr(toolkit_pilot, "wait_for_idle", _run_out)
        patch.setattr(Pilot, "press", pressed)
        patch.setattr(Pilot, "pause", paused)
        yield


async def settle(app: App[Any]) -> None:
    """Let everything run that can run now, and draw what it changed, until neither is left."""
    deadline = time.monotonic() + _LONGEST_S
    await _run_out()
    while _draw(app) and time.monotonic() < deadline:
        await _run_out()


async def _run_out(*_: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = time.monotonic() + _LONGEST_S
    await asyncio.sleep(0)
    # What waits for its turn in the loop, beside this one: nobody else knows when that is over.
    while loop._ready and time.monotonic() < deadline:  # type: ignore[attr-defined]  # noqa: ASYNC110
        await asyncio.sleep(0)


def _draw(app: App[Any]) -> bool:
    """Do at once what the screen would do at its next frame. Was there anything to do?"""
    if not app.is_running or app._batch_count:
        return False
    if app._resize_event is not None:
        app._check_resize()
        return True
    screen = app.screen
    due = (
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    )
    if not due or not screen.is_current:
        return False
    screen._on_timer_update()
    return True
