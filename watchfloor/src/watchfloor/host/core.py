"""The host without I/O: frames and reports in, effects out.

Events are collected per session and numbered when they are flushed, one session after the other. So `pos`
never runs backwards on a connection, whatever the frames hold, and the highest `pos` that a client has read
is where it resumes.

A watcher is either live, and gets what is flushed, or it catches up from the log a slice at a time (`pull`),
as fast as its connection takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from watchfloor.errors import ProtocolError
from watchfloor.host.clients import Connection, Encoded, broadcast
from watchfloor.host.commands import Outcomes, another_command, execute, intervention, outcome_of
from watchfloor.host.effects import (
    Changed,
    Forward,
    Handled,
    HostEffect,
    Publish,
    RequestChanged,
    SendFrame,
    SessionEffect,
)
from watchfloor.host.forwarding import UnderWay
from watchfloor.host.given import given
from watchfloor.host.hosted import Forwarded
from watchfloor.host.log import EventLog
from watchfloor.host.mirror import MirrorSession
from watchfloor.host.principals import Principal
from watchfloor.host.quoting import shown
from watchfloor.host.reception import Reception, about_of, session_frames
from watchfloor.host.roster import SLOW, SLOW_MS, Entry, Roster, supported
from watchfloor.host.session import SessionCore
from watchfloor.host.wire import encoded, event_frames, join_deltas
from watchfloor.protocol.codec import about, decode_client
from watchfloor.protocol.events import Delta, Event
from watchfloor.protocol.frames import (
    Beat,
    ClientFrame,
    Command,
    DoStop,
    Error,
    ErrorCode,
    Gone,
    Hello,
    History,
    HostInfo,
    Profiles,
    Recall,
    RequestFrame,
    UnknownFrame,
    Unwatch,
    Watch,
)
from watchfloor.protocol.model import Capabilities, JsonObject, Summary, Traits
from watchfloor.words import OutcomeKind

HEARTBEAT_S: Final = 15.0
HELLO_S: Final = 10.0
"""Seconds that a client has to say hello."""


class HostCore:
    """All sessions and connections of one host."""

    def __init__(
        self,
        info: HostInfo,
        log: EventLog,
        *,
        heartbeat_s: float = HEARTBEAT_S,
        hello_s: float = HELLO_S,
        outcomes: Outcomes | None = None,
        beats: bool = True,
    ) -> None:
        """With `beats` the host's own time makes them; without, they are due when `beat` is called."""
        self.info = info
        self.log = log
        self.roster = Roster(log)
        self._reception = Reception(info, log, self.roster, heartbeat_s)
        self._beat_ms = int(heartbeat_s * 1000)
        self._beats = beats
        self._beat_at: int | None = None
        self._hello_s = hello_s
        self._outcomes = outcomes or Outcomes(info.instance)
        self._under_way: dict[str, UnderWay] = {}
        self._conns: dict[str, Connection] = {}
        self._busy: dict[str, Entry] = {}
        self._gone: list[str] = []

    def set_version(self, version: str) -> None:
        """This host's version, as who is greeted from now on is told it."""
        self.info = self._reception.info = self.info.model_copy(update={"version": version})

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
        self._busy[session] = self.roster.add(core, traits, fixed or {})
        return core

    def mirror(self, session: str, *, capabilities: Capabilities, traits: Traits, now: int) -> MirrorSession:
        """A new session that a foreign system runs; its commands are forwarded. Raises ValueError for a taken id."""
        if session in self.roster:
            raise ValueError(f"there is a session {session!r} already")
        mirrored = MirrorSession(session, capabilities=capabilities, now=now)
        self._busy[session] = self.roster.add(mirrored, traits, {})
        return mirrored

    def mirrored(self, session: str) -> MirrorSession:
        """Raises KeyError for a session that is not there, or that this host runs itself."""
        core = self._entry(session).core
        if not isinstance(core, MirrorSession):
            raise KeyError(session)
        return core

    def profile(self, session: str, capabilities: Capabilities, traits: Traits, now: int) -> list[HostEffect]:
        """A mirrored session advertises this now, and behaves like this."""
        entry = self._entry(session)
        if capabilities == entry.core.capabilities and traits == entry.traits:
            return []
        entry.traits = traits
        return self._advertised(entry, capabilities, now)

    def advertise(self, session: str, capabilities: Capabilities, now: int) -> list[HostEffect]:
        """The session's attempt advertises this."""
        entry = self._entry(session)
        offered = supported(capabilities)
        if offered == entry.core.capabilities:
            return []
        return self._advertised(entry, offered, now)

    def _advertised(self, entry: Entry, offered: Capabilities, now: int) -> list[HostEffect]:
        entry.profile = self.roster.profile(offered, entry.traits)
        entry.dirty.add("profile")
        self._busy[entry.id] = entry
        return self.apply(entry.core.set_capabilities(offered, now))

    def remove(self, session: str) -> None:
        """Forget a session. Its events stay in the log."""
        self._busy.pop(session, None)
        self.roster.remove(session)
        for client in self._conns.values():
            client.watchers.pop(session, None)
        self._gone.append(session)

    def session(self, session: str) -> SessionCore:
        """Raises KeyError for a session that is not there, or that a foreign system runs."""
        core = self._entry(session).core
        if not isinstance(core, SessionCore):
            raise KeyError(session)
        return core

    def _entry(self, session: str) -> Entry:
        entry = self.roster.get(session)
        if entry is None:
            raise KeyError(session)
        return entry

    def _touch(self, session: str) -> Entry:
        entry = self._busy[session] = self._entry(session)
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

    # --- what clients hear

    @property
    def wants_flush(self) -> bool:
        return bool(self._busy or self._gone)

    def flush(self, now: int) -> list[HostEffect]:
        """Number what happened and tell it: profiles, sessions and requests to everybody, events to who follows."""
        busy, self._busy = list(self._busy.values()), {}
        clients = [client for client in self._conns.values() if client.greeted]
        events: list[SendFrame] = []
        requests: list[Encoded] = []
        for entry in busy:
            if entry.events:
                frames = self._number(entry)
                events += broadcast([client for client in clients if client.follows(entry.id)], frames)
            requests += [encoded(RequestFrame(session=entry.id, request=request)) for request in entry.requests]
            entry.requests.clear()
        news: list[Encoded] = []
        profiles, self.roster.new_profiles = self.roster.new_profiles, {}
        if profiles:
            news.append(encoded(Profiles(profiles=profiles)))
        summaries = [summary for entry in busy if (summary := self._summary(entry, now)) is not None]
        if summaries:
            news += session_frames(summaries)
        if self._gone:
            news.append(encoded(Gone(sessions=tuple(self._gone))))
            self._gone = []
        return [*broadcast(clients, news + requests), *events]

    def _number(self, entry: Entry) -> Sequence[Encoded]:
        """Log the session's new events and make frames of them, deltas in their places."""
        fresh, entry.events = join_deltas(entry.events), []
        numbered = iter(self.log.append(entry.id, [event for event in fresh if not isinstance(event, Delta)]))
        events: list[Event] = [event if isinstance(event, Delta) else next(numbered) for event in fresh]
        entry.saw(events)
        return event_frames(entry.id, self.log.epoch(entry.id), events)

    def _summary(self, entry: Entry, now: int) -> Summary | None:
        if not entry.fresh:
            return self.roster.patch(entry, now)
        entry.fresh = False
        entry.dirty.clear()
        entry.slow.clear()
        entry.slow_at = now
        return self.roster.whole(entry)

    # --- connections

    def connect(self, conn: str, principal: Principal, now: int) -> None:
        """Somebody connected and was admitted."""
        self._conns[conn] = Connection(conn, principal, now + int(self._hello_s * 1000))

    def connections(self) -> tuple[str, ...]:
        """Who is connected."""
        return tuple(self._conns)

    def disconnect(self, conn: str) -> None:
        self._conns.pop(conn, None)

    def receive(self, conn: str, raw: bytes, now: int) -> list[HostEffect]:
        """A frame as it came from a client. One that cannot be read is answered by an error.

        Where it is the first one, that error is fatal.
        """
        try:
            frame = decode_client(raw)
        except ProtocolError as error:
            return self._unreadable(conn, error.reason, about(raw))
        return self.take(conn, frame, now)

    def _unreadable(self, conn: str, reason: str, named: str | None) -> list[HostEffect]:
        client = self._conns.get(conn)
        if client is None or client.closed:
            return []
        if not client.greeted:
            message = f"the first frame must be hello, and this cannot be read: {reason}"
            return self._reception.refuse(client, ErrorCode.MALFORMED, message, named)
        return [client.send(Error(code=ErrorCode.MALFORMED, message=reason, **given(about=named)))]

    def take(self, conn: str, frame: ClientFrame | UnknownFrame, now: int) -> list[HostEffect]:
        """A client's frame."""
        client = self._conns.get(conn)
        if client is None or client.closed:
            return []
        effects = self.flush(now)
        if not client.greeted:
            return effects + self._reception.greet(client, frame, now)
        match frame:
            case Watch():
                effects += self._reception.watch(client, frame, now)
            case Unwatch():
                client.watchers.pop(frame.session, None)
            case History():
                effects.append(client.send(self._reception.page(frame)))
            case Command():
                effects += self._command(client, frame, now)
            case Recall():
                for id in frame.ids:
                    if id in self._under_way:
                        self._under_way[id].tell(client.id)
                    else:
                        effects.append(client.send(self._outcomes.recall(id, now, final=client.may_intervene)))
            case Hello():
                message = "hello comes once, at the start"
                effects.append(client.send(Error(code=ErrorCode.MALFORMED, message=message, about=frame.type)))
            case _:
                message = f"this host does not answer '{shown(frame.type)}'"
                effects.append(client.send(Error(code=ErrorCode.UNSUPPORTED, message=message, about=about_of(frame))))
        return effects

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
        return self.flush(now) + self._reception.more(client, session, now)

    # --- commands

    def _command(self, client: Connection, command: Command, now: int) -> list[HostEffect]:
        if not client.may_intervene:
            handled = Handled(OutcomeKind.NOT_PERMITTED, reason=f"{client.name} may only watch")
            return [client.send(outcome_of(command, handled, now, None))]
        under_way = self._under_way.get(command.id)
        if under_way is not None and under_way.command == command:
            under_way.tell(client.id)
            return []
        before = another_command(command, now) if under_way is not None else self._outcomes.again(command, now)
        if before is not None:
            return [client.send(before)]
        entry = self.roster.get(command.session)
        if entry is None:
            gone = Handled(OutcomeKind.STALE_TARGET, reason=f"this host has no session '{shown(command.session)}'")
            return self._settled(command, client.name, gone, [client.id], now)
        done = execute(entry.core, command, client.name, now)
        if isinstance(done, Forwarded):
            self._under_way[command.id] = UnderWay(command, client.name, [client.id])
            return [*self.apply(done.effects), *self.flush(now), Forward(command, client.name)]
        if isinstance(command.do, DoStop) and done.applied:
            done.info.update(self._living_children(entry.id))
        return self._settled(command, client.name, done, [client.id], now)

    def answered(self, command: str, handled: Handled, now: int) -> list[HostEffect]:
        """What the foreign system made of a forwarded command; nothing where none of this id is under way."""
        forwarded = self._under_way.pop(command, None)
        if forwarded is None:
            return []
        entry = self.roster.get(forwarded.command.session)
        if entry is not None and isinstance(entry.core, MirrorSession):
            entry.core.answered(forwarded.command.do)
        return self._settled(forwarded.command, forwarded.by, handled, forwarded.conns, now)

    def _settled(self, command: Command, by: str, handled: Handled, conns: Sequence[str], now: int) -> list[HostEffect]:
        """The command has its outcome: it is remembered, becomes an event, and is told to who asked."""
        effects = self.apply(handled.effects)
        entry = self.roster.get(command.session)
        if entry is not None:
            self._touch(entry.id).events.append(intervention(command, handled, by, now, entry.core))
        outcome = outcome_of(command, handled, now, entry.core.attempt if entry is not None else None)
        self._outcomes.remember(command, outcome)
        asking = [client for conn in conns if (client := self._conns.get(conn)) is not None]
        return [*effects, *self.flush(now), *(client.send(outcome) for client in asking)]

    def _living_children(self, session: str) -> JsonObject:
        """Who goes on when a session is stopped."""
        living: list[JsonValue] = [e.id for e in self.roster if e.fixed.get("parent") == session and e.core.alive]
        return {"living_children": living} if living else {}

    # --- time

    def tick(self, now: int) -> list[HostEffect]:
        """Deadlines, patches that had to wait, beats, clients that say nothing."""
        effects: list[HostEffect] = []
        for client in self._conns.values():
            if client.silent and client.hello_by <= now:
                message = f"no hello within {self._hello_s:g} s"
                effects += self._reception.refuse(client, ErrorCode.OTHER, message, None)
        for entry in self.roster:
            due = entry.core.next_due()
            if due is not None and due <= now:
                effects += self.apply(entry.core.tick(now))
            if entry.slow and now - entry.slow_at >= SLOW_MS:
                self._busy[entry.id] = entry
        effects += self.flush(now)
        if self._beat_at is None or now >= self._beat_at:
            self._beat_at = now + self._beat_ms
            if self._beats:
                effects += self.beat(now)
        return effects

    def beat(self, now: int) -> list[HostEffect]:
        """A sign of life to everybody."""
        beat = encoded(Beat(now=now, pos=self.log.pos))
        return [*broadcast([client for client in self._conns.values() if client.greeted], [beat])]

    def next_due(self) -> int | None:
        """When `tick` should be called next; None: at once."""
        if self._beat_at is None:
            return None
        dues = [self._beat_at, *(client.hello_by for client in self._conns.values() if client.silent)]
        for entry in self.roster:
            due = entry.core.next_due()
            if due is not None:
                dues.append(due)
            if entry.slow:
                dues.append(entry.slow_at + SLOW_MS)
        return min(dues)
