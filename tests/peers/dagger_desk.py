"""A console's end of the Dagger connector."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from console.connectors.dagger.connector import DaggerFactory, DaggerSource
from tests.peers.console_end import ConsoleEnd
from tests.peers.dagger_server import DaggerServer
from watchfloor.connector import Record, Target
from watchfloor.protocol.events import Mail
from watchfloor.protocol.model import Summary


class Desk(ConsoleEnd):
    def __init__(self, server: DaggerServer, *, record: Record = Record.ALL, token: str | None = "") -> None:
        target = Target("engine", server.url, token=server.token if token == "" else token, user="ann", record=record)
        super().__init__(DaggerFactory()(target))
        source = self.connector.source
        assert isinstance(source, DaggerSource)
        self.source = source

    def by_name(self, name: str) -> Summary:
        return next(self.summary(id) for id, fields in self.told.items() if fields.get("name") == name)

    def mail(self, handle: str, ref: str) -> list[str]:
        """What was told of a message, in order."""
        return [event.state.value for event in self.of(handle, Mail) if event.ref == ref]


@asynccontextmanager
async def desk(server: DaggerServer, *, record: Record = Record.ALL) -> AsyncIterator[Desk]:
    """A connected console's end."""
    made = Desk(server, record=record)
    await made.connect()
    try:
        yield made
    finally:
        await made.close()
