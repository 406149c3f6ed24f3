"""Facts: a column of labelled values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple, TypeAlias

from textual.strip import Strip

from watchfloor.text import Clean
from widgets.cells import fit, width_of, wrap
from widgets.marks import UNICODE_MARKS, Marks
from widgets.painting import LineView, strip_of
from widgets.tones import Tone

FactRow: TypeAlias = tuple[Clean, Clean, Tone] | tuple[Clean, Clean, Tone, int]
"""Label, value (wrapped, may hold line breaks), the tone of the value, and the most lines that it gets, if not all."""

FactRows: TypeAlias = Sequence[FactRow]

_LABEL_MOST: Final = 12


class _Line(NamedTuple):
    label: str
    value: str
    tone: Tone


class Facts(LineView, can_focus=False):
    """Labels in one column, their values wrapped in the next."""

    PREFIX = "facts"

    COMPONENT_CLASSES: ClassVar[set[str]] = {"facts--label"}
    """
    | Class | Description |
    | :- | :- |
    | `facts--label` | The labels. |
    """

    DEFAULT_CSS = """
    Facts {
        & > .facts--label { color: $wf-quiet; }
    }
    """

    ALLOW_SELECT = False

    def __init__(
        self,
        facts: FactRows = (),
        *,
        marks: Marks = UNICODE_MARKS,
        hang: int = 0,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """Create a column of facts.

        Args:
            facts: What it shows.
            marks: The characters it draws by itself.
            hang: Characters of each value that are a column of their own: what is wrapped stands behind them.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._marks = marks
        self._hang = hang
        self._facts = tuple(facts)
        self._label_width = 0
        self._lines: list[_Line] = []

    @property
    def facts(self) -> FactRows:
        """What is shown. Setting what is shown already costs nothing."""
        return self._facts

    @facts.setter
    def facts(self, facts: FactRows) -> None:
        new = tuple(facts)
        if new != self._facts:
            self._facts = new
            self._arrange()

    def _arrange(self) -> None:
        widest = max((width_of(fact[0]) for fact in self._facts), default=0)
        self._label_width = min(widest, _LABEL_MOST)
        self._lines = [
            _Line(fact[0] if not at else "", piece, fact[2])
            for fact in self._facts
            for at, piece in enumerate(self._pieces(fact))
        ]
        self.set_extent(len(self._lines))
        self.refresh()

    def _pieces(self, fact: FactRow) -> list[str]:
        room = max(2, self.line_width - self._label_width - 3)
        # A path is read, and copied, by its parts.
        hang = self._hang if _parts(fact[1], self._hang) and room > 2 * self._hang else 0
        pieces = wrap(fact[1][hang:], room - hang, seam="/")
        if hang:
            pieces = [(" " * hang if at else fact[1][:hang]) + piece for at, piece in enumerate(pieces)]
        if len(fact) < 4 or len(pieces) <= fact[3]:
            return pieces
        *whole, last = pieces[: fact[3]]
        cut = self._marks.cut
        return [*whole, last + cut if width_of(last) < room else fit(f"{last} ", room, cut)]

    def on_resize(self) -> None:
        """Wrap again."""
        self._arrange()

    def on_mount(self) -> None:
        """Wrap the facts that were given at creation."""
        self._arrange()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        ground = self.paint("")
        index = self.scroll_offset.y + y
        if index >= len(self._lines):
            return Strip.blank(width, ground)
        line = self._lines[index]
        label = f" {fit(line.label, self._label_width, self._marks.cut)}  "
        return strip_of([(label, self.paint("label")), (line.value, self.tone(line.tone))], width, ground)


def _parts(value: str, at: int) -> bool:
    """Does a column end there? One blank may as well stand between two words."""
    return 1 < at < len(value) and value[at - 2 : at] == "  " and value[at] != " "
