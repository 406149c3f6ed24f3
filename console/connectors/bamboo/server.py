"""The connection to a bamboo server, as those who ask and act need it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from console.connectors.bamboo.api import Api
    from console.connectors.bamboo.history import Choice
    from console.connectors.bamboo.state import Session
    from console.connectors.web.reading import Json


class Server(Protocol):
    """One server, while the console is connected to it."""

    @property
    def api(self) -> Api: ...

    @property
    def connected(self) -> bool: ...

    @property
    def exact_stop(self) -> bool: ...

    def told(self) -> None:
        """The feed was told something."""
        ...

    def lose(self, why: str) -> None:
        """End the connection: without this nothing that is shown can be trusted."""
        ...

    def read_again(self, session: str) -> None: ...

    async def choice(self, session: Session, asked: Json) -> Choice | None:
        """What somebody chose who was asked this, as the history has it; None where it does not say."""
        ...

    async def follow(self, session: str) -> None:
        """Open the session's channel."""
        ...

    async def until(self, met: Callable[[], bool], within_s: float) -> bool:
        """Wait until it is so: False where it is not within this time."""
        ...
