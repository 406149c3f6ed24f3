"""The text prompt: a line to write in, that grows, and that keeps every key to itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import TextArea

from watchfloor.text import Clean, clean
from widgets.cells import fit, width_of
from widgets.editing import edit
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import Painted, strip_of
from widgets.recall import Recall
from widgets.sealed_line import CANCEL, SUBMIT, SealedLine
from widgets.spoken import Spoken

_BACK = "shift+tab"
_STEPS: Final = {"up": -1, "down": 1}
_NEW_LINE = ("ctrl+j", "shift+enter", "alt+enter")


class _Label(Painted):
    """What is written, to whom, and as many of the keys as there is room for beside that; those that end it first."""

    PREFIX = "prompt-label"

    COMPONENT_CLASSES: ClassVar[set[str]] = {"prompt-label--hint"}

    DEFAULT_CSS = """
    _Label {
        height: 1;
        width: 1fr;
        color: $wf-attention;
        text-style: bold;
        & > .prompt-label--hint { color: $wf-quiet; text-style: not bold; }
    }
    """

    def __init__(self, marks: Marks) -> None:
        super().__init__()
        self._marks = marks
        self._text = Clean("")
        self._keys: Sequence[str] = ()

    def say(self, text: Clean, keys: Sequence[str]) -> None:
        self._text, self._keys = text, keys
        self.refresh()

    def _hint(self, width: int) -> str:
        for count in range(len(self._keys), 2, -1):
            hint = "  ".join(self._keys[:count])
            if width_of(self._text) + len(hint) + 3 <= width:
                return hint
        hint = "  ".join(self._keys[:2])
        return hint if len(hint) + 8 < width else ""

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        ground = self.paint("")
        hint = self._hint(width)
        room = max(0, width - len(hint) - 3)
        parts: list[tuple[str, Style]] = [
            (" ", ground),
            (fit(self._text, room, self._marks.cut), ground),
            (" ", ground),
            (hint, self.paint("hint")),
        ]
        return strip_of(parts, width, ground)


class _Area(TextArea):
    """A text area that leaves ending, cancelling and line breaks to the prompt.

    `sealed`: submitted or cancelled. Keys that were typed behind that, in the same breath, are nobody's: they must
    neither become part of the text nor reach what lies below.
    """

    sealed = False
    typed = False
    recalls: Callable[[int], bool]
    """Brings back what was written before, or after; False where the key only moves the cursor."""

    async def on_key(self, event: events.Key) -> None:
        if self.sealed:
            event.stop()
            event.prevent_default()
        elif event.key in (SUBMIT, CANCEL):
            event.prevent_default()
            self.sealed = True
        else:
            self.typed = True
            if event.key in _NEW_LINE or (event.key in _STEPS and self.recalls(_STEPS[event.key])):
                event.stop()
                event.prevent_default()
            else:
                await edit(self, event)
            if event.key in _NEW_LINE:
                self.replace("\n", *self.selection, maintain_selection_offset=False)

    async def on_paste(self, event: events.Paste) -> None:
        # A terminal may paste control sequences. What is sent must be what is seen.
        event.stop()
        event.prevent_default()
        self.typed = True
        self.replace(_pasted(event.text), *self.selection, maintain_selection_offset=False)


class _Secret(SealedLine):
    """A line whose text is not shown."""

    def first_line(self, text: str) -> Clean:
        return clean(text)


def _pasted(text: str) -> Clean:
    return clean(text.replace("\r\n", "\n").replace("\r", "\n"))


class TextPrompt(Vertical):
    """Asks for a text: a reason, an answer, a message.

    Hidden until `ask`. While it has the focus no binding of the screen or of the application fires,
    except those that the application marks as having priority. Enter submits, escape cancels,
    ctrl+j begins a new line; both ends hide the prompt and give the focus back.
    """

    DEFAULT_CSS = """
    TextPrompt {
        height: auto;
        width: 1fr;
        background: $wf-bar;
        display: none;
        & > TextArea, & > TextArea:focus {
            height: auto;
            max-height: 6;
            border: none;
            padding: 0 1;
            background: $wf-cursor;
            color: $wf-plain;
        }
        & > Input, & > Input:focus {
            height: 1;
            border: none;
            padding: 0 1;
            background: $wf-cursor;
            color: $wf-plain;
        }
    }
    """

    class Submitted(Spoken["TextPrompt"]):
        """The text was sent off. It is what the operator wrote, line breaks included."""

        def __init__(self, prompt: TextPrompt, text: str) -> None:
            super().__init__(prompt)
            self.text = text

    class Cancelled(Spoken["TextPrompt"]):
        """Nothing is to be sent. `text` is what had been written."""

        def __init__(self, prompt: TextPrompt, text: str) -> None:
            super().__init__(prompt)
            self.text = text

    class Back(Spoken["TextPrompt"]):
        """What was asked before is wanted once more. `text` is what had been written; the prompt is still open."""

        def __init__(self, prompt: TextPrompt, text: str) -> None:
            super().__init__(prompt)
            self.text = text

    def __init__(
        self,
        *,
        marks: Marks = UNICODE_MARKS,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Create a prompt.

        Args:
            marks: The characters it draws by itself.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._label = _Label(marks)
        self._area = _Area(soft_wrap=True, highlight_cursor_line=False)
        self._area.cursor_blink = False
        self._area.recalls = self._step
        self._secret = _Secret(password=True)
        self._secret.cursor_blink = False
        self._is_secret = False
        self._has_past = False
        self._goes_back = False
        self._before: Widget | None = None
        self._recall = Recall()
        self._asked = Clean("")
        self._enter = Clean("")

    def compose(self) -> ComposeResult:
        yield self._label
        yield self._area
        yield self._secret

    @property
    def is_open(self) -> bool:
        """Is a text being asked for?"""
        return self.display

    @property
    def text(self) -> str:
        """What is written so far."""
        return self._secret.value if self._is_secret else self._area.text

    @property
    def unsent(self) -> str:
        """What is to be kept of it where it is not sent."""
        return self.text if self._is_secret else self._recall.unsent(self.text)

    @property
    def typed(self) -> bool:
        """Was anything pressed or pasted since the prompt was opened, be it gone again?"""
        return self._secret.typed if self._is_secret else self._area.typed

    def ask(
        self,
        label: Clean,
        *,
        initial: Clean | None = None,
        secret: bool = False,
        enter: Clean = Clean("sends"),  # noqa: B008 - an immutable text
        anew: bool = False,
        back: bool = False,
        past: Sequence[str] = (),
    ) -> None:
        """Show the prompt, empty or with `initial`, and take the focus.

        Args:
            label: What is asked for, and to whom it goes.
            initial: The text to begin with.
            secret: Do not show what is written; one line only.
            enter: What enter does.
            anew: Select the text to begin with, so that what is typed stands in its place.
            back: Tell of the key that wants what was asked before.
            past: Texts that can be brought back by the keys for up and down, oldest first.
        """
        if not self.is_open:
            self._before = self.screen.focused
        self._is_secret = secret
        self._area.display = not secret
        self._secret.display = secret
        self._area.text = "" if secret else (initial or "")
        self._secret.value = (initial or "") if secret else ""
        self.display = True
        self._area.sealed = self._secret.sealed = self._area.typed = self._secret.typed = False
        # At once and not when the queue comes to it: the next key may be in the queue already.
        self.screen.set_focus(self._secret if secret else self._area, scroll_visible=False)
        self._area.move_cursor(self._area.document.end)
        self._secret.cursor_position = len(self._secret.value)
        self._goes_back, self._asked, self._enter = back, label, enter
        self._recall = Recall(past, self._area.text)
        self._has_past = bool(past) and not secret
        self._tell_keys()
        if anew:
            self._area.select_all()

    def _tell_keys(self) -> None:
        keys = [f"enter {self._enter}", "esc leaves"]
        keys += ["shift+tab one back"] if self._goes_back else []
        if self._has_past:
            place = self._recall.place
            keys.append("up sent before" if place is None else f"up/down {place[0]:,} of {place[1]:,} sent before")
        # ctrl+j is the one key for a line break that every terminal can send.
        keys += [] if self._is_secret else ["ctrl+j new line"]
        self._label.say(self._asked, keys)

    def close(self) -> None:
        """Hide the prompt, forget what was written and give the focus back."""
        self.display = False
        self._area.text = ""
        self._secret.value = ""
        before, self._before = self._before, None
        if before is not None and before.is_attached:
            self.screen.set_focus(before, scroll_visible=False)

    async def on_key(self, event: events.Key) -> None:
        """Take every key that the field did not write down; none goes further up."""
        event.stop()
        if event.key == SUBMIT:
            text = self.text
            self.close()
            self.post_message(self.Submitted(self, text))
        elif event.key == CANCEL:
            text = self.unsent
            self.close()
            self.post_message(self.Cancelled(self, text))
        elif event.key == _BACK and self._goes_back:
            self.post_message(self.Back(self, self.unsent))

    def _step(self, by: int) -> bool:
        """Bring back what was written before, or after; False where the key moves the cursor, or nothing is there."""
        area = self._area
        if not self._has_past or not area.selection.is_empty:
            return False
        at_edge = area.navigator.is_first_wrapped_line if by < 0 else area.navigator.is_last_wrapped_line
        if not at_edge(area.cursor_location):
            return False
        text = self._recall.step(area.text, by)
        if text is None:
            return False
        area.text = text
        area.move_cursor(area.document.end)
        if by < 0 and not area.navigator.is_first_wrapped_line(area.cursor_location):
            # The next press goes on, instead of through the lines of this one.
            area.move_cursor((0, 0))
        self._tell_keys()
        return True
