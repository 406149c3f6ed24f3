"""The examples do what they say, run as a reader would run them."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.sockets.plain_client import PlainClient

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_S = 20.0


@asynccontextmanager
async def example(name: str, folder: Path) -> AsyncIterator[PlainClient]:
    """The example as a program of its own, and an operator; ended by Ctrl-C, which must be quiet."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLES / name), cwd=folder, stdout=pipe, stderr=pipe
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert process.stdout is not None
            line = (await process.stdout.readline()).decode().strip()
        assert line.startswith("listening on ws://")
        client = PlainClient(line.removeprefix("listening on "), name="ann")
        await client.open()
        await client.watch("*", start="start")
        yield client
        await client.close()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        output, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert (process.returncode, output, errors) == (0, b"", b"")


async def the_request(client: PlainClient) -> tuple[str, str]:
    await client.until(lambda: client.requests)
    return next(iter(client.requests))


def result(client: PlainClient) -> str | None:
    (summary,) = client.sessions.values()
    found: dict[str, Any] | None = summary.get("result")
    return None if found is None else str(found["text"])


async def test_approval(tmp_path: Path) -> None:
    async with example("approval.py", tmp_path) as client:
        session, request = await the_request(client)
        action = client.requests[session, request]["subject"]["actions"][0]
        assert action["arguments"] == {"file": str(tmp_path / "greeting.txt"), "text": "Hello from the floor"}
        assert not (tmp_path / "greeting.txt").exists()
        await client.decide(session, request, "approve", option="allow")
        await client.until(lambda: result(client) == "wrote greeting.txt")
        assert (tmp_path / "greeting.txt").read_text() == "Hello from the floor"


async def test_steering(tmp_path: Path) -> None:
    async with example("steering.py", tmp_path) as client:
        session, request = await the_request(client)
        await client.decide(session, request, "answer", text="2")
        await client.command(session, "send", text="the pier")
        await client.until(lambda: result(client) == "2 rounds over 2 places")
        await client.until(
            lambda: (
                [e["text"] for _, e in client.arrived if e["kind"] == "message"][1:]
                == ["Looking at the north gate, the pier"]
            )
        )
