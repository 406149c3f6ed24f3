"""At which card the operator looks, as the sources are told it for other operators. Pure: times are milliseconds of a
clock that is never set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from console.fleet.facts import RequestKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from watchfloor.protocol.frames import Looking

RESTS_MS: Final = 300
"""How long a card has been open before anybody is told: running through them is not looking at them."""


class Look(NamedTuple):
    """What a source is to be told; `key` None: no card of its is open any more."""

    source: str
    key: RequestKey | None

    def frame(self) -> Looking:
        """What is sent."""
        from watchfloor.protocol.frames import Looking  # models load behind the first frame

        return Looking() if self.key is None else Looking(session=self.key.session, request=self.key.request)


class Attending:
    """Told which card is open; says what has to be sent. A source that was told hears of the end as well."""

    def __init__(self) -> None:
        self._open: RequestKey | None = None
        self._since = 0
        self._told: RequestKey | None = None

    def attend(self, key: RequestKey | None, now: int) -> None:
        """This card is open now, or none."""
        if key != self._open:
            self._open, self._since = key, now

    def due(self, now: int, hears: Callable[[str], bool]) -> list[Look]:
        """What is to be sent now. `hears`: is the source connected, and does it keep presence?"""
        rested = self._open is None or now - self._since >= RESTS_MS
        wanted = self._open if rested and self._open is not None and hears(self._open.source) else None
        if wanted == self._told or not rested:
            return []
        before, self._told = self._told, wanted
        looks: list[Look] = []
        if before is not None and (wanted is None or before.source != wanted.source) and hears(before.source):
            looks.append(Look(before.source, None))
        if wanted is not None:
            looks.append(Look(wanted.source, wanted))
        return looks

    def failed(self, look: Look) -> None:
        """It did not leave: it is told again."""
        if self._told == look.key:
            self._told = None

    def parted(self, source: str) -> None:
        """The connection to the source has ended, and with it what was told there."""
        if self._told is not None and self._told.source == source:
            self._told = None
