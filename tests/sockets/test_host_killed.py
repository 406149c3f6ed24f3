"""A host in a process of its own that is killed while its agents work, and comes back with its history."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.sockets.host_kit import PATIENCE_S
from watchfloor.host.log.sqlite import SqliteLog
from watchfloor.protocol.codec import decode_host, encode
from watchfloor.protocol.events import Mail, Message
from watchfloor.protocol.frames import Events, Hello, Watch

websockets = pytest.importorskip("websockets.asyncio.client")
SESSIONS = 50
ROUNDS = 3

HOST = """
import asyncio, sys
from watchfloor.harness.function import FunctionHarness
from watchfloor.host.serving.server import Host
from watchfloor.host.log.sqlite import SqliteLog
from watchfloor.protocol.frames import DoResume

async def agent(run, mail):
    number = 0
    while True:
        number += 1
        await run.say(f"step {number}")
        await run.sleep(0.01)

async def main():
    async with Host(name="mortal", log=SqliteLog(sys.argv[1])) as host:
        for number in range(int(sys.argv[2])):
            session = host.add(FunctionHarness(agent), id=f"s{number}", name=f"s{number}", text="go")
            host.command(session, DoResume())
        print(await host.serve(announce=False), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def told(url: str, least: int) -> dict[str, list[tuple[int, str]]]:
    """What a client has been told by the host, at least so many events; the host lives on."""
    seen: dict[str, list[tuple[int, str]]] = {}
    count = 0
    async with websockets.connect(url, subprotocols=["watchfloor.v1"], max_size=None) as ws:
        await ws.send(encode(Hello(client="test", version="1")), text=True)
        await ws.send(encode(Watch(session="*", start="start")), text=True)
        while count < least:
            frame = decode_host(await ws.recv(decode=False)).frame
            if isinstance(frame, Events):
                lasting = [event for event in frame.events if event.seq is not None]
                count += len(lasting)
                seen.setdefault(frame.session, []).extend((event.seq or 0, frame.epoch) for event in lasting)
    return seen


async def test_what_was_told_is_there_after_every_kill(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    epochs: dict[str, str] = {}
    heads = dict.fromkeys((f"s{number}" for number in range(SESSIONS)), 0)
    for round_ in range(ROUNDS):
        host = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOST, str(path), str(SESSIONS), stdout=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                assert host.stdout is not None
                url = (await host.stdout.readline()).decode().strip()
                # A little more every time, so that the kill does not fall on the same place again.
                seen = await told(url, sum(heads.values()) + 500 + 371 * round_)
        finally:
            os.kill(host.pid, signal.SIGKILL)
            await host.wait()
        with SqliteLog(path) as log:
            positions = [item.event.pos for item in log.after(0, 10_000_000)]
            assert positions == list(range(1, log.pos + 1))
            for session in heads:
                events = log.read(session, limit=10_000_000)
                assert [event.seq for event in events] == list(range(1, log.head(session) + 1))
                assert log.head(session) >= max(seq for seq, _ in seen[session])
                assert {epoch for _, epoch in seen[session]} == {log.epoch(session)}
                assert epochs.setdefault(session, log.epoch(session)) == log.epoch(session)
                assert log.head(session) > heads[session]
                heads[session] = log.head(session)
                # Its one message was taken up anew in every life, and consumed once.
                said = [event.text for event in events if isinstance(event, Message)]
                assert said.count("step 1") == round_ + 1
                mail = [event.state.value for event in events if isinstance(event, Mail)]
                assert mail == ["sent", "consumed"]
                assert {event.attempt for event in events} == {1}
