"""Which sessions are watched in detail: those that the operator stays with, for as long as that lasts, and no more.

A source sends the details, requests and history of a session that is watched; many fetch them from elsewhere, so that
running over the roster must not ask for each line, nor leaving one for a moment give it up. Pure: times are
milliseconds of a clock that is never set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from console.fleet.facts import SessionKey

if TYPE_CHECKING:
    from watchfloor.protocol.frames import Unwatch, Watch

RESTS_MS: Final = 300
"""How long the selection rests on a session before that is watched."""
LEFT_MS: Final = 60_000
"""How long a session has been left before it is watched no more."""
AGAIN_MS: Final = 1_000
"""How long after a failed try the next one is made."""
MOST: Final = 4
"""Sessions that are watched at once: the one that was left longest goes for another."""


class Order(NamedTuple):
    """What a source is to be told; `watch` False: unwatch."""

    key: SessionKey
    watch: bool

    def frame(self) -> Watch | Unwatch:
        """What is sent."""
        from watchfloor.protocol.frames import Unwatch, Watch  # models load behind the first frame

        name = self.key.session
        return Watch(session=name, start="start") if self.watch else Unwatch(session=name)


class Watches:
    """Told where the operator looks and what became of its orders; says what has to be sent."""

    def __init__(self) -> None:
        self._looked: SessionKey | None = None
        self._since = 0
        self._stays = False
        self._wanted: dict[SessionKey, int | None] = {}
        """Since when each has been left, the longest ago first; None: it is looked at."""
        self._handed: set[SessionKey] = set()
        self._failed: dict[SessionKey, int] = {}

    @property
    def watched(self) -> tuple[SessionKey, ...]:
        """What is watched, or will be once its source is heard."""
        return tuple(self._wanted)

    def look(self, key: SessionKey | None, now: int, *, opened: bool = False) -> None:
        """The operator looks at this session. `opened`: by a key for it, so that there is nothing to wait for."""
        if key != self._looked:
            if self._looked in self._wanted:
                self._wanted.pop(self._looked)
                self._wanted[self._looked] = now
            self._looked, self._since, self._stays = key, now, False
        self._stays = self._stays or opened

    def due(self, now: int, reachable: Callable[[SessionKey], bool]) -> list[Order]:
        """What is to be sent now. Each order is given once, until `failed` or `parted` says otherwise.

        `reachable`: is the session known, and its source heard?
        """
        key = self._looked
        if key is not None and (self._stays or now - self._since >= RESTS_MS):
            self._wanted[key] = None
        over = [one for one, left in self._wanted.items() if left is not None and now - left >= LEFT_MS]
        kept = [one for one in self._wanted if one not in over]
        left = [one for one in kept if self._wanted[one] is not None]
        over += left[: max(0, len(kept) - MOST)]
        orders: list[Order] = []
        for one in over:
            del self._wanted[one]
            self._failed.pop(one, None)
            if one in self._handed:
                self._handed.discard(one)
                if reachable(one):
                    orders.append(Order(one, watch=False))
        for one in self._wanted:
            if one not in self._handed and now >= self._failed.get(one, now) and reachable(one):
                self._handed.add(one)
                orders.append(Order(one, watch=True))
        return orders

    def failed(self, key: SessionKey, now: int) -> None:
        """The order to watch it did not leave."""
        if key in self._wanted:
            self._handed.discard(key)
            self._failed[key] = now + AGAIN_MS

    def parted(self, source: str) -> None:
        """The connection to the source has ended: what is watched there is asked for once more."""
        self._handed = {key for key in self._handed if key.source != source}
