"""The mailbox on the screen of a session: its messages as a list, and the one under the cursor, whole."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo
from typing import Final

from console.fleet.log import LogEntry
from console.fleet.state import Session
from console.fleet.views.mail import Letter, LetterRows, letter_lines, letters
from console.fleet.views.wording import Segment
from console.screens.board import FactsPane
from watchfloor.text import Clean
from widgets.listing import ListColumn, Listing
from widgets.marks import Marks

_COLUMNS: Final = (
    ListColumn(Clean("REF"), 5),
    ListColumn(Clean("AT"), 8, drop=2),
    ListColumn(Clean("STATE"), 8),
    ListColumn(Clean("DELIVERY"), 8),
    ListColumn(Clean("FROM"), 10, drop=1),
    ListColumn(Clean("ANSWERS"), 7),
    ListColumn(Clean("TEXT"), 16, share=1),
)


class Mailbox:
    """Its widgets, and what they show."""

    def __init__(self, marks: Marks, tz: tzinfo | None) -> None:
        self._tz = tz
        self.listing: Final = Listing(_COLUMNS, id="mailbox", marks=marks)
        self.listing.empty = Clean("no message to this session is known here")
        self.letter: Final = FactsPane(id="letter", marks=marks)
        self.rows = LetterRows((), tz)

    @property
    def selected(self) -> Letter | None:
        """The message under the cursor."""
        place = self.listing.place
        return self.rows.letters[place] if 0 <= place < len(self.rows) else None

    def take_up(self, entries: Iterable[LogEntry]) -> None:
        """Show the messages that these events tell of."""
        self.rows = LetterRows(letters(entries), self._tz)
        self.listing.show(self.rows)
        self.show_letter()

    def show_letter(self) -> None:
        """Show the message under the cursor, whole."""
        selected = self.selected
        self.letter.facts = letter_lines(selected, self._tz) if selected is not None else ()

    def forget(self) -> None:
        """Another session is shown."""
        self.rows = LetterRows((), self._tz)
        self.listing.show(self.rows, first=True)
        self.show_letter()

    def title(self, session: Session, answers: Clean) -> list[Segment]:
        """How many messages are here, of those that there are, how many wait, and the key that answers one, if any."""
        here, refs = len(self.rows), session.mail_refs
        of = f" of {refs:,}" if refs > here else ""
        noun = "message" if (refs or here) == 1 else "messages"
        title: list[Segment] = [(Clean(f"mailbox: {here:,}{of} {noun}"), "attention")]
        if session.mail_queued:
            title.append((Clean(f"{session.mail_queued:,} unread"), "plain"))
        if answers and self.rows.letters:
            title.append((Clean(f"{answers} answers it"), "quiet"))
        return title
