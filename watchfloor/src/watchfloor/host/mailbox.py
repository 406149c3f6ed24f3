"""A session's mailbox: messages in order of arrival, each with a ref that is never used again.

A message ends consumed, or with an error that says why; until then it is queued. The messages that the
turn under way has consumed are remembered, because they share that turn's end: when it is interrupted,
fails or is stopped they end with its error, and when its step was cancelled they are handed over again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from watchfloor.harness.base import MailItem
from watchfloor.host.given import given
from watchfloor.protocol.events import Mail, MailState
from watchfloor.protocol.model import Mailbox as MailboxView
from watchfloor.words import Delivery


@dataclass(frozen=True, slots=True)
class Letter:
    """A message with what was promised about it. `steers`: it may join a turn that is under way."""

    item: MailItem
    delivery: Delivery
    steers: bool = True

    def event(self, state: MailState, at: int, error: str | None = None) -> Mail:
        item = self.item
        text = item.text if state is MailState.SENT else None
        rest = given(reply_to=item.reply_to, text=text, error=error)
        return Mail(at=at, ref=item.ref, state=state, delivery=self.delivery, by=item.by, **rest)


class Mailbox:
    """The letters of one session: those that wait and those that the turn under way has consumed."""

    def __init__(self) -> None:
        self._refs = 0
        self._waiting: list[Letter] = []
        self._turn: list[Letter] = []

    def post(
        self, text: str, *, by: str, delivery: Delivery, steers: bool = True, reply_to: str | None = None
    ) -> Letter:
        """Take a message in, at the end of the queue."""
        self._refs += 1
        letter = Letter(MailItem(f"#{self._refs}", text, by, reply_to), delivery, steers)
        self._waiting.append(letter)
        return letter

    @property
    def view(self) -> MailboxView:
        return MailboxView(queued=len(self._waiting), refs=self._refs)

    @property
    def waits(self) -> bool:
        """Is there a message that nobody has consumed?"""
        return bool(self._waiting)

    @property
    def turn(self) -> tuple[MailItem, ...]:
        """What the turn under way has consumed, in order."""
        return tuple(letter.item for letter in self._turn)

    def begin_turn(self, again: Iterable[MailItem] = ()) -> tuple[tuple[MailItem, ...], list[Letter]]:
        """A turn begins with all that waits, after `again`: mail of an earlier turn that is taken up once more.

        Returns the turn's mail and the letters that were consumed just now.
        """
        consumed, self._waiting = self._waiting, []
        self._turn = [Letter(item, Delivery.STARTED) for item in again] + consumed
        return self.turn, consumed

    def steer(self) -> list[Letter]:
        """A step boundary: the turn consumes the letters that may join it."""
        consumed = [letter for letter in self._waiting if letter.steers]
        if consumed:
            self._waiting = [letter for letter in self._waiting if not letter.steers]
            self._turn += consumed
        return consumed

    def end_turn(self) -> list[Letter]:
        """The turn is over; returns what it had consumed."""
        letters, self._turn = self._turn, []
        return letters

    def drop_started(self) -> list[Letter]:
        """Take the letters out of the queue that were to start a turn."""
        started = [letter for letter in self._waiting if letter.delivery is Delivery.STARTED]
        self._waiting = [letter for letter in self._waiting if letter.delivery is not Delivery.STARTED]
        return started

    def empty(self) -> list[Letter]:
        """Take all waiting letters out of the queue."""
        letters, self._waiting = self._waiting, []
        return letters
