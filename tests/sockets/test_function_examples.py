"""The examples do what they say, run as a reader would run them."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.sockets.harness_kit import Operator, operator

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_S = 60.0


@asynccontextmanager
async def example(name: str, folder: Path, *words: str) -> AsyncIterator[Operator]:
    """The example as a program of its own, and an operator; ended by Ctrl-C, which must be quiet."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLES / name), *words, cwd=folder, stdout=pipe, stderr=pipe
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert process.stdout is not None
            line = (await process.stdout.readline()).decode().strip()
        assert line.startswith("listening on ws://")
        async with operator(line.removeprefix("listening on ")) as client:
            yield client
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        output, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert (process.returncode, output, errors) == (0, b"", b"")


def said(client: Operator, request: tuple[str, str]) -> str | None:
    result = client.sessions[request[0]].get("result")
    return None if result is None else str(result["text"])


async def test_approval(tmp_path: Path) -> None:
    async with example("approval.py", tmp_path) as client:
        request = await client.request(None)
        action = client.requests[request].read().actions[0]
        assert action.arguments == {"file": str(tmp_path / "greeting.txt"), "text": "Hello from the floor"}
        assert not (tmp_path / "greeting.txt").exists()
        await client.decide(request, "approve", option="allow")
        await client.until(lambda: said(client, request) == "wrote greeting.txt")
        assert (tmp_path / "greeting.txt").read_text() == "Hello from the floor"


async def test_steering(tmp_path: Path) -> None:
    async with example("steering.py", tmp_path) as client:
        request = await client.request(None)
        await client.decide(request, "answer", text="2")
        await client.do("send", request[0], text="the pier")
        await client.until(lambda: said(client, request) == "2 rounds over 2 places")
        await client.until(
            lambda: (
                [event.text for event in client.events("message", request[0])][1:]
                == ["Looking at the north gate, the pier"]
            )
        )


async def test_forms(tmp_path: Path) -> None:
    async with example("forms.py", tmp_path) as client:
        request = await client.request(None)
        await client.decide(request, "answer", fields={"city": "c", "boxes": 3, "express": True})
        await client.until(lambda: said(client, request) == "3 boxes to c, express")


async def test_own_harness(tmp_path: Path) -> None:
    async with example("own_harness.py", tmp_path) as client:
        await client.until(lambda: len(client.events("message", "counter")) > 2)
        await client.do("interrupt", "counter")
        await client.until(lambda: client.sessions["counter"]["lifecycle"] == "idle")
        await client.do("send", "counter", text="2")
        await client.until(lambda: client.events("result", "counter"))
        await client.do("send", "counter", text="enough")
        await client.until(lambda: client.sessions["counter"]["lifecycle"] == "completed")
        assert client.sessions["counter"]["result"]["text"] == "counted"


async def test_supervisor(tmp_path: Path) -> None:
    async with example("supervisor.py", tmp_path) as client:
        for part in ("walls", "roof"):
            request = await client.request(part)
            await client.decide(request, "approve", option="allow" if part == "walls" else "deny")
        heard = {"2 children are at work", "walls built", "roof not built"}
        await client.until(lambda: {event.result.text for event in client.events("result", "supervisor")} == heard)
        told = [mail.text for mail in client.events("mail", "supervisor") if mail.state == "sent"]
        assert len(told) == 3
        assert any("walls built" in str(text) for text in told)
        assert client.sessions["walls"]["parent"] == "supervisor"
        assert (tmp_path / "walls.txt").read_text() == "Build the walls"
        assert not (tmp_path / "roof.txt").exists()


async def test_pydantic_ai_agent(tmp_path: Path) -> None:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    async with example("pydantic_ai_agent.py", tmp_path) as client:
        request = await client.request(None)
        assert client.requests[request].read().actions[0].tool == "deploy"
        await client.decide(request, "approve", option="allow")
        await client.until(lambda: said(client, request) == "All done.")


async def asked(folder: Path, answers: str, *words: str) -> tuple[str, str]:
    """The example of a stored agent, with what is typed; returns what it printed, and its errors."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLES / "stored_agent.py"), *words, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe
    )
    output, errors = await asyncio.wait_for(process.communicate(answers.encode()), PATIENCE_S)
    return output.decode(), errors.decode()


async def test_stored_agent(tmp_path: Path) -> None:
    # Ended without an answer it asks the same when it is started again, and is not told its task twice.
    output, errors = await asked(tmp_path, "", "Hello")
    assert output == "write {'text': 'Hello'}: allow, allow_session or deny?\n"
    assert "that is no option of this request: allow (Allow once)" in errors
    assert not (tmp_path / "greeting.txt").exists()
    output, errors = await asked(tmp_path, "allow\n")
    assert output == "write {'text': 'Hello'}: allow, allow_session or deny?\nwritten\n"
    assert errors == ""
    assert (tmp_path / "greeting.txt").read_text() == "Hello"
