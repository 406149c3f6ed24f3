"""The stand-in of a bamboo server answers what real ones were recorded to answer, and tells what they told."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.fixtures.bamboo.model import MARK
from tests.peers.bamboo_server import FakeBamboo, fake_bamboo
from tests.unit.connectors.bamboo.replay import VERSIONS, Line, recording

NAMED = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
UNTOLD = frozenset(
    {
        "session_created",
        "plan_file_updated",
        "plan_mode_exited",
        "notification",
        "token_budget_updated",
        "runner_progress",
        "session_history_committed",
        "tool_lifecycle",
        "task_evaluation_completed",
        "task_list_completed",
    }
)
"""What the stand-in leaves out, or what real servers tell at another place from time to time."""
UNASKED = re.compile(r"/plan|/policy|/mcp|/config|/permissions|/bamboo/|PATCH|/clear|metrics|/execute/defaults")


LONG_TALK = f"Talk for long.\n{MARK}{json.dumps([{'say': 'word0 ' * 60, 'over_s': 30}])}"


class Again:
    """A recording's requests, made again of a stand-in; names that servers choose are translated."""

    def __init__(self, server: FakeBamboo) -> None:
        self.server = server
        self.names: dict[str, str] = {}
        self.client = httpx.AsyncClient(base_url=server.url, timeout=30)
        self.faults: list[str] = []
        self.told: list[tuple[str, str]] = []

    def translate(self, value: Any) -> Any:
        raw = json.dumps(value)
        for old, new in self.names.items():
            raw = raw.replace(old, new)
        return json.loads(raw)

    def learn(self, recorded: Any, given: Any) -> None:
        if isinstance(recorded, dict) and isinstance(given, dict):
            for name in recorded.keys() & given.keys():
                self.learn(recorded[name], given[name])
        elif isinstance(recorded, str) and isinstance(given, str) and NAMED.fullmatch(recorded):
            self.names.setdefault(recorded, given)

    async def settled(self) -> None:
        """Until runs have ended, or are saying something that takes long."""
        for _ in range(4000):
            sessions = self.server.world.sessions.values()
            waiting = any(one.inbox and one.run is None and one.pending is None for one in sessions)
            if not waiting and all(one.working for one in sessions if one.run is not None):
                return
            await asyncio.sleep(0.005)
        raise AssertionError("a run of the stand-in never ends")

    async def ask(self, line: Line) -> None:
        path, sent = self.translate(line["path"]), self.translate(line.get("sent"))
        if isinstance(sent, dict) and "[cut: " in str(sent.get("message")):
            # Only long talk was cut in the recordings.
            sent["message"] = LONG_TALK
        headers = dict(line.get("sent_headers", {}))
        if headers:
            headers = self.translate(headers)
        content = sent.encode() if isinstance(sent, str) else json.dumps(sent).encode() if sent is not None else None
        if content is not None:
            headers["content-type"] = "application/json"
        answer = await self.client.request(line["method"], path, content=content, headers=headers)
        what = f"{line['t']} {line['method']} {path} {sent}"
        if answer.status_code != line["status"]:
            self.faults.append(f"{what}: {answer.status_code} {answer.text[:200]}, recorded {line['status']}")
            return
        given = answer.json() if "json" in answer.headers.get("content-type", "") else answer.text
        self.learn(line["body"], given)
        self.compare(what, line["body"], given, line["status"])

    def compare(self, what: str, recorded: Any, given: Any, status: int) -> None:
        if type(recorded) is not type(given):
            self.faults.append(f"{what}: a {type(given).__name__}, recorded a {type(recorded).__name__}")
        elif isinstance(given, dict):
            # It may say less than a real one, and never anything that a real one does not say.
            known = {"error", "session", "resume", "receipt", "permission_request", "decision"}
            allowed = set(recorded)
            if more := given.keys() - allowed - {"title", "last_run_error", "run_id"}:
                self.faults.append(f"{what}: says {sorted(more)} as well")
            for name in given.keys() & allowed & known:
                if recorded[name] is not None:
                    self.compare(f"{what} {name}", recorded[name], given[name], status)
            if status >= 400 and isinstance(given.get("error"), dict):
                words = str(recorded.get("error", {}).get("message"))
                if str(given["error"].get("message"))[:20] != words[:20]:
                    self.faults.append(f"{what}: {given['error']}, recorded {words}")

    async def listen(self, socket: ClientConnection) -> None:
        async for raw in socket:
            frame = json.loads(raw)
            event = frame.get("event") or {}
            if frame.get("ch") == "feed":
                event = event.get("event") or {}
            if "control" in frame and frame["ch"] != "sys":
                event = {"type": f"({frame['control']['type']})"}
            if "type" in event:
                self.told.append((frame["ch"], event["type"]))


def kinds(told: list[tuple[str, str]], feed: bool) -> list[str]:
    """The kinds on the feed, or on the channels, those that repeat once; replays of what has ended left out."""
    found: list[str] = []
    for channel, kind in told:
        if (channel == "feed") is feed and kind not in UNTOLD and found[-1:] != [kind]:
            found.append(kind)
    return found


def recorded(lines: list[Line], socket: str) -> list[tuple[str, str]]:
    found = []
    for line in lines:
        if line["kind"] == "recv" and line["on"] == socket and (channel := line["frame"].get("ch")) is not None:
            event = line["frame"].get("event") or {}
            event = (event.get("event") or {}) if channel == "feed" else event
            if "type" in event:
                found.append((channel, event["type"]))
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("scene", ["question", "permission", "interrupt", "race", "scopes"])
async def test_what_was_recorded_is_answered_again(version: str, scene: str) -> None:
    lines = recording(version, scene)
    async with fake_bamboo(version) as server:
        again = Again(server)
        async with connect(f"ws://127.0.0.1:{server.http.port}/v2/stream") as socket:
            listening = asyncio.create_task(again.listen(socket))
            await socket.send('{"type": "hello"}')
            first = next((line["on"] for line in lines if line["kind"] == "open"), "")
            last = 0
            for line in lines:
                if line["kind"] == "send" and line["on"] == first and line["frame"]["type"] != "hello":
                    frame = again.translate(line["frame"])
                    if frame["type"] == "stop":
                        await again.settled()
                    # Real servers had other sessions before.
                    await socket.send(json.dumps({**frame, "since": 0} if "since" in frame else frame))
                elif line["kind"] == "http" and not UNASKED.search(f"{line['method']} {line['path']}"):
                    if line["t"] - last > 100:
                        await again.settled()
                    last = line["t"]
                    await again.ask(line)
            await again.settled()
            await asyncio.sleep(0.1)
            listening.cancel()
        await again.client.aclose()
    assert not again.faults, "\n".join(again.faults)
    wanted, heard = kinds(recorded(lines, first), feed=True), kinds(again.told, feed=True)
    assert heard == wanted
