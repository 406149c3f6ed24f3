"""What sessions ask of a person, from the moment it is read until it is known how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from console.connectors.bamboo.gates import Sessions
from console.connectors.bamboo.history import Choice
from console.connectors.bamboo.requests import request_of, source_id
from console.connectors.bamboo.state import Ended, Session, Want
from console.connectors.web.reading import Json, millis, text
from watchfloor.foreign import Mirror
from watchfloor.protocol.model import Decision
from watchfloor.words import RequestState

ANOTHER: Final = "another client"
ELSEWHERE: Final = "it was decided elsewhere, or is asked no more"
UNSURE: Final = "it has an answer, and whether that is the one that was sent from here is not known"
SETTLES_MS: Final = 20_000
"""How long a server may still say that a permission waits which has its decision."""


class Asking:
    """Requests of the sessions themselves; those for children are gates."""

    def __init__(self, feed: Sessions, mirror: Mirror) -> None:
        self._feed = feed
        self._mirror = mirror

    def asks(self, session: Session, pending: Json) -> None:
        """The session waits for this, as it was read now."""
        source, now = source_id(pending), self._mirror.now()
        if session.pending is not None and source_id(session.pending) != source:
            self.ends(session, ELSEWHERE)
        generation = text(pending, "permission_request", "request_generation")
        ended = session.ended.get(source)
        if session.pending is None and ended is not None and generation is not None and now - ended.at < SETTLES_MS:
            # It has its decision: the server had not got so far when it was asked. Should it stay so, it is asked anew.
            return
        id = session.asked or (f"{source}#{ended.times + 1}" if ended is not None else source)
        session.pending, session.asked = pending, id
        self._feed.show(session)
        # The server does not say since when it asks. A session that waits has done nothing since.
        since = min(millis(session.info, "last_activity_at") or now, now)
        request = request_of(session.id, id, pending, now=since, permission_calls=session.permission_calls)
        self._mirror.ask(session.id, request)

    @contextmanager
    def decided_here(self, session: Session) -> Iterator[None]:
        """A decision from here is on its way: what is read meanwhile ends nothing and asks nothing, as it may be what
        that decision has led to."""
        session.deciding = True
        try:
            yield
        finally:
            session.deciding = False
            session.moves += 1
            self._feed.wants.add((Want.READ, session.id))

    def ends(self, session: Session, why: str, decision: Decision | None = None) -> None:
        """What the session asked is no longer open: it has this decision, or `why` says what is known of that."""
        if session.pending is None or session.asked is None:
            return
        ended = session.ended.setdefault(source_id(session.pending), Ended())
        ended.times, ended.at = ended.times + 1, self._mirror.now()
        id, session.pending, session.asked = session.asked, None, None
        state = RequestState.RESOLVED if decision is not None else RequestState.WITHDRAWN
        self._mirror.end_request(session.id, id, state, decision=decision, why="" if decision is not None else why)
        if session.read:
            # What the tool call has become of it is in the history.
            self._feed.wants.add((Want.PAST, session.id))

    def ended_elsewhere(self, session: Session, choice: Choice | None) -> Decision | None:
        """What the session asked is no longer open, and `choice` is what the server says of how. Returns the decision,
        None where nothing says it, or nothing says whose it is."""
        if session.pending is None:
            return None
        decision, why = self.whose(session, choice)
        self.ends(session, why, decision)
        return decision

    def whose(self, session: Session, choice: Choice | None) -> tuple[Decision | None, str]:
        """A decision that was found, with whose it is; None, and what is known, where that cannot be told."""
        sent = session.unsure.get(source_id(session.pending), set()) if session.pending is not None else set()
        if choice is None:
            return None, ELSEWHERE
        if choice.chosen in sent:
            return None, f"{UNSURE}: {choice.chosen}"
        at = choice.at or self._mirror.now()
        note = choice.words if choice.words is None or len(choice.words) <= 500 else f"{choice.words[:499]}…"
        return Decision(option=choice.option, kind=choice.kind, by=ANOTHER, at=at, note=note), ""

    def forget_times(self) -> None:
        """The server may be another process from now on: what it says then counts at once."""
        for session in self._feed.sessions.values():
            for ended in session.ended.values():
                ended.at = 0
