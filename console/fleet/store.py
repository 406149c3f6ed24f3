"""Where the fleet's records live, and the few moves that every kind of fact shares."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Final

from console.fleet import requests
from console.fleet.changes import Changes
from console.fleet.facts import NO_TIME, ProfileFact, RequestKey, SessionKey
from console.fleet.state import LATEST, Request, Session, Source, Trail
from watchfloor.text import clean_line

KEEP_ENDED: Final = 1_000
"""Ended requests that are remembered, so that a late decision can be told who was first."""
KEEP_ENDED_TEXT: Final = 16_000_000
"""Characters of all actions of ended requests: a thousand of the longest would fill the memory."""
KEEP_LOGS: Final = 64_000_000
"""Weight of the logs of all sessions together; what goes first is the oldest of the longest logs."""
KEEP_GONE: Final = 1_000
"""Gone sessions whose late events are still recognised."""


class Queue:
    """Everything that waits for a human, the longest first; those of an unknown time last."""

    def __init__(self) -> None:
        self.requests: Final[list[Request]] = []
        self.by_source: Final[Counter[str]] = Counter()
        """How many of them each source has."""
        self._order: list[tuple[int, RequestKey]] = []
        self._asked: dict[RequestKey, int] = {}

    def put(self, request: Request, asked: int) -> None:
        """The request waits, since this local time (NO_TIME: nobody knows since when)."""
        key = request.key
        self.drop(key)
        self._asked[key] = asked or LATEST
        at = bisect_left(self._order, (asked or LATEST, key))
        self._order.insert(at, (asked or LATEST, key))
        self.requests.insert(at, request)
        self.by_source[key.source] += 1

    def drop(self, key: RequestKey) -> None:
        """The request does not wait any more, if it did."""
        at = self.place(key)
        if at is not None:
            del self._order[at], self.requests[at], self._asked[key]
            self.by_source[key.source] -= 1

    def place(self, key: RequestKey) -> int | None:
        """The place of a request, from 0; None where it does not wait."""
        asked = self._asked.get(key)
        return bisect_left(self._order, (asked, key)) if asked is not None else None


class Store:
    """Everything that the console knows of its sources. Only the fleet's own modules change it."""

    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}
        self.sessions: dict[SessionKey, Session] = {}
        self.requests: dict[RequestKey, Request] = {}
        self.trails: dict[str, Trail] = {}
        self.children: dict[SessionKey, set[SessionKey]] = {}
        """Direct children of the sessions that have any."""
        self.active: dict[SessionKey, list[Trail]] = {}
        """Commands from which something is still expected, by target."""
        self.touched: set[SessionKey] = set()
        """Targets whose commands have to be judged again."""
        self.unsettled: set[SessionKey] = set()
        """Sessions whose newest events are missing, and may only be late."""
        self.gone: dict[SessionKey, None] = {}
        self._ended: dict[RequestKey, int] = {}
        """Requests that have ended, the longest ago first, with the size of their text."""
        self._ended_text = 0
        self._log_weight = 0
        self._longest: list[Session] = []
        """Logs that are to be cut to `_level` as room is needed, the longest last."""
        self._level = 0
        self._stuck_at = 0
        """Weight of all logs up to which there is nothing to be cut."""
        self.queue = Queue()
        """What waits, by the console's clock, as sources' may differ."""

    def profile(self, session: Session) -> ProfileFact | None:
        """What the session advertises; None while its source has not said."""
        source = self.sources.get(session.key.source)
        return source.profiles.get(session.profile) if source and session.profile is not None else None

    def source(self, name: str, changes: Changes) -> Source:
        """The source of that name, made where it is new."""
        source = self.sources.get(name)
        if source is None:
            source = self.sources[name] = Source(name, clean_line(name))
            changes.sources.add(name)
        return source

    def asked_local(self, request: Request) -> int:
        """When the request was made, by the console's clock; NO_TIME where nobody knows."""
        return request.asked_at - self.sources[request.key.source].ahead_ms if request.asked_at else NO_TIME

    def set_clock(self, source: Source, ahead_ms: int) -> None:
        """The source's clock is so far ahead of ours."""
        if source.ahead_ms != ahead_ms:
            source.ahead_ms = ahead_ms
            for request in [request for request in self.queue.requests if request.key.source == source.name]:
                self.queue.put(request, self.asked_local(request))

    def note_log(self, session: Session, before: tuple[int, int], changes: Changes) -> None:
        """The session's log, which reached `before` (its first and its end), may have changed."""
        self._weigh(session)
        if self._log_weight > KEEP_LOGS and self._log_weight > self._stuck_at:
            self._make_room(session, changes)
        self._log_moved(session, before, changes)

    def note_stream(self, session: Session, appended: int, changes: Changes) -> None:
        """A piece has come, and with it so many lines of the log; it weighs nothing before its whole comes."""
        log, key = session.log, session.key
        if log.rewritten:
            log.rewritten = False
            changes.rewritten.add(key)
        elif not appended:
            return
        earlier = changes.appended.get(key)
        changes.appended[key] = (appended, 0) if earlier is None else (earlier[0] + appended, earlier[1])

    def _make_room(self, session: Session, changes: Changes) -> None:
        """Cut the longest logs to one length, one after the other and no more of them than is needed now: to cut all of
        ten thousand at once would be a pause, and to look for the longest each time would cost more than the events."""
        anew = False
        while self._log_weight > KEEP_LOGS:
            if not self._longest:
                if anew:
                    # Each is one entry by now. It is tried again when there is more to be gained.
                    self._stuck_at = self._log_weight + KEEP_LOGS // 64
                    return
                self._longest, self._level, anew = *self._above(KEEP_LOGS * 3 // 4), True
                continue
            other = self._longest.pop()
            if self.sessions.get(other.key) is not other or other.log.weight <= self._level:
                continue
            place = other.log.first, other.log.end
            other.log.lighten(self._level)
            self._weigh(other)
            if other is not session:
                self._log_moved(other, place, changes)
                self.changed(other, changes)

    def _above(self, most: int) -> tuple[list[Session], int]:
        """The sessions whose logs are longer than a length at which all of them would be within `most`, the longest
        last, and that length."""
        ordered = sorted(self.sessions.values(), key=lambda session: session.log.weight)
        left = most
        for place, session in enumerate(ordered):
            share = left // (len(ordered) - place)
            if session.log.weight > share:
                return ordered[place:], share
            left -= session.log.weight
        return [], most

    def _weigh(self, session: Session) -> None:
        log = session.log
        if log.weight != log.counted:
            self._log_weight += log.weight - log.counted
            log.counted = log.weight

    def _log_moved(self, session: Session, before: tuple[int, int], changes: Changes) -> None:
        log, key = session.log, session.key
        first, end = log.place
        appended, dropped = end - before[1], first - before[0]
        if log.rewritten:
            log.rewritten = False
            changes.rewritten.add(key)
        elif not appended and not dropped:
            return
        if (earlier := changes.appended.get(key)) is not None:
            appended, dropped = appended + earlier[0], dropped + earlier[1]
        changes.appended[key] = (appended, dropped)

    def noted(self, source: Source, changes: Changes) -> None:
        source.version += 1
        changes.sources.add(source.name)

    def session(self, key: SessionKey, changes: Changes) -> Session:
        """The session of that key; a placeholder where it is new."""
        session = self.sessions.get(key)
        if session is None:
            source = self.source(key.source, changes)
            session = self.sessions[key] = Session(key)
            session.track.followed = source.follows_all
            changes.structure = True
            changes.sessions.add(key)
        return session

    def changed(self, session: Session, changes: Changes) -> None:
        session.version += 1
        changes.sessions.add(session.key)

    def reparent(self, session: Session, parent: str | None, changes: Changes) -> None:
        """Hang the session under another parent, which becomes a placeholder where it is unknown."""
        if parent == session.parent:
            return
        self._leave_parent(session, changes)
        session.parent = parent
        if parent is not None:
            above = SessionKey(session.key.source, parent)
            self.session(above, changes)
            self.children.setdefault(above, set()).add(session.key)
        changes.structure = True

    def _leave_parent(self, session: Session, changes: Changes) -> None:
        if session.parent is None:
            return
        above = SessionKey(session.key.source, session.parent)
        siblings = self.children.get(above)
        if siblings is None:
            return
        siblings.discard(session.key)
        if siblings:
            return
        del self.children[above]
        if (left := self.sessions.get(above)) is not None and left.placeholder:
            self._log_weight -= self.sessions.pop(above).log.counted
            changes.sessions.add(above)

    def remove(self, key: SessionKey, now: int, changes: Changes) -> None:
        """The session is gone. Where children still name it, a placeholder stays."""
        session = self.sessions.pop(key)
        self._log_weight -= session.log.counted
        self.note_requests(requests.end_all(session, now), changes)
        self._leave_parent(session, changes)
        self.gone[key] = None
        if len(self.gone) > KEEP_GONE:
            del self.gone[next(iter(self.gone))]
        if key in self.children:
            self.session(key, changes).name = session.name
        self.unsettled.discard(key)
        self.touched.add(key)
        changes.structure = True
        changes.sessions.add(key)

    def note_requests(self, keys: set[RequestKey], changes: Changes) -> None:
        """These requests have changed."""
        changes.requests |= keys
        for key in keys:
            if (request := self.requests[key]).open:
                self.queue.put(request, self.asked_local(request))
            else:
                self.queue.drop(key)
                self._note_ended(key, request.text_size)
            owner = key.owner
            if owner in self.active:
                self.touched.add(owner)
            if (session := self.sessions.get(owner)) is not None:
                self.changed(session, changes)

    def _note_ended(self, key: RequestKey, size: int) -> None:
        self._ended_text += size - self._ended.pop(key, 0)
        self._ended[key] = size

    def forget_ended(self) -> None:
        """Let go of the requests that ended longest ago."""
        while len(self._ended) > KEEP_ENDED or self._ended_text > KEEP_ENDED_TEXT:
            key = next(iter(self._ended))
            self._ended_text -= self._ended.pop(key)
            request = self.requests.get(key)
            if request is None or request.open:
                continue
            del self.requests[key]
            if (session := self.sessions.get(key.owner)) is not None:
                session.requests.pop(key.request, None)
