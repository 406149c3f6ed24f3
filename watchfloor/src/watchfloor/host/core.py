"""The host without I/O: frames and reports in, effects out.

Events are collected per session and numbered when they are flushed, one session after the other. So `pos`
never runs backwards on a connection, whatever the frames hold, and the highest `pos` that a client has read
is where it resumes.

A watcher is either live, and gets what is flushed, or it catches up from the log a slice at a time (`pull`),
as fast as its connection takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from watchfloor.errors import ProtocolError
from watchfloor.host.clients import Connection, Encoded, Watcher, broadcast, gaps, next_slice
from watchfloor.host.commands import Outcomes, execute, intervention, outcome_of
from watchfloor.host.effects import (
    Changed,
    Close,
    Handled,
    HostEffect,
    Publish,
    RequestChanged,
    SendFrame,
    SessionEffect,
)
from watchfloor.host.log import EventLog
from watchfloor.host.principals import Principal, display_name
from watchfloor.host.roster import SLOW, SLOW_MS, Entry, Roster, supported
from watchfloor.host.session import SessionCore
from watchfloor.host.wire import anys, event_frames, join_deltas, split, wire
from watchfloor.protocol.codec import decode_client
from watchfloor.protocol.events import Delta, Event
from watchfloor.protocol.frames import (
    ALL,
    Beat,
    ClientFrame,
    Command,
    Error,
    ErrorCode,
    Frame,
    Gone,
    Hello,
    History,
    HostInfo,
    Page,
    Profiles,
    Query,
    Recall,
    RequestFrame,
    Sessions,
    UnknownFrame,
    Unwatch,
    Watch,
    Watching,
    Welcome,
)
from watchfloor.protocol.model import Capabilities, Summary, Traits
from watchfloor.words import PROTOCOL, OutcomeKind, Role

HEARTBEAT_S: Final = 15.0
REFUSED: Final = 1008
"""WebSocket close code: policy violation."""


class HostCore:
    """All sessions and connections of one host."""

    def __init__(
        self, info: HostInfo, log: EventLog, *, heartbeat_s: float = HEARTBEAT_S, outcomes: Outcomes | None = None
    ) -> None:
        self.info = info
        self.log = log
        self.roster = Roster(log)
        self._heartbeat_s = heartbeat_s
        self._outcomes = outcomes or Outcomes(info.instance)
        self._conns: dict[str, Connection] = {}
        self._busy: dict[str, Entry] = {}
        self._gone: list[str] = []
        self._beat_at: int | None = None

    # --- sessions

    def add(
        self,
        session: str,
        *,
        capabilities: Capabilities,
        traits: Traits,
        now: int,
        starts_itself: bool = False,
        grace_s: float = 5.0,
        fixed: Mapping[str, object] | None = None,
    ) -> SessionCore:
        """A new session. `fixed`: the summary fields that never change (name, parent, labels, ...).

        What the host cannot carry out is not advertised. Raises ValueError where the id is taken.
        """
        if session in self.roster:
            raise ValueError(f"there is a session {session!r} already")
        core = SessionCore(
            session, capabilities=supported(capabilities), now=now, starts_itself=starts_itself, grace_s=grace_s
        )
        entry = self.roster.add(core, traits, fixed or {})
        self._busy[session] = entry
        return core

    def advertise(self, session: str, capabilities: Capabilities, now: int) -> list[HostEffect]:
        """The session's attempt advertises this."""
        entry = self._entry(session)
        offered = supported(capabilities)
        if offered == entry.core.capabilities:
            return []
        entry.profile = self.roster.profile(offered, entry.traits)
        entry.dirty.add("profile")
        return self.apply(entry.core.set_capabilities(offered, now))

    def remove(self, session: str) -> None:
        """Forget a session. Its events stay in the log."""
        self._busy.pop(session, None)
        self.roster.remove(session)
        for conn in self._conns.values():
            conn.watchers.pop(session, None)
        self._gone.append(session)

    def session(self, session: str) -> SessionCore:
        """Raises KeyError for a session that is not there."""
        return self._entry(session).core

    def _entry(self, session: str) -> Entry:
        entry = self.roster.get(session)
        if entry is None:
            raise KeyError(session)
        return entry

    def apply(self, effects: Iterable[SessionEffect]) -> list[HostEffect]:
        """Take in what a session did; clients hear of it with the next flush. Returns what the shell must do."""
        rest: list[HostEffect] = []
        for effect in effects:
            match effect:
                case Publish():
                    self._touch(effect.session).events.append(effect.event)
                case Changed():
                    entry = self._touch(effect.session)
                    entry.dirty |= effect.fields - SLOW
                    entry.slow |= effect.fields & SLOW
                case RequestChanged():
                    self._touch(effect.session).requests.append(effect.request)
                case _:
                    rest.append(effect)
        return rest

    def _touch(self, session: str) -> Entry:
        entry = self._entry(session)
        self._busy[session] = entry
        return entry

    # --- what clients hear

    @property
    def wants_flush(self) -> bool:
        return bool(self._busy or self._gone)

    def flush(self, now: int) -> list[HostEffect]:
        """Number what happened and tell every client what it should hear: sessions, requests, events, in that order."""
        busy, self._busy = list(self._busy.values()), {}
        conns = [conn for conn in self._conns.values() if conn.greeted]
        events: list[SendFrame] = []
        requests: list[Encoded] = []
        for entry in busy:
            if entry.events:
                frames = self._number(entry)
                events += broadcast(conns, frames, lambda conn, id=entry.id: conn.follows(id))  # type: ignore[misc]
            for request in entry.requests:
                frame = RequestFrame(session=entry.id, request=request)
                requests.append((frame, wire(frame)))
            entry.requests.clear()
        head: list[Encoded] = []
        profiles, self.roster.new_profiles = self.roster.new_profiles, {}
        if profiles:
            head.append(_encoded(Profiles(profiles=profiles)))
        summaries = [summary for entry in busy if (summary := self._tell(entry, now)) is not None]
        if summaries:
            head += split(summaries, lambda some: Sessions(sessions=tuple(some)))
        if self._gone:
            head.append(_encoded(Gone(sessions=tuple(self._gone))))
            self._gone = []
        return [*broadcast(conns, head + requests, lambda _: True), *events]

    def _number(self, entry: Entry) -> list[Encoded]:
        """Log the session's new events and make frames of them, deltas in their places."""
        fresh, entry.events = join_deltas(entry.events), []
        numbered = iter(self.log.append(entry.id, [event for event in fresh if not isinstance(event, Delta)]))
        events: list[Event] = [event if isinstance(event, Delta) else next(numbered) for event in fresh]
        entry.saw(events)
        return event_frames(entry.id, self.log.epoch(entry.id), events)

    def _tell(self, entry: Entry, now: int) -> Summary | None:
        if entry.fresh:
            entry.fresh = False
            entry.dirty.clear()
            entry.slow.clear()
            entry.slow_at = now
            return self.roster.whole(entry)
        return self.roster.patch(entry, now)

    # --- connections

    def connect(self, conn: str, principal: Principal) -> None:
        """Somebody connected and was admitted."""
        self._conns[conn] = Connection(conn, principal)

    def disconnect(self, conn: str) -> None:
        self._conns.pop(conn, None)

    def receive(self, conn: str, raw: bytes, now: int) -> list[HostEffect]:
        """A frame as it came from a client. One that cannot be read is answered by an error."""
        try:
            frame = decode_client(raw)
        except ProtocolError as error:
            return self._answer(conn, Error(code=ErrorCode.MALFORMED, message=error.reason))
        return self.take(conn, frame, now)

    def take(self, conn: str, frame: ClientFrame | UnknownFrame, now: int) -> list[HostEffect]:
        """A client's frame."""
        client = self._conns.get(conn)
        if client is None or client.closed:
            return []
        effects = self.flush(now)
        if not client.greeted:
            return effects + self._greet(client, frame, now)
        match frame:
            case Hello():
                message = "hello comes once, at the start"
                effects += self._answer(conn, Error(code=ErrorCode.MALFORMED, message=message, about="hello"))
            case Watch():
                effects += self._watch(client, frame, now)
            case Unwatch():
                client.watchers.pop(frame.session, None)
            case History():
                effects.append(client.send(self._page(frame)))
            case Command():
                effects += self._command(client, frame, now)
            case Recall():
                effects += [client.send(self._outcomes.recall(id, now)) for id in frame.ids]
            case _:
                about = frame.id if isinstance(frame, Query) else frame.type
                message = f"this host does not answer {frame.type!r}"
                effects += self._answer(conn, Error(code=ErrorCode.UNSUPPORTED, message=message, about=about))
        return effects

    def _answer(self, conn: str, error: Error) -> list[HostEffect]:
        return [SendFrame(conn, error, wire(error))]

    def _fatal(self, client: Connection, error: Error, code: int) -> list[HostEffect]:
        client.closed = True
        return [client.send(error), Close(client.id, code, error.message)]

    def _greet(self, client: Connection, frame: ClientFrame | UnknownFrame, now: int) -> list[HostEffect]:
        if not isinstance(frame, Hello):
            message = "the first frame must be hello"
            error = Error(code=ErrorCode.MALFORMED, message=message, about=frame.type, fatal=True)
            return self._fatal(client, error, REFUSED)
        if client.principal.role is Role.AGENT:
            message = "this host takes no agents that dial in"
            error = Error(code=ErrorCode.UNSUPPORTED, message=message, about="hello", fatal=True)
            return self._fatal(client, error, REFUSED)
        client.name = display_name(client.principal, frame.name)
        client.greeted = True
        welcome = Welcome(
            protocol=PROTOCOL,
            host=self.info,
            principal=client.name,
            role=client.principal.role,
            pos=self.log.pos,
            heartbeat_s=self._heartbeat_s,
            now=now,
        )
        frames = [_encoded(welcome)]
        if self.roster.profiles:
            frames.append(_encoded(Profiles(profiles=self.roster.profiles)))
        summaries = [self.roster.whole(entry) for entry in self.roster]
        parts = split(summaries, lambda some: Sessions(sessions=tuple(some)))
        last = parts.pop()[0].model_copy(update={"listed": True})
        frames += [*parts, _encoded(last)]
        for entry in self.roster:
            frames += [_encoded(RequestFrame(session=entry.id, request=r)) for r in entry.core.requests.open()]
        return [client.send(frame, data) for frame, data in frames]

    # --- watching

    def _watch(self, client: Connection, watch: Watch, now: int) -> list[HostEffect]:
        if watch.session != ALL and watch.session not in self.roster:
            message = "this host has no such session"
            return self._answer(client.id, Error(code=ErrorCode.NOT_FOUND, message=message, about=watch.session))
        if isinstance(watch.after, dict):
            message = "this host resumes by pos, not by cursors of sessions"
            return self._answer(client.id, Error(code=ErrorCode.UNSUPPORTED, message=message, about="watch"))
        pos = self.log.pos
        after = watch.after if watch.after is not None else 0 if watch.start == "start" else pos
        if after > pos:
            # A place in a log that is no more: everything that there is now is news.
            after = 0
        client.watchers[watch.session] = Watcher(cursor=after)
        sessions = [entry.id for entry in self.roster] if watch.session == ALL else [watch.session]
        effects: list[HostEffect] = [client.send(Watching(session=watch.session, from_pos=after, through=pos))]
        effects += [client.send(gap) for gap in gaps(self.log, sessions, after)]
        return effects + self._slice(client, watch.session, now)

    def behind(self, conn: str) -> bool:
        """Does a watch of the connection have to catch up, so that `pull` has something for it?"""
        client = self._conns.get(conn)
        return client is not None and client.behind() is not None

    def pull(self, conn: str, now: int) -> list[HostEffect]:
        """The connection has room: the next slice for a watch that catches up."""
        client = self._conns.get(conn)
        session = client.behind() if client is not None else None
        if client is None or session is None:
            return []
        return self.flush(now) + self._slice(client, session, now)

    def _slice(self, client: Connection, session: str, now: int) -> list[HostEffect]:
        watcher = client.watchers[session]
        effects: list[HostEffect] = [client.send(*part) for part in next_slice(self.log, session, watcher)]
        if not watcher.live:
            return effects
        for entry in self.roster:
            deltas = entry.core.streams.so_far(now) if session in (ALL, entry.id) else []
            if deltas:
                effects += [client.send(*part) for part in event_frames(entry.id, self.log.epoch(entry.id), deltas)]
        return effects

    def _page(self, history: History) -> Frame:
        if history.session not in self.roster:
            return Error(code=ErrorCode.NOT_FOUND, message="this host has no such session", about=history.id)
        epoch = self.log.epoch(history.session)
        if history.epoch != epoch:
            return Error(code=ErrorCode.NOT_FOUND, message=f"the epoch is {epoch} now", about=history.id)
        return _page(self.log, history, epoch)

    # --- commands

    def _command(self, client: Connection, command: Command, now: int) -> list[HostEffect]:
        if not client.may_intervene:
            handled = Handled(OutcomeKind.NOT_PERMITTED, reason=f"{client.name} may only watch")
            return [client.send(outcome_of(command, handled, now, None))]
        before = self._outcomes.again(command, now)
        if before is not None:
            return [client.send(before)]
        effects: list[HostEffect] = []
        entry = self.roster.get(command.session)
        attempt: int | None = None
        if entry is None:
            handled = Handled(OutcomeKind.STALE_TARGET, reason="this host has no such session")
        else:
            handled = execute(entry.core, command, client.name, now)
            effects += self.apply(handled.effects)
            self._touch(entry.id).events.append(intervention(command, handled, client.name, now, entry.core))
            attempt = entry.core.attempt
        outcome = outcome_of(command, handled, now, attempt)
        self._outcomes.remember(command, outcome)
        return [*effects, *self.flush(now), client.send(outcome)]

    # --- time

    def tick(self, now: int) -> list[HostEffect]:
        """Deadlines, patches that had to wait, beats."""
        effects: list[HostEffect] = []
        for entry in self.roster:
            due = entry.core.next_due()
            if due is not None and due <= now:
                effects += self.apply(entry.core.tick(now))
            if entry.slow and now - entry.slow_at >= SLOW_MS:
                self._busy[entry.id] = entry
        effects += self.flush(now)
        if self._beat_at is None or now >= self._beat_at:
            self._beat_at = now + int(self._heartbeat_s * 1000)
            beat = _encoded(Beat(now=now, pos=self.log.pos))
            effects += broadcast([c for c in self._conns.values() if c.greeted], [beat], lambda _: True)
        return effects

    def next_due(self) -> int | None:
        """When `tick` should be called next; None: at once."""
        if self._beat_at is None:
            return None
        dues = [self._beat_at]
        for entry in self.roster:
            due = entry.core.next_due()
            if due is not None:
                dues.append(due)
            if entry.slow:
                dues.append(entry.slow_at + SLOW_MS)
        return min(dues)


def _encoded(frame: Frame) -> Encoded:
    return frame, wire(frame)


def _page(log: EventLog, history: History, epoch: str) -> Page:
    """A page, shortened to what fits into one frame."""
    session, limit = history.session, history.limit
    upwards = history.after is not None

    def make(events: list[Event]) -> Page:
        first = events[0].seq or 0 if events else 0
        last = events[-1].seq or 0 if events else 0
        more = bool(events) and (last < log.head(session) if upwards else first > log.first(session))
        return Page(id=history.id, session=session, epoch=epoch, events=anys(events), first=first, last=last, more=more)

    events = log.read(session, after=history.after, before=history.before, limit=limit)
    parts = split(events, lambda some: make(list(some)))
    frame = parts[0 if upwards else -1][0]
    assert isinstance(frame, Page)  # noqa: S101 - `make` makes pages
    return frame
