"""The event log: a ring of lines that is followed until somebody scrolls up."""

from __future__ import annotations

from typing import ClassVar, Final, Protocol

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.strip import Strip

from watchfloor.text import Clean
from widgets.cells import crop, fit, flat, skip, width_of
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import SparseView, marked, strip_of
from widgets.tones import Tone


class LogLine(Protocol):
    """One event as a line."""

    @property
    def time(self) -> Clean: ...  # clock time, such as "14:03:07"
    @property
    def kind(self) -> Clean: ...  # one short word, such as "tool"
    @property
    def text(self) -> Clean: ...  # one line; a longer one is cut with a visible mark
    @property
    def tone(self) -> Tone: ...
    @property
    def tail(self) -> Clean: ...  # right-aligned, such as "✓ 3.2 s"
    @property
    def matched(self) -> bool: ...  # does it hold what is looked for?


class LogLines(Protocol):
    """The lines that are kept, oldest first.

    `first` is the absolute number of line 0: it grows by one for each line that the ring drops.
    """

    @property
    def first(self) -> int: ...
    def __len__(self) -> int: ...
    def line(self, i: int, /) -> LogLine: ...


_TIME: Final = 8
_KIND: Final = 8
_LEAD: Final = 1 + _TIME + 2 + _KIND + 1
_TAIL_MOST: Final = 30
_STEP: Final = 8
_FOOTER_LINES: Final = 1
_LONGEST: Final = 100_000

# Lines of these tones are coloured as a whole; of the others only the kind is.
_WHOLE: Final = frozenset({"attention", "failed", "quiet", "lost"})


class _NoLines:
    """Stands in while there is nothing to show."""

    first = 0

    def __len__(self) -> int:
        return 0

    def line(self, i: int, /) -> LogLine:
        raise IndexError(i)


