"""What has happened while nobody could look, as a page to be read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from console.fleet.absence import Digest, lines
from console.fleet.store import Store
from console.screens.flows.asking import Ask
from watchfloor.text import Clean

NAME = "since"


def since_ask(store: Store, told: Sequence[Digest], now: int, tz: tzinfo | None) -> Ask:
    """The page."""
    return Ask(
        title=((Clean("while you were away"), "attention"),),
        about=tuple(line for one in told for line in lines(store, one, now, tz)),
        then=lambda _: None,
        name=NAME,
        anywhere=True,
    )
