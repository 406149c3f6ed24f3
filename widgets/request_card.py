"""The request card: the exact action first, what may be done about it last."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.errors import NoWidget
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from widgets.card_layout import (
    RISKY,
    Content,
    Line,
    Subject,
    body_lines,
    content_of,
    ending_lines,
    lay_body,
    option_lines,
    rule_line,
    state_lines,
    title_lines,
)
from widgets.card_view import CardAction, CardField, CardOption, CardView
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import LineView, strip_of

__all__ = ["CardAction", "CardField", "CardOption", "CardView", "RequestCard"]

_BODY_LEAST: Final = 3
_RISKY: Final = Style(bold=True, underline=True)

_Identity = tuple[Hashable, str, Subject]


class RequestCard(LineView):
    """One request. Title and options stay in place while the body scrolls between them.

    `end_seen` turns true when the last line of the body stood on the screen, whole and uncovered,
    and so did the end of each exact text in it, however much stands below.
    On a card too low for title, options and three lines of body everything scrolls together, and
    the last line is that of the options.
    """

    PREFIX = "request-card"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", "Up", show=False),
        Binding("j", "scroll_down", "Down", show=False),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "request-card--title",
        "request-card--subtitle",
        "request-card--gutter",
        "request-card--bar",
        "request-card--exact",
        "request-card--rule",
        "request-card--option-key",
        "request-card--option-note",
        "request-card--option-blocked",
        "request-card--ending",
        "request-card--state",
        "request-card--digest",
        "request-card--unread",
    }
    """
    | Class | Description |
    | :- | :- |
    | `request-card--title` | The first line of the title; `--subtitle` the others. |
    | `request-card--gutter` | Our labels left of the bar. |
    | `request-card--bar` | The bar left of all text from outside. |
    | `request-card--exact` | The exact text of an action, or of a question. |
    | `request-card--rule` | The line above the options. |
    | `request-card--option-key` | The key of an option; `--option-note` what it does. |
    | `request-card--option-blocked` | An option that cannot be chosen now. |
    | `request-card--ending` | How the request ended. |
    | `request-card--state` | Whether keys count yet, and the deadline; `--digest` the digest. |
    | `request-card--unread` | That the end has not been seen. |
    """

    DEFAULT_CSS = """
    RequestCard {
        background: $wf-card;
        scrollbar-background: $wf-card;
        scrollbar-background-hover: $wf-card;
        scrollbar-background-active: $wf-card;
        & > .request-card--title { text-style: bold; background: $wf-bar; }
        & > .request-card--subtitle { color: $wf-quiet; background: $wf-bar; }
        & > .request-card--gutter { color: $wf-quiet; }
        & > .request-card--bar { color: $wf-quiet; }
        & > .request-card--exact { text-style: bold; }
        & > .request-card--rule { color: $wf-rule; }
        & > .request-card--option-key { color: $wf-attention; text-style: bold; }
        & > .request-card--option-note { color: $wf-quiet; }
        & > .request-card--option-blocked { color: $wf-quiet; }
        & > .request-card--ending { text-style: bold; }
        & > .request-card--digest { color: $wf-quiet; }
        & > .request-card--unread { color: $wf-attention; }
    }
    """

    ALLOW_SELECT = False

    class Shown(Message):
        """The beginning of a request was painted for the first time."""

        def __init__(self, card: RequestCard, request_key: Hashable, digest: str) -> None:
            super().__init__()
            self.card = card
            self.request_key = request_key
            self.digest = digest

        @property
        def control(self) -> RequestCard:
            return self.card

    class EndSeen(Message):
        """The end of a request was painted, whole and uncovered."""

        def __init__(self, card: RequestCard, request_key: Hashable, digest: str) -> None:
            super().__init__()
            self.card = card
            self.request_key = request_key
            self.digest = digest

        @property
        def control(self) -> RequestCard:
            return self.card

    def __init__(
        self,
        card: CardView | None = None,
        *,
        marks: Marks = UNICODE_MARKS,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Create a card.

        Args:
            card: The request that it shows.
            marks: The characters it draws by itself.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._marks = marks
        self._card = card
        self._identity: _Identity | None = None
        self._begin_seen = False
        self._end_seen = False
        self._bottom_seen = False
        self._ends: tuple[int, ...] = ()  # places in the body at which an exact text ends
        self._unseen: set[int] = set()  # those of them that have not been on the screen
        self._tallest: tuple[Hashable, int, int] = (None, 0, 0)  # of this request, at this width: lines
        self._wrapped: tuple[Content, int] | None = None
        self._body: list[Line] = []
        self._head: list[Line] = []  # fixed above
        self._scrolled: list[Line] = []
        self._foot: list[Line] = []  # fixed below
        self._below = 0  # lines that scroll below the body
        self._place = False  # does the last fixed line say what part is shown?

    # -------------------------------------------------------------- what it shows

    @property
    def card(self) -> CardView | None:
        """The request that is shown."""
        return self._card

    @card.setter
    def card(self, card: CardView | None) -> None:
        self._card = card
        self.refresh_card()

    @property
    def end_seen(self) -> bool:
        """Was the end of this very request on the screen?"""
        return self._end_seen

    @property
    def begin_seen(self) -> bool:
        """Was the beginning of this very request on the screen?"""
        return self._begin_seen

    def credit(self, other: RequestCard) -> None:
        """Count as read what was read to its end on another card, if it is this very request."""
        identity = self._identity
        if identity is None or identity != other._identity or not (other._begin_seen and other._end_seen):
            return
        if not self._end_seen:
            # That its beginning comes onto the screen here is still told: keys count from then on.
            self._end_seen = True
            self.post_message(self.EndSeen(self, identity[0], identity[1]))
            self.refresh()

    def refresh_card(self) -> None:
        """Take up what changed on the request.

        Another key, another digest or another text of what is decided about counts as another
        request: it starts at its beginning, unread.
        """
        card = self._card
        content = None if card is None else content_of(card)
        identity = None if card is None or content is None else (card.key, card.digest, content.subject)
        if identity != self._identity:
            self._identity = identity
            self._begin_seen = self._end_seen = self._bottom_seen = False
            self._unseen = set(self._ends)
            self.jump(0)
        self._arrange(content)

    def on_resize(self) -> None:
        """Wrap again."""
        self.refresh_card()

    def on_mount(self) -> None:
        """Show the request that was given at creation."""
        self.refresh_card()

    def _arrange(self, content: Content | None) -> None:
        card, width, height = self._card, self.line_width, self.size.height
        self._head, self._scrolled, self._foot, self._place = [], [], [], False
        if card is not None and content is not None and width and height:
            if self._wrapped != (content, width):
                before = self._wrapped
                self._body, self._ends = lay_body(content, width, self._marks)
                self._wrapped = (content, width)
                if before is None or before[1] != width or before[0].subject != content.subject:
                    # Other lines: of the ones before nobody can say which of these they are.
                    self._unseen = set(self._ends)
            choices = option_lines(card.options, width) if card.open else ending_lines(card, width)
            head = title_lines(card, width, self._marks)
            foot = [rule_line(width, self._marks), *choices, *state_lines(card, width)]
            wanted = len(head) + len(self._body) + len(foot)
            key, _, tallest = self._tallest
            if self.styles.is_auto_height and (key != card.key or wanted > tallest):
                self.refresh(layout=True)
            room = height - len(head) - len(foot)
            if len(self._body) <= room:
                self._head, self._scrolled, self._foot = head, self._body, foot
            elif room - 1 >= _BODY_LEAST:
                self._head, self._scrolled, self._foot, self._place = head, self._body, foot, True
            else:
                self._scrolled, self._place, self._below = [*head, *self._body, *foot], True, len(foot)
        self.set_extent(len(self._head) + len(self._scrolled) + len(self._foot) + self._place)
        self.refresh()

    @property
    def _window(self) -> int:
        """Lines between the fixed ones."""
        return max(0, self.size.height - len(self._head) - len(self._foot) - self._place)

    def page_lines(self) -> int:
        """A page overlaps the one before by a line."""
        return max(1, self._window - 1)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """What the request takes without scrolling; it never shrinks under the eyes of who reads it."""
        card = self._card
        if card is None:
            return 0
        lines = self._lines_at(card, max(0, width - self.scrollbar_size_vertical))
        key, at, before = self._tallest
        if (key, at) == (card.key, width):
            lines = max(lines, before)
        self._tallest = (card.key, width, lines)
        return lines

    def _lines_at(self, card: CardView, width: int) -> int:
        choices = option_lines(card.options, width) if card.open else ending_lines(card, width)
        around = len(title_lines(card, width, self._marks)) + 1 + len(choices) + len(state_lines(card, width))
        return around + len(body_lines(content_of(card), width, self._marks))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.refresh()

    # -------------------------------------------------------------- painting

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        ground = self.paint("")
        line = self._line_at(y)
        if line is None:
            return self._place_strip(width) if self._place and y == self.size.height - 1 else Strip.blank(width, ground)
        return strip_of([(text, self._style(part)) for text, part in line], width, ground)

    def _style(self, part: str) -> Style:
        if not part.startswith(RISKY):
            return self.paint(part)
        return self.paint(f"tone-{part.removeprefix(RISKY)}") + _RISKY

    def _line_at(self, y: int) -> Line | None:
        if y < len(self._head):
            return self._head[y]
        below = y - len(self._head)
        if below < self._window:
            at = below + self.scroll_offset.y
            return self._scrolled[at] if at < len(self._scrolled) else None
        below -= self._window
        return self._foot[below] if below < len(self._foot) else None

    def _place_strip(self, width: int) -> Strip:
        first = self.scroll_offset.y
        last = min(first + self._window, len(self._scrolled))
        text = f"  line {first + 1}-{last} of {len(self._scrolled)}"
        part = "state"
        if self._card is not None and self._card.open and not self._end_seen:
            verb = "answer" if self._card.fields and not self._card.actions else "approve"
            text += f", {verb} after the end was seen (end)"
            part = "unread"
        return strip_of([(text, self.paint(part))], width, self.paint(""))

    # -------------------------------------------------------------- what was really seen

    def render_lines(self, crop: Region) -> list[Strip]:
        strips = super().render_lines(crop)
        if self._identity is not None and self._scrolled and not (self._begin_seen and self._end_seen):
            begin = self._visible_line(0, crop)
            bottom = self._visible_line(len(self._scrolled) - 1, crop)
            ends = [
                (at, y) for at in self._in_window() if (y := self._visible_line(at + self._above, crop)) is not None
            ]
            if begin is not None or bottom is not None or ends:
                # The frame is not on the terminal yet.
                self.call_after_refresh(self._confirm, self._identity, begin, bottom, (self._ends, ends))
        return strips

    @property
    def _above(self) -> int:
        """Lines that scroll above the body."""
        return 0 if self._head or not self._scrolled else len(self._scrolled) - len(self._body) - self._below

    def _in_window(self) -> list[int]:
        """Those ends of exact texts in sight that have not been seen."""
        first = self.scroll_offset.y - self._above
        return [at for at in self._unseen if first <= at < first + self._window]

    @property
    def next_end(self) -> int:
        """Where to scroll to for the end: that of the first exact text of which it was not seen, else the last line."""
        left = min(self._unseen, default=None)
        if self._end_seen or left is None:
            return self.max_scroll_y
        at = left + self._above
        return self.max_scroll_y if at >= self.max_scroll_y else max(0, at - self._window + 1)

    def _visible_line(self, index: int, crop: Region) -> int | None:
        """The line of the widget's content where a scrolled line is in full width within `crop`."""
        y = index - self.scroll_offset.y
        if not 0 <= y < self._window:
            return None
        y += len(self._head)
        line = Region(self.gutter.left, self.gutter.top + y, self.line_width, 1)
        return y if crop.contains_region(line) else None

    def _confirm(
        self,
        identity: _Identity,
        begin: int | None,
        bottom: int | None,
        ends: tuple[tuple[int, ...], Sequence[tuple[int, int]]],
    ) -> None:
        if identity != self._identity or not self.screen.is_active:
            return
        key, digest, _ = identity
        if begin is not None and not self._begin_seen and self._uncovered(begin):
            self._begin_seen = True
            self.post_message(self.Shown(self, key, digest))
        if ends[0] == self._ends:
            self._unseen.difference_update(at for at, y in ends[1] if self._uncovered(y))
        self._bottom_seen = self._bottom_seen or (bottom is not None and self._uncovered(bottom))
        if not self._end_seen and self._bottom_seen and not self._unseen:
            self._end_seen = True
            self.post_message(self.EndSeen(self, key, digest))
            self.refresh()

    def _uncovered(self, y: int) -> bool:
        """Is every cell of the line ours, with no notice or other widget above it?"""
        left, top = self.content_region.offset
        cells = range(left, left + self.line_width)
        try:
            return all(self.screen.get_widget_at(x, top + y)[0] is self for x in cells)
        except NoWidget:  # moved off the screen meanwhile
            return False
