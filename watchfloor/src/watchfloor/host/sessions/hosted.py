"""What a host asks of a session, whoever decides its lifecycle: our own table, or a foreign system."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from watchfloor.host.effects import Handled, SessionEffect
from watchfloor.host.sessions.requests import Requests
from watchfloor.host.sessions.streams import Streams
from watchfloor.protocol.frames import Do, UnknownDo
from watchfloor.protocol.model import Capabilities


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The command may go to whoever really runs the session; its outcome follows (`HostCore.answered`)."""

    effects: list[SessionEffect] = field(default_factory=list)


class HostedSession(Protocol):
    """A session as `HostCore` and its roster see it. `now` is in milliseconds since 1970 UTC."""

    @property
    def id(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def attempt(self) -> int | None: ...

    @property
    def turn(self) -> str | None: ...

    @property
    def requests(self) -> Requests: ...

    @property
    def streams(self) -> Streams: ...

    @property
    def alive(self) -> bool:
        """Does something of it run, or could it at any moment?"""
        ...

    def set_capabilities(self, capabilities: Capabilities, now: int) -> list[SessionEffect]: ...

    def not_advertised(self, do: Do | UnknownDo) -> str | None:
        """Why the session cannot take this command at all, or None."""
        ...

    def command(self, do: Do | UnknownDo, by: str, now: int) -> Handled | Forwarded:
        """Carry out what is advertised, or say that it may be forwarded."""
        ...

    def summary(self) -> dict[str, object]:
        """The fields of a summary that the session itself knows."""
        ...

    def next_due(self) -> int | None:
        """When `tick` should be called next; None for no time."""
        ...

    def tick(self, now: int) -> list[SessionEffect]: ...
