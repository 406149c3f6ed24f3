"""The audit: what was done through the consoles of this machine, the newest first, and whether all of it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from console.actions import Where
from console.audit_book import KEEP, AuditBook, BookLine, Pages, details
from console.screens.badge import badge
from console.screens.bindings import bindings
from console.screens.fleet.footing import FooterKey
from console.screens.pages.page import DetailsPane, Page
from console.screens.quiet import Quiet
from console.screens.rule import Rule
from watchfloor.text import NOTHING, Clean, clean_line, numeral
from widgets.action_footer import ActionFooter
from widgets.facts import FactRow
from widgets.line_box import LineBox
from widgets.listing import ListColumn, Listing
from widgets.marks import UNICODE_MARKS, Marks
from widgets.status_bar import StatusBar
from widgets.tones import Says, Segment, Tone

if TYPE_CHECKING:
    from console.hub import Hub
    from console.keymap import Keymap
    from watchfloor.connector import Clock

_EVERY_S: Final = 1.0
"""How often the files are looked at."""
_COLUMNS: Final = (
    ListColumn(NOTHING, 1),
    ListColumn(Clean("TIME"), 14),
    ListColumn(Clean("WHAT"), 9),
    ListColumn(Clean("BY"), 14, share=1),
    ListColumn(Clean("DID"), 15, share=1),
    ListColumn(Clean("WHERE"), 14, share=2, drop=1),
    ListColumn(Clean("SAID"), 12, share=3, drop=2),
)
_TONES: Final[Mapping[str, Tone]] = {"refused": "attention", "revealed": "attention"}
_ENDS_BADLY: Final = frozenset({"contrary", "unknown", "overdue", "undelivered"})


class _Rows:
    """Lines of the audit as rows of a listing. One that nothing vouches for is told by a mark as well."""

    def __init__(self, lines: Sequence[BookLine], mark: str) -> None:
        self.lines = lines
        self._mark = Clean(mark)

    def __len__(self) -> int:
        return len(self.lines)

    def key(self, place: int) -> tuple[str, int]:
        return self.lines[place].key

    def row(self, place: int) -> Sequence[Segment]:
        line = self.lines[place]
        told, tone = line.told, _tone(line)
        return (
            (self._mark if line.fault else NOTHING, "failed"),
            (Clean(told.when.partition("-")[2] or told.when), "quiet"),  # the year stands in the details
            (told.what, tone),
            (told.by, "plain"),
            (told.did, tone),
            (told.where, "quiet"),
            (told.said, "plain"),
        )


def _tone(line: BookLine) -> Tone:
    if line.fault:
        return "failed"
    if line.entry.text(line.entry.text("what")) in _ENDS_BADLY:
        return "attention"
    return _TONES.get(line.told.what, "plain")


class AuditScreen(Page):
    """The lines above, all of the selected one below."""

    CSS_PATH = Path(__file__).with_suffix(".tcss")
    AUTO_FOCUS = HOME = "#audit"

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.AUDIT)

    def __init__(
        self, hub: Hub, keys: Keymap, clock: Clock, *, marks: Marks = UNICODE_MARKS, tz: tzinfo | None = None
    ) -> None:
        """Create the screen.

        Args:
            hub: Whose audit it shows, with that of the other consoles of this machine.
            keys: Which key does what.
            clock: Milliseconds since 1970 UTC.
            marks: The characters that the widgets draw by themselves.
            tz: The zone that times are shown in; that of the machine if None.
        """
        super().__init__()
        self._hub = hub
        self._keys = keys
        self._marks = marks
        self._quiet: Final = Quiet(hub.steady)
        self._badge = badge(hub, clock, marks)
        self._book = AuditBook(hub.audit_folder, tz)
        self._pages: Pages | None = None
        self._fault = NOTHING
        self._query = ""
        self._rows = _Rows((), marks.alert)
        self._does = {
            **self._does,
            "find": self._find,
            "back": self._back,
            "open": lambda: self.turn(1),
            "copy": self._copy,
        }

    @property
    def writing(self) -> bool:
        """May what is pressed still belong to what was looked for?"""
        return self._quiet.waits

    def compose(self) -> ComposeResult:
        marks = self._marks
        yield StatusBar(id="audit-top", marks=marks)
        yield LineBox(id="audit-line", marks=marks)
        yield Listing(_COLUMNS, id="audit", marks=marks)
        yield Rule(id="audit-rule", marks=marks)
        yield DetailsPane(id="audit-details", marks=marks)
        yield StatusBar(id="audit-notice", marks=marks)
        yield ActionFooter(id="audit-footer", marks=marks)

    def on_mount(self) -> None:
        """Read the files, and look again whether they have changed."""
        self.paint()
        self._look()
        self.set_interval(_EVERY_S, self._look)

    # -------------------------------------------------------------- reading

    def _look(self) -> None:
        self.run_worker(self._read(), exclusive=True, exit_on_error=True)

    async def _read(self) -> None:
        # Files of a year may be long: they are read beside the screen, and painted only where they have changed.
        fault = NOTHING
        try:
            pages = await asyncio.to_thread(self._book.read)
        except OSError as error:
            pages = Pages()
            fault = clean_line(f"{error.filename or self._book.folder}: it cannot be read: {error.strerror or error}")
        if pages is not self._pages or fault != self._fault:
            self._pages, self._fault = pages, fault
            self._list()
        self._paint_top()

    def _list(self, *, first: bool = False) -> None:
        """Show the lines that hold what is looked for; the cursor stays on its own."""
        words = self._query.casefold().split()
        lines = self._pages.lines if self._pages is not None else ()
        self._rows = _Rows([line for line in lines if line.holds(words)] if words else lines, self._marks.alert)
        listing = self.query_one("#audit", Listing)
        listing.empty = self._why_empty()
        listing.show(self._rows, first=first)
        self.paint()

    def _why_empty(self) -> Clean:
        if self._fault:
            return self._fault
        if self._pages is None:
            return Clean("reading")
        if self._query:
            return clean_line(f"none of {len(self._pages.lines):,} lines holds {self._query}")
        return Clean("nothing is written down yet")

    # -------------------------------------------------------------- painting

    def paint(self) -> None:
        """Paint what the cursor is on, and the frame."""
        line = self._selected
        details_pane, listing = self.query_one("#audit-details", DetailsPane), self.query_one("#audit", Listing)
        details_pane.facts = _facts(line) if line is not None else ()
        said: list[Segment] = []
        if line is not None:
            said.append((Clean(f"line {numeral(line.place)} of {clean_line(line.entry.file)}"), "plain"))
            said.append((line.fault, "failed") if line.fault else (Clean("whole"), "running"))
        self.query_one("#audit-rule", Rule).say(said, active=details_pane.has_focus)
        self._paint_top()
        self.query_one("#audit-notice", StatusBar).status = Says((self._said,) if self._said[0] else ())
        keys = [
            FooterKey(self._keys.shown("find"), Clean("find"), True, NOTHING),
            FooterKey(self._keys.shown("focus_next"), Clean("next part"), bool(len(self._rows)), NOTHING),
            FooterKey(self._keys.shown("copy"), Clean("copy the line"), line is not None, Clean("no line")),
            FooterKey(self._keys.shown("help"), Clean("keys"), True, NOTHING),
        ]
        self.query_one("#audit-footer", ActionFooter).items = [key for key in keys if key.key]
        listing.refresh()

    def _paint_top(self) -> None:
        back: Segment = (Clean(f"{self._keys.shown('back')}  back"), "quiet")
        left = ((Clean("audit"), "attention"), *self._state(), *self._badge())
        self.query_one("#audit-top", StatusBar).status = Says(left, (back,))

    def _state(self) -> list[Segment]:
        """How much there is, how much of it is shown, and whether all of it is still there."""
        pages = self._pages
        if pages is None or self._fault:
            return []
        said: list[Segment] = [(Clean(f"{numeral(pages.total)} lines"), "plain")]
        if pages.total > len(pages.lines):
            said[0] = (Clean(f"the newest {KEEP:,} of {numeral(pages.total)} lines"), "attention")
        if self._query:
            said.append((clean_line(f"{len(self._rows):,} hold {self._query}"), "attention"))
        if broken := pages.broken:
            rest = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
            said.append((clean_line(f"not whole: {broken[0].file}: {broken[0].fault}{rest}"), "failed"))
        elif pages.checked:
            files = len(pages.checked)
            said.append((Clean(f"{numeral(files)} {'file is' if files == 1 else 'files are'} whole"), "running"))
        return said

    @property
    def _selected(self) -> BookLine | None:
        place = self.query_one("#audit", Listing).place
        return self._rows.lines[place] if 0 <= place < len(self._rows) else None

    # -------------------------------------------------------------- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is looked for, all keys belong to the line."""
        return not (action == "perform" and self.query_one("#audit-line", LineBox).is_open)

    def action_perform(self, id: str) -> None:
        """Do what a key stands for."""
        self._said = (NOTHING, "plain")
        self._quiet.pressed()
        does = self._does.get(id)
        if does is None:
            self.dismiss(id)
            return
        does()
        if self.is_attached and self.is_active:
            self.paint()

    def _find(self) -> None:
        self.query_one("#audit-line", LineBox).ask(Clean("find"), self._query)

    def on_line_box_changed(self, event: LineBox.Changed) -> None:
        """Show at once what holds it."""
        event.stop()
        self._query = event.text
        self._list(first=True)
        event.control.say(Clean(f"{len(self._rows):,} lines"), "quiet" if len(self._rows) else "attention")

    def on_line_box_submitted(self, event: LineBox.Submitted) -> None:
        """What is looked for holds on."""
        event.stop()
        event.control.close()
        self._quiet.broken()
        self.paint()

    def on_line_box_cancelled(self, event: LineBox.Cancelled) -> None:
        """Everything is shown again."""
        event.stop()
        self._query = ""
        self._quiet.broken()
        self._list()

    def _back(self) -> None:
        """Leave the details, then what is looked for, then the page."""
        if self.pane.id != "audit":
            self.set_focus(self.query_one("#audit"), scroll_visible=False)
        elif self._query:
            self._query = ""
            self._list()
        else:
            self.dismiss(None)

    def _copy(self) -> None:
        """Copy all of the selected line, cleaned."""
        line = self._selected
        if line is None:
            self._said = (Clean("no line is selected"), "attention")
            return
        text = "\n".join(f"{name}: {value}" for name, value in details(line.entry))
        self.copy_text(text)

    @on(Listing.Turned)
    def _turned(self, event: Listing.Turned) -> None:
        event.stop()
        self.query_one("#audit-details", DetailsPane).jump(0)
        self.paint()

    @on(Listing.Opened)
    def _opened(self, event: Listing.Opened) -> None:
        event.stop()
        self.turn(1)
        self.paint()


def _facts(line: BookLine) -> list[FactRow]:
    rows: list[FactRow] = [(Clean("time"), line.told.when, "plain")]
    rows += [(name, value, "plain") for name, value in details(line.entry)]
    return [(Clean("fault"), line.fault, "failed"), *rows] if line.fault else rows
