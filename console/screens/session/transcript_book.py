"""The transcript of a session, looked through: what is looked for in it, and where a time is."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING, Final

from console.fleet.roster.search import time_of
from console.fleet.transcript.search import BlockFinder
from console.fleet.transcript.transcript import Transcript as Blocks
from console.fleet.views.wording import Segment
from watchfloor.text import Clean, clean_line

if TYPE_CHECKING:
    from console.fleet.store import Store
    from widgets.transcript import Transcript


class TranscriptBook:
    """What is looked for goes along from one session to the next."""

    noun: Final = "transcript"

    def __init__(self, store: Store, blocks: Blocks, pane: Transcript, tz: tzinfo | None) -> None:
        self._store = store
        self._tz = tz
        self.pane: Final = pane
        self.query = ""
        self._finder = BlockFinder(blocks)

    def turn_to(self, blocks: Blocks) -> None:
        """Look through another transcript."""
        self._finder = BlockFinder(blocks, self.query)

    def take_up(self) -> None:
        """The blocks have changed."""
        self._finder.take_up()

    @property
    def found(self) -> int:
        """How many blocks hold what is looked for."""
        return len(self._finder.matches)

    @property
    def place(self) -> int | None:
        """The selected block."""
        return self.pane.selected

    def look_for(self, query: str) -> None:
        """Mark this from now on."""
        self.query = self.pane.needle = query
        self._finder.look_for(query)

    def next_match(self, after: int) -> int | None:
        """The first block behind that holds it, or the first of all."""
        return self._finder.next_match(after)

    def match_before(self, before: int) -> int | None:
        """The last block above that holds it, or the last of all."""
        return self._finder.match_before(before)

    def time_of(self, text: str, now: int) -> int:
        """The moment that is written here, by the clock of the session's source. Raises ValueError."""
        return time_of(text, now + self._store.sources[self._finder.blocks.key.source].ahead_ms, self._tz)

    def at_time(self, there: int) -> int | None:
        """The first block of this time or later."""
        return self._finder.at_time(there)

    def show(self, place: int) -> None:
        """Select a block, and stay there."""
        self.pane.select(place, stay=True)

    def told(self) -> Segment | None:
        """What is looked for, and which of its places the cursor is at; None where nothing is."""
        if not self.query:
            return None
        at = self._finder.place_of_match(self.pane.selected or 0)
        of = f"{at:,} of {self.found:,}" if at else f"{self.found:,} found"
        # A search knows only what is here.
        earlier = ", not in what is earlier" if self._finder.blocks.earlier else ""
        return Clean(f"{clean_line(self.query)}: {of}{earlier}"), "attention"
