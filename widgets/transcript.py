"""A transcript: blocks of lines that is followed until somebody scrolls up."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from itertools import accumulate
from typing import ClassVar, Final

from rich.style import Style
from textual import events
from textual.strip import Strip

from watchfloor.text import Clean
from widgets.cells import fit, width_of, wrap
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import SparseView, marked, strip_of
from widgets.spoken import Spoken
from widgets.tones import Segment
from widgets.transcript_layout import Laid, lay
from widgets.transcript_view import TranscriptBlock, TranscriptBlocks

_FOOTER: Final = 1


class _NoBlocks:
    def __len__(self) -> int:
        return 0

    def block(self, place: int, /) -> TranscriptBlock:
        raise IndexError(place)


class Transcript(SparseView):
    """Blocks as they come in. At the end it follows; scrolled up it stays with what is being read.

    The block under the cursor can be opened, and turned to its source text. Nothing in a block is a link or markup.
    """

    PREFIX = "transcript"

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"transcript--{part}"
        for part in (
            "time", "kind", "title", "bar", "cursor", "prose", "heading", "item", "quote", "code", "fence", "exact",
            "output", "added", "removed", "hunk", "note", "match",
        )
    }  # fmt: skip
    """
    | Class | Description |
    | :- | :- |
    | `transcript--time` | The clock time of a block; `--kind` what it is; `--title` its title. |
    | `transcript--cursor` | The ground of the selected block's first line while the keys are here. |
    | `transcript--bar` | The bar left of a body. |
    | `transcript--match` | What is looked for, in a text. |
    | `transcript--…` | A line of a body, by its form. |
    """

    DEFAULT_CSS = """
    Transcript {
        & > .transcript--time { color: $wf-quiet; }
        & > .transcript--kind { text-style: bold; }
        & > .transcript--bar { color: $wf-rule; }
        & > .transcript--cursor { background: $wf-cursor; text-style: $wf-cursor-style; }
        & > .transcript--heading { text-style: bold; }
        & > .transcript--quote { color: $wf-quiet; }
        & > .transcript--fence { color: $wf-quiet; }
        & > .transcript--exact { text-style: bold; }
        & > .transcript--output { color: $wf-quiet; }
        & > .transcript--added { color: $wf-running; }
        & > .transcript--removed { color: $wf-failed; }
        & > .transcript--hunk { color: $wf-quiet; text-style: bold; }
        & > .transcript--note { color: $wf-quiet; }
        & > .transcript--match { color: $wf-attention; text-style: bold reverse; }
    }
    """

    ALLOW_SELECT = False

    class AtTop(Spoken["Transcript"]):
        """Somebody wants to read on above the first block."""

    class Opened(Spoken["Transcript"]):
        """A block was opened with the mouse."""

    def __init__(
        self, blocks: TranscriptBlocks | None = None, *, marks: Marks = UNICODE_MARKS, id: str | None = None
    ) -> None:
        """Create a transcript.

        Args:
            blocks: What it shows.
            marks: The characters it draws by itself.
        """
        super().__init__(id=id)
        self._marks = marks
        self._blocks: TranscriptBlocks = _NoBlocks() if blocks is None else blocks
        self._laid: dict[TranscriptBlock, Laid] = {}
        self._width = 0
        self._shown: list[TranscriptBlock] = []
        self._ends: list[int] = []  # the line behind each block
        self._open: set[Hashable] = set()
        self._sources: set[Hashable] = set()
        self._cursor: Hashable = None  # None: the last block, whichever it is
        self._place = 0  # of the cursor, once it is not the last
        self._following = True
        self._settling = False
        self._read: Hashable = None  # the last block that was there while it was followed
        self._status: Segment = (Clean(""), "quiet")
        self._needle = ""

    # -------------------------------------------------------------- what it shows

    @property
    def blocks(self) -> TranscriptBlocks:
        """What is shown."""
        return self._blocks

    @blocks.setter
    def blocks(self, blocks: TranscriptBlocks) -> None:
        self._blocks = blocks
        self._open.clear()
        self._sources.clear()
        self.follow()

    @property
    def status(self) -> Segment:
        """What stands at the left of the last line."""
        return self._status

    @status.setter
    def status(self, status: Segment) -> None:
        if status != self._status:
            self._status = status
            self.refresh()

    @property
    def needle(self) -> str:
        """What is marked wherever it stands in a line; case makes no difference."""
        return self._needle

    @needle.setter
    def needle(self, needle: str) -> None:
        if needle != self._needle:
            self._needle = needle
            self.refresh()

    @property
    def following(self) -> bool:
        """Does it stay at its end as blocks arrive?"""
        return self._following

    @property
    def unread(self) -> int:
        """Blocks that arrived below those that were there while it was followed."""
        if self._following or self._read is None:
            return 0
        return next((count for count, block in enumerate(reversed(self._shown)) if block.key == self._read), 0)

    def follow(self) -> None:
        """Go to the end, and stay there."""
        self._following, self._cursor = True, None
        self.refresh_blocks()

    def refresh_blocks(self) -> None:
        """Take up what changed. What is being read stays where it is."""
        top, within = self._anchor()
        width = self.line_width
        if width != self._width:
            self._laid.clear()
            self._width = width
        count = len(self._blocks)
        shown = [self._blocks.block(place) for place in range(count)]
        laid = self._laid
        self._laid = {block: laid.get(block) or self._lay(block) for block in shown}
        self._shown = shown
        self._ends = list(accumulate(len(one.lines) for one in self._laid.values()))
        self._settling = True
        try:
            self.set_extent((self._ends[-1] if self._ends else 0) + _FOOTER)
            if self._following:
                self.jump(self.max_scroll_y)
            elif top is not None:
                place = self._find(top)
                if place is not None:
                    self.jump(self._begin(place) + within)
        finally:
            self._settling = False
        if self._following and shown:
            self._read = shown[-1].key
        self.refresh()

    def _lay(self, block: TranscriptBlock) -> Laid:
        return lay(block, self._width, self._marks, opened=block.key in self._open, source=block.key in self._sources)

    def _anchor(self) -> tuple[Hashable | None, int]:
        """The block at the top, and which of its lines is there."""
        place = self._at(self.scroll_offset.y)
        if place is None:
            return None, 0
        return self._shown[place].key, self.scroll_offset.y - self._begin(place)

    def _at(self, line: int) -> int | None:
        """The place of the block that a line belongs to."""
        place = bisect_right(self._ends, line)
        return place if place < len(self._shown) else None

    def _begin(self, place: int) -> int:
        return self._ends[place - 1] if place else 0

    def _find(self, key: Hashable) -> int | None:
        # From the end: what is read is near it far more often than not.
        for place in range(len(self._shown) - 1, -1, -1):
            if self._shown[place].key == key:
                return place
        return None

    @property
    def _page(self) -> int:
        return max(1, self.size.height - _FOOTER)

    # -------------------------------------------------------------- cursor

    @property
    def selected(self) -> int | None:
        """The place of the selected block; None where there are none."""
        if not self._shown:
            return None
        if self._cursor is None:
            return len(self._shown) - 1
        if self._place >= len(self._shown) or self._shown[self._place].key != self._cursor:
            found = self._find(self._cursor)
            self._place = min(self._place, len(self._shown) - 1) if found is None else found
            self._cursor = self._shown[self._place].key
        return self._place

    @property
    def selected_block(self) -> TranscriptBlock | None:
        """The selected block."""
        place = self.selected
        return None if place is None else self._shown[place]

    def move(self, by: int) -> None:
        """Select the next block, or scroll within one that is taller than the screen."""
        place = self.selected
        if place is None:
            return
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + self._page
        begin, end = self._begin(place), self._ends[place]
        if begin < bottom < end if by > 0 else begin < top < end:
            self._scroll(top + by)
        else:
            self.select(place + by)

    def select(self, place: int, *, stay: bool = False) -> None:
        """Select a block and bring it into sight. The last one is followed, unless it is to `stay`."""
        if not self._shown:
            return
        if place < 0:
            self.post_message(self.AtTop(self))
        place = max(0, min(place, len(self._shown) - 1))
        last = place == len(self._shown) - 1 and not stay
        begin, end = self._begin(place), self._ends[place]
        top = self.scroll_offset.y
        if last:
            self._place, self._cursor = place, None
            self._settle(self.max_scroll_y, following=True)
            return
        self._place, self._cursor = place, self._shown[place].key
        if begin < top:
            top = begin if end - begin <= self._page else max(begin, end - self._page)
        elif end > top + self._page:
            top = min(begin, end - self._page)
        self._settle(top, following=False)

    def _settle(self, top: int, *, following: bool) -> None:
        self._settling = True
        try:
            self.jump(top)
        finally:
            self._settling = False
        self._following = following
        if following and self._shown:
            self._read = self._shown[-1].key
        self.refresh()

    def _scroll(self, top: int) -> None:
        top = max(0, min(top, self.max_scroll_y))
        self._pin()
        self._settle(top, following=top >= self.max_scroll_y)

    def _pin(self) -> None:
        """The cursor stays on its block, even if another one comes behind it."""
        place = self.selected
        if place is not None:
            self._place, self._cursor = place, self._shown[place].key

    def page(self, by: int) -> None:
        """Move by pages; the cursor comes along."""
        if by < 0 and not self.scroll_offset.y:
            self.select(0)
            self.post_message(self.AtTop(self))
            return
        top = max(0, min(self.scroll_offset.y + by * max(1, self._page - 1), self.max_scroll_y))
        self._settle(top, following=top >= self.max_scroll_y)
        self._cursor_into_sight()

    def _cursor_into_sight(self) -> None:
        if self._following:
            self._cursor = None
            return
        top = self.scroll_offset.y
        first = self._at(top)
        if first is None:
            return
        if self._begin(first) < top and self._ends[first] < top + self._page and first + 1 < len(self._shown):
            first += 1
        last = self._at(top + self._page - 1)
        place = self.selected or 0
        self._place = max(first, min(place, last if last is not None else place))
        self._cursor = self._shown[self._place].key

    def toggle(self) -> bool:
        """Open the selected block, or close it; False where all of it is shown anyway."""
        block = self.selected_block
        if block is None or (not self._laid[block].hidden and block.key not in self._open):
            return False
        self._open ^= {block.key}
        self._lay_anew(block)
        return True

    def toggle_source(self) -> bool:
        """Show the source text of the selected block, or its form again; True: the source is shown now."""
        block = self.selected_block
        if block is None:
            return False
        self._sources ^= {block.key}
        self._lay_anew(block)
        return block.key in self._sources

    def _lay_anew(self, block: TranscriptBlock) -> None:
        self._pin()
        self._laid.pop(block, None)
        # Its first line stays where it is.
        self._following = False
        self.refresh_blocks()

    # -------------------------------------------------------------- scrolling

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if not self._settling:
            self._following = self.scroll_offset.y >= self.max_scroll_y
            self._cursor_into_sight()
            if not new_value and old_value:
                self.post_message(self.AtTop(self))

    def on_focus(self) -> None:
        """Mark the selected block."""
        self.refresh()

    def on_blur(self) -> None:
        """The mark goes with the keys."""
        self.refresh()

    def on_resize(self) -> None:
        """Wrap again."""
        self.refresh_blocks()

    def on_mount(self) -> None:
        """Show the blocks that were given at creation."""
        self.refresh_blocks()

    def line_at(self, y: int) -> Hashable | None:
        place = self._at(y + self.scroll_offset.y) if y < self._page else None
        return None if place is None else self._shown[place].key

    def go_to_line(self, line: Hashable) -> bool:
        place = self._find(line)
        if place is not None:
            self.select(place, stay=True)
        return place is not None

    def on_click(self, event: events.Click) -> None:
        """Select a block; the selected one is opened."""
        place = self._at(event.y + self.scroll_offset.y)
        if self.deaf or place is None or event.y >= self._page:
            return
        if place == self.selected:
            self.post_message(self.Opened(self))
        else:
            self._place, self._cursor, self._following = place, self._shown[place].key, False
            self.refresh()

    # -------------------------------------------------------------- painting

    def render_line(self, y: int) -> Strip:
        width, ground = self.size.width, self.paint("")
        if y >= self._page:
            return self._footer(width)
        if not self._shown:
            lines = wrap(self._empty, max(2, width - 2)) if self._empty else []
            return strip_of([(" " + lines[y] if y < len(lines) else "", self.tone("quiet"))], width, ground)
        line = self.scroll_offset.y + y
        place = self._at(line)
        if place is None:
            return Strip.blank(width, ground)
        at = line - self._begin(place)
        under = "cursor" if not at and self.has_focus and place == self.selected else ""
        mark = self._marks.cursor if under else " "
        parts: list[tuple[str, Style]] = [(mark, self.tone("attention", under))]
        match = self.paint("match") if self._needle else None
        for text, part in self._laid[self._shown[place]].lines[at]:
            style = self.paint(part, under)
            parts += [(text, style)] if match is None else marked(text, self._needle, style, match)
        return strip_of(parts, width, self.paint("", under))

    def _footer(self, width: int) -> Strip:
        if self._following:
            text, style = f"{self._marks.follow} following", self.tone("quiet")
        elif unread := self.unread:
            text, style = f"{self._marks.newer} {unread:,} new (end)", self.tone("attention")
        else:
            text, style = f"{self._marks.newer} not following (end)", self.tone("quiet")
        said, tone = self._status
        room = min(width_of(said), max(0, self.line_width - width_of(text) - 2))
        parts = [
            (" ", self.paint("")),
            (fit(said, room, self._marks.cut), self.tone(tone)),
            (fit(text, self.line_width - 1 - room, self._marks.cut, right=True), style),
        ]
        return strip_of(parts, width, self.paint(""))