class EventLog(SparseView):
    """Lines as they come in. At the end it follows; scrolled up it stays with what is being read."""

    PREFIX = "event-log"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", "Up", show=False),
        Binding("j", "scroll_down", "Down", show=False),
        Binding("left", "shift(-1)", "Left", show=False),
        Binding("right", "shift(1)", "Right", show=False),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {"event-log--cut", "event-log--cursor", "event-log--match"}
    """
    | Class | Description |
    | :- | :- |
    | `event-log--cut` | The mark where a line goes on beyond the edge. |
    | `event-log--cursor` | The ground of the selected line while the keys are here. |
    | `event-log--match` | What is looked for, in a text. |
    """

    DEFAULT_CSS = """
    EventLog {
        & > .event-log--cut { color: $wf-attention; }
        & > .event-log--cursor { background: $wf-cursor; text-style: $wf-cursor-style; }
        & > .event-log--match { color: $wf-attention; text-style: bold reverse; }
    }
    """

    ALLOW_SELECT = False

    def __init__(
        self,
        lines: LogLines | None = None,
        *,
        marks: Marks = UNICODE_MARKS,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Create a log.

        Args:
            lines: What it shows.
            marks: The characters it draws by itself.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._marks = marks
        self._lines: LogLines = _NoLines() if lines is None else lines
        self._status = Clean("")
        self._needle = ""
        self._following = True
        self._settling = False
        self._top = 0  # absolute number of the line at the top, while not following
        self._read = 0  # absolute number after the last line that was shown
        self._shift = 0
        self._cursor: int | None = None  # absolute number of the selected line; None: the last one, whichever it is

    # -------------------------------------------------------------- what it shows

    @property
    def lines(self) -> LogLines:
        """What the log shows; None given shows nothing."""
        return self._lines

    @lines.setter
    def lines(self, lines: LogLines | None) -> None:
        self._lines = _NoLines() if lines is None else lines
        self._following = True
        self._shift = 0
        self._cursor = None
        self.refresh_log()

    @property
    def status(self) -> Clean:
        """What stands at the left of the last line: what is looked for, what is left out."""
        return self._status

    @status.setter
    def status(self, status: Clean) -> None:
        if status != self._status:
            self._status = status
            self.refresh(Region(0, self.size.height - _FOOTER_LINES, self.size.width, _FOOTER_LINES))

    @property
    def needle(self) -> str:
        """What is marked wherever it stands in a text; case makes no difference."""
        return self._needle

    @needle.setter
    def needle(self, needle: str) -> None:
        if needle != self._needle:
            self._needle = needle
            self.refresh()

    @property
    def following(self) -> bool:
        """Does the log stay at its end as lines arrive?"""
        return self._following

    @property
    def unread(self) -> int:
        """Lines that arrived below what is shown."""
        return 0 if self._following else max(0, self._end - self._read)

    def refresh_log(self, appended: int = 0, dropped: int = 0) -> None:
        """Take up what changed.

        Args:
            appended: Lines that were added at the end.
            dropped: Lines that the ring dropped at the start. With both at 0, lines that are kept
                have changed themselves.
        """
        was_full = self.max_scroll_y > 0
        self._settling = True
        try:
            self.set_extent(self._count + _FOOTER_LINES)
            if self._following or (self.max_scroll_y == 0 and self._cursor is None):
                self._following = True
                self.jump(self.max_scroll_y)
            else:
                self.jump(self._top - self._first)
        finally:
            self._settling = False
        self._note_place()
        if self._following or dropped or not appended or not was_full:
            self.refresh()
        else:
            # What is being read stays as it is; only the number of new lines changes.
            self.refresh(Region(0, self.size.height - _FOOTER_LINES, self.size.width, _FOOTER_LINES))

    @property
    def _count(self) -> int:
        return len(self._lines)

    @property
    def _first(self) -> int:
        return self._lines.first

    @property
    def _end(self) -> int:
        return self._first + self._count

    @property
    def _page(self) -> int:
        return max(0, self.size.height - _FOOTER_LINES)

    def _note_place(self) -> None:
        self._top = self._first + self.scroll_offset.y
        if self._following:
            self._read = self._end
        else:
            self._read = min(self._end, max(self._read, self._top + self._page))

    # -------------------------------------------------------------- keys and scrolling

    @property
    def selected(self) -> int | None:
        """The place of the selected line among those that are kept; None where there are none."""
        if not self._count:
            return None
        if self._cursor is None:
            return self._count - 1
        return max(0, min(self._cursor - self._first, self._count - 1))

    def select(self, place: int, *, stay: bool = False) -> None:
        """Select a line and bring it into sight. The last one is followed, unless to `stay`; others are stayed with."""
        if not self._count:
            return
        place = max(0, min(place, self._count - 1))
        last = place == self._count - 1 and not stay
        top = self.scroll_offset.y
        self._settling = True
        try:
            if last:
                self.jump(self.max_scroll_y)
            elif place < top:
                self.jump(place)
            elif place >= top + self._page:
                self.jump(place - self._page + 1)
        finally:
            self._settling = False
        self._cursor = None if last else self._first + place
        self._following = last
        self._note_place()
        self.refresh()

    def on_focus(self) -> None:
        """Mark the selected line."""
        self.refresh()

    def on_blur(self) -> None:
        """The mark goes with the keys."""
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if not self._settling:
            self._following = self.scroll_offset.y >= self.max_scroll_y
            self._note_place()
            self._keep_cursor_in_sight()

    def _keep_cursor_in_sight(self) -> None:
        place, top = self.selected, self.scroll_offset.y
        if self._following or place is None:
            self._cursor = None
        else:
            self._cursor = self._first + max(top, min(place, top + self._page - 1))

    def action_shift(self, steps: int) -> None:
        """Move the texts sideways; times and kinds stay."""
        widest = max((width_of(self._line(y).text[:_LONGEST]) for y in range(self._shown())), default=0)
        most = max(0, widest - (self.line_width - _LEAD))
        wanted = self._shift + steps * _STEP
        # The last step must be able to reach the very end of the longest line.
        self._shift = max(0, min(wanted, most + _STEP - 1) if most else 0)
        self.refresh()

    def on_resize(self) -> None:
        """Stay at the end, or with the line at the top."""
        self.refresh_log()

    def on_mount(self) -> None:
        """Show the lines that were given at creation."""
        self.refresh_log()

    # -------------------------------------------------------------- painting

    def _shown(self) -> int:
        return max(0, min(self._page, self._count - self.scroll_offset.y))

    def _line(self, y: int) -> LogLine:
        return self._lines.line(self.scroll_offset.y + y)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        ground = self.paint("")
        if y >= self._page:
            return self._footer(width)
        if y < self._shown():
            if self.has_focus and self.scroll_offset.y + y == self.selected:
                return strip_of(self._parts(self._line(y), "cursor"), width, self.paint("", "cursor"))
            return strip_of(self._parts(self._line(y)), width, ground)
        if y == 0 and not self._count and self._empty:
            return strip_of([(fit(" " + self._empty, width, self._marks.cut), self.tone("quiet"))], width, ground)
        return Strip.blank(width, ground)

    def _parts(self, line: LogLine, ground: str = "") -> list[tuple[str, Style]]:
        cut, quiet = self._marks.cut, self.tone("quiet", ground)
        main = self.tone(line.tone if line.tone in _WHOLE else "plain", ground)
        lead = self._marks.cursor if ground else self._marks.marked if line.matched else " "
        parts = [
            (lead, self.tone("attention", ground)),
            (f"{fit(line.time, _TIME, cut)}  ", quiet),
            (f"{fit(line.kind, _KIND, cut)} ", self.tone("quiet" if line.tone == "plain" else line.tone, ground)),
        ]
        room = max(0, self.line_width - _LEAD)
        tail = min(width_of(line.tail), _TAIL_MOST, room // 2)
        # A blank before the tail and one after it; without a tail the text has the line to itself.
        parts.extend(self._text(line.text, room - (tail + 2 if tail else 0), main))
        if tail:
            parts.append((f" {fit(line.tail, tail, cut)} ", main if line.tone in _WHOLE else quiet))
        return parts

    def _text(self, text: str, room: int, style: Style) -> list[tuple[str, Style]]:
        if room <= 0:
            return []
        # A body of megabytes is not measured for a line; nearly every character takes a cell.
        reach = 4 * (self._shift + room) + 64
        text = flat(text[:reach])
        parts: list[tuple[str, Style]] = []
        mark = (self._marks.cut, self.paint("cut"))
        if self._shift and text:
            text = skip(text, self._shift + 1)
            parts.append(mark)
            room -= 1
        if width_of(text) > room > 0:
            return [*parts, *self._found(crop(text, room - 1), style), mark]
        return [*parts, *self._found(fit(text, room), style)]

    def _found(self, text: str, style: Style) -> list[tuple[str, Style]]:
        return marked(text, self._needle, style, self.paint("match")) if self._needle else [(text, style)]

    def _footer(self, width: int) -> Strip:
        if self._following:
            text, style = f"{self._marks.follow} following", self.tone("quiet")
        elif self.unread:
            text, style = f"{self._marks.newer} {self.unread} new (end)", self.tone("attention")
        else:
            text, style = f"{self._marks.newer} not following (end)", self.tone("quiet")
        room = max(0, self.line_width - width_of(text) - 2)
        said = min(width_of(self._status), room)
        parts = [
            (" ", self.paint("")),
            (fit(self._status, said, self._marks.cut), self.tone("attention")),
            (fit(text, self.line_width - 1 - said, self._marks.cut, right=True), style),
        ]
        return strip_of(parts, width, self.paint(""))
