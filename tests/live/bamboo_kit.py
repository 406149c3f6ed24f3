"""Real bamboo servers for tests: two lines of them, where they are installed, each with a scripted model."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from tests.fixtures.bamboo import model
from tests.fixtures.bamboo.peer import Peer, find_binary

API = "/api/v1"
NEW, OLD = "2026.11.1", "2026.9.20"
ASKS_FOR_CHILDREN = "2026.7.20"
"""The newest version that has a person decide for children, where it lies beside the others."""
# Found before any test gives the process folders of its own.
_PEERS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "watchfloor-peers"
_PLACES = {NEW: _PEERS / "bamboo" / "bin" / "bamboo", OLD: _PEERS / f"bamboo-{OLD}" / "bin" / "bamboo"}
PROGRAMS = {line: place for line, place in _PLACES.items() if os.access(place, os.X_OK)}
if (found := find_binary()) is not None:
    PROGRAMS.setdefault("on PATH", Path(found))
_OLDER = _PEERS / f"bamboo-{ASKS_FOR_CHILDREN}" / "bin" / "bamboo"
needs_older_bamboo = pytest.mark.skipif(
    not os.access(_OLDER, os.X_OK),
    reason=f"no bamboo {ASKS_FOR_CHILDREN} is installed: run sh tests/peers/bamboo_install.sh {ASKS_FOR_CHILDREN}",
)
needs_bamboo = pytest.mark.skipif(not PROGRAMS, reason="no bamboo is installed: run make peer-bamboo (it takes long)")
each_line = pytest.mark.parametrize("line", list(PROGRAMS) or ["none"])


@dataclass(frozen=True)
class Live:
    """A server that runs. `release` opens a gate of its model."""

    peer: Peer
    release: Callable[[str], None]
    model: str

    @property
    def url(self) -> str:
        return self.peer.url

    @property
    def work(self) -> Path:
        return self.peer.workspace

    async def post(self, path: str, body: Any) -> Any:
        async with httpx.AsyncClient(base_url=self.url, timeout=60) as client:
            answer = await client.post(f"{API}{path}", json=body)
            answer.raise_for_status()
            return answer.json()

    async def seen_by_model(self) -> Any:
        """What the model was asked so far, by all sessions."""
        async with httpx.AsyncClient(base_url=self.model.removesuffix("/v1"), timeout=60) as client:
            return (await client.get("/seen")).json()

    async def session(self, title: str = "Worker") -> str:
        made = await self.post("/sessions", {"title": title, "workspace_path": str(self.work)})
        return str(made["session"]["id"])

    async def asker(self) -> str:
        """Give the server a tool that asks its operator; its name, as the model has to call it."""
        program = Path(model.__file__).with_name("asker.py")
        await self.post("/mcp/servers", {"id": "asker", "command": sys.executable, "args": [str(program)]})
        async with httpx.AsyncClient(base_url=self.url, timeout=60) as client:
            while True:
                tools = (await client.get(f"{API}/mcp/tools")).json()["tools"]
                if tools:
                    return str(tools[0]["alias"])


@asynccontextmanager
async def live(line: str) -> AsyncIterator[Live]:
    """A server of a line that is installed, with a home of its own."""
    server, url = model.start()
    with TemporaryDirectory(prefix="bam-", ignore_cleanup_errors=True) as folder:
        peer = Peer(str(PROGRAMS.get(line, _OLDER)), Path(folder), url)
        try:
            peer.start()
            yield Live(peer, lambda name: server.gate(name).set(), url)
        finally:
            peer.stop(kill=True)
            server.shutdown()
            server.server_close()
