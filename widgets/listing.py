"""A listing: rows of a few columns, with a cursor that stays on its row when others come and go."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final, NamedTuple, Protocol

from rich.style import Style
from textual import events
from textual.strip import Strip

from watchfloor.text import Clean
from widgets.cells import crop, fit, flat, width_of, wrap
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import SparseView, strip_of
from widgets.spoken import Spoken
from widgets.tones import Segment

_GAP: Final = 2


class ListColumn(NamedTuple):
    """A column: its heading, its width in cells, and its share of the cells that are left over. `drop`: it goes first
    where there is no room, the highest number before others; 0: it stays."""

    heading: Clean
    width: int
    share: int = 0
    drop: int = 0
    right: bool = False


class ListRows(Protocol):
    """What a listing reads. `row` has as many cells as there are columns."""

    def __len__(self) -> int: ...
    def key(self, place: int) -> Hashable: ...
    def row(self, place: int) -> Sequence[Segment]: ...


class NoRows:
    """Nothing at all."""

    def __len__(self) -> int:
        return 0

    def key(self, place: int) -> Hashable:
        raise IndexError(place)

    def row(self, place: int) -> Sequence[Segment]:
        raise IndexError(place)


class Listing(SparseView):
    """Lines under a heading. The selected row is told by a mark as well as by its ground."""

    PREFIX = "listing"

    COMPONENT_CLASSES: ClassVar[set[str]] = {"listing--header", "listing--cursor", "listing--bar"}
    """
    | Class | Description |
    | :- | :- |
    | `listing--header` | The headings. |
    | `listing--cursor` | The ground of the selected row. |
    | `listing--bar` | The mark before the selected row. |
    """

    DEFAULT_CSS = """
    Listing {
        & > .listing--header { color: $wf-quiet; text-style: bold; }
        & > .listing--cursor { background: $wf-cursor; text-style: $wf-cursor-style; }
        & > .listing--bar { color: $wf-quiet; }
        &:focus > .listing--bar { color: $wf-attention; }
    }
    """

    ALLOW_SELECT = False

    class Turned(Spoken["Listing"]):
        """The cursor is on another row."""

        def __init__(self, listing: Listing, key: Hashable) -> None:
            super().__init__(listing)
            self.key = key

    class Opened(Spoken["Listing"]):
        """A row was opened with the mouse."""

        def __init__(self, listing: Listing, key: Hashable) -> None:
            super().__init__(listing)
            self.key = key

    def __init__(
        self,
        columns: Sequence[ListColumn],
        rows: ListRows | None = None,
        *,
        headed: bool = True,
        marks: Marks = UNICODE_MARKS,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Create a listing.

        Args:
            columns: Its columns, left to right.
            rows: What it shows.
            headed: Has it a line of headings?
            marks: The characters it draws by itself.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._columns = tuple(columns)
        self._rows: ListRows = rows if rows is not None else NoRows()
        self._head = int(headed)
        self._marks = marks
        self._key: Hashable = None
        self._place = 0

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    @property
    def selected(self) -> Hashable | None:
        """The key of the row under the cursor; None where it is on none."""
        return self._key

    @property
    def place(self) -> int:
        """Where the cursor is, from 0; -1 where it is on none."""
        return self._place

    def show(self, rows: ListRows, *, first: bool = False) -> None:
        """Show these rows, or what has become of them. The cursor stays on its row while there is one of that key,
        else on its place; with `first` it goes to the first."""
        self._rows = rows
        count = len(rows)
        if not count:
            self._place, self._key = 0, None
        elif first:
            self._place, self._key = 0, rows.key(0)
        else:
            kept = self._key is not None and self._place < count and rows.key(self._place) == self._key
            if not kept:
                found = next((at for at in range(count) if rows.key(at) == self._key), None)
                self._place = min(self._place, count - 1) if found is None else found
                self._key = rows.key(self._place)
        self.set_extent(self._head + count)
        self._into_sight()
        self.refresh()

    def show_at(self, rows: ListRows, place: int | None) -> None:
        """Show these rows with the cursor where whoever keeps it says; None: on none of them."""
        self._rows = rows
        count = len(rows)
        self._place = -1 if place is None or not 0 <= place < count else place
        self._key = rows.key(self._place) if self._place >= 0 else None
        self.set_extent(self._head + count)
        if self._place >= 0:
            self._into_sight()
        self.refresh()

    def move(self, by: int) -> None:
        """Move the cursor by rows."""
        self.select_place(self._place + by)

    def select_place(self, place: int) -> None:
        """Put the cursor on this place, or on the nearest that there is."""
        count = len(self._rows)
        if not count:
            return
        place = max(0, min(place, count - 1))
        key = self._rows.key(place)
        if key != self._key or place != self._place:
            self._place, self._key = place, key
            self._into_sight()
            self.refresh()
            self.post_message(self.Turned(self, key))

    def page_lines(self) -> int:
        return max(1, self.size.height - self._head - 1)

    def _into_sight(self) -> None:
        room = max(1, self.size.height - self._head)
        top = self.scroll_offset.y
        if self._place < top:
            self.jump(self._place)
        elif self._place >= top + room:
            self.jump(self._place - room + 1)

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self.set_extent(self._head + len(self._rows))
        if self._place >= 0:
            self._into_sight()

    def line_at(self, y: int) -> Hashable | None:
        place = y - self._head + self.scroll_offset.y
        return self._rows.key(place) if y >= self._head and place < len(self._rows) else None

    def go_to_line(self, line: Hashable) -> bool:
        place = next((at for at in range(len(self._rows)) if self._rows.key(at) == line), None)
        if place is not None:
            self.select_place(place)
        return place is not None

    def on_click(self, event: events.Click) -> None:
        """Select a row; the selected one is opened."""
        place = event.y - self._head + self.scroll_offset.y
        if self.deaf or self.line_at(event.y) is None:
            return
        if place == self._place:
            self.post_message(self.Opened(self, self._key))
        else:
            self.select_place(place)

    # -------------------------------------------------------------- painting

    def render_line(self, y: int) -> Strip:
        width, ground = self.size.width, self.paint("")
        if y < self._head:
            return self._heading(width)
        place = y - self._head + self.scroll_offset.y
        if not len(self._rows):
            lines = wrap(self._empty, max(2, width - 2)) if self._empty else []
            text = lines[place] if place < len(lines) else ""
            return strip_of([(" ", ground), (text, self.tone("quiet"))], width, ground)
        if place >= len(self._rows):
            return Strip.blank(width, ground)
        return self._line(place, width)

    def _widths(self, width: int) -> list[int]:
        """Cells of each column, 0 for one that is left out."""
        kept = list(self._columns)
        room = width - 1 - self.scrollbar_size_vertical
        while sum(column.width + _GAP for column in kept) - _GAP > room:
            going = max(kept, key=lambda column: column.drop)
            if not going.drop:
                break
            kept.remove(going)
        spare = max(0, room - sum(column.width + _GAP for column in kept) + _GAP)
        shares = sum(column.share for column in kept) or 1
        return [column.width + spare * column.share // shares if column in kept else 0 for column in self._columns]

    def _heading(self, width: int) -> Strip:
        style = self.paint("header")
        cells = [
            fit(column.heading, size, self._marks.cut, right=column.right)
            for column, size in zip(self._columns, self._widths(width), strict=True)
            if size
        ]
        return strip_of([(" " + (" " * _GAP).join(cells), style)], width, self.paint(""))

    def _line(self, place: int, width: int) -> Strip:
        on = place == self._place
        under = "cursor" if on else ""
        ground = self.paint("", under)
        parts: list[tuple[str, Style]] = [(self._marks.cursor, self.paint("bar", under)) if on else (" ", ground)]
        gap = ""
        for column, size, (text, tone) in zip(self._columns, self._widths(width), self._rows.row(place), strict=True):
            if not size:
                continue
            cell = (
                fit(text, size, self._marks.cut, right=column.right)
                if width_of(flat(text)) > size or column.right
                else crop(text, size)
            )
            parts += [(gap, ground), (cell, self.tone(tone, under))]
            gap = " " * _GAP
        return strip_of(parts, width, ground)
