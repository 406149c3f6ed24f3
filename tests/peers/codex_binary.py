"""The real `codex app-server`, with a home folder of its own and a scripted model; and where it is installed."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

VERSION: Final = "0.171.0"
_CPU: Final = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
START_S: Final = 60.0


def cache_folder() -> Path:
    """Where `make peer-codex` installs it: outside the checkout."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "watchfloor" / "peers" / f"codex-{VERSION}"


def binary() -> Path | None:
    """The installed server, None where there is none."""
    package = f"codex-{platform.system().lower()}-{_CPU.get(platform.machine().lower(), '')}"
    found = cache_folder().glob(f"node_modules/@openai/{package}/vendor/*/bin/codex")
    return next((path for path in found if os.access(path, os.X_OK)), None)


CONFIG: Final = """
model = "scripted"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
[model_providers.scripted]
name = "Scripted"
base_url = "{url}"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""


class CodexServer:
    """One server in a folder of its own. It can be ended, killed and started again on the same port and folder."""

    def __init__(
        self, program: Path, folder: Path, model_url: str, options: Sequence[str] = (), more: str = ""
    ) -> None:
        self.program = program
        self.home = folder / "home"
        self.work = folder / "work"
        self.log = folder / "server.log"
        self.options = tuple(options)
        for made in (self.home, self.work):
            made.mkdir(parents=True, exist_ok=True)
        (self.home / "config.toml").write_text(CONFIG.format(url=model_url) + more)
        self.port = _free_port()
        self.process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"codex+ws://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Returns once it answers. Raises AssertionError, with its log, when it does not."""
        env: Mapping[str, str] = {**os.environ, "CODEX_HOME": str(self.home)}
        words = ["app-server", "--listen", f"ws://127.0.0.1:{self.port}", *self.options]
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                str(self.program), *words, env=env, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        async with asyncio.timeout(START_S):
            while not await self._ready():
                assert self.process.returncode is None, self.log.read_text()
                await asyncio.sleep(0.02)

    async def _ready(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.write(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        try:
            return b" 200 " in await reader.readline()
        except OSError:
            return False
        finally:
            writer.close()

    async def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End it by a signal, and wait until it is gone."""
        process = self.process
        if process is not None and process.returncode is None:
            process.send_signal(number)
            await process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def codex_server(
    program: Path, folder: Path, model_url: str, options: Sequence[str] = (), more: str = ""
) -> AsyncIterator[CodexServer]:
    """A running server; killed at the end. `more` is added to its configuration."""
    server = CodexServer(program, folder, model_url, options, more)
    try:
        await server.start()
        yield server
    finally:
        await server.end()
