"""One line to write in that ends for good: what was typed behind its end, in the same breath, is nobody's."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events
from textual.widgets import Input

from watchfloor.text import Clean
from widgets.editing import edit

SUBMIT: Final = "enter"
CANCEL: Final = "escape"


class SealedLine(Input):
    """A line that leaves submitting and cancelling to what it stands in.

    `sealed`: it has ended; further keys neither become part of the text nor reach what lies below. `typed`: was
    anything pressed or pasted? What is pasted is cleaned by `first_line`, and its other lines are dropped.
    """

    SEALED_BY: ClassVar[frozenset[str]] = frozenset({SUBMIT, CANCEL})
    """The keys that end it. Without the key that submits the line stays, and may be refused."""

    sealed = False
    typed = False

    def first_line(self, text: str) -> Clean:
        """The first line of a pasted text, fit to stand here."""
        raise NotImplementedError

    async def on_key(self, event: events.Key) -> None:
        if self.sealed:
            event.stop()
            event.prevent_default()
        elif event.key in (SUBMIT, CANCEL):
            event.prevent_default()
            self.sealed = event.key in self.SEALED_BY
        else:
            self.typed = True
            await edit(self, event)

    def on_paste(self, event: events.Paste) -> None:
        # A terminal may paste control sequences. What is taken must be what is seen.
        event.stop()
        event.prevent_default()
        self.typed = True
        first_line = self.first_line(event.text.replace("\r\n", "\n").replace("\r", "\n").split("\n", 1)[0])
        if self.selection.is_empty:
            self.insert_text_at_cursor(first_line)
        else:
            self.replace(first_line, *self.selection)
