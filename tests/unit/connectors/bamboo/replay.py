"""A recording of a real bamboo server, played into the feed, and what a console is told of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from console.connectors.bamboo import frames
from console.connectors.bamboo.feed import Feed
from console.connectors.bamboo.state import Want
from console.connectors.web.reading import each, flag
from tests.peers.codex_desk import Told
from watchfloor.foreign import Mirror
from watchfloor.host.core import HostCore
from watchfloor.host.effects import HostEffect, SendFrame
from watchfloor.host.log.events import MemoryLog
from watchfloor.host.principals import Principal
from watchfloor.protocol.frames import ALL, Hello, HostInfo, Watch

RECORDINGS = Path(__file__).parents[3] / "fixtures" / "bamboo" / "recordings"
VERSIONS = ("2026.9.20", "2026.11.1")
NEW = "2026.11.1"
SCENES = sorted(path.stem for path in (RECORDINGS / NEW).glob("*.jsonl"))
NOW = 1_796_072_400_000
Line = dict[str, Any]
_OF = re.compile(r"/api/v1/sessions/([^/?]+)(?:/([a-z/-]+))?(?:\?.*)?$")


def recording(version: str, scene: str) -> list[Line]:
    """The lines of a recording."""
    return [json.loads(line) for line in (RECORDINGS / version / f"{scene}.jsonl").read_text().splitlines()]


def answers(version: str, scene: str, method: str, end: str) -> Iterator[Line]:
    """The recorded requests of a method whose path ends so."""
    for line in recording(version, scene):
        if line["kind"] == "http" and line["method"] == method and line["path"].endswith(end):
            yield line


class Replay(Told):
    """A feed without a server: what it wants to know comes from the recording, when that has it."""

    def __init__(self) -> None:
        super().__init__()
        epochs = count(1)
        self.now = NOW
        self.core = HostCore(HostInfo(name="bamboo", version=""), MemoryLog(lambda: f"e{next(epochs)}"), beats=False)
        self.mirror = Mirror(self.core, self._perform, lambda: self.now)
        self.feed = Feed(self.mirror, follow_all=True)
        self._infos: dict[str, Line] = {}
        self.core.connect("c", Principal("ann"), NOW)
        self._perform(self.core.take("c", Hello(client="test", version="1"), NOW))
        self._perform(self.core.take("c", Watch(session=ALL, after=0), NOW))

    def _perform(self, effects: list[HostEffect]) -> None:
        for effect in effects:
            if isinstance(effect, SendFrame):
                self.take(effect.frame)

    def flush(self) -> None:
        self._perform(self.core.flush(self.now))
        while self.core.behind("c"):
            self._perform(self.core.pull("c", self.now))

    def tell(self, lines: list[Line], until: Callable[[Line], bool] | None = None) -> int:
        """Play lines, up to and with the first that meets the condition; returns how many were played."""
        for number, line in enumerate(lines, 1):
            match line["kind"]:
                case "http" if line["status"] < 300:
                    self._answer(line)
                case "recv":
                    frames.take(self.feed, line["frame"])
                case "send" if line["frame"].get("ch", "").startswith(frames.AGENT):
                    self._subscribed(line["frame"]["ch"].removeprefix(frames.AGENT))
                case "shut":
                    self.feed.disconnected()
                case _:
                    pass
            self._open_channels()
            self.flush()
            if until is not None and until(line):
                return number
        # Usage and heads are told once a second.
        self._perform(self.core.tick(self.now + 2000))
        return len(lines)

    def _open_channels(self) -> None:
        for session in self.feed.sessions.values():
            if not session.read:
                self.feed.past(session, {"messages": []})

    def _subscribed(self, id: str) -> None:
        session = self.feed.sessions.get(id)
        if session is not None:
            session.channel, session.channel_run, session.quiet = True, session.run, False
            self.feed.wants.discard((Want.CHANNEL, id))

    def _answer(self, line: Line) -> None:
        path, body = line["path"], line["body"]
        if path.startswith("/api/v1/sessions") and "sessions" in body:
            return
        if path == "/api/v1/subagents/snapshot":
            self.feed.gates.snapshot(each(body, "approvals"), self.now)
        elif path == "/api/v1/sessions":
            self._found(body["session"])
        elif (found := _OF.match(path)) is not None:
            self._of(found[1], found[2] or "", line)

    def _of(self, id: str, what: str, line: Line) -> None:
        body, session = line["body"], self.feed.sessions.get(id)
        if what == "" and line["method"] == "GET":
            self._found(body["session"])
        elif session is None:
            return
        elif what == "respond/pending":
            pending = body if flag(body, "has_pending_question") else None
            self.feed.found({**session.info, "has_pending_question": pending is not None}, pending)
        elif what == "history" and "projection=messages" not in line["path"]:
            self.feed.past(session, body)
        elif what == "task":
            self.feed.tasks(session, body)

    def _found(self, info: Line) -> None:
        session = self.feed.sessions.get(info["id"])
        pending = session.pending if session is not None and flag(info, "has_pending_question") else None
        self.feed.found(info, pending)

    def only(self) -> str:
        """The id of the only session."""
        (id,) = self.sessions
        return id


def played(version: str, scene: str) -> Replay:
    """A recording played to its end."""
    replay = Replay()
    replay.tell(recording(version, scene))
    return replay
