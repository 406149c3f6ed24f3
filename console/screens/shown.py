"""The request that is on the card: since when it stands there unchanged, and whether its end was seen."""

from __future__ import annotations

from collections.abc import Hashable

from console.fleet.facts import RequestKey, Seen
from console.fleet.gate import ARM_MS
from console.fleet.views import Card
from watchfloor.text import Clean


class Shown:
    """Keys count only for what stood still before the operator's eyes.

    All times are milliseconds of the clock that is never set, but for `put_at`, which is local.
    """

    def __init__(self, key: RequestKey, digest: str, now: int, put_at: int) -> None:
        """A request is put on the card."""
        self.key = key
        self.put_at = put_at
        self.whole = False
        self._opened: int | None = None
        self._changed = now
        self._face: Hashable = None
        self._digest = digest

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
        asked = tuple((field.label, field.kind, field.choices) for field in card.fields)
        face = (card.digest, card.actions, asked, card.description, card.flags, card.options, card.open)
        if face != self._face:
            if self._face is not None:
                self._changed = now
            self._face = face
        self._digest = card.digest

    def seen(self, now: int) -> Seen:
        """What the gate asks for. What has not come onto the terminal yet is only about to be seen."""
        return Seen(self._digest, now if self._opened is None else self._changed, self.whole)

    def too_new(self, now: int) -> Clean:
        """Why no key counts yet, not even one that denies: it may have been meant for what stood there before."""
        if self._opened is None:
            return Clean("not on the screen yet")
        left = self._opened + ARM_MS - now
        return Clean(f"shown just now: armed in {max(left, 100) / 1000:.1f} s") if left > 0 else Clean("")

    def arming(self, now: int) -> bool:
        """Does the card still count down?"""
        return self._opened is None or now < max(self._opened, self._changed) + ARM_MS
