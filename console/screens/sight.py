"""Where the operator looks: the session under the cursor, and the request on the card."""

from __future__ import annotations

from console.fleet.facts import RequestKey, SessionKey
from console.fleet.needs import next_request
from console.fleet.state import Request, Session
from console.fleet.store import Store
from console.screens.shown import Shown


class Sight:
    """What keys are aimed at. `aimed` False: the cursor stands where it does by nobody's wish."""

    def __init__(self, store: Store) -> None:
        """Nothing is selected yet."""
        self._store = store
        self.selected: SessionKey | None = None
        self.aimed = True
        self.shown: Shown | None = None

    @property
    def session(self) -> Session | None:
        """The selected session, if it is known."""
        return self._store.sessions.get(self.selected) if self.selected is not None else None

    def waiting_here(self) -> Request | None:
        """What waits longest in the selected session itself."""
        session = self.session
        waiting = session.open_requests() if session is not None else []
        return waiting[0] if waiting else None

    @property
    def outdated(self) -> bool:
        """Does the request on the card ask for something else than what was read on it?"""
        return self.shown is not None and self.shown.outdated(self._store.requests.get(self.shown.key))

    def request(self) -> Request | None:
        """What a decision would be about: the request on the card while it is open, else the oldest of its session."""
        if self.shown is None:
            return self.waiting_here()
        request = self._store.requests.get(self.shown.key)
        return request if request is not None and request.open else self.behind()

    def next_request(self, *, turned: bool = True) -> RequestKey | None:
        """The request to look at next: that of the selected session where none is being read, then the oldest.

        `turned` False: nobody has turned to the selected session yet, and so it comes in no order but that of waiting.
        """
        if self.shown is not None and self.outdated and self._store.requests[self.shown.key].open:
            return self.shown.key
        here = self.behind() if self.shown is not None else self.waiting_here() if turned else None
        if here is not None:
            return here.key
        return next_request(self._store, self.shown.key if self.shown is not None else None)

    def behind(self) -> Request | None:
        """What waits longest in the session of a card that is dead; None while the card takes a decision."""
        if self.shown is None:
            return None
        request = self._store.requests.get(self.shown.key)
        if request is not None and request.open:
            return None
        session = self._store.sessions.get(self.shown.key.owner)
        waiting = session.open_requests() if session is not None else []
        return waiting[0] if waiting else None
