"""The host without I/O: frames and reports in, effects out.

Events are collected per session and numbered when they are flushed, one session after the other (`news`). So
`pos` never runs backwards on a connection, whatever the frames hold, and the highest `pos` that a client has
read is where it resumes.

A watcher is either live, and gets what is flushed, or it catches up from the log a slice at a time (`pull`),
as fast as its connection takes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final

from watchfloor.errors import ProtocolError, StorageCorrupt, StorageError
from watchfloor.host.clients.between import Between
from watchfloor.host.clients.clients import Connection, broadcast
from watchfloor.host.clients.commands import Outcomes, carry_out
from watchfloor.host.clients.dispatch import Dispatch, Dispatched
from watchfloor.host.clients.news import News
from watchfloor.host.clients.presence import Presence
from watchfloor.host.clients.queries import Queries
from watchfloor.host.clients.reception import Reception, about_of
from watchfloor.host.clients.roster import SLOW_MS, Entry, NoSuchSession, Roster, supported
from watchfloor.host.effects import (
    Ask,
    Close,
    Handled,
    HostEffect,
    Reached,
    SessionEffect,
)
from watchfloor.host.log.events import EventLog
from watchfloor.host.principals import Principal
from watchfloor.host.quoting import shown
from watchfloor.host.sessions.mirror import MirrorSession
from watchfloor.host.sessions.record import received, restore
from watchfloor.host.sessions.session import SessionCore
from watchfloor.host.wire import encoded
from watchfloor.protocol.codec import about, decode_client
from watchfloor.protocol.frames import (
    Beat,
    Claim,
    ClientFrame,
    Command,
    Do,
    Error,
    ErrorCode,
    Events,
    Hello,
    History,
    HostInfo,
    Looking,
    Query,
    Recall,
    Reply,
    UnknownFrame,
    Unwatch,
    Watch,
)
from watchfloor.protocol.given import given
from watchfloor.protocol.model import Capabilities, Traits

HEARTBEAT_S: Final = 15.0
LAG_MS: Final = 30_000
"""Milliseconds that a client may be too slow before it is let go."""
SLOW: Final = 1013
"""WebSocket close code of a client that does not keep up."""
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
        queries: Collection[str] = (),
    ) -> None:
        """With `beats` the host's own time makes them; without, they are due when `beat` is called. `queries`: further
        questions, which the shell answers.
        """
        self.info = info
        self.log = log
        self.roster = Roster(log)
        self._reception = Reception(info, log, self.roster, heartbeat_s)
        self._beat_ms = int(heartbeat_s * 1000)
        self._beats = beats
        self._beat_at: int | None = None
        self._hello_s = hello_s
        self.news = News(log, self.roster)
        self.between = Between(self.roster)
        self._presence = Presence(self.roster)
        self.queries = Queries(self.roster, log, queries)
        self._dispatch = Dispatch(self.roster, self.between, outcomes or Outcomes(info.instance))
        self._conns: dict[str, Connection] = {}

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
        self.news.touch(self.roster.add(core, traits, fixed or {}))
        return core

    def come_back(self, session: str, now: int) -> list[HostEffect] | None:
        """Put a session that was just added together again as the log has it; None where the log has nothing of it.

        What ran is suspended, and what was asked is withdrawn. Raises StorageError for what cannot be read.
        """
        saved = self.log.state(session)
        if saved is None:
            return None
        entry = self._entry(session)
        core = self.session(session)
        try:
            effects = restore(core, saved[0], saved[1], now)
            core.mailbox.know(received(letter) for letter in self.log.letters(session))
        except ValueError as error:
            raise StorageCorrupt(f"what the log has of session {session!r} cannot be read: {error}") from None
        entry.kept = list(core.conversation.messages)
        return self.apply(effects)

    def mirror(self, session: str, *, capabilities: Capabilities, traits: Traits, now: int) -> MirrorSession:
        """A new session that a foreign system runs; its commands are forwarded. Raises ValueError for a taken id."""
        if session in self.roster:
            raise ValueError(f"there is a session {session!r} already")
        mirrored = MirrorSession(session, capabilities=capabilities, now=now)
        self.news.touch(self.roster.add(mirrored, traits, {}))
        return mirrored

    def mirrored(self, session: str) -> MirrorSession:
        """Raises KeyError for a session that is not there, or that this host runs itself."""
        core = self._entry(session).core
        if not isinstance(core, MirrorSession):
            raise NoSuchSession(session)
        return core

    def traits(self, session: str) -> Traits:
        """How the session behaves. Raises KeyError."""
        return self._entry(session).traits

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
        self.news.touch(entry)
        return self.apply(entry.core.set_capabilities(offered, now))

    def put_away(self, session: str) -> None:
        """Take a session out of the roster, to be added anew at once: clients hear of that, and the log keeps it."""
        self.roster.remove(session)
        self.news.drop(session)

    def remove(self, session: str, *, erase: bool = False) -> None:
        """Forget a session. Its events stay in the log, unless they are to be erased."""
        self.roster.remove(session)
        with suppress(StorageError):
            # A log that cannot be written now keeps it: it would come back with the host, and can be removed again.
            if erase:
                self.log.erase(session)
            else:
                self.log.forget_state(session)
        for entry in self.roster:
            if isinstance(entry.core, SessionCore):
                entry.core.subscribers.pop(session, None)
        for client in self._conns.values():
            client.watchers.pop(session, None)
        self.news.gone(session)

    def session(self, session: str) -> SessionCore:
        """Raises KeyError for a session that is not there, or that a foreign system runs."""
        core = self._entry(session).core
        if not isinstance(core, SessionCore):
            raise NoSuchSession(session)
        return core

    def _entry(self, session: str) -> Entry:
        return self.roster.entry(session)

    def apply(self, effects: Iterable[SessionEffect]) -> list[HostEffect]:
        """Take in what a session did; clients hear of it with the next flush. Returns what the shell must do."""
        rest: list[HostEffect] = []
        for effect in self.news.apply(effects):
            if isinstance(effect, Reached):
                rest += self.apply(self.between.news(effect))
            else:
                rest.append(effect)
        return rest

    # --- what clients hear

    @property
    def wants_flush(self) -> bool:
        return bool(self.news)

    def flush(self, now: int) -> list[HostEffect]:
        """Number what happened, log it and tell it."""
        return self.news.flush([client for client in self._conns.values() if client.greeted], now)

    # --- connections

    def connect(self, conn: str, principal: Principal, now: int) -> None:
        """Somebody connected and was admitted."""
        self._conns[conn] = Connection(conn, principal, now + int(self._hello_s * 1000))

    def connections(self) -> tuple[str, ...]:
        """Who is connected."""
        return tuple(self._conns)

    def disconnect(self, conn: str) -> None:
        self._conns.pop(conn, None)
        self._presence.left(conn)

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
            effects += self._reception.greet(client, frame, now)
            return [*effects, *self._presence.greet(client)]
        try:
            return effects + self._answer(client, frame, now)
        except StorageError as error:
            # What the log cannot give costs the answer, not the connection.
            return [*effects, client.send(Error(code=ErrorCode.OTHER, message=str(error), about=about_of(frame)))]

    def _answer(self, client: Connection, frame: ClientFrame | UnknownFrame, now: int) -> list[HostEffect]:
        match frame:
            case Watch():
                return self._reception.watch(client, frame, now)
            case Unwatch():
                client.watchers.pop(frame.session, None)
                return []
            case History():
                return [client.send(self._reception.page(frame))]
            case Command():
                return self._dispatched(self._dispatch.command(client, frame, now), now)
            case Query():
                answer = self.queries.answer(frame, client.id)
                return [answer if isinstance(answer, Ask) else client.send(answer)]
            case Recall():
                return [*self._dispatch.recall(client, frame, now)]
            case Looking():
                self._presence.look(client, frame)
                return self._tell_presence(now)
            case Claim():
                fault = self._presence.claim(client, frame)
                return [client.send(fault)] if fault is not None else self._tell_presence(now)
            case Hello():
                message = "hello comes once, at the start"
                return [client.send(Error(code=ErrorCode.MALFORMED, message=message, about=frame.type))]
            case _:
                message = f"this host does not answer '{shown(frame.type)}'"
                return [client.send(Error(code=ErrorCode.UNSUPPORTED, message=message, about=about_of(frame)))]

    def _tell_presence(self, now: int) -> list[HostEffect]:
        return [*self._presence.tell([client for client in self._conns.values() if client.greeted], now)]

    def reply(self, conn: str, answer: Reply | Error) -> list[HostEffect]:
        """What the shell answers to a question that it was handed."""
        client = self._conns.get(conn)
        return [] if client is None or client.closed else [client.send(answer)]

    def behind(self, conn: str) -> bool:
        """Does a watch of the connection have to catch up, so that `pull` has something for it?"""
        client = self._conns.get(conn)
        return client is not None and (client.lagging or client.behind() is not None)

    def lagging(self, conn: str, now: int) -> None:
        """The client does not keep up: it is sent no events until `pull` says that it has room."""
        client = self._conns.get(conn)
        if client is not None and client.greeted and not client.lagging:
            client.lagging_since = now

    def left_out(self, conn: str, frame: Events, now: int) -> None:
        """These events were not sent, since the client does not keep up."""
        self.lagging(conn, now)
        client = self._conns.get(conn)
        if client is not None:
            client.left_out(frame.session, frame.epoch, frame.events)

    def pull(self, conn: str, now: int) -> list[HostEffect]:
        """The connection has room: the next slice for a watch that catches up."""
        client = self._conns.get(conn)
        if client is None:
            return []
        effects: list[HostEffect] = []
        if client.lagging:
            effects = self.flush(now) + self._reception.caught_up(client, now)
        session = client.behind()
        if session is None:
            return effects
        try:
            return effects + self.flush(now) + self._reception.more(client, session, now)
        except StorageError as error:
            # It would be asked for again and again.
            client.watchers.pop(session, None)
            return [*effects, client.send(Error(code=ErrorCode.OTHER, message=str(error), about="watch"))]

    # --- commands

    def carry_out(self, session: str, do: Do, by: str, now: int) -> Handled:
        """What the host's own program asks of a session that it runs, whatever that advertises. Raises KeyError."""
        return carry_out(self.session(session), do, by, now, self.between)

    def answered(self, command: str, handled: Handled, now: int) -> list[HostEffect]:
        """What the foreign system made of a forwarded command; nothing where none of this id is under way."""
        return self._dispatched(self._dispatch.answered(command, handled, now), now)

    def _dispatched(self, done: Dispatched, now: int) -> list[HostEffect]:
        """Before an outcome is told its session has told what the command did to it."""
        effects = self.apply(done.effects)
        if done.event is not None and done.outcome is not None:
            self.news.touch(self._entry(str(done.outcome.session))).events.append(done.event)
        effects += self.flush(now)
        if done.forward is not None:
            effects.append(done.forward)
        asking = [client for conn in done.conns if (client := self._conns.get(conn)) is not None]
        if done.outcome is not None:
            effects += [client.send(done.outcome) for client in asking]
        return effects

    # --- time

    def tick(self, now: int) -> list[HostEffect]:
        """Deadlines, patches that had to wait, beats, clients that say nothing."""
        effects: list[HostEffect] = []
        for client in self._conns.values():
            if client.silent and client.hello_by <= now:
                message = f"no hello within {self._hello_s:g} s"
                effects += self._reception.refuse(client, ErrorCode.OTHER, message, None)
            if client.lagging_since is not None and now - client.lagging_since >= LAG_MS and not client.closed:
                client.closed = True
                effects.append(Close(client.id, SLOW, "this client does not keep up", drop=True))
        for entry in self.roster:
            due = entry.core.next_due()
            if due is not None and due <= now:
                effects += self.apply(entry.core.tick(now))
        self.news.due(now)
        effects += self.flush(now)
        effects += self._tell_presence(now)
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
        if self.news.retry_at is not None:
            dues.append(self.news.retry_at)
        if (told_at := self._presence.next_due()) is not None:
            dues.append(told_at)
        for entry in self.roster:
            due = entry.core.next_due()
            if due is not None:
                dues.append(due)
            if entry.slow:
                dues.append(entry.slow_at + SLOW_MS)
        return min(dues)
