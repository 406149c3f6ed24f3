"""The parts of the session screen: those of the fleet screen, with a transcript instead of roster and log."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING

from textual.widget import Widget

from console.fleet.changes import Changes
from console.fleet.facts import SessionKey
from console.fleet.roster.order import RowKey
from console.fleet.state import Session
from console.fleet.transcript.transcript import Transcript as Blocks
from console.fleet.views.details import detail_rows
from console.fleet.views.mail import Letter
from console.fleet.views.wording import TONE_OF, Segment, masked
from console.screens.board import Board
from console.screens.flows.drawer import Drawer
from console.screens.session.mailbox import Mailbox
from console.screens.session.transcript_book import TranscriptBook
from watchfloor.text import NOTHING, Clean
from watchfloor.words import Primitive
from widgets.event_log import EventLog
from widgets.facts import FactRow
from widgets.roster import Roster
from widgets.transcript import Transcript

if TYPE_CHECKING:
    from console.hub import Hub
    from console.keymap import Keymap
    from themes.data import GlyphSet


class SessionBoard(Board):
    """Paints one session. It has no roster and no log: what stands for them is never on the screen."""

    def __init__(
        self, hub: Hub, key: SessionKey, keys: Keymap, glyphs: GlyphSet, *, debug_keys: bool, tz: tzinfo | None
    ) -> None:
        super().__init__(hub, keys, glyphs, ground=NOTHING, debug_keys=debug_keys, tz=tz)
        self.key = key
        self.blocks = Blocks(hub.fleet, key, self._glyphs, tz)
        self.transcript = Transcript(self.blocks, marks=self.marks, id="transcript")
        self.reads = self._pages = TranscriptBook(hub.fleet, self.blocks, self.transcript, tz)
        self.mailbox = Mailbox(self.marks, tz)
        self.roster = Roster(self.rows, marks=self.marks)
        self.log = EventLog(marks=self.marks)
        self.book.bind(self.log)
        # Whoever is here has found the keys.
        self._pressed = 1
        self.fetching = False
        self.unread_past = NOTHING
        """Why the source gave nothing older."""

    def bind(self, screen: Widget) -> None:
        """Take up the widgets, once they are there."""
        self._take_up(screen)
        self.drawer = screen.query_one(Drawer)
        self.bound = True

    def show_session(self, key: SessionKey) -> None:
        """Show another session."""
        self.key = key
        self.blocks = Blocks(self._hub.fleet, key, self._glyphs, self._tz)
        self.unread_past = NOTHING
        self.transcript.blocks = self.blocks
        self.mailbox.forget()
        self._pages.turn_to(self.blocks)
        self._dirty = True

    @property
    def selected(self) -> SessionKey | None:
        return self.key

    @property
    def line(self) -> RowKey | None:
        return self.key

    @property
    def past(self) -> Clean:
        """Why what is shown can only be read; empty where it is what runs."""
        session = self._hub.fleet.sessions.get(self.key)
        attempt = self.blocks.attempt
        if session is None or attempt is None or attempt == session.attempt:
            return NOTHING
        return Clean(f"attempt {attempt} is over and can only be read: {self._keys.shown('attempt')} leads on")

    def rearrange(self, now: int) -> None:
        """There is no roster to be arranged."""

    def bring(self, key: SessionKey, now: int) -> None:
        """There is no roster in which it could be hidden."""

    def marked(self) -> list[SessionKey]:
        return []

    def turn_to(self, key: SessionKey | None) -> None:
        self._dirty = True

    def paint_roster(self, changes: Changes, now: int, *, everything: bool) -> None:
        """What of the transcript has changed."""
        self._contact_changed()
        blocks, key = self.blocks, self.key
        second = now // 1_000 != self._second
        if everything or second or key in changes.rewritten or key in changes.appended or key in changes.sessions:
            blocks.now = now
            blocks.take_up()
            self._pages.take_up()
            self.transcript.refresh_blocks()
            if self.mailbox.listing.display:
                self.mailbox.take_up(blocks.entries())
        self.transcript.empty = Clean(
            "nothing has happened yet" if blocks.attempt is None else "nothing of this attempt"
        )
        self.transcript.status = self._status()

    def _status(self) -> Segment:
        blocks = self.blocks
        if self.fetching:
            return Clean("asking for what is earlier"), "quiet"
        if (looked := self._pages.told()) is not None:
            return looked
        if self.unread_past:
            return Clean(f"nothing earlier came: {self.unread_past}"), "attention"
        if blocks.full:
            return Clean("what is earlier has no room here"), "quiet"
        earlier = blocks.earlier
        if not earlier or blocks.more_before is False:
            return Clean("from the beginning" if not earlier else f"{earlier:,} earlier are kept no longer"), "quiet"
        noun = "entry" if earlier == 1 else "entries"
        return Clean(f"{earlier:,} earlier {noun}: {self._keys.shown('first')} asks for them"), "quiet"

    def _fact_rows(self, selected: SessionKey, now: int) -> list[FactRow]:
        blocks = self.blocks
        return detail_rows(
            self._hub.fleet,
            selected,
            now,
            attempts=blocks.attempts,
            attempt=blocks.attempt,
            read_only=self._hub.read_only,
        )

    @property
    def _log_active(self) -> bool:
        return self.transcript.has_focus or self.mailbox.listing.has_focus

    def _log_title(self, selected: SessionKey | None, now: int) -> list[Segment]:
        title = super()._log_title(selected, now)
        session = self._hub.fleet.sessions.get(self.key)
        if session is not None:
            title.insert(1, (Clean(session.lifecycle.value), TONE_OF[session.lifecycle]))
        if session is not None and self.mailbox.listing.display:
            return [*title[:2], *self.mailbox.title(session, self._answers(session))]
        if self.blocks.attempt is not None:
            title.append((Clean(f"attempt {self.blocks.attempt} only"), "attention"))
        return title

    @property
    def letter(self) -> Letter | None:
        """The message under the cursor; None while the mailbox is not open."""
        return self.mailbox.selected if self.mailbox.listing.display else None

    def _answers(self, session: Session) -> Clean:
        """The key that answers a message, where the session takes answers."""
        profile = self._hub.fleet.profile(session)
        offered = profile is not None and profile.options.get(Primitive.SEND, {}).get("replies")
        return self._keys.shown("open") if offered and not self._hub.read_only else NOTHING

    def last_line(self) -> Clean:
        """The text of the selected message, or the source text of the selected block."""
        if (letter := self.letter) is not None:
            return masked(letter.text)
        block = self.transcript.selected_block
        return Clean("\n".join(text for text in (block.title, block.source) if text)) if block is not None else NOTHING
