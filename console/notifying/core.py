"""When which channel tells of what: a storm is one alert, and what nobody answers is told once more. Pure: `now` is
milliseconds of a clock that is never set, `minute` one of the operator's day.

The bell rings for new requests by itself (`console.fleet.decisions.bell`); here it rings for those that nobody answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from console.fleet.facts import RequestKey
from console.notifying.rules import Channel, Rules

GATHERS_MS: Final = 250
"""How long after the first request of an alert others are taken into it."""
BELL_MS: Final = 1_000
WORDS_MS: Final = 30_000
"""Least milliseconds between two alerts of the bell, and of a channel that uses words."""


class Due(NamedTuple):
    """A channel is to tell of these requests now. `unanswered`: some of them have waited for too long."""

    channel: Channel
    keys: tuple[RequestKey, ...]
    unanswered: bool


@dataclass(slots=True)
class _Queue:
    """What a channel has not told yet; the oldest stands first. `new`: when each was heard of."""

    channel: Channel
    new: dict[RequestKey, int] = field(default_factory=dict)
    overdue: dict[RequestKey, None] = field(default_factory=dict)
    last: int | None = None

    @property
    def spacing_ms(self) -> int:
        return BELL_MS if self.channel is Channel.BELL else WORDS_MS

    def drop(self, key: RequestKey) -> None:
        self.new.pop(key, None)
        self.overdue.pop(key, None)


class Notifier:
    """Told which requests wait, and asked what is due."""

    def __init__(self, rules: Rules, channels: tuple[Channel, ...] | None = None) -> None:
        """`channels`: those to be used, where that is not all of the rules."""
        self._rules = rules
        self._queues = [_Queue(channel) for channel in (rules.channels if channels is None else channels)]
        self._waiting: dict[RequestKey, int] = {}
        self._patient: dict[RequestKey, int] = {}
        """What has not waited for too long yet, the oldest first, by when it was heard of."""

    @property
    def idle(self) -> bool:
        """Does nothing wait, so that nothing can become due?"""
        return not self._waiting

    def opened(self, key: RequestKey, now: int) -> None:
        """This request waits. One that is known already is not new."""
        if key in self._waiting:
            return
        self._waiting[key] = self._patient[key] = now
        for queue in self._queues:
            if queue.channel is not Channel.BELL:
                queue.new[key] = now

    def ended(self, key: RequestKey) -> None:
        """This request waits no more."""
        self._waiting.pop(key, None)
        self._patient.pop(key, None)
        for queue in self._queues:
            queue.drop(key)

    def seen(self, key: RequestKey) -> None:
        """The operator has the request before them: nobody needs to be told that it is there."""
        for queue in self._queues:
            queue.new.pop(key, None)

    def due(self, now: int, minute: int, *, away: bool) -> list[Due]:
        """What is to be told now. What quiet hours or the operator's presence hold back is told when they are over, if
        it still waits then."""
        self._lose_patience(now)
        found: list[Due] = []
        for queue in self._queues:
            if self._rules.silent(queue.channel, minute):
                continue
            if queue.last is not None and now - queue.last < queue.spacing_ms:
                continue
            new = queue.new if away else {}
            first = next(iter(new.values()), None)
            if not queue.overdue and (first is None or now - first < GATHERS_MS):
                continue
            keys = tuple(dict.fromkeys([*queue.overdue, *new]))
            found.append(Due(queue.channel, keys, bool(queue.overdue)))
            for key in keys:
                queue.drop(key)
            queue.last = now
        return found

    def _lose_patience(self, now: int) -> None:
        after = self._rules.escalate_after_s * 1000
        while after and self._patient:
            key, since = next(iter(self._patient.items()))
            if now - since < after:
                return
            del self._patient[key]
            for queue in self._queues:
                queue.overdue[key] = None
