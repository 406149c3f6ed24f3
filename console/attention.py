"""Whether anybody attends to the console, and what tells whoever does not: the bell, and ways beyond the screen."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import tzinfo
from typing import TYPE_CHECKING, Final

from console.fleet.decisions.bell import Bell

if TYPE_CHECKING:
    from console.config import Config
    from console.fleet.changes import Changes
    from console.fleet.facts import RequestKey
    from console.hub import Hub
    from console.notifying.keeper import Keeper
    from console.notifying.rules import Rules
    from watchfloor.connector import Clock

BELL_MS: Final = 1_000
"""Least milliseconds between two bells."""


class Attention:
    """Knows when the operator was last there, and tells what waits when nobody is.

    `ring` rings the bell of the terminal where `may_ring` allows it; without a `bell`, nothing that waits rings.
    `keeper` tells what waits beyond the screen, from `keep_watch` on.
    """

    def __init__(
        self,
        hub: Hub,
        rules: Rules | None,
        *,
        clock: Clock,
        tz: tzinfo | None,
        ring: Callable[[], None],
        focused: Callable[[], bool],
        bell: bool,
    ) -> None:
        self._hub = hub
        self._rules = rules
        self._clock = clock
        self._tz = tz
        self._ring = ring
        self._focused = focused
        self._bell = Bell(hub.fleet) if bell else None
        self._touched_at = hub.steady()
        self._belled_at: int | None = None
        self.keeper: Keeper | None = None

    def touched(self) -> None:
        """The operator did something."""
        self._touched_at = self._hub.steady()

    def take(self, changes: Changes, *, rings: bool) -> None:
        """Something has changed; it rings for what began to wait if it may."""
        if self.keeper is not None:
            self.keeper.take(changes)
        if not rings or self._bell is None or not changes.requests:
            return
        if self._bell.rings(changes.requests, self._hub.steady(), self._clock()):
            self._ring()

    def attend(self, attended: RequestKey | None) -> None:
        """This request is being read; None: none is."""
        self._hub.attend(attended)
        if self.keeper is not None:
            self.keeper.seen(attended)

    def keep_watch(self, config: Config, *, write: Callable[[str], None], beyond: bool) -> None:
        """Tell what waits, from now on, to an operator who does not look; `beyond` this terminal as well."""
        from console.notifying.keeper import Keeper
        from console.notifying.rules import Rules

        self._rules = config.notify or Rules()
        self.keeper = Keeper(
            self._hub,
            self._rules,
            self._clock,
            ring=self._ring,
            write=write,
            away=self._away,
            bell=self._bell is not None,
            beyond=beyond,
            tz=self._tz,
            tmux="TMUX" in os.environ,
            hidden=["WATCHFLOOR_TOKEN", *(one.token_env for one in config.sources if one.token_env)],
        )
        self.keeper.start()

    async def close(self) -> None:
        """Tell nothing more."""
        if self.keeper is not None:
            await self.keeper.close()

    def _away(self) -> bool:
        """Is nobody at the console, as far as it can tell?"""
        after_s = self._rules.away_after_s if self._rules is not None else 0
        return not self._focused() or self._hub.steady() - self._touched_at >= after_s * 1000

    def may_ring(self) -> bool:
        """Once a second at most, and not in the hours in which the bell is to be quiet; it counts as rung then."""
        now = self._hub.steady()
        if self._belled_at is not None and 0 <= now - self._belled_at < BELL_MS:
            return False
        if self._rules is not None and self._rules.quiet is not None:
            from console.notifying.keeper import minute_of
            from console.notifying.rules import Channel

            if self._rules.silent(Channel.BELL, minute_of(self._clock(), self._tz)):
                return False
        self._belled_at = now
        return True
