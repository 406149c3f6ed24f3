"""How a host receives a client: greeting, watches, pages of history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from watchfloor.host.clients.clients import Connection, Encoded, Watcher, gap, gaps, next_slice
from watchfloor.host.clients.roster import Roster
from watchfloor.host.effects import Close, HostEffect
from watchfloor.host.log.events import EventLog
from watchfloor.host.principals import display_name
from watchfloor.host.quoting import shown
from watchfloor.host.wire import anys, encoded, event_frames, split
from watchfloor.protocol.events import Event
from watchfloor.protocol.frames import (
    ALL,
    ClientFrame,
    Cursor,
    Error,
    ErrorCode,
    Frame,
    Gap,
    Hello,
    History,
    HostInfo,
    Page,
    Profiles,
    RequestFrame,
    Sessions,
    UnknownFrame,
    Watch,
    Watching,
    Welcome,
)
from watchfloor.protocol.given import given
from watchfloor.protocol.model import Summary
from watchfloor.words import PROTOCOL, Role

REFUSED: Final = 1008
"""WebSocket close code: policy violation."""


class Reception:
    """Answers clients from the roster and the log, which must be flushed: what is sent is what the log holds."""

    def __init__(self, info: HostInfo, log: EventLog, roster: Roster, heartbeat_s: float) -> None:
        self.info = info
        self._log = log
        self._roster = roster
        self._heartbeat_s = heartbeat_s

    # --- greeting

    def greet(self, client: Connection, frame: ClientFrame | UnknownFrame, now: int) -> list[HostEffect]:
        """The first frame of a client: everything that there is, or a refusal."""
        if not isinstance(frame, Hello):
            return self.refuse(client, ErrorCode.MALFORMED, "the first frame must be hello", about_of(frame))
        if client.principal.role is Role.AGENT:
            return self.refuse(client, ErrorCode.UNSUPPORTED, "an agent joins this host at the path /agent", frame.type)
        client.name = display_name(client.principal, frame.name)
        client.greeted = True
        welcome = Welcome(
            protocol=PROTOCOL,
            host=self.info,
            principal=client.name,
            role=client.principal.role,
            pos=self._log.pos,
            heartbeat_s=self._heartbeat_s,
            now=now,
        )
        frames = [encoded(welcome), encoded(Profiles(profiles=self._roster.profiles)), *self._listing()]
        for entry in self._roster:
            frames += [encoded(RequestFrame(session=entry.id, request=r)) for r in entry.core.requests.open()]
        return [client.send(frame, data) for frame, data in frames]

    def _listing(self) -> list[Encoded]:
        parts = [*session_frames([self._roster.whole(entry) for entry in self._roster])]
        last = parts.pop()[0].model_copy(update={"listed": True})
        return [*parts, encoded(last)]

    def refuse(self, client: Connection, code: ErrorCode, message: str, about: str | None) -> list[HostEffect]:
        """Say why, and end the connection."""
        client.closed = True
        error = Error(code=code, message=message, fatal=True, **given(about=about))
        return [client.send(error), Close(client.id, REFUSED, message)]

    # --- watching

    def watch(self, client: Connection, watch: Watch, now: int) -> list[HostEffect]:
        """Begin to follow a session, or all of them."""
        if watch.session != ALL and watch.session not in self._roster:
            message = _no_session(watch.session)
            error = Error(code=ErrorCode.NOT_FOUND, message=message, about=watch.type, session=watch.session)
            return [client.send(error)]
        if isinstance(watch.after, dict):
            return self._resume(client, watch, watch.after, now)
        pos = self._log.pos
        after = watch.after if watch.after is not None else 0 if watch.start == "start" else pos
        if after > pos:
            # A place in a log that is no more: everything that there is now is news.
            after = 0
        client.watchers[watch.session] = Watcher(cursor=after)
        sessions = [entry.id for entry in self._roster] if watch.session == ALL else [watch.session]
        effects: list[HostEffect] = [client.send(Watching(session=watch.session, from_pos=after, through=pos))]
        effects += [client.send(gap) for gap in gaps(self._log, sessions, after)]
        return effects + self.more(client, watch.session, now)

    def _resume(self, client: Connection, watch: Watch, cursors: Mapping[str, Cursor], now: int) -> list[HostEffect]:
        """Go on where the client stands in each session. Sessions that it does not name it knows nothing of."""
        log, pos = self._log, self._log.pos
        after, has = pos, {}
        lost: list[Gap] = []
        for session in [entry.id for entry in self._roster] if watch.session == ALL else [watch.session]:
            cursor = cursors.get(session)
            known = cursor is not None and cursor.epoch == log.epoch(session)
            through = has[session] = cursor.seq if cursor is not None and known else 0
            if log.first(session) - 1 > through:
                lost.append(gap(log, session, through))
            # Most sessions have nothing new: a log need not be read for that.
            if log.head(session) > through and (following := log.read(session, after=through, limit=1)):
                after = min(after, (following[0].pos or 1) - 1)
        client.watchers[watch.session] = Watcher(after, has=has)
        effects: list[HostEffect] = [client.send(Watching(session=watch.session, from_pos=after, through=pos))]
        effects += [client.send(one) for one in lost]
        return effects + self.more(client, watch.session, now)

    def more(self, client: Connection, session: str, now: int) -> list[HostEffect]:
        """The next slice for a watch that catches up; with the last one, what is being streamed just now."""
        watcher = client.watchers[session]
        effects: list[HostEffect] = [client.send(*part) for part in next_slice(self._log, session, watcher)]
        if not watcher.live:
            return effects
        return effects + self._streaming(client, session, now)

    def caught_up(self, client: Connection, now: int) -> list[HostEffect]:
        """A client that was too slow has room again: what it was not sent, and what is being streamed just now."""
        effects: list[HostEffect] = [client.send(lagged) for lagged in client.caught_up()]
        for session in client.watchers:
            effects += self._streaming(client, session, now)
        return effects

    def _streaming(self, client: Connection, session: str, now: int) -> list[HostEffect]:
        effects: list[HostEffect] = []
        for entry in self._roster:
            deltas = entry.core.streams.so_far(now) if session in (ALL, entry.id) else []
            if deltas:
                effects += [client.send(*part) for part in event_frames(entry.id, self._log.epoch(entry.id), deltas)]
        return effects

    # --- history

    def page(self, history: History) -> Frame:
        """A page of history, shortened to what fits into one frame, or an error."""
        if history.session not in self._roster:
            return Error(code=ErrorCode.NOT_FOUND, message=_no_session(history.session), about=history.id)
        epoch = self._log.epoch(history.session)
        if history.epoch != epoch:
            return Error(code=ErrorCode.NOT_FOUND, message=f"the epoch is {epoch} now", about=history.id)
        upwards = history.after is not None
        events = self._log.read(history.session, after=history.after, before=history.before, limit=history.limit)
        parts = split(events, lambda some: self._page(history, epoch, list(some), upwards=upwards))
        return parts[0 if upwards else -1][0]

    def _page(self, history: History, epoch: str, events: list[Event], *, upwards: bool) -> Page:
        session = history.session
        first = events[0].seq or 0 if events else 0
        last = events[-1].seq or 0 if events else 0
        more = bool(events) and (last < self._log.head(session) if upwards else first > self._log.first(session))
        return Page(id=history.id, session=session, epoch=epoch, events=anys(events), first=first, last=last, more=more)


def about_of(frame: ClientFrame | UnknownFrame) -> str:
    """What an answer to the frame is about: its id, else its type."""
    id = getattr(frame, "id", None)
    return id if isinstance(id, str) and id else frame.type


def _no_session(session: str) -> str:
    return f"this host has no session '{shown(session)}'"


def session_frames(summaries: list[Summary]) -> Sequence[Encoded]:
    """Summaries as frames, one at least."""
    return split(summaries, lambda some: Sessions(sessions=tuple(some)))
