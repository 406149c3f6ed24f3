"""The roster: one line a session, selected by key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.strip import Strip

from widgets.cells import flat, wrap
from widgets.columns import LEAD, Column, ColumnName, columns_for
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import SparseView, strip_of
from widgets.roster_layout import header_text, row_pieces
from widgets.roster_view import RosterRow, RosterRows
from widgets.spoken import Spoken

__all__ = ["Roster", "RosterRow", "RosterRows"]


_HEADER_LINES: Final = 1
_NEIGHBOURS: Final = 32
_BACK: Final = "^"
"""Stands behind the heading of the column by which the rows are sorted the other way round."""
_CACHE_LINES: Final = 4096

_Stamp = tuple[int, int, bool]


class Roster(SparseView):
    """Sessions as lines, with a cursor that belongs to a session and not to a place.

    The view may change in place; `refresh_rows` says so. Between the change and that call the
    roster may paint the new rows, but the cursor is on its session all the same.
    """

    PREFIX = "roster"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "edge(False)", "First", show=False),
        Binding("end", "edge(True)", "Last", show=False),
        Binding("enter", "open", "Open", show=False),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "roster--header",
        "roster--cursor",
        "roster--bar",
    }
    """
    | Class | Description |
    | :- | :- |
    | `roster--header` | The line of headings. |
    | `roster--cursor` | The ground of the selected row. |
    | `roster--bar` | The mark at the left edge of the selected row. |
    """

    DEFAULT_CSS = """
    Roster {
        & > .roster--header { color: $wf-quiet; text-style: bold; }
        & > .roster--cursor { background: $wf-cursor; text-style: $wf-cursor-style; }
        & > .roster--bar { color: $wf-quiet; }
        &:focus > .roster--bar { color: $wf-attention; }
    }
    """

    ALLOW_SELECT = False

    class Selected(Spoken["Roster"]):
        """Another session is selected, or (None) there is none left."""

        def __init__(self, roster: Roster, key: Hashable | None) -> None:
            super().__init__(roster)
            self.key = key

    class Opened(Spoken["Roster"]):
        """The selected session is to be opened."""

        def __init__(self, roster: Roster, key: Hashable) -> None:
            super().__init__(roster)
            self.key = key

    class Vanished(Spoken["Roster"]):
        """The selected session `key` is no longer shown; `now` is selected instead, by nobody's wish.

        Comes before the `Selected` for `now`.
        """

        def __init__(self, roster: Roster, key: Hashable, now: Hashable | None) -> None:
            super().__init__(roster)
            self.key = key
            self.now = now

    def __init__(
        self,
        rows: RosterRows | None = None,
        *,
        marks: Marks = UNICODE_MARKS,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Create a roster.

        Args:
            rows: What it shows.
            marks: The characters it draws by itself.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._marks = marks
        self._rows = rows
        self._sorted: tuple[ColumnName, bool] | None = None
        self._selected: Hashable | None = None
        self._index = 0
        self._near: list[Hashable] = []
        self._near_from = 0
        # Until the operator has aimed at a row, new rows that sort to the top may show there.
        self._aimed = False
        self.begins_on: Callable[[Hashable], bool] = lambda key: True
        """May the cursor stand there before anybody has put it anywhere?"""
        self._without: frozenset[ColumnName] = frozenset()
        self._strips: dict[Hashable, tuple[_Stamp, Strip]] = {}

    # -------------------------------------------------------------- what it shows

    @property
    def rows(self) -> RosterRows | None:
        """What the roster shows."""
        return self._rows

    @rows.setter
    def rows(self, rows: RosterRows | None) -> None:
        self._rows = rows
        self._strips.clear()
        self.refresh_rows()

    @property
    def sorted_by(self) -> tuple[ColumnName, bool] | None:
        """The column that the rows are sorted by, and whether the other way round; None: by none of them."""
        return self._sorted

    @sorted_by.setter
    def sorted_by(self, column: tuple[ColumnName, bool] | None) -> None:
        if column != self._sorted:
            self._sorted = column
            self._strips.clear()
            self.refresh()

    @property
    def without(self) -> frozenset[ColumnName]:
        """Columns that take no room, as there is nothing in them."""
        return self._without

    @without.setter
    def without(self, names: frozenset[ColumnName]) -> None:
        if names != self._without:
            self._without = names
            self._strips.clear()
            self.refresh()

    def refresh_rows(self, keys: Collection[Hashable] | None = None) -> None:
        """Paint what changed.

        Args:
            keys: The sessions whose rows changed, where neither order nor number did; None for
                anything else.
        """
        rows = self._rows
        if keys is None or rows is None or len(rows) + _HEADER_LINES != self.virtual_size.height:
            self._settle()
            return
        top = self.scroll_offset.y
        for index in range(top, min(top + self._page, len(rows))):
            if rows.key(index) in keys:
                self._refresh_row(index)

    # -------------------------------------------------------------- selection

    @property
    def selected(self) -> Hashable | None:
        """The key of the selected session."""
        return self._selected

    @property
    def aimed(self) -> bool:
        """Was the cursor put where it stands by anybody?"""
        return self._aimed

    def select(self, key: Hashable) -> bool:
        """Select a session and bring it into view; False if it is not shown."""
        index = None if self._rows is None else self._rows.index(key)
        if index is None:
            return False
        self._aimed = True
        self._take(key, index)
        self._reveal(index)
        return True

    def _take(self, key: Hashable | None, index: int) -> None:
        changed = key != self._selected
        before = self._index
        self._selected = key
        self._index = index
        self._remember()
        if changed:
            self.post_message(self.Selected(self, key))
            self._refresh_row(before)
            self._refresh_row(index)

    def _remember(self) -> None:
        """Note who stands around the cursor, so that the nearest can be found if it goes."""
        rows = self._rows
        if rows is None or self._selected is None:
            self._near = []
            return
        begin = max(0, self._index - _NEIGHBOURS)
        end = min(len(rows), self._index + _NEIGHBOURS + 1)
        self._near_from = begin
        self._near = [rows.key(i) for i in range(begin, end)]

    def _nearest(self, rows: RosterRows) -> int:
        """Where the closest of the former neighbours is now; the one below wins over the one above."""
        at = self._index - self._near_from
        for distance in range(1, len(self._near)):
            for place in (at + distance, at - distance):
                if 0 <= place < len(self._near):
                    index = rows.index(self._near[place])
                    if index is not None:
                        return index
        return min(self._index, len(rows) - 1)

    def _settle(self) -> None:
        """Follow the selected session to its new place, at the same line of the screen if possible."""
        rows = self._rows
        count = 0 if rows is None else len(rows)
        top = self.scroll_offset.y
        line = self._index - top
        at_top = top == 0 and not self._aimed
        self.set_extent(count + _HEADER_LINES)
        self.refresh()
        if rows is None or count == 0:
            gone, self._index = self._selected, 0
            if gone is not None:
                self.post_message(self.Vanished(self, gone, None))
                self._take(None, 0)
            return
        if self._selected is None or not (self._aimed or self.begins_on(self._selected)):
            first = next((at for at in range(min(count, _NEIGHBOURS)) if self.begins_on(rows.key(at))), 0)
            self._take(rows.key(first), first)
            self.jump(0)
            return
        index = rows.index(self._selected)
        if index is None:
            gone = self._selected
            index = self._nearest(rows)
            self.post_message(self.Vanished(self, gone, rows.key(index)))
            self._take(rows.key(index), index)
        else:
            self._index = index
            self._remember()
        if at_top and index < self._page:
            self.jump(0)
        elif 0 <= line < self._page:
            self.jump(index - line)

    def _refresh_row(self, index: int) -> None:
        line = index - self.scroll_offset.y
        if 0 <= line < self._page:
            self.refresh(Region(0, line + _HEADER_LINES, self.size.width, 1))

    @property
    def _page(self) -> int:
        return max(1, self.size.height - _HEADER_LINES)

    def _reveal(self, index: int) -> None:
        top = self.scroll_offset.y
        if index < top:
            self.jump(index)
        elif index >= top + self._page:
            self.jump(index - self._page + 1)

    def _move_to(self, index: int) -> None:
        rows = self._rows
        if rows is not None and len(rows):
            self.select(rows.key(max(0, min(index, len(rows) - 1))))

    def _current(self) -> int:
        found = None if self._rows is None or self._selected is None else self._rows.index(self._selected)
        return self._index if found is None else found

    # -------------------------------------------------------------- keys and mouse

    def action_move(self, lines: int) -> None:
        """Move the cursor."""
        self._move_to(self._current() + lines)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self._move_to(self._current() + pages * max(1, self._page - 1))

    def action_edge(self, last: bool) -> None:
        """Move the cursor to the first or to the last session."""
        self._move_to(len(self._rows) - 1 if last and self._rows is not None else 0)

    def action_open(self) -> None:
        """Open the selected session."""
        if self._selected is not None:
            self.post_message(self.Opened(self, self._selected))

    def line_at(self, y: int) -> Hashable | None:
        rows = self._rows
        index = self.scroll_offset.y + y - _HEADER_LINES
        return rows.key(index) if rows is not None and y >= _HEADER_LINES and index < len(rows) else None

    def go_to_line(self, line: Hashable) -> bool:
        if self._rows is None or self._rows.index(line) is None:
            return False
        self.select(line)
        return True

    def on_click(self, event: events.Click) -> None:
        """Select the clicked session; a double click opens it."""
        line = self.line_at(event.y)
        if self.deaf or line is None:
            return
        self.select(line)
        if event.chain == 2:
            self.action_open()

    def on_resize(self) -> None:
        """Keep the selected session in view."""
        self.set_extent((0 if self._rows is None else len(self._rows)) + _HEADER_LINES)
        if self._selected is not None:
            self._reveal(self._current())

    def on_mount(self) -> None:
        """Show the rows that were given at creation."""
        self.refresh_rows()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    # -------------------------------------------------------------- painting

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        ground = self.paint("")
        if y < _HEADER_LINES:
            header = self.paint("header")
            column, back = self._sorted if self._sorted is not None else (None, False)
            mark = _BACK if back else self._marks.newer
            return strip_of([(header_text(self._columns(), column, mark), header)], width, header)
        rows = self._rows
        index = self.scroll_offset.y + y - _HEADER_LINES
        if rows is None or index >= len(rows):
            at = y - _HEADER_LINES - 1
            if at >= 0 and self._empty and (rows is None or not len(rows)):
                said = wrap(self._empty, self.line_width - LEAD)
                text = " " * LEAD + flat(said[at]) if at < len(said) else ""
                return strip_of([(text, self.tone("quiet"))], width, ground)
            return Strip.blank(width, ground)
        key = rows.key(index)
        cursor = key == self._selected
        stamp = (rows.version(key), width, cursor)
        cached = self._strips.get(key)
        if cached is not None and cached[0] == stamp:
            return cached[1]
        strip = self._row_strip(rows.row(index), width, cursor)
        if len(self._strips) >= _CACHE_LINES:
            self._strips.clear()
        self._strips[key] = (stamp, strip)
        return strip

    def _columns(self) -> tuple[Column, ...]:
        return columns_for(self.line_width, self._sorted[0] if self._sorted is not None else None, self._without)

    def _row_strip(self, row: RosterRow, width: int, cursor: bool) -> Strip:
        ground = "cursor" if cursor else ""
        pieces = row_pieces(row, self._columns(), self._marks, cursor)
        return strip_of([(text, self.paint(part, ground)) for text, part in pieces], width, self.paint("", ground))
