"""The request that is on the card: since when it stands there unchanged, and whether its end was seen."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from console.fleet.changes import Changes
from console.fleet.facts import RequestKey, Seen
from console.fleet.gate import ARM_MS
from console.fleet.state import Request, Trail
from watchfloor.text import Clean

if TYPE_CHECKING:
    from console.fleet.views.card import Card

ASKS_ELSE: Final = "this request asks for something else now"
ASKED_ELSE: Final = "this request asked for something else in the end"
NOT_ARMED: Final = "not taken, the card was not armed yet: press again"


class Shown:
    """Keys count only for what stood still before the operator's eyes.

    The card is bound to what is asked, by its digest, as it was first drawn: what the request asks for later is never
    drawn on it, nor decided by a key. All times are milliseconds of the clock that is never set, but for `put_at`,
    which is local.
    """

    def __init__(self, key: RequestKey, digest: str, now: int, put_at: int) -> None:
        """A request is put on the card."""
        self.key = key
        self.put_at = put_at
        self.whole = False
        self.revealed = False
        """Are the secrets in it shown?"""
        self.masked = 0
        """How many secrets in it are not shown."""
        self._opened: int | None = None
        self._changed = now
        self._face: Hashable = None
        self._digest = digest
        self._read: Card | None = None
        """The card as it was last drawn with the text that it is bound to; None before that has come."""
        self._counts = False

    def painted(self, now: int) -> None:
        """Its beginning has come onto the terminal, or it has come back from behind something else."""
        self._opened = self._changed = now

    def covered(self, now: int) -> None:
        """Something else stands where it was: once it is back, keys count no sooner than for a new one."""
        if self._opened is not None:
            self._opened = self._changed = now

    def disturbed(self, now: int) -> None:
        """Something took the operator's eyes off it."""
        self._changed = now

    def look(self, card: Card, now: int) -> None:
        """Take up the card as it is about to be drawn; any change of what is decided about or how disarms it.

        What only counts time (how long it waits, when it ends) is no change, nor is what the operator enters.
        """
        self._counts = bool(card.left_ms)
        self.masked = card.masked
        if card.told:
            self._read = card
        asked = tuple((field.label, field.kind, field.choices) for field in card.fields)
        face = (card.digest, card.actions, asked, card.description, card.flags, card.options, card.open)
        if face != self._face:
            if self._face is not None:
                self._changed = now
            self._face = face

    @property
    def digest(self) -> str:
        """What it is bound to."""
        return self._digest

    def bind(self, request: Request) -> None:
        """Bind it to the text that has come, where it has shown none yet."""
        if self._read is None:
            self._digest = request.digest

    def outdated(self, request: Request | None) -> bool:
        """Does the request ask for something else than what stands on the card?"""
        return request is not None and self._read is not None and request.digest != self._digest

    def kept(self, made: Card, leads: str, ours: str = "") -> Card:
        """What was read, without a way to decide it.

        `made`: the card of what is asked now; `leads`: how to see it; `ours`: our decision on what was read.
        """
        assert self._read is not None  # noqa: S101 - for the type checker
        self._counts = False
        says = f"{ASKS_ELSE}: {leads}" if made.open else f"{ASKED_ELSE}, and is over: {made.ending}; {leads}"
        if ours:
            says = f"{ours} was on this; {says}"
        return self._read._replace(
            options=(), open=False, ending=Clean(says), deadline=Clean(""), armed=Clean(""), left_ms=0
        )

    def seen(self, now: int) -> Seen:
        """What the gate asks for. What has not come onto the terminal yet is only about to be seen."""
        return Seen(self._digest, now if self._opened is None else self._changed, self.whole)

    def too_new(self, now: int) -> bool:
        """Does no key count yet, not even one that denies, as it may have been meant for what stood there before?"""
        return self._opened is None or now < self._opened + ARM_MS

    def arming(self, now: int) -> bool:
        """Does the card still count down, or show that it does?"""
        return self._counts or self._opened is None or now < max(self._opened, self._changed) + ARM_MS

    def touched(self, changes: Changes) -> bool:
        """Does any of them concern the request, its session or its source?"""
        key = self.key
        return key in changes.requests or key.owner in changes.sessions or key.source in changes.sources


def taken_here(trail: Trail) -> str:
    """A decision that was taken here, and by whom."""
    return f"your decision ({trail.told})" if trail.intent.policy is None else f"the decision ({trail.told})"
