"""Keeps watch over what waits, and tells it: facts of the hub go into the core, what is due goes out by channels."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Final

from console.fleet.needs import open_requests
from console.notifying.alerts import Alert, alert
from console.notifying.core import Due, Notifier
from console.notifying.posts import Post, Way
from console.notifying.programs import Desktop, Hook
from console.notifying.rules import Channel, Rules
from console.notifying.terminal import sequence
from console.notifying.webhook import Webhook

if TYPE_CHECKING:
    from console.fleet.changes import Changes
    from console.fleet.facts import RequestKey
    from console.hub import Hub
    from watchfloor.connector import Clock

TICK_S: Final = 0.2


def way(channel: Channel, rules: Rules, clock: Clock, hidden: Collection[str] = ()) -> Way | None:
    """How a channel tells that takes time; None for those that are told at once, through the terminal. `hidden`: names
    of variables that hold tokens, which no program is handed."""
    match channel:
        case Channel.DESKTOP:
            return Desktop()
        case Channel.COMMAND:
            return Hook(rules.command, hidden)
        case Channel.WEBHOOK:
            return Webhook(rules.webhook, rules.webhook_secret, clock)
        case _:
            return None


def minute_of(now: int, tz: tzinfo | None) -> int:
    """The minute of the operator's day; `now` is milliseconds since 1970 UTC."""
    local = datetime.fromtimestamp(now / 1000, tz)
    return local.hour * 60 + local.minute


class Keeper:
    """One console's. `ring` rings the bell, `write` hands a sequence to the terminal; `away`: is nobody at the console?
    `bell` and `beyond` False: the bell does not ring, and nothing is told beyond this machine's screen (of a demo
    nobody elsewhere wants to hear)."""

    def __init__(
        self,
        hub: Hub,
        rules: Rules,
        clock: Clock,
        *,
        ring: Callable[[], None],
        write: Callable[[str], None],
        away: Callable[[], bool],
        bell: bool = True,
        beyond: bool = True,
        tz: tzinfo | None = None,
        tmux: bool = False,
        hidden: Collection[str] = (),
    ) -> None:
        self._hub = hub
        self._rules = rules
        self._clock = clock
        self._ring = ring
        self._write = write
        self._away = away
        self._tz = tz
        self._tmux = tmux
        left_out = set() if beyond else {Channel.COMMAND, Channel.WEBHOOK}
        channels = ((Channel.BELL,) if bell else ()) + rules.channels
        self._channels = tuple(channel for channel in channels if channel not in left_out)
        self._core = Notifier(rules, self._channels)
        self._posts = {
            channel: Post(channel, found, self._moved)
            for channel in self._channels
            if (found := way(channel, rules, clock, hidden)) is not None
        }
        self._ticking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin with what waits already. Must be called on the event loop."""
        if not self._channels:
            return
        for request in open_requests(self._hub.fleet):
            self._core.opened(request.key, self._hub.steady())
        self._ticking = asyncio.create_task(self._tick_on(), name="notifying")

    def take(self, changes: Changes) -> None:
        """Something has changed."""
        for key in changes.requests:
            request = self._hub.fleet.requests.get(key)
            if request is not None and request.open:
                self._core.opened(key, self._hub.steady())
            else:
                self._core.ended(key)

    def seen(self, key: RequestKey | None) -> None:
        """The operator has this request before them."""
        if key is not None and not self._away():
            self._core.seen(key)

    async def _tick_on(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            if not self._core.idle:
                self.tick()

    def tick(self) -> None:
        """Tell what is due."""
        now = self._clock()
        for due in self._core.due(self._hub.steady(), minute_of(now, self._tz), away=self._away()):
            told = self._alert(due, now)
            if told is not None:
                self._tell(due.channel, told)

    def _alert(self, due: Due, now: int) -> Alert | None:
        fleet, details = self._hub.fleet, self._rules.details
        return alert(fleet, due.keys, now, unanswered=due.unanswered, details=details)

    def _tell(self, channel: Channel, told: Alert) -> None:
        if channel is Channel.BELL:
            self._ring()
        elif channel is Channel.TERMINAL:
            self._write(sequence(self._rules.terminal, told, tmux=self._tmux))
        else:
            self._posts[channel].put(told)

    def _moved(self) -> None:
        faults = [f"{post.channel.value}: {post.fault}" for post in self._posts.values() if post.fault]
        self._hub.not_told = f"not notified by {'; '.join(faults)}" if faults else ""

    async def close(self) -> None:
        """Tell nothing any more."""
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)
        await asyncio.gather(*(post.close() for post in self._posts.values()), return_exceptions=True)
