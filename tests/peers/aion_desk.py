"""A console's end of the aion connector."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from console.connectors.aion.connector import AionFactory, AionSource
from tests.peers.aion_world import Axes, Flow
from tests.peers.console_end import ConsoleEnd
from watchfloor.connector import Record, Target
from watchfloor.protocol.model import SessionKind


class Desk(ConsoleEnd):
    def __init__(self, url: str, *, record: Record = Record.ALL, token: str | None = None) -> None:
        super().__init__(AionFactory()(Target("aion", url, token=token, user="ann", record=record)))
        source = self.connector.source
        assert isinstance(source, AionSource)
        self.source = source

    def agents(self) -> list[str]:
        """The ids of the sessions that are no workflows."""
        return [id for id, fields in self.told.items() if fields.get("kind") is SessionKind.AGENT]


@asynccontextmanager
async def desk(url: str, *, record: Record = Record.ALL, token: str | None = None) -> AsyncIterator[Desk]:
    """A connected console's end."""
    made = Desk(url, record=record, token=token)
    await made.connect()
    try:
        yield made
    finally:
        await made.close()


def session_of(flow: Flow, axes: Axes) -> str:
    """The id of an activity's session."""
    return f"{flow.namespace}/{flow.id}/{axes[0]}/{axes[1]}"


def group_of(flow: Flow) -> str:
    """The id of a workflow's session."""
    return f"{flow.namespace}/{flow.id}"
