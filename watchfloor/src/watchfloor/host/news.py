"""What happened in the sessions of a host, until it is numbered, logged and told to the clients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from watchfloor.host.clients import Connection, Encoded, broadcast
from watchfloor.host.effects import Changed, HostEffect, Publish, RequestChanged, SendFrame, SessionEffect
from watchfloor.host.log import EventLog
from watchfloor.host.reception import session_frames
from watchfloor.host.roster import SLOW, SLOW_MS, Entry, Roster
from watchfloor.host.wire import encoded, event_frames, join_deltas
from watchfloor.protocol.events import Delta, Event
from watchfloor.protocol.frames import Gone, Profiles, RequestFrame
from watchfloor.protocol.model import Summary


class News:
    """Collects what sessions did, and makes frames of it."""

    def __init__(self, log: EventLog, roster: Roster) -> None:
        self._log = log
        self._roster = roster
        self._busy: dict[str, Entry] = {}
        self._gone: list[str] = []

    def __bool__(self) -> bool:
        """Is there anything to tell?"""
        return bool(self._busy or self._gone)

    def touch(self, entry: Entry) -> Entry:
        """Something of the session is new."""
        self._busy[entry.id] = entry
        return entry

    def gone(self, session: str) -> None:
        """The session is there no more."""
        self._busy.pop(session, None)
        self._gone.append(session)

    def due(self, now: int) -> None:
        """Take up the patches that had to wait and are due."""
        for entry in self._roster:
            if entry.slow and now - entry.slow_at >= SLOW_MS:
                self.touch(entry)

    def apply(self, effects: Iterable[SessionEffect]) -> list[HostEffect]:
        """Take in what a session did; returns what the shell must do."""
        rest: list[HostEffect] = []
        for effect in effects:
            match effect:
                case Publish():
                    self._find(effect.session).events.append(effect.event)
                case Changed():
                    entry = self._find(effect.session)
                    entry.dirty |= effect.fields - SLOW
                    entry.slow |= effect.fields & SLOW
                case RequestChanged():
                    self._find(effect.session).requests.append(effect.request)
                case _:
                    rest.append(effect)
        return rest

    def _find(self, session: str) -> Entry:
        entry = self._roster.get(session)
        if entry is None:
            raise KeyError(session)
        return self.touch(entry)

    # --- telling

    def flush(self, clients: Sequence[Connection], now: int) -> list[HostEffect]:
        """Number what happened and tell it: profiles, sessions and requests to everybody, events to who follows."""
        busy, self._busy = list(self._busy.values()), {}
        events: list[SendFrame] = []
        requests: list[Encoded] = []
        for entry in busy:
            if entry.events:
                frames = self._number(entry)
                events += broadcast([client for client in clients if client.follows(entry.id)], frames)
            requests += [encoded(RequestFrame(session=entry.id, request=request)) for request in entry.requests]
            entry.requests.clear()
        news: list[Encoded] = []
        profiles, self._roster.new_profiles = self._roster.new_profiles, {}
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
        numbered = iter(self._log.append(entry.id, [event for event in fresh if not isinstance(event, Delta)]))
        events: list[Event] = [event if isinstance(event, Delta) else next(numbered) for event in fresh]
        entry.saw(events)
        return event_frames(entry.id, self._log.epoch(entry.id), events)

    def _summary(self, entry: Entry, now: int) -> Summary | None:
        if not entry.fresh:
            return self._roster.patch(entry, now)
        entry.fresh = False
        entry.dirty.clear()
        entry.slow.clear()
        entry.slow_at = now
        return self._roster.whole(entry)
