"""In which order the roster stands. Every order ends with name and key, so that no two sessions ever change places."""

from __future__ import annotations

from enum import StrEnum
from functools import total_ordering
from typing import Any, Final, NamedTuple, TypeAlias

from console.fleet.facts import NO_TIME, SessionKey
from console.fleet.needs import Needs
from console.fleet.state import LATEST, Session, Source
from console.fleet.views.wording import name_of
from watchfloor.words import Lifecycle


class Sort(StrEnum):
    """What the roster is sorted by."""

    ATTENTION = "attention"
    NAME = "name"
    STATE = "state"
    WAITING = "waiting"
    RATE = "rate"
    USAGE = "usage"


class GroupKey(NamedTuple):
    """The heading over some sessions. `by`: "source", or the name of a label; `kind` says which of the two."""

    kind: str
    by: str
    value: str


RowKey: TypeAlias = SessionKey | GroupKey
"""What a line of the roster stands for."""

Order: TypeAlias = tuple[Any, Any, RowKey]
"""The value that is sorted by, the name, the key."""

LIFTS: Final = frozenset({Sort.ATTENTION, Sort.WAITING, Sort.RATE, Sort.USAGE})
"""Sorted by these, a parent stands where the first of those below it would stand."""

LAST: Final = 2**64
"""Behind every value, whichever way the roster is sorted: what has none."""

_ATTENTION: Final = {
    Lifecycle.FAILED: 1,
    Lifecycle.WAITING: 2,
    Lifecycle.PAUSED: 2,
    Lifecycle.STARTING: 3,
    Lifecycle.RUNNING: 3,
    Lifecycle.IDLE: 4,
    Lifecycle.UNKNOWN: 5,
    Lifecycle.COMPLETED: 6,
    Lifecycle.STOPPED: 6,
}
"""What needs somebody is 0, whatever its state."""

_STATE: Final = {lifecycle: at for at, lifecycle in enumerate(Lifecycle)}


@total_ordering
class Backwards:
    """A text that sorts the other way round."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backwards) and self.text == other.text

    def __lt__(self, other: Backwards) -> bool:
        return other.text < self.text

    def __hash__(self) -> int:
        return hash(self.text)


def order_of(
    session: Session, source: Source, needs: Needs | None, sort: Sort, now: int, *, reverse: bool = False
) -> Order:
    """Where a session stands by itself, at the local time `now`. The first is what an operator looks for first:
    the neediest, the longest wait, the busiest, the dearest; `reverse` turns that round."""
    name = name_of(session).casefold()
    if sort is Sort.NAME:
        return 0, Backwards(name) if reverse else name, session.key
    value = _value(session, source, needs, sort, now)
    return LAST if value is None else -value if reverse else value, name, session.key


def _value(session: Session, source: Source, needs: Needs | None, sort: Sort, now: int) -> int | None:
    match sort:
        case Sort.ATTENTION:
            return 0 if needs is not None else _ATTENTION[session.lifecycle]
        case Sort.STATE:
            return _STATE[session.lifecycle]
        case Sort.WAITING:
            if needs is None:
                return None
            return LATEST if needs.oldest == NO_TIME else needs.oldest - source.ahead_ms
        case Sort.RATE:
            # By steps of twice as much, so that rows stand still while little changes.
            return -session.rate.complete(now).bit_length() or None
        case _:
            usage = session.usage
            return -(usage.input_tokens + usage.output_tokens) if usage is not None else None
