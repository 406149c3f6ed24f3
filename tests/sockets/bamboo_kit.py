"""What the tests of the bamboo connector share."""

from __future__ import annotations

import json
from typing import Any

from tests.fixtures.bamboo.model import MARK
from tests.peers.bamboo_desk import BambooDesk
from tests.peers.bamboo_http import Asked, Reply
from tests.peers.bamboo_server import FakeBamboo
from tests.peers.bamboo_world import FakeSession
from watchfloor.protocol.frames import DoSend, Outcome
from watchfloor.words import Priority

ASK_PLAN = {"say": "Here is the plan.", "call": "ExitPlanMode", "args": {"plan": "Look."}, "id": "call_plan"}
ASK_NAME = {"call": "ask", "args": {"question": "Which name?", "options": ["blue", "green"]}, "id": "call_name"}
TOUCH = {"shell": "touch it", "id": "call_touch"}
SAY = {"say": "All done."}
LONG = {"say": "word " * 50, "over_s": 60}


def script(*steps: dict[str, Any]) -> str:
    """A message that tells the model what to do."""
    return f"Work.\n{MARK}{json.dumps(list(steps))}"


def begin(server: FakeBamboo, *steps: dict[str, Any], title: str = "Worker", **more: Any) -> FakeSession:
    """A session in which somebody else began a run."""
    session = server.world.create(title, **more)
    go_on(server, session, *steps)
    return session


def go_on(server: FakeBamboo, session: FakeSession, *steps: dict[str, Any]) -> None:
    """Somebody else sends a message, and runs it."""
    message = server.world.add_message(session, "user", script(*steps))
    server.world.said(session, message)
    server.world.start(session)


async def send(seen: BambooDesk, session: str, *steps: dict[str, Any], queue: bool = False) -> Outcome:
    priority = Priority.QUEUE if queue else Priority.NORMAL
    return await seen.do(session, DoSend(text=script(*steps), priority=priority))


async def native(seen: BambooDesk, session: str, state: str) -> None:
    """Wait until the session says that it is in this state."""
    await seen.until(lambda: seen.sessions.get(session, {}).get("native_state") == state)


def called(server: FakeBamboo, end: str, method: str = "POST") -> list[Asked]:
    """The requests whose path ends so."""
    return [asked for asked in server.calls if asked.method == method and asked.path.endswith(end)]


class Fault:
    """Answers requests whose path ends so, as often as `times` says; `lost` ends the connection instead."""

    def __init__(
        self, end: str, reply: Reply | None = None, *, times: int = 1_000_000, method: str = "POST", lost: bool = False
    ) -> None:
        self.end, self.method, self.times = end, method, times
        self.reply = Reply(lost=True) if lost else reply
        self.met = 0

    def __call__(self, asked: Asked) -> Reply | None:
        if asked.method != self.method or not asked.path.endswith(self.end) or self.times <= 0:
            return None
        self.times -= 1
        self.met += 1
        return self.reply
