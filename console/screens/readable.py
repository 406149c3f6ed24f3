"""What can be looked through by keys: the log of the fleet screen, the transcript of a session."""

from __future__ import annotations

from typing import Protocol

from widgets.painting import LineView


class Readable(Protocol):
    """Lines or blocks, by their places from 0. Level, search and cursor are its own."""

    @property
    def noun(self) -> str: ...  # what it is called, such as "log"
    @property
    def pane(self) -> LineView: ...  # what shows it
    @property
    def query(self) -> str: ...  # what is looked for; "": nothing
    @property
    def found(self) -> int: ...  # how many places hold it
    @property
    def place(self) -> int | None: ...  # where the cursor is; None: there is nothing
    def look_for(self, query: str) -> None: ...
    def next_match(self, after: int) -> int | None: ...  # the first behind, or of all
    def match_before(self, before: int) -> int | None: ...  # the last above, or of all
    def time_of(self, text: str, now: int) -> int: ...  # raises ValueError, with words for the operator
    def at_time(self, there: int) -> int | None: ...  # the first place of that time or later
    def show(self, place: int) -> None: ...  # put the cursor there, in sight
