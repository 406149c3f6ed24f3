"""The connections of a host, and how a watcher catches up with the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from watchfloor.host.effects import SendFrame
from watchfloor.host.log import EventLog
from watchfloor.host.principals import Principal
from watchfloor.host.wire import event_frames, wire
from watchfloor.protocol.codec import SPLIT_AT
from watchfloor.protocol.frames import ALL, Frame, Gap
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

    @property
    def silent(self) -> bool:
        """Is its hello still waited for?"""
        return not self.greeted and not self.closed

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

    def behind(self) -> str | None:
        """A watch that has not caught up."""
        return next((session for session, watcher in self.watchers.items() if not watcher.live), None)

    def send(self, frame: Frame, data: bytes | None = None) -> SendFrame:
        return SendFrame(self.id, frame, wire(frame) if data is None else data)


def next_slice(log: EventLog, session: str, watcher: Watcher) -> list[Encoded]:
    """What a watcher that catches up gets next. It is live when nothing is left."""
    logged = log.after(watcher.cursor, SLICE, None if session == ALL else session)
    frames: list[Encoded] = []
    size, piece = 0, FIRST_PIECE
    for name, run in groupby(logged, key=lambda item: item.session):
        events = [item.event for item in run]
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
    if len(logged) < SLICE:
        watcher.live = True
    return frames


def gaps(log: EventLog, sessions: Sequence[str], after: int) -> list[Gap]:
    """What of these sessions was forgotten since `after`. A `from_seq` of 0 is "from wherever you stand"."""
    return [
        Gap(
            session=session,
            epoch=log.epoch(session),
            from_seq=0,
            to_seq=log.first(session) - 1,
            why="this host no longer keeps them",
        )
        for session in sessions
        if log.lost(session) > after
    ]


def broadcast(clients: Sequence[Connection], frames: Sequence[Encoded]) -> list[SendFrame]:
    """The same frames to everybody."""
    return [SendFrame(client.id, frame, data) for frame, data in frames for client in clients]
