"""Who looks at which request, and who says that they take it: told to the other clients, and never a lock.

What a client says of itself ends with its connection, and with the request. However often somebody turns from one
request to the next, the others hear at most `ROUND_MOST` changes in `ROUND_MS`, each as it stands by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from watchfloor.host.clients.clients import Connection
from watchfloor.host.clients.roster import Roster
from watchfloor.host.effects import SendFrame
from watchfloor.host.quoting import shown
from watchfloor.protocol.frames import Claim, Error, ErrorCode, Looking
from watchfloor.protocol.frames import Presence as PresenceFrame

ROUND_MS: Final = 250
"""Least milliseconds between two rounds in which changes are told."""
ROUND_MOST: Final = 64
"""Requests of which one round tells."""
CLAIMS_MOST: Final = 100
"""Requests that one connection may have claimed."""
NAMES_MOST: Final = 16
"""Names that are told of one request."""


class _Key(NamedTuple):
    session: str
    request: str


class _Who(NamedTuple):
    conn: str
    name: str


class _State(NamedTuple):
    looking: tuple[_Who, ...] = ()
    claimed: _Who | None = None

    def seen_by(self, conn: str) -> tuple[tuple[str, ...], str | None]:
        """What of it this client is told: nobody hears that they look themselves."""
        names = dict.fromkeys(who.name for who in self.looking if who.conn != conn)
        return tuple(names)[:NAMES_MOST], self.claimed.name if self.claimed is not None else None


_NOBODY: Final = _State()


class Presence:
    """Takes what clients say of themselves, and tells the others in rounds."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._looking: dict[str, tuple[_Key, _Who]] = {}
        """What each connection looks at."""
        self._claims: dict[_Key, _Who] = {}
        self._told: dict[_Key, _State] = {}
        self._dirty: dict[_Key, None] = {}
        self._next = 0

    def look(self, client: Connection, frame: Looking) -> None:
        """The client looks at this request now, and at no other; at none where that is not open."""
        before = self._looking.pop(client.id, None)
        if before is not None:
            self._dirty[before[0]] = None
        if frame.session is None or frame.request is None:
            return
        key = _Key(frame.session, frame.request)
        if self._open(key):
            self._looking[client.id] = key, _Who(client.id, client.name)
            self._dirty[key] = None

    def claim(self, client: Connection, frame: Claim) -> Error | None:
        """The client takes the request, in place of whoever took it before, or lets go of it; else why not."""
        key = _Key(frame.session, frame.request)
        held = self._claims.get(key)
        if frame.release:
            if held is not None and held.conn == client.id:
                del self._claims[key]
                self._dirty[key] = None
            return None
        if not client.may_intervene:
            return Error(code=ErrorCode.NOT_PERMITTED, message="whoever may only watch takes nothing", about=frame.type)
        if not self._open(key):
            message = f"the session has no open request '{shown(frame.request)}'"
            return Error(code=ErrorCode.NOT_FOUND, message=message, about=frame.type)
        if self._claims_of(client.id) >= CLAIMS_MOST:
            self._prune()
            if self._claims_of(client.id) >= CLAIMS_MOST:
                message = f"one connection may claim {CLAIMS_MOST} requests at a time: let go of some"
                return Error(code=ErrorCode.OTHER, message=message, about=frame.type)
        self._claims[key] = _Who(client.id, client.name)
        self._dirty[key] = None
        return None

    def left(self, conn: str) -> None:
        """The connection is over, and with it what it said."""
        before = self._looking.pop(conn, None)
        ended = [key for key, who in self._claims.items() if who.conn == conn]
        for key in ended:
            del self._claims[key]
        self._dirty.update(dict.fromkeys([*ended, *([before[0]] if before is not None else [])]))

    # --- telling

    def tell(self, clients: Sequence[Connection], now: int) -> list[SendFrame]:
        """What is due to be told of the changes."""
        if not self._dirty or now < self._next:
            return []
        self._next = now + ROUND_MS
        frames: list[SendFrame] = []
        for key in list(self._dirty)[:ROUND_MOST]:
            del self._dirty[key]
            before = self._told.pop(key, _NOBODY)
            if not self._open(key):
                continue  # that it has ended is told, and nothing more is to be known of it
            state = self._state(key)
            if state != _NOBODY:
                self._told[key] = state
            for client in clients:
                if state.seen_by(client.id) != before.seen_by(client.id):
                    frames.append(_frame(client, key, state))
        return frames

    def greet(self, client: Connection) -> Iterator[SendFrame]:
        """What the others were told before this client came; nothing to one that was not let in."""
        if not client.greeted:
            return
        self._prune()
        for key, state in self._told.items():
            if state.seen_by(client.id) != _NOBODY.seen_by(client.id):
                yield _frame(client, key, state)

    def next_due(self) -> int | None:
        """When `tell` has something; None while nothing is new."""
        return self._next if self._dirty else None

    def _state(self, key: _Key) -> _State:
        return _State(tuple(who for at, who in self._looking.values() if at == key), self._claims.get(key))

    def _claims_of(self, conn: str) -> int:
        return sum(who.conn == conn for who in self._claims.values())

    def _open(self, key: _Key) -> bool:
        entry = self._roster.get(key.session)
        return entry is not None and key.request in entry.core.requests

    def _prune(self) -> None:
        """Forget what was said of requests that have ended."""
        for key in self._ended([*self._claims, *self._told]):
            self._claims.pop(key, None)
            self._told.pop(key, None)

    def _ended(self, keys: Iterable[_Key]) -> list[_Key]:
        return [key for key in keys if not self._open(key)]


def _frame(client: Connection, key: _Key, state: _State) -> SendFrame:
    looking, claimed_by = state.seen_by(client.id)
    return client.send(PresenceFrame(session=key.session, request=key.request, looking=looking, claimed_by=claimed_by))
