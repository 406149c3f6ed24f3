"""Where the operator looks in the inbox: at one request, and not at the session that it belongs to."""

from __future__ import annotations

from console.fleet.decisions.inbox import Inbox
from console.fleet.facts import RequestKey
from console.fleet.state import Request
from console.fleet.store import Store
from console.screens.sight import Sight


class InboxSight(Sight):
    """Keys are about the request on the card, else about the one under the cursor, and never about another of the same
    session."""

    def __init__(self, store: Store, inbox: Inbox) -> None:
        """The cursor is that of `inbox`."""
        super().__init__(store)
        self._inbox = inbox

    def waiting_here(self) -> Request | None:
        key = self._inbox.selected
        request = self._store.requests.get(key) if key is not None else None
        return request if request is not None and request.open else None

    def behind(self) -> Request | None:
        """Nothing stands behind a card here: what is next is asked for by a key of its own."""
        return None

    def next_request(self, *, turned: bool = True) -> RequestKey | None:
        """The request under the cursor where none is being read, then what stands below it, then the first."""
        if self.shown is not None and self.outdated and self._store.requests[self.shown.key].open:
            return self.shown.key
        if self.shown is None and turned and (here := self.waiting_here()) is not None:
            return here.key
        inbox, count = self._inbox, len(self._inbox)
        at = inbox.index(self.shown.key) if self.shown is not None else None
        begin = at + 1 if at is not None else 0
        for step in range(count):
            key = inbox.key((begin + step) % count)
            if (request := self._store.requests.get(key)) is not None and request.open:
                return key
        return None
