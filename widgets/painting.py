"""What all line widgets share: styles by component class, and scrolling without a new layout."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import ClassVar, Final

from rich.segment import Segment as RichSegment
from rich.style import Style
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.widget import Widget

from watchfloor.text import NOTHING, Clean
from widgets.thumb import thumb
from widgets.tones import Tone

_TONE: Final = "tone-"


class Painted(Widget):
    """A widget that paints its own lines with the styles of its component classes."""

    PREFIX: ClassVar[str] = ""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._paints: dict[tuple[str, str], Style] = {}

    def paint(self, part: str, ground: str = "") -> Style:
        """The style of a component class over the widget's own, and over that of `ground` if given."""
        key = (part, ground)
        style = self._paints.get(key)
        if style is None:
            style = self.rich_style
            if ground:
                style += self.get_component_rich_style(f"{self.PREFIX}--{ground}", partial=True)
            if part.startswith(_TONE):
                style += self._tone_style(part.removeprefix(_TONE))
            elif part:
                style += self.get_component_rich_style(f"{self.PREFIX}--{part}", partial=True)
            self._paints[key] = style
        return style

    def _tone_style(self, tone: str) -> Style:
        # Not component classes: seven more nodes to be styled in every widget take a tenth of the time to the first
        # frame, and a tone means the same everywhere.
        variables = self.app.theme_variables
        form = Style.parse(variables.get(f"wf-{tone}-style", "none"))
        return Style(color=variables[f"wf-{tone}"], bold=True if tone == "attention" else None) + form

    def tone(self, tone: Tone, ground: str = "") -> Style:
        """The style of a tone."""
        return self.paint(f"tone-{tone}", ground)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines as they are painted.

        The toolkit would put each through borders, padding, links and tints, for which there is nothing to do here:
        that takes longer than to paint it, and a frame is what a key waits for.
        """
        if any(self.styles.gutter) or self.opacity < 1:
            return super().render_lines(crop)
        filters, background = self.get_line_filters(), self.background_colors[1]
        width, ground = self.region.width, self.rich_style
        begin, end = crop.column_span
        strips: list[Strip] = []
        for y in crop.line_range:
            # Behind the lines is the scrollbar, which paints itself over them.
            strip = self.render_line(y).extend_cell_length(width, ground)
            for one in filters:
                strip = strip.apply_filter(one, background)
            strips.append(strip if begin == 0 and end == width else strip.crop(begin, end))
        return strips

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._paints.clear()


def strip_of(parts: Iterable[tuple[str, Style]], width: int, ground: Style) -> Strip:
    """A strip of exactly `width` cells from texts that are flat already."""
    strip = Strip([RichSegment(text, style) for text, style in parts if text])
    return strip.adjust_cell_length(width, ground)


def marked(text: str, needle: str, style: Style, match: Style) -> list[tuple[str, Style]]:
    """The text in its style, with the style `match` over every place where it holds the needle; case makes no
    difference."""
    needle, folded = needle.casefold(), text.casefold()
    # Folding may change lengths; then nobody knows where in the text a find is.
    if not needle or len(folded) != len(text) or needle not in folded:
        return [(text, style)]
    parts: list[tuple[str, Style]] = []
    at = 0
    while (found := folded.find(needle, at)) >= 0:
        parts += [(text[at:found], style), (text[found : found + len(needle)], style + match)]
        at = found + len(needle)
    return [*parts, (text[at:], style)]


class LineView(Painted, ScrollView, can_focus=True):
    """A scroll view that paints lines; keys move it at once, without animation."""

    DEFAULT_CSS = """
    LineView {
        background: $wf-ground;
        color: $wf-plain;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
    }
    """

    deaf = False
    """While something else is written, a click neither takes the keys nor acts."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._label = ""
        self._labels: Mapping[Hashable, str] = {}

    def focus_on_click(self) -> bool:
        return not self.deaf

    # -------------------------------------------------------------- lines that are named by a letter

    def line_at(self, y: int) -> Hashable | None:
        """What the line `y` of the widget is about, where a cursor can be put on it; else None."""
        return None

    def go_to_line(self, line: Hashable) -> bool:
        """Put the cursor on a line that `line_at` told of; False where it is gone."""
        return False

    def lines_in_sight(self) -> list[Hashable]:
        """What the lines are about that a cursor can be put on, from the top; each once."""
        found = (self.line_at(y) for y in range(self.size.height))
        return list(dict.fromkeys(line for line in found if line is not None))

    def label(self, part: str, lines: Mapping[Hashable, str]) -> None:
        """Show a letter for the whole part on its first line, and one before each of these; "" and {} for none."""
        if part != self._label or lines != self._labels:
            self._label, self._labels = part, lines
            self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        strips = super().render_lines(crop)
        if (not self._label and not self._labels) or crop.x:
            return strips
        style = self.tone("attention") + Style(reverse=True)
        shown: set[str] = set()
        for at, strip in enumerate(strips):
            y = crop.y + at
            letter = self._labels.get(self.line_at(y)) or ("" if y else self._label)
            if letter and letter not in shown:
                shown.add(letter)
                strips[at] = Strip.join([Strip([RichSegment(letter, style)]), strip.crop(1, strip.cell_length)])
        return strips

    @property
    def line_width(self) -> int:
        """Cells of a line that the scrollbar does not cover."""
        return max(0, self.size.width - self.scrollbar_size_vertical)

    def set_extent(self, height: int) -> None:
        """Set the scrollable height in lines, fixed lines included.

        The toolkit lays the whole screen out again when the virtual size changes. Nothing moves when
        these lines grow (the place of the scrollbar is always reserved), and a log grows many times a
        second, so the size is set without that.
        """
        size = Size(self.size.width, height)
        if size == self.virtual_size:
            return
        self.set_reactive(Widget.virtual_size, size)
        if self.is_attached:
            self._take_bar(height, self.vertical_scrollbar.position)
            if self.scroll_y > self.max_scroll_y:
                self.jump(self.max_scroll_y)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        if self.show_vertical_scrollbar and round(old_value) != round(new_value):
            self._take_bar(self.vertical_scrollbar.window_virtual_size, new_value)
            self.refresh(self.size.region)

    def _take_bar(self, extent: int, position: float) -> None:
        """Tell the scrollbar. Of thousands of lines one more or less moves it by less than can be drawn, and then it is
        not painted again: that takes as long as all the lines beside it."""
        bar = self.vertical_scrollbar
        height = bar.size.height
        before = thumb(bar, bar.window_virtual_size, bar.position, height)
        if height and before == thumb(bar, extent, position, height):
            bar.set_reactive(ScrollBar.window_virtual_size, extent)
            bar.set_reactive(ScrollBar.position, position)
        else:
            bar.window_virtual_size, bar.position = extent, position

    def jump(self, y: int) -> None:
        """Scroll to a line at once."""
        self.scroll_to(y=max(0, min(y, self.max_scroll_y)), animate=False)

    def page_lines(self) -> int:
        """How many lines one page moves."""
        return max(1, self.size.height - 2)

    def action_scroll_up(self) -> None:
        self.jump(self.scroll_offset.y - 1)

    def action_scroll_down(self) -> None:
        self.jump(self.scroll_offset.y + 1)

    def action_page_up(self) -> None:
        self.jump(self.scroll_offset.y - self.page_lines())

    def action_page_down(self) -> None:
        self.jump(self.scroll_offset.y + self.page_lines())

    def action_scroll_home(self) -> None:
        self.jump(0)

    def action_scroll_end(self) -> None:
        self.jump(self.max_scroll_y)


class SparseView(LineView):
    """A line view that has words for when there are no lines."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._empty = NOTHING

    @property
    def empty(self) -> Clean:
        """What stands there while there is nothing to show."""
        return self._empty

    @empty.setter
    def empty(self, text: Clean) -> None:
        if text != self._empty:
            self._empty = text
            self.refresh()
