"""A list to choose from: the keys of the choices, a cursor where that is safe, marks where several may be chosen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar, Final

from rich.style import Style
from textual import events
from textual.strip import Strip

from console.screens.flows.asking import Ask, Choice
from watchfloor.text import Clean, clean_line
from widgets.cells import fit, wrap
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import LineView, strip_of
from widgets.tones import Segment

_KEY: Final = 6
_LINE_MOST: Final = 60


class Choices(LineView):
    """The explanation and the choices of an `Ask`, wrapped, nothing cut."""

    PREFIX = "choices"

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "choices--key",
        "choices--detail",
        "choices--cursor",
    }
    """
    | Class | Description |
    | :- | :- |
    | `choices--key` | The key of a choice. |
    | `choices--detail` | What a choice does, below its label. |
    | `choices--cursor` | The ground of the choice that enter takes. |
    """

    DEFAULT_CSS = """
    Choices {
        background: $wf-card;
        scrollbar-background: $wf-card;
        scrollbar-background-hover: $wf-card;
        scrollbar-background-active: $wf-card;
        & > .choices--key { color: $wf-attention; text-style: bold; }
        & > .choices--detail { color: $wf-quiet; }
        & > .choices--cursor { background: $wf-cursor; text-style: $wf-cursor-style; }
    }
    """

    ALLOW_SELECT = False

    def __init__(
        self,
        give: Callable[[tuple[int, ...]], None],
        unread: Callable[[], None],
        pressed: Callable[[], object],
        *,
        marks: Marks = UNICODE_MARKS,
        id: str | None = None,
    ) -> None:
        """Create an empty list that hands the places of what is chosen to `give`.

        `unread` is told where one was wanted that is not wholly in sight, `pressed` of every key, before it acts.
        """
        super().__init__(id=id)
        self._give = give
        self._unread = unread
        self._pressed = pressed
        self._marks = marks
        self._about: Sequence[Segment] = ()
        self._choices: Sequence[Choice] = ()
        self._walks = False
        self._many = False
        self._picks = False
        self._line = ""
        self._at: int | None = None
        self._marked: set[int] = set()
        self._lines: list[tuple[int | None, list[tuple[str, str]]]] = []
        self._read: set[int] = set()
        """Lines that have been painted since the question was put, or laid out anew."""

        # All keys are handled here, in the order in which they were typed; bindings act later than that.
        self._acts: Mapping[str, Callable[[], None]] = {
            "up": lambda: self._move(-1),
            "k": lambda: self._move(-1),
            "down": lambda: self._move(1),
            "j": lambda: self._move(1),
            "space": self._mark,
            "enter": self._take,
            "pagedown": self.action_page_down,
            "pageup": self.action_page_up,
            "home": self.action_scroll_home,
            "end": self.action_scroll_end,
        }

    @property
    def line(self) -> Clean:
        """What was typed where a choice's key only puts the cursor on it."""
        return clean_line(self._line)

    @property
    def at(self) -> Choice | None:
        """What the cursor is on."""
        return self._choices[self._at] if self._at is not None else None

    def marked(self) -> list[Choice]:
        """What is marked, in its order."""
        return [self._choices[place] for place in sorted(self._marked)]

    def show(self, ask: Ask | None, marked: Collection[str] = ()) -> None:
        """Take up a question, or none; nothing is chosen in advance but what the question says, and these by their
        labels are marked."""
        self._about, self._choices = (ask.about, ask.choices) if ask else ((), ())
        self._walks = ask is not None and (ask.cursor or ask.many)
        self._many = ask is not None and ask.many
        self._picks, self._line = ask is not None and ask.picks, ""
        values = [choice.value for choice in self._choices]
        self._at = values.index(ask.at) if ask is not None and ask.at in values else None
        self._marked = {at for at, choice in enumerate(self._choices) if self._many and choice.label in marked}
        self._read.clear()
        self._arrange()
        self.jump(0)

    def tell(self, about: Sequence[Segment]) -> bool:
        """Change what stands above the choices; True where that takes another number of lines."""
        if tuple(about) == tuple(self._about):
            return False
        before = len(self._lines)
        self._about = tuple(about)
        self._arrange()
        return len(self._lines) != before

    def lines_at(self, width: int) -> int:
        """How many lines the question takes at this width of the widget."""
        return len(self._laid(width - self.scrollbar_size_vertical))

    # -------------------------------------------------------------- keys

    def on_key(self, event: events.Key) -> None:
        """A choice's own key takes it; with marks it turns its mark."""
        self._pressed()
        if self._picks and (event.is_printable or event.key in ("backspace", "ctrl+u")):
            self._type(event)
            event.stop()
            event.prevent_default()
            return
        for place, choice in enumerate(self._choices):
            if event.character and event.character in (choice.key, *choice.also):
                self._choose(place)
                break
        else:
            act = self._acts.get(event.key)
            if act is None:
                return
            act()
        event.stop()
        event.prevent_default()

    def _type(self, event: events.Key) -> None:
        """Keep what is typed as a line: a sentence is no choice, whatever letter it begins with."""
        if event.is_printable and event.character is not None:
            self._line = (self._line + event.character)[:_LINE_MOST]
        else:
            self._line = self._line[:-1] if event.key == "backspace" else ""
        keys = [(choice.key, *choice.also) for choice in self._choices]
        self._at = next((at for at, mine in enumerate(keys) if self._line and self._line in mine), None)
        if self._at is not None:
            self._reveal(self._at)
        self._arrange()

    def _move(self, by: int) -> None:
        """Move the cursor; the first move comes in from the edge."""
        if not self._walks or not self._choices:
            self.jump(self.scroll_offset.y + by)
            return
        last = len(self._choices) - 1
        entry, self._line = 0 if by > 0 else last, ""
        self._at = entry if self._at is None else max(0, min(last, self._at + by))
        self._reveal(self._at)
        self._arrange()

    def _mark(self) -> None:
        if self._many and self._at is not None:
            self._choose(self._at)
        else:
            self.action_page_down()

    def _take(self) -> None:
        """Take what is marked, or what is under the cursor."""
        if self._many:
            self._give(tuple(sorted(self._marked)))
        elif self._at is not None:
            self._choose(self._at)
        elif self._picks:
            self._give(())

    def _choose(self, place: int) -> None:
        if not self._in_sight(place):
            self._reveal(place)
            self._unread()
            return
        if self._many:
            self._at = place
            self._marked ^= {place}
            self._arrange()
            return
        self._give((place,))

    def _lines_of(self, place: int) -> list[int]:
        return [y for y, (of, _) in enumerate(self._lines) if of == place]

    def _in_sight(self, place: int) -> bool:
        """Is the whole choice before the operator? Of one that is higher than the list its end has to be, and the rest
        must have been."""
        mine, top, height = self._lines_of(place), self.scroll_offset.y, self.size.height
        if not mine or mine[-1] >= top + height:
            return False
        return mine[0] >= top or (len(mine) > height and self._read.issuperset(mine))

    @property
    def below(self) -> list[Clean]:
        """The keys of the choices that stand below what is in sight."""
        bottom = self.scroll_offset.y + self.size.height
        if not self.size.height:
            return []
        return [choice.key for at, choice in enumerate(self._choices) if self._lines_of(at)[-1:] >= [bottom]]

    def _reveal(self, place: int) -> None:
        """Bring a choice into sight; one that is higher than the list a page at a time."""
        mine = self._lines_of(place)
        if not mine:
            return
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if len(mine) > height:
            unread = next((y for y in mine if y not in self._read), mine[-1] - height + 1)
            self.jump(min(unread, mine[-1] - height + 1))
        elif mine[0] < top:
            self.jump(mine[0])
        elif mine[-1] >= top + height:
            self.jump(mine[-1] - height + 1)

    # -------------------------------------------------------------- painting

    def on_resize(self) -> None:
        """Wrap again."""
        self._arrange()

    def _arrange(self) -> None:
        # Not laid out yet it has no width; its first frame is painted all the same, as wide as the screen.
        width = self.line_width if self.size.width else self.screen.size.width - self.scrollbar_size_vertical
        laid = self._laid(width)
        if len(laid) != len(self._lines):
            self._read.clear()
        self._lines = laid
        self.set_extent(len(self._lines))
        self.refresh()

    def _laid(self, width: int) -> list[tuple[int | None, list[tuple[str, str]]]]:
        lines: list[tuple[int | None, list[tuple[str, str]]]] = []
        for text, tone in self._about:
            lines.extend((None, [("  ", ""), (piece, f"tone-{tone}")]) for piece in wrap(text, width - 3))
        if self._about and self._choices:
            lines.append((None, []))
        for place, choice in enumerate(self._choices):
            lines.extend((place, line) for line in self._choice(place, choice, width))
        return lines

    def _choice(self, place: int, choice: Choice, width: int) -> list[list[tuple[str, str]]]:
        room = max(2, width - _KEY - 1)
        tone = "tone-quiet" if choice.blocked else f"tone-{choice.tone}"
        mark = (self._marks.marked if place in self._marked else " ") if self._many else ""
        key = fit(f"  {mark}{choice.key}", _KEY)
        lines: list[list[tuple[str, str]]] = []
        for piece in wrap(choice.label, room):
            lead = (key, "detail" if choice.blocked else "key") if not lines else (" " * _KEY, "")
            lines.append([lead, (piece, tone)])
        for detail in (*choice.details, choice.blocked):
            if detail:
                lines.extend([(" " * _KEY, ""), (piece, "detail")] for piece in wrap(detail, room))
        return lines

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        at = self.scroll_offset.y + y
        if at >= len(self._lines):
            return Strip.blank(width, self.paint(""))
        self._read.add(at)
        place, parts = self._lines[at]
        ground = "cursor" if place is not None and place == self._at else ""
        painted: list[tuple[str, Style]] = [(text, self.paint(part, ground)) for text, part in parts]
        return strip_of(painted, width, self.paint("", ground))
