"""What is known of one thread."""

from __future__ import annotations

from dataclasses import dataclass, field

from console.connectors.codex.requests import Asked
from console.connectors.web.reading import Json

NOT_LOADED = "notLoaded"
ACTIVE = "active"
_WAITING = "waitingOn"
"""How the flags begin that say for what the thread waits: whatever it is, it waits."""


@dataclass(slots=True)
class Begun:
    """An item that has begun and not ended. `waits`: nothing of it has run, as far as is known."""

    item: Json
    turn: str
    since: int
    waits: bool = False
    missed: bool = False
    """Some of what it streamed came while we were not there."""
    denied: bool = False
    """Our answer was that it must not run, and counted."""


@dataclass(slots=True)
class Fate:
    """What showed since an answer to a request was sent."""

    resolved: bool = False
    """The server has an answer, ours or another's."""
    ran: bool = False
    declined: bool = False
    turn_ended: str | None = None
    went_on: bool = False
    """The agent has taken up its work since: it had the result of every call that it waited for."""
    looked: bool = False
    """The commands that run were listed after that, or after the turn had ended."""


@dataclass(slots=True)
class Thread:
    """One thread. Fields that only a joined thread tells (`turn`, `goal`, …) are what was heard last."""

    id: str
    info: Json = field(default_factory=dict)
    status: str = NOT_LOADED
    flags: frozenset[str] = frozenset()
    archived: bool = False
    joined: bool = False
    """This connection gets all of it."""
    held_back: list[Json] | None = None
    """Frames that came while its past was being read; None while none is."""
    read: bool = False
    """Its past was read, and nothing of it was missed since."""
    away: bool = False
    """The connection was lost while something was at work in it, and its past was not read since."""
    last_at: int = 0
    """When the latest item that is known of it ended."""
    watched: bool = False
    turn: str | None = None
    ended_turns: dict[str, str] = field(default_factory=dict)
    """Turns that are over and may have left something open -> how they ended."""
    error: str | None = None
    model: str | None = None
    goal: Json | None = None
    usage: Json | None = None
    turns: set[str] = field(default_factory=set)
    """The ids of the turns that are known."""
    queue: list[Json] = field(default_factory=list)
    begun: dict[str, Begun] = field(default_factory=dict)
    asked: dict[int | str, Asked] = field(default_factory=dict)
    fates: dict[str, Fate] = field(default_factory=dict)
    """By our request id."""
    unread: str | None = None
    """Id of the request that stands for one which could not be read."""
    refs: dict[str, str] = field(default_factory=dict)
    """The client's id of a message -> its ref."""
    turn_of: dict[str, str] = field(default_factory=dict)
    """Ref or item id of a message -> the turn that it is in."""
    changes: dict[str, list[Json]] = field(default_factory=dict)
    """Item id -> the changes of files that it asks for, while it may be asked about."""

    @property
    def active(self) -> bool:
        return self.status == ACTIVE

    @property
    def loaded(self) -> bool:
        return self.status != NOT_LOADED

    @property
    def waiting(self) -> bool:
        return self.active and any(flag.startswith(_WAITING) for flag in self.flags)

    @property
    def goal_status(self) -> str | None:
        status = (self.goal or {}).get("status")
        return status if isinstance(status, str) else None

    def ref(self, client_id: str) -> str:
        """The ref of a message, a new one where it has none."""
        return self.refs.setdefault(client_id, f"#{len(self.refs) + 1}")
