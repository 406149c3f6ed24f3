"""What the tests of the Codex connector against the scripted server have in common."""

from __future__ import annotations

from typing import Any

from tests.peers.codex_desk import Desk
from tests.peers.codex_server import FakeCodex
from watchfloor.protocol.events import (
    Message,
    ToolResult,
    ToolStatus,
)
from watchfloor.protocol.frames import DoApprove, Outcome

ELICITATION = "mcpServer/elicitation/request"


async def waiting(server: FakeCodex, thread: str = "t1", **params: Any) -> int:
    """A thread that waits for a command to be approved."""
    server.thread(thread)
    await server.begin_turn(thread)
    return await server.ask_command(thread, **params)


async def deciding_on(seen: Desk, thread: str, option: str, note: str | None = None) -> str:
    request, subject = await seen.asked(thread)
    do = DoApprove(request=subject.id, option=option, digest=request.digest, note=note)
    return await seen.send(thread, do)


async def outcome(seen: Desk, id: str) -> Outcome:
    await seen.until(lambda: id in seen.outcomes)
    return seen.outcomes[id]


async def again(seen: Desk) -> None:
    """Connect anew."""
    await seen.close()
    await seen.read()


def said(seen: Desk, thread: str) -> list[str]:
    return [message.text for message in seen.of(thread, Message)]


def statuses(seen: Desk, thread: str) -> list[ToolStatus]:
    return [result.status for result in seen.of(thread, ToolResult)]
