"""A console without a screen, as a process of its own that can be killed: `python -m ... URL FOLDER`.

It prints a line for each batch of events that arrived, before they can be in the journal: when, how many, and up to
which position of the host.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from console.audit import Audit
from console.connectors.supervisor import Item
from console.hub import Hub
from console.journal.journal import Journal
from watchfloor.connector import Received, Target
from watchfloor.host.serving.server import wall_clock
from watchfloor.protocol.frames import Events


def told(source: str, items: Sequence[Item]) -> None:
    """Say what arrived."""
    for item in items:
        if isinstance(item, Received) and isinstance(item.frame, Events):
            places = [event.pos for event in item.frame.events if event.pos is not None]
            if places:
                # In one piece, since it may be killed between two.
                sys.stdout.write(f"{wall_clock()} {len(places)} {max(places)}\n")
                sys.stdout.flush()


async def main(url: str, folder: Path) -> None:
    """Record until somebody ends this."""
    hub = Hub(
        clock=wall_clock,
        audit=Audit(folder / "audit", clock=wall_clock),
        by="ann",
        on_items=told,
        journal=Journal(folder / "journal.db", clock=wall_clock),
    )
    hub.start([Target(name="busy", url=url, user="ann")])
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
