"""Where sessions are stored: what an agent needs of a storage, and one in memory.

Writes are called on the event loop and in the middle of a run, and are no coroutines: a call must not be carried out
before it is stored that it begins, nor may anything else of the run happen in between. In a file of SQLite one takes a
tenth of a millisecond. What takes long belongs behind a cache of the storage's own; `save` returns when what it was
given is safe from the end of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from watchfloor.agent.permissions import Grant
from watchfloor.agent.session import Session
from watchfloor.errors import Unsupported


class Storage(Protocol):
    """Reads."""

    def load(self, id: str) -> Session | None:
        """The session as it was saved last, apart from everybody else's; None where there is none."""
        ...

    def list(self) -> Sequence[Session]:
        """All sessions, the most recently updated first. Raises Unsupported where that cannot be told."""
        ...

    def grants(self) -> Sequence[Grant]:
        """What was granted beyond one session."""
        ...


class Persistence(Protocol):
    """Writes during a run."""

    def save(self, session: Session, grants: Iterable[Grant] = ()) -> None:
        """Store the session, and what was granted with it: both or neither. Raises StorageError."""
        ...

    def delete(self, id: str) -> bool:
        """Forget the session; False where there was none."""
        ...


class SessionAccess(Protocol):
    """Sessions as runs get at them."""

    def load(self, id: str) -> Session | None: ...

    def load_or_create(self, id: str, model: str | None = None) -> Session:
        """The stored session, or a new one of this id; the new one is stored with its first run."""
        ...

    def load_merged(self, session: Session) -> Session:
        """The stored session, with the messages that this copy of it has beyond what both share."""
        ...

    def save(self, session: Session, grants: Iterable[Grant] = ()) -> None: ...

    def save_and_cache(self, session: Session, grants: Iterable[Grant] = ()) -> None:
        """Save, and have the next `load` return this very object."""
        ...


class Sessions:
    """`SessionAccess` over any storage. `now` in milliseconds since 1970 UTC stamps what is saved."""

    def __init__(self, storage: Storage, persistence: Persistence, now: Callable[[], int]) -> None:
        self._storage = storage
        self._persistence = persistence
        self._now = now
        self._cached: dict[str, Session] = {}

    def load(self, id: str) -> Session | None:
        return self._cached.get(id) or self._storage.load(id)

    def load_or_create(self, id: str, model: str | None = None) -> Session:
        return self.load(id) or Session(id=id, model=model, created_at=self._now())

    def load_merged(self, session: Session) -> Session:
        stored = self._storage.load(session.id)
        if stored is None:
            return session
        same = 0
        for mine, theirs in zip(session.messages, stored.messages, strict=False):
            if mine != theirs:
                break
            same += 1
        known = {message.ref for message in stored.messages}
        stored.refs = max(stored.refs, session.refs)
        for message in session.messages[same:]:
            if message.role == "user" and message.ref in known:
                # Both copies counted on from the same place: what was done for one is not done for the other.
                stored.refs += 1
                message = replace(message, ref=f"#{stored.refs}")
            stored.messages.append(message)
        return stored

    def save(self, session: Session, grants: Iterable[Grant] = ()) -> None:
        # Never backwards, whatever the clock does: the list of sessions is in this order.
        session.updated_at = max(self._now(), session.updated_at)
        session.created_at = session.created_at or session.updated_at
        self._persistence.save(session, grants)

    def save_and_cache(self, session: Session, grants: Iterable[Grant] = ()) -> None:
        self.save(session, grants)
        self._cached[session.id] = session

    def release(self, id: str) -> None:
        """No run holds the session any more: the next `load` reads the storage."""
        self._cached.pop(id, None)

    def delete(self, id: str) -> bool:
        self.release(id)
        return self._persistence.delete(id)


class MemoryStorage:
    """Storage and persistence for as long as the process lives. With `lists` False it cannot list, as some cannot."""

    def __init__(self, *, lists: bool = True) -> None:
        self._sessions: dict[str, Session] = {}
        self._grants: list[Grant] = []
        self._lists = lists

    def load(self, id: str) -> Session | None:
        found = self._sessions.get(id)
        return found.copy() if found is not None else None

    def list(self) -> Sequence[Session]:
        if not self._lists:
            raise Unsupported("this storage cannot list its sessions: ask for them by their ids")
        return sorted((s.copy() for s in self._sessions.values()), key=lambda s: s.updated_at, reverse=True)

    def grants(self) -> Sequence[Grant]:
        return tuple(self._grants)

    def save(self, session: Session, grants: Iterable[Grant] = ()) -> None:
        self._sessions[session.id] = session.copy()
        self._grants += [grant for grant in grants if grant not in self._grants]

    def delete(self, id: str) -> bool:
        return self._sessions.pop(id, None) is not None
