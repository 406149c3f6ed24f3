"""Looking through a transcript: which of its blocks hold a text, and where a time is."""

from __future__ import annotations

from typing import Final

from console.fleet.facts import NO_TIME
from console.fleet.matches import Matches
from console.fleet.transcript.transcript import Block, Transcript


class BlockFinder(Matches):
    """The blocks that hold what is looked for. `take_up` after every change of the blocks."""

    def __init__(self, blocks: Transcript, query: str = "") -> None:
        """Look through these blocks; `query` "" looks for nothing."""
        self.blocks: Final = blocks
        self._query = query.casefold()
        self._held: dict[Block, bool] = {}
        self._matches: list[int] | None = None

    def look_for(self, query: str) -> None:
        """Look for something else."""
        self._query = query.casefold()
        self._held = {}
        self._matches = None

    def take_up(self) -> None:
        """The blocks have changed."""
        self._matches = None

    @property
    def matches(self) -> list[int]:
        """Places of the blocks that hold it, the oldest first."""
        if self._matches is None:
            self._matches = self._look() if self._query else []
        return self._matches

    def _look(self) -> list[int]:
        known, held = self._held, {}
        found: list[int] = []
        for place in range(len(self.blocks)):
            block = self.blocks.block(place)
            # A block that has not changed is the same object: it is not read a second time.
            holds = held[block] = known[block] if block in known else _holds(block, self._query)
            if holds:
                found.append(place)
        self._held = held
        return found

    def at_time(self, there: int) -> int | None:
        """The first block that began at this time by the source's clock, or later; the last one where none did; None:
        no blocks."""
        for place in range(len(self.blocks)):
            at = self.blocks.block(place).at
            if at != NO_TIME and at >= there:
                return place
        return len(self.blocks) - 1 if len(self.blocks) else None


def _holds(block: Block, query: str) -> bool:
    # What was written, and what we made of it: an operator looks for what stands on the screen.
    return (
        query in block.source.casefold()
        or query in block.title.casefold()
        or query in block.kind.casefold()
        or query in block.tail.casefold()
        or any(query in line.text.casefold() for line in block.body)
    )
