"""What the inbox looks like, at the smallest and at a large size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.screens.inbox_states import INBOX
from tests.screens.stage import LARGE, SMALL, Clock, console

Compare = Callable[..., bool]


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x50"])
@pytest.mark.parametrize("state", INBOX)
def test_the_inbox_looks_as_it_did(state: str, size: tuple[int, int], snap_compare: Compare, tmp_path: Path) -> None:
    clock = Clock()
    app = console(clock, folder=tmp_path)

    async def play(pilot: Pilot[Any]) -> None:
        await INBOX[state](app, clock, pilot)

    assert snap_compare(app, terminal_size=size, run_before=play)
