"""A recording of a real app-server, played into the feed, and what a console is told of it."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

from console.connectors.codex.feed import Feed, Want
from console.connectors.web.reading import each, part, text
from tests.peers.codex_desk import Told
from watchfloor.foreign import Mirror
from watchfloor.host.core import HostCore
from watchfloor.host.effects import HostEffect, SendFrame
from watchfloor.host.log.events import MemoryLog
from watchfloor.host.principals import Principal
from watchfloor.protocol.frames import ALL, Hello, HostInfo, Watch

RECORDINGS = Path(__file__).parents[3] / "fixtures" / "codex"
NOW = 1_800_000_000_000
Frame = dict[str, Any]


def recording(name: str) -> list[tuple[str, Frame]]:
    """The frames of a recording, each with its way."""
    lines = (RECORDINGS / f"{name}.jsonl").read_text().splitlines()
    return [(way, frame) for way, frame in map(json.loads, lines)]


class Replay(Told):
    """A feed without a server. `tell` plays frames; what it wants to know is left in `feed.wants`."""

    def __init__(self) -> None:
        super().__init__()
        epochs = count(1)
        self.core = HostCore(HostInfo(name="codex", version=""), MemoryLog(lambda: f"e{next(epochs)}"), beats=False)
        self.mirror = Mirror(self.core, self._perform, lambda: NOW)
        self.feed = Feed(self.mirror, follow_all=True)
        self.core.connect("c", Principal("ann"), NOW)
        self._perform(self.core.take("c", Hello(client="test", version="1"), NOW))
        self._perform(self.core.take("c", Watch(session=ALL, after=0), NOW))

    def _perform(self, effects: list[HostEffect]) -> None:
        for effect in effects:
            if isinstance(effect, SendFrame):
                self.take(effect.frame)

    def flush(self) -> None:
        self._perform(self.core.flush(NOW))
        while self.core.behind("c"):
            self._perform(self.core.pull("c", NOW))

    def tell(self, frames: list[tuple[str, Frame]]) -> None:
        """Play what the server said. Threads that this client started or resumed are joined."""
        asked: dict[object, Frame] = {}
        for way, frame in frames:
            if way == ">":
                asked[frame.get("id")] = frame
            elif "method" in frame:
                self.feed.frame(frame)
            else:
                self._answer(text(asked.get(frame.get("id"), {}), "method") or "", part(frame, "result"), asked)
            self.flush()
        self.flush()

    def _answer(self, method: str, result: Any, asked: dict[object, Frame]) -> None:
        match method:
            case "thread/list":
                self.feed.listed([(info, False) for info in each(result, "data")])
            case "thread/start" | "thread/resume" | "thread/fork":
                id = text(result, "thread", "id") or ""
                if id not in self.feed.threads:
                    self.feed.found(part(result, "thread"))
                self.feed.joined(self.feed.threads[id], result)
                self.feed.wants.discard((Want.JOIN, id))
            case "thread/backgroundTerminals/list":
                (thread,) = self.feed.threads.values()
                self.feed.turns.processes(thread, each(result, "data"), NOW)
                self.feed.show(thread)
            case _:
                pass

    def settle(self) -> None:
        """The past has nothing more to tell of what turns left open."""
        for want, id in list(self.feed.wants):
            if want is Want.PAST:
                self.feed.past_was_read(self.feed.threads[id])
        # Usage and heads are told once a second.
        self._perform(self.core.tick(NOW + 2000))


def played(name: str) -> tuple[Replay, str]:
    """A recording played to its end, and the id of its thread."""
    replay = Replay()
    replay.tell(recording(name))
    replay.settle()
    return replay, next(iter(replay.sessions))
