"""What a connector writes for itself: one foreign system, as it is spoken to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from watchfloor.host.effects import Handled
    from watchfloor.protocol.frames import Command


class ForeignSource(Protocol):
    """One foreign system, as its connector speaks to it. It outlives connections, and is called on one event loop."""

    async def open(self) -> None:
        """Connect, and tell the mirror of every session and open request that there is.

        Called anew after a connection was lost. Raises a subclass of `ConnectionFailed`; its `retry` says whether to
        try again.
        """
        ...

    async def run(self) -> None:
        """Read until the connection ends: returns when it was closed in good order, raises ConnectionLost otherwise.
        Cancelled when the console closes."""
        ...

    async def execute(self, command: Command, by: str) -> Handled:
        """Carry out a command that the session advertises, that is not blocked, and whose request is open here with
        the digest that the operator saw. Re-read there what could have changed; never send twice.

        ConnectionLost counts as `unknown`, any other ConnectionFailed as `undelivered`, CapabilityNotSupported and
        StaleTarget as what they say; whatever else is raised as `unknown`.
        """
        ...

    async def watch(self, session: str) -> None:
        """The operator looks at the session: fetch its details, requests and history, and follow it."""
        ...

    async def unwatch(self, session: str) -> None: ...

    async def close(self) -> None:
        """End the connection; never raises. Called after every `open`, however that ended."""
        ...
