"""The connections of a host, and how a watcher catches up with the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Final

from watchfloor.host.effects import SendFrame
from watchfloor.host.log.events import EventLog, Logged
from watchfloor.host.principals import Principal
from watchfloor.host.wire import event_frames, wire
from watchfloor.protocol.codec import SPLIT_AT
from watchfloor.protocol.events import Event
from watchfloor.protocol.frames import ALL, Frame, Gap, Lagged
from watchfloor.words import Role

SLICE: Final = 500
"""Events that a watcher which catches up gets at a time."""
SLICE_BYTES: Final = 512 * 1024
"""Bytes after which a slice ends early."""
FIRST_PIECE: Final = 8
"""Events that are encoded together as long as their size is not known."""

Encoded = tuple[Frame, bytes]


@dataclass(slots=True)
class Watcher:
    """A watch of one connection: its place in the log, and whether it has caught up."""

    cursor: int
    live: bool = False
    has: dict[str, int] = field(default_factory=dict)
    """What the client has of sessions already, by `seq`: not sent again while it catches up."""


@dataclass(slots=True)
class Lag:
    """Events of a session that were not sent: after `from_seq` through `to_seq`."""

    epoch: str
    from_seq: int
    to_seq: int


@dataclass(slots=True)
class Connection:
    """One client. `name` is what its interventions are recorded under, once it said hello (until `hello_by`)."""

    id: str
    principal: Principal
    hello_by: int
    name: str = ""
    greeted: bool = False
    closed: bool = False
    watchers: dict[str, Watcher] = field(default_factory=dict)
    lagging_since: int | None = None
    """Since when it is sent no events, because it has not read what it was sent."""
    lags: dict[str, Lag] = field(default_factory=dict)

    @property
    def silent(self) -> bool:
        """Is its hello still waited for?"""
        return not self.greeted and not self.closed

    @property
    def lagging(self) -> bool:
        return self.lagging_since is not None

    @property
    def may_intervene(self) -> bool:
        return self.principal.role is Role.OPERATOR

    def follows(self, session: str) -> bool:
        """Does it get the session's events as they happen?

        While the watch of all sessions catches up nothing live is sent, since the client resumes after the
        highest `pos` that it has read.
        """
        watcher = self.watchers.get(ALL) or self.watchers.get(session)
        return watcher is not None and watcher.live

    def left_out(self, session: str, epoch: str, events: Sequence[Event]) -> None:
        """New events of a session that it follows were not sent."""
        seqs = [event.seq for event in events if event.seq is not None]
        if not seqs:
            return
        lag = self.lags.get(session)
        if lag is None or lag.epoch != epoch:
            self.lags[session] = Lag(epoch, seqs[0] - 1, seqs[-1])
        else:
            lag.to_seq = seqs[-1]

    def caught_up(self) -> list[Lagged]:
        """It has room again: what was left out meanwhile."""
        self.lagging_since = None
        lags, self.lags = self.lags, {}
        return [Lagged(session=session, **asdict(lag)) for session, lag in lags.items()]

    def behind(self) -> str | None:
        """A watch that has not caught up."""
        return next((session for session, watcher in self.watchers.items() if not watcher.live), None)

    def send(self, frame: Frame, data: bytes | None = None) -> SendFrame:
        return SendFrame(self.id, frame, wire(frame) if data is None else data)


def next_slice(log: EventLog, session: str, watcher: Watcher) -> list[Encoded]:
    """What a watcher that catches up gets next, something at least. It is live when nothing is left."""
    frames: list[Encoded] = []
    while not frames and not watcher.live:
        logged = log.after(watcher.cursor, SLICE, None if session == ALL else session)
        frames = _slice(log, logged, watcher)
        if len(logged) < SLICE and (not logged or watcher.cursor == logged[-1].event.pos):
            watcher.live = True
            watcher.has.clear()
    return frames


def _slice(log: EventLog, logged: Sequence[Logged], watcher: Watcher) -> list[Encoded]:
    has = watcher.has
    frames: list[Encoded] = []
    size, piece = 0, FIRST_PIECE
    for name, run in groupby(logged, key=lambda item: item.session):
        events = [item.event for item in run if (item.event.seq or 0) > has.get(name, 0)]
        while events:
            part, events = events[:piece], events[piece:]
            grown = size
            for frame, data in event_frames(name, log.epoch(name), part):
                frames.append((frame, data))
                watcher.cursor = frame.events[-1].pos or watcher.cursor
                size += len(data)
                if size >= SLICE_BYTES:
                    return frames
            # Events may be a hundred bytes or a hundred thousand: little is encoded that the slice cannot hold.
            piece = piece * 2 if size - grown < SPLIT_AT // 4 else FIRST_PIECE
    if logged:
        watcher.cursor = logged[-1].event.pos or watcher.cursor
    return frames


def gaps(log: EventLog, sessions: Iterable[str], after: int) -> list[Gap]:
    """What of these sessions was forgotten since `after`. A `from_seq` of 0 is "from wherever you stand"."""
    return [gap(log, session, 0) for session in sessions if log.lost(session) > after]


def gap(log: EventLog, session: str, from_seq: int) -> Gap:
    """What of the session was forgotten above `from_seq`."""
    return Gap(
        session=session,
        epoch=log.epoch(session),
        from_seq=from_seq,
        to_seq=log.first(session) - 1,
        why="this host no longer keeps them",
    )


def broadcast(clients: Sequence[Connection], frames: Sequence[Encoded]) -> list[SendFrame]:
    """The same frames to everybody."""
    return [SendFrame(client.id, frame, data) for frame, data in frames for client in clients]
