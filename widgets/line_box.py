"""A line to write in: what for, the text, and what there is to be said about it, as it is written."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from watchfloor.text import Clean, clean_line
from widgets.cells import fit, width_of
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import Painted, strip_of
from widgets.sealed_line import CANCEL, SUBMIT, SealedLine
from widgets.spoken import Spoken
from widgets.tones import Tone


class _Said(Painted):
    """A text beside the line; as wide as it needs, within a share."""

    PREFIX = "line-box"

    DEFAULT_CSS = """
    _Said { height: 1; width: auto; background: $wf-bar; }
    """

    def __init__(self, marks: Marks, *, id: str) -> None:
        super().__init__(id=id)
        self._marks = marks
        self._text = Clean("")
        self._tone: Tone = "plain"

    def say(self, text: Clean, tone: Tone) -> None:
        """Show this; the line that is written in takes what is left."""
        if (text, tone) != (self._text, self._tone):
            self._text, self._tone = text, tone
            self.styles.width = min(width_of(text) + 2, self._most) if text else 0
            self.refresh()

    @property
    def fits(self) -> bool:
        """Does the whole text stand there?"""
        return width_of(self._text) + 2 <= self._most

    @property
    def _most(self) -> int:
        return max(12, self.screen.size.width * 2 // 3)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        parts: list[tuple[str, Style]] = [
            (" ", self.paint("")),
            (fit(self._text, max(0, width - 2), self._marks.cut), self.tone(self._tone)),
        ]
        return strip_of(parts, width, self.paint(""))


class _Line(SealedLine):
    """The line itself, which stays until whoever asked takes it."""

    SEALED_BY: ClassVar[frozenset[str]] = frozenset({CANCEL})

    def first_line(self, text: str) -> Clean:
        return clean_line(text)


class LineBox(Horizontal):
    """Asks for one line and tells of every change. Hidden until `ask`; while it is open all keys are its own.

    Enter submits, and the line stays until whoever asked closes it; escape closes it.
    """

    DEFAULT_CSS = """
    LineBox {
        height: 1;
        width: 1fr;
        display: none;
        background: $wf-bar;
        & > Input, & > Input:focus {
            height: 1;
            width: 1fr;
            border: none;
            padding: 0;
            background: $wf-cursor;
            color: $wf-plain;
        }
    }
    """

    class Changed(Spoken["LineBox"]):
        """Something was written."""

        def __init__(self, box: LineBox, text: str) -> None:
            super().__init__(box)
            self.text = text

    class Submitted(Spoken["LineBox"]):
        """The line is meant to be taken."""

        def __init__(self, box: LineBox, text: str) -> None:
            super().__init__(box)
            self.text = text

    class Cancelled(Spoken["LineBox"]):
        """The line is not wanted any more, and is closed."""

    def __init__(self, *, marks: Marks = UNICODE_MARKS, id: str | None = None) -> None:
        """Create a closed line. `marks` are the characters that it draws by itself."""
        super().__init__(id=id)
        self._label = _Said(marks, id="line-box-label")
        self._line = _Line(select_on_focus=False)
        self._line.cursor_blink = False
        self._note = _Said(marks, id="line-box-note")
        self._before: Widget | None = None
        self._told = ""

    def compose(self) -> ComposeResult:
        yield self._label
        yield self._line
        yield self._note

    @property
    def is_open(self) -> bool:
        """Is a line being written?"""
        return self.display

    @property
    def text(self) -> str:
        """What is written so far."""
        return self._line.value

    @property
    def typed(self) -> bool:
        """Was anything pressed or pasted since the line was opened, be it gone again?"""
        return self._line.typed

    def ask(self, label: Clean, initial: str = "") -> None:
        """Show the line with this text in it, and take the focus."""
        if not self.is_open:
            self._before = self.screen.focused
        self._label.say(label, "attention")
        self.say(Clean(""), "plain")
        self._told = self._line.value = initial
        self._line.cursor_position = len(initial)
        self._line.sealed = self._line.typed = False
        self.display = True
        # At once and not when the queue comes to it: the next key may be in the queue already.
        self.screen.set_focus(self._line, scroll_visible=False)

    def say(self, text: Clean, tone: Tone) -> None:
        """Say something about what is written, behind it."""
        self._note.say(text, tone)

    @property
    def note_fits(self) -> bool:
        """Does all that was said about the text stand behind it?"""
        return self._note.fits

    def close(self) -> None:
        """Hide the line and give the focus back."""
        self.display = False
        self._line.sealed = True
        before, self._before = self._before, None
        if before is not None and before.is_attached:
            self.screen.set_focus(before, scroll_visible=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Pass it on, once, while the line is open."""
        event.stop()
        self._tell()

    def _tell(self) -> None:
        if self.is_open and self._line.value != self._told:
            self._told = self._line.value
            self.post_message(self.Changed(self, self._told))

    async def on_key(self, event: events.Key) -> None:
        """Take every key that the line did not write down; none goes further up."""
        event.stop()
        if event.key == SUBMIT:
            self._told = self.text
            self.post_message(self.Submitted(self, self.text))
        elif event.key == CANCEL:
            self.close()
            self.post_message(self.Cancelled(self))
