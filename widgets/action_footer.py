"""The action footer: the keys that work here, and why one does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple, Protocol, TypeAlias

from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

from watchfloor.text import Clean
from widgets.cells import fit, flat, width_of
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import Painted, strip_of


class FooterItem(Protocol):
    """One key. A blocked one (`enabled` False) is drawn grey with its reason."""

    @property
    def key(self) -> Clean: ...
    @property
    def label(self) -> Clean: ...
    @property
    def enabled(self) -> bool: ...
    @property
    def reason(self) -> Clean: ...


FooterItems: TypeAlias = Sequence[FooterItem]

_GAP: Final = "  "
_MORE_KEY: Final = "?"
_MORE_LABEL: Final = "keys"

# How much of the reasons is shown when there is no room: all, some, none (then brackets say "blocked").
_REASONS: Final = (200, 32, 16, 0)


class _Piece(NamedTuple):
    text: str
    part: str  # the component class


_Entry: TypeAlias = list[_Piece]


class ActionFooter(Painted):
    """Keys with what they do. Takes one line or two; what does not fit is announced, never just missing."""

    PREFIX = "action-footer"

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "action-footer--key",
        "action-footer--label",
        "action-footer--blocked",
    }
    """
    | Class | Description |
    | :- | :- |
    | `action-footer--key` | A key that works. |
    | `action-footer--label` | What it does. |
    | `action-footer--blocked` | A key that does not work now, and why. |
    """

    DEFAULT_CSS = """
    ActionFooter {
        height: auto;
        max-height: 2;
        width: 1fr;
        background: $wf-bar;
        color: $wf-plain;
        & > .action-footer--key { text-style: bold; }
        & > .action-footer--label { color: $wf-plain; }
        & > .action-footer--blocked { color: $wf-quiet; }
    }
    """

    ALLOW_SELECT = False
    LINES_MOST: ClassVar[int] = 2

    def __init__(
        self,
        items: FooterItems = (),
        *,
        marks: Marks = UNICODE_MARKS,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Create a footer.

        Args:
            items: The keys, the most useful first.
            marks: The characters it draws by itself.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._marks = marks
        self._items: FooterItems = tuple(items)
        self._said = _said(items)
        self._laid: tuple[int, list[_Entry]] = (-1, [])

    @property
    def items(self) -> FooterItems:
        """The keys that are shown. Setting what is shown already costs nothing."""
        return self._items

    @items.setter
    def items(self, items: FooterItems) -> None:
        said = _said(items)
        self._items = tuple(items)
        if said == self._said:
            return
        before = len(self._lay(self.size.width))
        self._said = said
        self._laid = (-1, [])
        # Only another number of lines moves anything else on the screen.
        self.refresh(layout=len(self._lay(self.size.width)) != before)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lay(width))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        ground = self.paint("")
        lines = self._lay(width)
        if y >= len(lines):
            return Strip.blank(width, ground)
        parts: list[tuple[str, Style]] = [(" ", ground)]
        parts.extend((piece.text, self.paint(piece.part)) for piece in lines[y])
        return strip_of(parts, width, ground)

    def _lay(self, width: int) -> list[_Entry]:
        """The lines for this width, at least one."""
        if self._laid[0] != width:
            self._laid = (width, self._flow(max(1, width - 2)))
        return self._laid[1]

    def _flow(self, room: int) -> list[_Entry]:
        for most in _REASONS:
            entries = [self._entry(item, most) for item in self._items]
            lines, shown = _fill(entries, room, self.LINES_MOST, 0)
            if shown == len(entries):
                return lines
        more = [
            _Piece(self._marks.cut + _GAP, "label"),
            _Piece(_MORE_KEY, "key"),
            _Piece(f" {_MORE_LABEL}", "label"),
        ]
        entries = [self._entry(item, 0) for item in self._items]
        lines, _ = _fill(entries, room, self.LINES_MOST, _width(more) + len(_GAP))
        last = lines[-1]
        if last:
            last.append(_Piece(_GAP, ""))
        last.extend(more)
        return lines

    def _entry(self, item: FooterItem, most: int) -> _Entry:
        if item.enabled:
            return [_Piece(flat(item.key), "key"), _Piece(f" {flat(item.label)}", "label")]
        words = f"{item.key} {item.label}"
        if not item.reason or not most:
            return [_Piece(f"({flat(words)})", "blocked")]
        reason = fit(item.reason, min(most, width_of(item.reason)), self._marks.cut)
        return [_Piece(f"{flat(words)}: {reason}", "blocked")]


def _said(items: FooterItems) -> list[tuple[str, str, bool, str]]:
    return [(item.key, item.label, item.enabled, item.reason) for item in items]


def _width(entry: _Entry) -> int:
    return sum(width_of(piece.text) for piece in entry)


def _fill(entries: list[_Entry], room: int, most: int, reserve: int) -> tuple[list[_Entry], int]:
    """Entries side by side on at most `most` lines, and how many were placed.

    `reserve` cells stay free at the end of the last line.
    """
    lines: list[_Entry] = [[]]
    used = shown = 0
    for entry in entries:
        gap = len(_GAP) if lines[-1] else 0
        size = _width(entry)
        if lines[-1] and used + gap + size > room - (reserve if len(lines) == most else 0):
            if len(lines) == most:
                break
            lines.append([])
            used = gap = 0
        if used + gap + size > room - (reserve if len(lines) == most else 0):
            break
        if gap:
            lines[-1].append(_Piece(_GAP, ""))
        lines[-1].extend(entry)
        used += gap + size
        shown += 1
    return lines, shown
