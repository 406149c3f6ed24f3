"""Agents and raw requests for the tests of the host over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from tests.unit.host.puppet import FULL
from watchfloor.harness.base import AttemptSpec, SessionPort, Signal, Stop, Wake
from watchfloor.protocol.events import Message
from watchfloor.protocol.model import Capabilities, Result, Traits
from watchfloor.words import StopReason

PATIENCE_S = 60.0
"""Far more than anything here takes; a test that waits this long has failed."""


async def until(holds: Callable[[], object]) -> None:
    """Wait for something that comes about inside the host, which has no event for it."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def http(url: str, headers: Mapping[str, str | None]) -> tuple[int, str]:
    """Status and body of a WebSocket handshake with these headers in place of the usual ones (None: without)."""
    place = urlsplit(url)
    usual = {
        "Host": place.netloc,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "watchfloor.v1",
    }
    lines = [f"{name}: {value}" for name, value in {**usual, **headers}.items() if value is not None]
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write("\r\n".join(["GET / HTTP/1.1", *lines, "", ""]).encode())
        async with asyncio.timeout(PATIENCE_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            status = int(head.split()[1])
            body = "" if status == 101 else (await reader.read()).decode()
    finally:
        writer.close()
        await writer.wait_closed()
    return status, body


class Script:
    """A harness whose attempts do as the test says; everything that they are told is kept.

    `faults` names what goes wrong: "start", "hang at start", "intervene", "deaf" (to a stop), "close".
    """

    def __init__(self, *faults: str, grace_s: float = 5.0, capabilities: Capabilities = FULL) -> None:
        self.faults = set(faults)
        self.grace_s = grace_s
        self.capabilities = capabilities
        self.traits = Traits()
        self.starts_itself = False
        self.attempts: list[ScriptedAttempt] = []
        self.begun = asyncio.Event()

    async def start(self, spec: AttemptSpec, port: SessionPort) -> ScriptedAttempt:
        self.begun.set()
        if "start" in self.faults:
            raise RuntimeError("no such\nmodel")
        if "hang at start" in self.faults:
            await asyncio.Event().wait()
        attempt = ScriptedAttempt(self, spec, port)
        self.attempts.append(attempt)
        port.started()
        return attempt


class ScriptedAttempt:
    """Says what it was told, and ends when it must."""

    def __init__(self, script: Script, spec: AttemptSpec, port: SessionPort) -> None:
        self.script = script
        self.spec = spec
        self.port = port
        self.told: list[Signal] = []
        self.closed = 0

    @property
    def capabilities(self) -> Capabilities:
        return self.script.capabilities

    async def intervene(self, signal: Signal) -> None:
        self.told.append(signal)
        if "intervene" in self.script.faults:
            raise RuntimeError("what is that")
        match signal:
            case Wake(mail=mail):
                self.port.emit(Message(at=0, text=" ".join(item.text for item in mail)))
            case Stop() if "deaf" not in self.script.faults:
                self.port.stopped()
            case _:
                return

    async def close(self) -> None:
        self.closed += 1
        if "close" in self.script.faults:
            raise RuntimeError("would not go")

    def end_turn(self) -> None:
        self.port.turn_ended(Result(stop_reason=StopReason.END_TURN, session_id=self.port.session_id))
