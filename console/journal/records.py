"""What is handed to the journal and what it gives back. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from watchfloor.protocol.events import Event

Intervals = tuple[tuple[int, int], ...]
"""Disjoint, ascending, both ends included."""


class Said(NamedTuple):
    """Events of one epoch of a session. `numbers`: theirs, without those that have none; `keys`: by number, how the
    source itself names them, None where it names none; `raw`: the frame that brought them, as it came."""

    session: str
    epoch: str
    numbers: Sequence[int]
    keys: Mapping[int, str] | None
    raw: bytes


class Gone(NamedTuple):
    """Events `first` through `last` that the source no longer has."""

    session: str
    epoch: str
    first: int
    last: int


class Asked(NamedTuple):
    """A request in its newest state, with the frame that told of it."""

    session: str
    name: str
    state: str
    raw: bytes


class Heard(NamedTuple):
    """What came from a source. `at`: when, milliseconds since 1970 UTC by our clock."""

    source: str
    at: int
    what: Said | Gone | Asked


class TrailRow(NamedTuple):
    """How far a command of ours has come. `body` holds what may be kept of it: never what was filled in to answer."""

    id: str
    source: str
    session: str
    at: int
    body: Mapping[str, object]


PARTS: Final[tuple[Any, ...]] = (Said, Gone, Asked)
"""What can be heard, by its tag between two processes."""
TRAIL: Final = len(PARTS)
"""The tag of a TrailRow."""


class Place(NamedTuple):
    """How far one session was received. `held`: numbers of the events that are here; `gone`: those that are here no
    longer, or nowhere; `through`: up to here nothing is missing, so that a source is asked from there."""

    epoch: str
    held: Intervals
    gone: Intervals
    through: int


class Missed(NamedTuple):
    """Events that came and found no room: those numbered `first` through `last` of one epoch of a session."""

    source: str
    session: str
    epoch: str
    first: int
    last: int


class Stored(NamedTuple):
    """Events of one epoch of a session in the order of their numbers, as they came. `more`: older ones are here."""

    epoch: str
    events: tuple[Event, ...]
    more: bool


class Found(NamedTuple):
    """The same before its frames are read: `wanted` says of each number which of the `frames` brought it."""

    epoch: str
    wanted: Mapping[int, int]
    frames: Sequence[bytes]
    more: bool


class SourceStats(NamedTuple):
    name: str
    sessions: int
    events: int
    first_at: int | None
    last_at: int | None


class Stats(NamedTuple):
    """What a journal holds. `bytes`: what its file takes; times are milliseconds since 1970 UTC, by our clock."""

    bytes: int
    frames: int
    events: int
    requests: int
    trails: int
    sources: tuple[SourceStats, ...] = ()


@dataclass(frozen=True, slots=True)
class Pruned:
    """What has been let go of."""

    frames: int = 0
    events: int = 0
    requests: int = 0
    trails: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            self.frames + other.frames,
            self.events + other.events,
            self.requests + other.requests,
            self.trails + other.trails,
        )


class Retention(NamedTuple):
    """How long and how much is kept. `age_s` seconds since it came, `size` bytes of the file; None: no limit."""

    age_s: float | None = None
    size: int | None = None

    @classmethod
    def of(cls, days: int | None, megabytes: int | None) -> Retention:
        """So many days, and megabytes of the file; None: no limit."""
        return cls(
            None if days is None else days * 86_400.0,
            None if megabytes is None else megabytes * 1024**2,
        )


class Findings(NamedTuple):
    """What a check has found: `faults`, one line each, and how many frames and events could be read."""

    frames: int
    events: int
    faults: tuple[str, ...] = ()
