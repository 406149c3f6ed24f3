"""The sources: which hosts are heard, since when and how well, what could not be read, and another try at once."""

from __future__ import annotations

from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from console.actions import Where
from console.fleet.facts import FaultFact
from console.fleet.state import Source
from console.fleet.views.sources import FaultRows, SourceRows, fault_lines, source_lines
from console.screens.badge import badge
from console.screens.bindings import bindings
from console.screens.fleet.footing import FooterKey
from console.screens.pages.page import DetailsPane, Page
from console.screens.rule import Rule
from watchfloor.text import NOTHING, Clean
from watchfloor.words import Contact
from widgets.action_footer import ActionFooter
from widgets.listing import ListColumn, Listing
from widgets.marks import UNICODE_MARKS, Marks
from widgets.status_bar import StatusBar
from widgets.tones import Says, Segment

if TYPE_CHECKING:
    from console.hub import Hub
    from console.keymap import Keymap
    from watchfloor.connector import Clock

_TICK_S: Final = 0.25

_COLUMNS: Final = (
    ListColumn(Clean("SOURCE"), 14, share=1),
    ListColumn(Clean("CONTACT"), 12),
    ListColumn(Clean("SINCE"), 8, drop=1, right=True),
    ListColumn(Clean("SESSIONS"), 8, right=True),
    ListColumn(Clean("NEEDS"), 5, right=True),
    ListColumn(Clean("FAULTS"), 6, right=True),
    ListColumn(Clean("HOST, OR WHY IT IS NOT HEARD"), 16, share=3, drop=2),
)
_FAULT_COLUMNS: Final = (ListColumn(Clean("WHAT"), 10), ListColumn(Clean("WHY"), 20, share=1))


