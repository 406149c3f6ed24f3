"""Recordings of a real aion server, served again by the stand-in and read through the connector."""

from __future__ import annotations

import pytest

from tests.peers.aion_desk import desk, group_of, session_of
from tests.peers.aion_server import AionServer
from tests.peers.aion_world import Flow, Json
from watchfloor.protocol.events import Event, Message, ResultEvent, ToolCall

WORK = ("talk", "steer", "retry", "gate", "family", "loop", "caps", "failures", "restart", "primitives", "acp", "quiet")


def said(flow: Flow, run: str, activity: int) -> list[Json]:
    """What was stored of an activity, over all its attempts."""
    found = [axes for axes in sorted(flow.transcripts) if axes[:2] == (run, activity)]
    return [line for axes in found for line in flow.transcripts[axes]]


@pytest.mark.parametrize("name", WORK)
async def test_what_was_recorded_is_told(name: str) -> None:
    async with AionServer() as server:
        server.world.load(name)
        flows = server.world.flows.values()
        async with desk(server.url) as seen:
            read = 0
            for flow in flows:
                assert group_of(flow) in seen.told
                for run, activity in {axes[:2] for axes in flow.transcripts}:
                    id = session_of(flow, (run, activity, 0))
                    await seen.watch(id)
                    lines = [
                        line for line in said(flow, run, activity) if line["kind"]["kind"] in ("Message", "ToolCall")
                    ]
                    spoken = [line for line in lines if line["kind"].get("role", {}).get("role") != "Tool"]
                    wanted = [line["kind"].get("text", line["kind"].get("tool")) for line in spoken]

                    def told(id: str = id) -> list[str]:
                        events: list[Event] = [event for event in seen.events[id] if event.key is not None]
                        both = [event for event in events if isinstance(event, Message | ToolCall)]
                        return [event.text if isinstance(event, Message) else event.name for event in both]

                    await seen.until(lambda told=told, wanted=wanted: told() == wanted)  # type: ignore[misc]
                    read += len(wanted)
            assert read > 0
            completed = [id for id in seen.agents() if seen.told[id]["lifecycle"] == "completed"]
            for id in completed:
                outcome = seen.summary(id).result is not None
                assert outcome == bool(seen.of(id, ResultEvent))
