"""A real app-server for a test: installed by `make peer-codex`, with a scripted model, and another client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.peers.codex_binary import VERSION, CodexServer, binary, codex_server
from tests.peers.codex_client import CodexClient, codex_client
from tests.peers.model_server import ModelServer, model_server

# Found before any test gives the process folders of its own.
PROGRAM = binary()
needs_codex = pytest.mark.skipif(PROGRAM is None, reason=f"codex {VERSION} is not installed: run make peer-codex")


@dataclass(frozen=True)
class Peer:
    """A server, its model, and a client that is not ours."""

    server: CodexServer
    model: ModelServer
    other: CodexClient

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def work(self) -> Path:
        return self.server.work


@asynccontextmanager
async def peer(options: Sequence[str] = (), more: str = "", token: str | None = None) -> AsyncIterator[Peer]:
    """`more` is added to the configuration; `token` is the other client's."""
    assert PROGRAM is not None
    with TemporaryDirectory(prefix="codex-", ignore_cleanup_errors=True) as folder:
        async with (
            model_server() as model,
            codex_server(PROGRAM, Path(folder), model.url, options, more) as server,
            codex_client(server.port, token=token) as other,
        ):
            yield Peer(server, model, other)
