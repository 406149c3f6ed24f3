"""One session: all that it said and did, what it asks, and the same keys as on the fleet screen."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from console.actions import BY_ID, Action, Where
from console.fleet.facts import RequestKey, SessionKey
from console.screens.availability import Standing
from console.screens.bindings import bindings
from console.screens.flows import steering
from console.screens.opened import OpenedScreen
from console.screens.rule import Rule
from console.screens.session.board import SessionBoard
from watchfloor.errors import ConnectionLost, ProtocolError
from watchfloor.text import Clean, clean_line
from widgets.listing import Listing
from widgets.painting import LineView
from widgets.request_card import RequestCard
from widgets.transcript import Transcript

if TYPE_CHECKING:
    from textual.worker import Worker

    from console.screens.setting import Setting

PAGE_WAIT_S: Final = 15.0
MAILBOX: Final = "-mailbox"
"""The class of the screen while its mailbox is open."""
_OF_TRANSCRIPT: Final = frozenset({"look_for", "find_next", "find_before", "to_time", "source_text", "attempt"})


class SessionScreen(OpenedScreen, inherit_bindings=False):
    """The screen of one session."""

    CSS_PATH = Path(__file__).with_suffix(".tcss")
    AUTO_FOCUS = "#transcript"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.SESSION)

    def __init__(
        self,
        setting: Setting,
        key: SessionKey,
        *,
        carded: RequestKey | None = None,
        read: RequestCard | None = None,
    ) -> None:
        """Create the screen of the session `key`; `carded` is a request whose card is to be open on it, `read` the
        card on which it was read before. See `FleetScreen` for the rest."""
        self._desk = SessionBoard(
            setting.hub, key, setting.keys, setting.glyphs, debug_keys=setting.debug_keys, tz=setting.tz
        )
        super().__init__(setting, where=Where.SESSION, board=self._desk)
        self._carded = carded
        self._read = read
        self._sight.selected = key
        self._own = {
            **self._own,
            "source_text": self.turn_source,
            "attempt": self.next_attempt,
            "mailbox": self.toggle_mailbox,
        }

    def main(self) -> ComposeResult:
        yield self._desk.card
        yield Rule(id="log-rule", marks=self._marks)
        yield self._desk.transcript
        yield self._desk.mailbox.listing
        yield self._desk.mailbox.letter

    async def _furnish(self) -> None:
        if self._carded is not None and self._carded in self._hub.fleet.requests:
            self.open_card(self._carded)
            if self._read is not None:
                self._desk.card.credit(self._read)

    def _tick(self) -> None:
        if self.is_active:
            self.paint()
            self._hub.look(self._sight.selected, opened=True)

    def _follow(self) -> None:
        """The session is the one that was opened, whatever becomes of it."""

    # -------------------------------------------------------------- the parts

    @property
    def home(self) -> LineView:
        return self._desk.mailbox.listing if self.has_class(MAILBOX) else self._desk.transcript

    def parts(self) -> list[LineView]:
        desk = self._desk
        return [desk.card, desk.transcript, desk.mailbox.listing, desk.mailbox.letter, desk.facts]

    def line(self, by: int) -> None:
        """Move by blocks in the transcript, by messages in the mailbox, else by lines."""
        pane = self.pane
        if isinstance(pane, Transcript | Listing):
            pane.move(by)
        else:
            super().line(by)

    def page(self, by: int) -> None:
        """Move by pages in the part that has the keys."""
        pane = self.pane
        if isinstance(pane, Transcript):
            pane.page(by)
        elif isinstance(pane, Listing):
            pane.move(by * pane.page_lines())
        else:
            super().page(by)

    def edge(self, last: bool) -> None:
        """Move to the start, where what is earlier is asked for, or to the end, which is followed."""
        pane = self.pane
        if isinstance(pane, Listing):
            pane.select_place(len(self._desk.mailbox.rows) if last else 0)
        elif not isinstance(pane, Transcript):
            super().edge(last)
        elif last:
            pane.follow()
        else:
            pane.select(0)
            self.fetch_older()

    def read_on(self) -> None:
        """A page of the card while it is open, else of the part that has the keys."""
        if self._sight.shown is not None and not self._board.covered and self.pane is not self._desk.transcript:
            self._desk.card.jump(self._desk.card.scroll_offset.y + self._desk.card.page_lines())
        else:
            self.page(1)

    # -------------------------------------------------------------- keys

    def action_perform(self, id: str) -> None:
        """Do what a key stands for; where an attempt is shown that is over, nothing intervenes."""
        action = self._actions.get(id)
        if id in _OF_TRANSCRIPT and self.has_class(MAILBOX):
            self.toggle_mailbox()
        if action is not None and action.intervenes and (why := self._desk.past):
            self._board.key_pressed()
            self._quiet.pressed()
            self.say(f"{self._keys.shown(id)} {action.label}: {why}", "attention")
            self.paint()
            return
        super().action_perform(id)

    def standings(self) -> list[tuple[Action, Standing]]:
        """How each action stands for what is looked at."""
        past = self._desk.past
        return [
            (action, Standing(stands.shown, stands.label, past) if past and action.intervenes else stands)
            for action, stands in super().standings()
        ]

    def open_selected(self) -> None:
        """The request of the selected block on its card; else open the block, or close it. An answer to the selected
        message, where the mailbox is open."""
        if self.has_class(MAILBOX) and self.pane not in (self._desk.card, self._desk.facts):
            self.reply()
            return
        if self.pane is not self._desk.transcript:
            return
        place = self._desk.transcript.selected
        block = self._desk.blocks.block(place) if place is not None else None
        if block is not None and block.request is not None:
            key = RequestKey(*self._desk.key, block.request)
            request = self._hub.fleet.requests.get(key)
            if request is not None and request.open:
                self.open_card(key)
                return
        if block is not None and not self._desk.transcript.toggle():
            self.say("all of it is shown")

    def open_session(self) -> None:
        """It is open."""

    def turn_source(self) -> None:
        """Show the selected block as it was written, or in its form again."""
        if self._desk.transcript.selected is None:
            self.say("nothing is here")
        elif self._desk.transcript.toggle_source():
            self.say("as it was written")

    def toggle_mailbox(self) -> None:
        """Show what was sent to the session, or its transcript again."""
        self.toggle_class(MAILBOX)
        self._desk.mailbox.take_up(self._desk.blocks.entries())
        self.paint(everything=True)
        self.call_after_refresh(self.set_focus, self.home, scroll_visible=False)

    def reply(self) -> None:
        """Write a message that answers the one under the cursor."""
        letter = self._desk.letter
        if letter is None:
            self.say("no message is here")
            return
        send = BY_ID["send"]
        if send.id not in self._actions:
            self.say(f"an answer is not possible: {self._hub.only_watches}", "attention")
        elif why := self._desk.past:
            self.say(f"an answer is not possible: {why}", "attention")
        else:
            self._interventions.steer(send, partial(steering.reply, to=letter.ref, text=letter.text))

    @on(Listing.Turned)
    def _letter_selected(self, event: Listing.Turned) -> None:
        event.stop()
        self._desk.mailbox.show_letter()

    @on(Listing.Opened)
    def _letter_clicked(self, event: Listing.Opened) -> None:
        event.stop()
        self.reply()

    def next_attempt(self) -> None:
        """Show the newest attempt only, then the one before that, then all of them again."""
        blocks = self._desk.blocks
        if len(blocks.attempts) < 2 and blocks.attempt is None:
            self.say("there is only one attempt here")
            return
        order = [None, *reversed(blocks.attempts)]
        at = order.index(blocks.attempt) if blocks.attempt in order else 0
        blocks.attempt = order[(at + 1) % len(order)]
        self._desk.transcript.follow()
        self.paint(everything=True)
        self.say("all attempts" if blocks.attempt is None else f"attempt {blocks.attempt} only")

    def show_next(self) -> None:
        """Show the request that waits longest, of whichever session; this screen turns to it."""
        key = self._sight.next_request()
        if key is None or (self._sight.shown is not None and key == self._sight.shown.key and not self._sight.outdated):
            super().show_next()
            return
        if key.owner != self._desk.key:
            self.go_to(key.owner)
        self.open_card(key)

    def go_to(self, key: SessionKey) -> None:
        """Turn this screen to another session."""
        if key == self._desk.key:
            return
        self.close_card()
        self._sight.selected, self._sight.aimed = key, True
        self._desk.show_session(key)
        self.paint(everything=True)

    def back(self) -> None:
        """Close what is open, the topmost first; then this screen."""
        if self.has_class("-facts"):
            self.put_facts_away()
        elif self._sight.shown is not None:
            self.close_card()
        elif self.pane is not self.home:
            self.set_focus(self.home, scroll_visible=False)
        elif self.has_class(MAILBOX):
            self.toggle_mailbox()
        elif not self.left_search():
            self.dismiss(None)

    # -------------------------------------------------------------- what is earlier

    @on(Transcript.AtTop)
    def _at_top(self, event: Transcript.AtTop) -> None:
        event.stop()
        self.fetch_older()

    @on(Transcript.Opened)
    def _block_clicked(self, event: Transcript.Opened) -> None:
        event.stop()
        self.open_selected()

    def fetch_older(self) -> None:
        """Ask the source for a page of what is earlier, unless that is under way or there is none."""
        desk = self._desk
        blocks = desk.blocks
        if desk.fetching or blocks.full or not blocks.earlier or blocks.more_before is False:
            return
        desk.fetching = True
        _: Worker[None] = self.run_worker(self._fetch, exit_on_error=True)

    async def _fetch(self) -> None:
        desk, key, blocks = self._desk, self._desk.key, self._desk.blocks
        oldest = blocks.oldest
        before = oldest if oldest is not None else self._hub.fleet.sessions[key].head + 1
        why = Clean("")
        try:
            page = await self._hub.older(key, before, wait_s=PAGE_WAIT_S)
        except TimeoutError:
            why = Clean(f"no answer within {PAGE_WAIT_S:g} s")
        except (ConnectionLost, ProtocolError) as fault:
            why = clean_line(str(fault))
        else:
            blocks.prepend(page.epoch, page.events, more=page.more)
        finally:
            desk.fetching = False
        if desk.blocks is blocks:
            desk.unread_past = why
            if self.is_attached:
                self.paint(everything=True)