class SourcesScreen(Page):
    """Sources above, what is known of the selected one below, and below that what of it could not be read."""

    CSS_PATH = Path(__file__).with_suffix(".tcss")
    AUTO_FOCUS = HOME = "#sources"

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.SOURCES)

    def __init__(
        self, hub: Hub, keys: Keymap, clock: Clock, *, marks: Marks = UNICODE_MARKS, tz: tzinfo | None = None
    ) -> None:
        """Create the screen.

        Args:
            hub: Whose sources it shows.
            keys: Which key does what.
            clock: Milliseconds since 1970 UTC.
            marks: The characters that the widgets draw by themselves.
            tz: The zone that times are shown in; that of the machine if None.
        """
        super().__init__()
        self._hub = hub
        self._keys = keys
        self._clock = clock
        self._marks = marks
        self._tz = tz
        self._faults = FaultRows(None)
        self._inspects = False
        self._stamp: object = None
        self._badge = badge(hub, clock, marks)
        self._does = {
            **self._does,
            "retry": self._retry,
            "open": self._inspect,
            "back": self._back,
            "copy": self._copy,
        }

    def compose(self) -> ComposeResult:
        marks = self._marks
        yield StatusBar(id="sources-top", marks=marks)
        yield Listing(_COLUMNS, id="sources", marks=marks)
        yield Rule(id="details-rule", marks=marks)
        yield DetailsPane(id="details", marks=marks)
        yield Rule(id="faults-rule", marks=marks)
        yield Listing(_FAULT_COLUMNS, headed=False, id="faults", marks=marks)
        yield StatusBar(id="sources-notice", marks=marks)
        yield ActionFooter(id="sources-footer", marks=marks)

    def on_mount(self) -> None:
        """Show what is known, then whatever changes."""
        self.query_one("#sources", Listing).empty = Clean("no sources: name one with `watchfloor connect URL`")
        self.paint(everything=True)
        self.set_interval(_TICK_S, self.paint)

    def on_screen_resume(self) -> None:
        """What changed while another screen was in front."""
        self.paint(everything=True)

    # -------------------------------------------------------------- painting

    def paint(self, *, everything: bool = False) -> None:
        """Paint what has changed since the last time, once a second what the time alone changes."""
        store, now = self._hub.fleet, self._clock()
        said = tuple(self._badge())
        stamp = (now // 1_000, said, tuple((source.name, source.version) for source in store.sources.values()))
        if not everything and stamp == self._stamp:
            return
        self._stamp = stamp
        rows, listing = SourceRows(store, now), self.query_one("#sources", Listing)
        listing.styles.height = max(1, len(rows)) + 1
        listing.show(rows)
        self._paint_selected(now)

    def _paint_selected(self, now: int) -> None:
        source = self._source
        self._faults = FaultRows(source)
        faults = self.query_one("#faults", Listing)
        faults.styles.height = max(1, len(self._faults))
        faults.show(self._faults)
        for part in (faults, self.query_one("#faults-rule")):
            part.display = bool(self._faults.faults)
        fault = self._fault
        self._inspects = self._inspects and fault is not None
        details = self.query_one("#details", DetailsPane)
        name = source.name if source is not None else ""
        if fault is not None and self._inspects:
            details.facts = fault_lines(fault)
        else:
            details.facts = source_lines(self._hub.fleet, name, now, self._tz)
        title: tuple[Segment, ...] = ((source.shown, "plain"),) if source is not None else ()
        if self._inspects:
            title = (*title, (Clean("what could not be read"), "attention"))
        self.query_one("#details-rule", Rule).say(title, active=details.has_focus)
        count = source.fault_count + source.error_count if source is not None else 0
        kept = len(self._faults)
        held = f"{count:,} in all" + (f", the newest {kept:,} kept" if count > kept else "")
        head: tuple[Segment, ...] = ((Clean("could not be read, or reported"), "plain"), (Clean(held), "quiet"))
        self.query_one("#faults-rule", Rule).say(head, active=faults.has_focus)
        self._paint_frame(source)

    def _paint_frame(self, source: Source | None) -> None:
        live = sum(one.live for one in self._hub.fleet.sources.values())
        heard = Clean(f"{live} of {len(self._hub.fleet.sources)} live")
        back: Segment = (Clean(f"{self._keys.shown('back')}  back"), "quiet")
        top = Says(((Clean("sources"), "attention"), (heard, "plain"), *self._badge()), (back,))
        self.query_one("#sources-top", StatusBar).status = top
        self.query_one("#sources-notice", StatusBar).status = Says((self._said,) if self._said[0] else ())
        why = self._no_retry(source)
        inspect = Clean("back to the source" if self._inspects else "inspect")
        keys = [
            FooterKey(self._keys.shown("retry"), Clean("try now"), not why, why),
            FooterKey(self._keys.shown("open"), inspect, bool(self._faults.faults), Clean("all of it could be read")),
            FooterKey(self._keys.shown("focus_next"), Clean("next part"), True, NOTHING),
            FooterKey(self._keys.shown("copy"), Clean("copy"), True, NOTHING),
            FooterKey(self._keys.shown("help"), Clean("keys"), True, NOTHING),
            FooterKey(self._keys.shown("command"), Clean("command line"), True, NOTHING),
        ]
        self.query_one("#sources-footer", ActionFooter).items = [key for key in keys if key.key]

    @property
    def _source(self) -> Source | None:
        key = self.query_one("#sources", Listing).selected
        return self._hub.fleet.sources.get(str(key)) if key is not None else None

    @property
    def _fault(self) -> FaultFact | None:
        place = self.query_one("#faults", Listing).place
        return self._faults.faults[place] if place < len(self._faults) else None

    def select(self, name: str) -> None:
        """Put the cursor on a source."""
        places = list(self._hub.fleet.sources)
        if name in places:
            self.query_one("#sources", Listing).select_place(places.index(name))

    # -------------------------------------------------------------- keys

    def action_perform(self, id: str) -> None:
        """Do what a key stands for."""
        self._said = (NOTHING, "plain")
        does = self._does.get(id)
        if does is None:
            self.dismiss(id)
            return
        # What has come in and is not painted yet has not been read either, but it is there to be opened.
        self.paint()
        does()
        if self.is_attached and self.is_active:
            self.paint(everything=True)

    def _no_retry(self, source: Source | None) -> Clean:
        """Why there is nothing to be tried; "" where there is."""
        if source is None:
            return Clean("no source is selected")
        if source.contact in (Contact.LIVE, Contact.SILENT):
            return Clean("it is connected")
        if source.given_up:
            return Clean("nobody dials it any more")
        return Clean("it is being tried") if source.contact is Contact.CONNECTING else NOTHING

    def _retry(self) -> None:
        source = self._source
        why = self._no_retry(source)
        if why or source is None:
            self._said = (Clean(f"{self._keys.shown('retry')} try now: {why}"), "attention")
            return
        self._hub.retry(source.name)
        self._said = (Clean(f"trying {source.shown} now"), "plain")

    def _inspect(self) -> None:
        if not self._faults.faults:
            self._said = (Clean("all that came from it could be read"), "plain")
            return
        self._inspects = not self._inspects
        self.query_one("#details", DetailsPane).jump(0)
        self.set_focus(self.query_one("#faults" if self._inspects else "#sources"), scroll_visible=False)

    def _back(self) -> None:
        if self._inspects:
            self._inspect()
        else:
            self.dismiss(None)

    def _copy(self) -> None:
        """Copy what the details say, cleaned."""
        lines = [f"{label}: {text}" for label, text, *_ in self.query_one("#details", DetailsPane).facts]
        self.copy_text("\n".join(lines))

    @on(Listing.Turned)
    def _turned(self, event: Listing.Turned) -> None:
        event.stop()
        if event.control.id == "sources":
            self._inspects = False
        self._paint_selected(self._clock())

    @on(Listing.Opened, "#faults")
    def _opened(self, event: Listing.Opened) -> None:
        event.stop()
        self._inspect()
        self.paint(everything=True)
