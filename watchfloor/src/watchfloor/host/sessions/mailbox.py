"""A session's mailbox: messages in order of arrival, each with a ref that is never used again.

A message ends consumed, or with an error that says why; until then it is queued. The messages that the
turn under way has consumed are remembered, because they share that turn's end: when it is interrupted,
fails or is stopped they end with its error, and when its step was cancelled they are handed over again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from watchfloor.harness.base import MailItem
from watchfloor.protocol.events import Mail, MailState
from watchfloor.protocol.given import given
from watchfloor.protocol.model import Mailbox as MailboxView
from watchfloor.words import Delivery

REMEMBERED: Final = 1000
"""Messages of a session that are still known after their end."""
MOST_WAITING: Final = 1000
MOST_TEXT: Final = 16 * 1024 * 1024
"""Messages, and characters of them, that may wait for a session before operators can send it no more; beyond so many
characters fewer than `REMEMBERED` are still known."""


@dataclass(slots=True)
class Letter:
    """A message and what became of it. `steers`: it may join a turn that is under way.

    `state` is "sent" while it waits. `response`: the last words of the turn that consumed it, or the agent's reply.
    """

    item: MailItem
    delivery: Delivery
    steers: bool = True
    at: int = 0
    state: MailState = MailState.SENT
    error: str | None = None
    response: str | None = None
    consumed: bool = False
    """A turn has taken it, whatever became of that."""

    def event(self, state: MailState, at: int, error: str | None = None) -> Mail:
        item = self.item
        text = item.text if state is MailState.SENT else None
        rest = given(reply_to=item.reply_to, text=text, error=error)
        return Mail(at=at, ref=item.ref, state=state, delivery=self.delivery, by=item.by, **rest)


class NoSuchRef(KeyError):
    """The mailbox has no message of this ref: it never had one, or it ended too long ago."""

    def __init__(self, ref: str, highest: int) -> None:
        super().__init__(ref)
        self.ref = ref
        self.highest = highest

    def __str__(self) -> str:
        if not self.highest:
            return f"no message {self.ref}: none was sent to this session"
        return f"no message {self.ref}: the refs of this session are #1 to #{self.highest}, and old ones are forgotten"


def number_of(ref: str) -> int | None:
    """The number of a ref as an operator writes it, "#3" or "3"; None for what is none."""
    digits = ref.strip().removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 15 else None


class Mailbox:
    """The letters of one session: those that wait, those that the turn under way has consumed, and ended ones."""

    def __init__(self) -> None:
        self._refs = 0
        self._waiting: list[Letter] = []
        self._turn: list[Letter] = []
        self._known: OrderedDict[str, Letter] = OrderedDict()
        self.fresh: dict[str, Letter] = {}
        """What ended, or was answered, and is not kept yet."""

    def ended(self, letter: Letter) -> None:
        """What became of a letter is known, as far as it goes."""
        self.fresh[letter.item.ref] = letter

    def know(self, letters: Iterable[Letter]) -> None:
        """These were kept when they had ended."""
        for letter in letters:
            self._known.setdefault(letter.item.ref, letter)
        for ref in sorted(self._known, key=lambda ref: number_of(ref) or 0):
            self._known.move_to_end(ref)

    def post(
        self,
        text: str,
        *,
        by: str,
        delivery: Delivery,
        steers: bool = True,
        reply_to: str | None = None,
        event: str | None = None,
        at: int = 0,
    ) -> Letter:
        """Take a message in, at the end of the queue."""
        self._refs += 1
        letter = Letter(MailItem(f"#{self._refs}", text, by, reply_to, event), delivery, steers, at)
        self._waiting.append(letter)
        self._remember(letter)
        return letter

    def _remember(self, letter: Letter) -> None:
        self._known[letter.item.ref] = letter
        excess = len(self._known) - REMEMBERED
        too_much = _characters(self._known.values()) - MOST_TEXT
        if excess <= 0 and too_much <= 0:
            return
        at_work = {one.item.ref for one in (*self._waiting, *self._turn)}
        for ref in [ref for ref in self._known if ref not in at_work]:
            if excess <= 0 and too_much <= 0:
                break
            forgotten = self._known.pop(ref)
            excess, too_much = excess - 1, too_much - _characters([forgotten])

    def letter(self, ref: str) -> Letter:
        """The message with this ref, "#3" or "3". Raises NoSuchRef."""
        number = number_of(ref)
        letter = self._known.get(f"#{number}") if number is not None else None
        if letter is None:
            raise NoSuchRef(ref, self._refs)
        return letter

    def letters(self) -> list[Letter]:
        """The messages that are remembered, oldest first."""
        return list(self._known.values())

    def waiting(self) -> list[Letter]:
        """The messages that nobody has consumed, in order."""
        return list(self._waiting)

    def at_work(self) -> list[Letter]:
        """The messages that the turn under way has consumed, in order."""
        return list(self._turn)

    def number_on(self, refs: int) -> None:
        """The refs up to this number are those of messages that a session had which this one begins with."""
        self._refs = max(self._refs, refs)

    def put_back(self, refs: int, waiting: Sequence[Letter], consumed: Sequence[Letter]) -> None:
        """Make of an empty mailbox the one that was kept."""
        self._refs, self._waiting, self._turn = refs, list(waiting), list(consumed)
        for letter in sorted((*consumed, *waiting), key=lambda letter: number_of(letter.item.ref) or 0):
            self._known[letter.item.ref] = letter

    @property
    def view(self) -> MailboxView:
        return MailboxView(queued=len(self._waiting), refs=self._refs)

    def full(self, text: str) -> bool:
        """Does so much wait already that somebody outside has to wait before this one is taken in?"""
        return len(self._waiting) >= MOST_WAITING or _characters(self._waiting) + len(text) > MOST_TEXT

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
        self._turn = [self._known.get(item.ref) or _ended(item) for item in again] + consumed
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


def _characters(letters: Iterable[Letter]) -> int:
    return sum(len(letter.item.text) for letter in letters)


def _ended(item: MailItem) -> Letter:
    """A message that is taken up once more after its end was forgotten."""
    return Letter(item, Delivery.STARTED, state=MailState.ERROR)
