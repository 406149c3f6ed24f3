"""What a session remembers, as far as its events tell: what would be forgotten, and to which messages it can go."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from console.fleet.log import LogEntry
from console.fleet.state import Session
from watchfloor.text import NOTHING, Clean
from watchfloor.words import Continuity, ReseedMode

_BEGINS_ANEW: Final = frozenset({ReseedMode.CLEAR, ReseedMode.REPLACE, ReseedMode.COMPACT})
_REF: Final = re.compile(r"before (#\d+)")
_WHOLE: Final = frozenset({Continuity.WHOLE, Continuity.ARRIVAL_ORDER})


@dataclass(frozen=True, slots=True)
class Heard:
    """A message from its mailbox that the agent has read. `ref` goes back to the source exactly as it is.

    `messages` and `events`: how many of each came with it and behind it, itself counted.
    """

    ref: str
    text: Clean
    messages: int
    events: int


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a session remembers. `heard`: newest first. `whole` False: there is more, which was not heard here or is no
    longer in memory. `unsure`: it went back to some message meanwhile, so that there may be less."""

    messages: int = 0
    events: int = 0
    heard: tuple[Heard, ...] = ()
    whole: bool = False
    unsure: bool = False

    @property
    def knows_all(self) -> bool:
        """Is each message to which it can go back among those that were heard?"""
        return self.whole and not self.unsure

    def of(self, ref: str) -> Heard | None:
        """The message with this ref, which may be written without its mark."""
        return next((one for one in self.heard if one.ref in (ref, f"#{ref}")), None)


@dataclass(slots=True)
class _Place:
    """A message that was read, and what had been counted before it came."""

    ref: str
    text: Clean
    before: _Count


@dataclass(frozen=True, slots=True)
class _Count:
    """What was counted. A source may tell what the agent was told as mail, as a message, or as both."""

    events: int = 0
    said: int = 0
    told: int = 0
    mail: int = 0

    def since(self, before: _Count) -> tuple[int, int]:
        """How many messages and events came since then."""
        told = max(self.told - before.told, self.mail - before.mail)
        return self.said - before.said + told, self.events - before.events


def remembered(session: Session, now: int) -> Remembered:
    """What the session's events tell of its conversation, at the local time `now`."""
    reader = _Reader()
    entries = session.log.entries()
    for entry in entries:
        reader.read(entry)
    first = next((entry.fact.seq for entry in entries if entry.fact.seq is not None), None)
    messages, events = reader.count.since(_Count())
    heard = [Heard(place.ref, place.text, *reader.count.since(place.before)) for place in reversed(reader.places)]
    begun = reader.anew or (first == 1 and not session.log.left_out)
    return Remembered(messages, events, tuple(heard), begun and session.track.state(now).word in _WHOLE, reader.unsure)


class _Reader:
    """Goes through the events of a session in their order."""

    def __init__(self) -> None:
        self.places: list[_Place] = []
        self.anew = False
        self.unsure = False
        self._texts: dict[str, Clean] = {}
        self._known: set[str] = set()
        self._answered = False
        self._go_on_from(_Count())

    def _go_on_from(self, count: _Count) -> None:
        self._events, self._said, self._told, self._mail = count.events, count.said, count.told, count.mail

    @property
    def count(self) -> _Count:
        """What was counted so far."""
        return _Count(self._events, self._said, self._told, self._mail)

    def read(self, entry: LogEntry) -> None:
        kind = entry.fact.kind
        if kind == "reseeded":
            self._reseeded(entry.fact.data.get("mode"), entry.text)
            return
        if kind == "mail":
            self._heard(entry)
        elif kind == "message":
            self._message(user=entry.fact.data.get("role") == "user")
        elif kind == "result" and not self._answered and entry.text:
            # Some agents say what they have to say in their result only.
            self._message(user=False)
        self._events += 1

    def _message(self, *, user: bool) -> None:
        self._told += user
        self._said += not user
        self._answered = not user

    def _heard(self, entry: LogEntry) -> None:
        ref, state = entry.fact.data["ref"], entry.fact.data["mail_state"]
        if state == "sent":
            self._texts[ref] = entry.text
        elif state == "consumed":
            # A turn that was taken up again reads its messages once more.
            if ref in self._known:
                self.places = [place for place in self.places if place.ref != ref]
            self._known.add(ref)
            self.places.append(_Place(ref, entry.text or self._texts.get(ref, NOTHING), self.count))
            self._mail += 1
            self._answered = False

    def _reseeded(self, mode: object, note: Clean) -> None:
        if mode in _BEGINS_ANEW:
            self.places, self.anew, self.unsure = [], True, False
            self._go_on_from(_Count())
        elif mode is ReseedMode.REWIND:
            named = _REF.search(note)
            at = next((at for at, place in enumerate(self.places) if named and place.ref == named[1]), None)
            if at is None:
                self.unsure = True
            else:
                self._go_on_from(self.places[at].before)
                del self.places[at:]
