"""A real aion server for a test, with scripted agents: installed by `make peer-aion`."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from tests.fixtures.aion.peer import PEERS, VERSION, Peer, binary
from tests.peers.aion_desk import Desk

__all__ = ["VERSION", "console", "needs_aion", "server"]

# Found before any test gives the process folders of its own.
PROGRAM = binary()
needs_aion = pytest.mark.skipif(PROGRAM is None, reason=f"aion {VERSION} is not installed: run make peer-aion")


@contextmanager
def server(*documents: str) -> Iterator[Peer]:
    """A server with these workflows. Its store wants a folder that nobody else can enter, up to the root."""
    home = PEERS / "aion-live" / uuid.uuid4().hex[:8]
    peer = Peer(home)
    try:
        peer.start()
        for document in documents:
            peer.deploy_document(document)
        yield peer
    finally:
        peer.stop(kill=True)
        peer.sweep()
        shutil.rmtree(home, ignore_errors=True)


def url(peer: Peer) -> str:
    return f"aion+{peer.base}"


def begin(peer: Peer, script: str, *, type: str = "scripted") -> str:
    """Start a workflow whose agent does this, one act a line; returns its id."""
    tree = str(peer.tree(uuid.uuid4().hex[:8]))
    body = {"namespace": "default", "workflow_type": type, "input": {"tree": tree, "script": script}}
    return str(peer.post("/workflows/start", body)["workflow_id"])


class Console(Desk):
    """A console's end that starts workflows there."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(url(peer))
        self.peer = peer

    async def begin(self, script: str, *, lifecycle: str = "running") -> str:
        """Start a workflow, and wait until its agent is shown; returns the session's id."""
        workflow = await asyncio.to_thread(begin, self.peer, script)
        await self.until(lambda: any(f"/{workflow}/" in id for id in self.agents()))
        (id,) = [id for id in self.agents() if f"/{workflow}/" in id]
        await self.reads(id, lifecycle)
        return id


@asynccontextmanager
async def console(peer: Peer) -> AsyncIterator[Console]:
    made = Console(peer)
    await made.connect()
    try:
        yield made
    finally:
        await made.close()
