"""The drawer: one question at a time at the foot of a screen, with every key its own while it is open.

It lies in the screen and not over it. What is asked about stays in sight and alive, and a screen below a see-through
one would be painted whole at every change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from console.screens.asking import NOTHING, Answer, Ask
from console.screens.choices import Choices
from watchfloor.text import Clean, clean_line
from widgets.marks import UNICODE_MARKS, Marks
from widgets.status_bar import StatusBar
from widgets.tones import Segment

_MOST_SHARE: Final = 0.6
_LONGEST_TEXT: Final = 32_768


class _Says:
    def __init__(self, left: tuple[Segment, ...], right: tuple[Segment, ...] = ()) -> None:
        self.left = left
        self.right = right


class TextLine(Input):
    """An input line for the drawer.

    Enter is handled in its place among the keys: as a binding it would act after keys that were typed behind it, and
    those would become part of the text. What is pasted is cleaned, since a paste may bring control characters.
    """

    def __init__(self, give: Callable[[str], None], *, id: str | None = None) -> None:
        """Create a line that hands its text to `give` on enter."""
        super().__init__(id=id, max_length=_LONGEST_TEXT, select_on_focus=False)
        self._give = give
        self.takes = False

    async def _on_key(self, event: events.Key) -> None:
        if not self.takes:
            # Typed behind the enter that closed the drawer: nobody's.
            event.stop()
            event.prevent_default()
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            self._give(self.value)

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.insert_text_at_cursor(clean_line(event.text.strip("\r\n").replace("\r\n", "\n")))


class Drawer(Vertical):
    """Asks one thing and hands the answer to the `then` of its `Ask`."""

    DEFAULT_CSS = """
    Drawer {
        display: none;
        height: auto;
        background: $wf-card;
        border-top: solid $wf-rule;
        &.-open { display: block; }
        & > StatusBar { background: $wf-card; }
        & > TextLine {
            display: none;
            height: 1;
            border: none;
            padding: 0 1;
            background: $wf-bar;
            color: $wf-plain;
            &:focus { border: none; background: $wf-cursor; background-tint: 0%; }
            & > .input--cursor { color: $wf-ground; background: $wf-attention; text-style: none; }
            & > .input--selection { background: $wf-rule; }
        }
        &.-writes > TextLine { display: block; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", show=False),
        # The focus has nowhere else to go while something is asked.
        Binding("tab,shift+tab", "stay", "Stay", show=False),
    ]

    class Closed(Message):
        """The keys belong to the screen again."""

    def __init__(self, *, marks: Marks = UNICODE_MARKS, id: str | None = None) -> None:
        """Create a closed drawer."""
        super().__init__(id=id)
        self._marks = marks
        self._ask: Ask | None = None
        self._problem = NOTHING
        self._back: Widget | None = None

    def compose(self) -> ComposeResult:
        yield StatusBar(id="drawer-title", marks=self._marks)
        yield Choices(self._taken, id="drawer-choices", marks=self._marks)
        yield TextLine(self._written, id="drawer-text")
        yield StatusBar(id="drawer-hint", marks=self._marks)

    def on_mount(self) -> None:
        """Settle what never changes."""
        self._text.cursor_blink = False

    @property
    def _text(self) -> TextLine:
        return self.query_one(TextLine)

    @property
    def _choices(self) -> Choices:
        return self.query_one(Choices)

    @property
    def is_open(self) -> bool:
        """Is something being asked? Then all keys belong here."""
        return self._ask is not None

    def ask(self, ask: Ask) -> None:
        """Ask this, in place of whatever is asked now. Owns the keys when this returns."""
        if self._ask is None:
            self._back = self.screen.focused
        self._ask = ask
        self._problem = NOTHING
        text, choices = self._text, self._choices
        text.clear()
        text.takes = ask.text is not None
        text.password = ask.text is not None and ask.text.secret
        choices.show(ask)
        self.set_class(ask.text is not None, "-writes")
        self.add_class("-open")
        self.fit_height()
        self.refresh_drawer()
        self.screen.set_focus(text if ask.text is not None else choices, scroll_visible=False)

    def fit_height(self) -> None:
        """Give the question the lines that it needs, up to a share of the screen."""
        lines = self._choices.lines_at(self.screen.size.width)
        self._choices.styles.height = min(lines, max(3, int(self.screen.size.height * _MOST_SHARE)))
        self._choices.display = lines > 0

    def refresh_drawer(self) -> None:
        """Take up whether the question still stands."""
        ask = self._ask
        if ask is None:
            return
        ended = ask.ended()
        self.query_one("#drawer-title", StatusBar).status = _Says(ask.title)
        self.query_one("#drawer-hint", StatusBar).status = _Says(*self._hint(ask, ended))

    def _hint(self, ask: Ask, ended: Clean) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
        leave: Segment = (Clean("esc  leave it"), "quiet")
        if ended:
            return ((Clean(f"{ended}: nothing can be sent any more"), "attention"),), (leave,)
        if self._problem:
            return ((self._problem, "attention"),), (leave,)
        if ask.text is not None or ask.many:
            say = f"enter  {ask.enter}"
        elif ask.cursor:
            say = f"its key, or arrows and enter  {ask.enter}"
        else:
            say = "press the key of your choice"
        return ((Clean(say), "quiet"),), (leave,)

    # -------------------------------------------------------------- answers

    def action_cancel(self) -> None:
        """Close without an answer."""
        self.close()

    def action_stay(self) -> None:
        """Keep the focus."""

    def _written(self, text: str) -> None:
        ask = self._ask
        if ask is not None and ask.text is not None:
            self._give(ask, Answer(text=text), ask.text.check(text))

    def _taken(self, places: tuple[int, ...]) -> None:
        ask = self._ask
        if ask is None or ask.text is not None:
            return
        chosen = [ask.choices[place] for place in places]
        blocked = next((choice.blocked for choice in chosen if choice.blocked), NOTHING)
        self._give(ask, Answer(values=tuple(choice.value for choice in chosen)), blocked)

    def _give(self, ask: Ask, answer: Answer, problem: Clean) -> None:
        self._problem = problem
        if problem or ask.ended():
            self.refresh_drawer()
            return
        ask.then(answer)
        # `then` may have asked the next thing.
        if self._ask is ask:
            self.close()

    def close(self) -> None:
        """Give the keys back to where they were."""
        self._ask = None
        self._problem = NOTHING
        self._text.takes = False
        self._text.clear()
        self._choices.show(None)
        self.remove_class("-open", "-writes")
        back, self._back = self._back, None
        self.screen.set_focus(back if back is not None and back.is_attached and back.focusable else None)
        self.post_message(Drawer.Closed())
