"""What happened in the sessions of a host, until it is numbered, logged and told to the clients.

Nothing is told before the log has it. While the log cannot be written what happened waits here: the agents go on,
clients are told so once, and everything is logged and told as soon as it can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from watchfloor.errors import StorageError
from watchfloor.host.clients.clients import Connection, Encoded, broadcast
from watchfloor.host.clients.reception import session_frames
from watchfloor.host.clients.roster import SLOW, SLOW_MS, Entry, Roster
from watchfloor.host.effects import Changed, HostEffect, Publish, Reached, RequestChanged, SendFrame, SessionEffect
from watchfloor.host.log.events import Batch, EventLog, State
from watchfloor.host.sessions.mailbox import number_of
from watchfloor.host.sessions.record import posted, record, words
from watchfloor.host.sessions.session import SessionCore
from watchfloor.host.wire import encoded, event_frames, join_deltas
from watchfloor.protocol.events import Delta, Event
from watchfloor.protocol.frames import Error, ErrorCode, Gone, Profiles, RequestFrame
from watchfloor.protocol.model import Summary

RETRY_MS: Final = 1000
"""Milliseconds after which a log that could not be written is tried again."""


class News:
    """Collects what sessions did, and makes frames of it."""

    def __init__(self, log: EventLog, roster: Roster) -> None:
        self._log = log
        self._roster = roster
        self._busy: dict[str, Entry] = {}
        self._gone: list[str] = []
        self.fault: str | None = None
        """Why the log cannot be written; None while it can."""
        self.retry_at: int | None = None
        """When the log is tried again."""

    def __bool__(self) -> bool:
        """Is there anything that can be told now?"""
        return self.retry_at is None and bool(self._busy or self._gone)

    def touch(self, entry: Entry) -> Entry:
        """Something of the session is new."""
        self._busy[entry.id] = entry
        return entry

    def drop(self, session: str) -> None:
        """What was not told of the session yet is not told any more."""
        self._busy.pop(session, None)

    def gone(self, session: str) -> None:
        """The session is there no more."""
        self._busy.pop(session, None)
        self._gone.append(session)

    def due(self, now: int) -> None:
        """Take up the patches that had to wait and are due."""
        for entry in self._roster:
            if entry.slow and now - entry.slow_at >= SLOW_MS:
                self.touch(entry)

    def apply(self, effects: Iterable[SessionEffect]) -> list[HostEffect | Reached]:
        """Take in what a session did; returns what others must do about it."""
        rest: list[HostEffect | Reached] = []
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
        if self.retry_at is not None and now < self.retry_at:
            return []
        busy = list(self._busy.values())
        try:
            numbered = self._number(busy)
        except StorageError as error:
            return self._wait(clients, str(error), now)
        self._busy = {}
        self.fault = self.retry_at = None
        events: list[SendFrame] = []
        requests: list[Encoded] = []
        for entry, fresh in zip(busy, numbered, strict=True):
            if fresh:
                entry.saw(fresh)
                epoch = self._log.epoch(entry.id)
                following = [client for client in clients if client.follows(entry.id)]
                for client in following:
                    if client.lagging:
                        client.left_out(entry.id, epoch, fresh)
                frames = event_frames(entry.id, epoch, fresh)
                events += broadcast([client for client in following if not client.lagging], frames)
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

    def _number(self, busy: Sequence[Entry]) -> list[list[Event]]:
        """Log what is new, all of it or nothing. Returns each entry's new events, deltas in their places."""
        fresh = [join_deltas(entry.events) for entry in busy]
        lasting = [[event for event in events if not isinstance(event, Delta)] for events in fresh]
        states = [state for entry in busy if (state := self._state(entry)) is not None]
        logged = self._log.write([Batch(entry.id, events) for entry, events in zip(busy, lasting, strict=True)], states)
        for entry in busy:
            entry.events = []
            if isinstance(entry.core, SessionCore):
                entry.kept = list(entry.core.conversation.messages)
                entry.core.mailbox.fresh.clear()
        return [
            [event if isinstance(event, Delta) else next(numbered) for event in events]
            for events, stored in zip(fresh, logged, strict=True)
            for numbered in [iter(stored)]
        ]

    def _state(self, entry: Entry) -> State | None:
        """What is to be kept of the session, besides what of its conversation is kept already."""
        if not self._log.keeps_states or not isinstance(entry.core, SessionCore):
            return None
        messages, kept = entry.core.conversation.messages, entry.kept
        same = 0
        while same < len(kept) and same < len(messages) and kept[same] is messages[same]:
            same += 1
        letters = [(number_of(ref) or 0, posted(letter)) for ref, letter in entry.core.mailbox.fresh.items()]
        said = [words(message) for message in messages[same:]]
        return State(entry.id, record(entry.core, entry.fixed), same, said, letters)

    def _wait(self, clients: Sequence[Connection], fault: str, now: int) -> list[HostEffect]:
        self.retry_at = now + RETRY_MS
        for entry in self._busy.values():
            # Previews may be lost, and what they preview follows.
            entry.events = [event for event in entry.events if not isinstance(event, Delta)]
        if self.fault is not None:
            return []
        self.fault = fault
        message = f"this host cannot write its log, and tells nothing new until it can: {fault}"
        return [*broadcast(clients, [encoded(Error(code=ErrorCode.OTHER, message=message))])]

    def _summary(self, entry: Entry, now: int) -> Summary | None:
        if not entry.fresh:
            return self._roster.patch(entry, now)
        entry.fresh = False
        entry.dirty.clear()
        entry.slow.clear()
        entry.slow_at = now
        return self._roster.whole(entry)
