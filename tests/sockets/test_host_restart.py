"""A host that ends and comes back with its log, and a client that goes on where it stood."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.sockets.host_kit import PATIENCE_S, Script, until
from tests.sockets.kit import target
from watchfloor.client import ClientCore
from watchfloor.connector import Received
from watchfloor.dial import dial
from watchfloor.host.log.sqlite import SqliteLog
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import Message
from watchfloor.protocol.frames import DoResume, Events, Watching


async def heard(core: ClientCore, url: str, text: str) -> tuple[list[tuple[str, int]], list[Watching]]:
    """What comes over one connection, until these words have come: sessions with their `seq`."""
    events: list[tuple[str, int]] = []
    watching: list[Watching] = []
    link = await dial(target(url, None), core, timeout_s=PATIENCE_S)
    try:
        async with asyncio.timeout(PATIENCE_S):
            async for batch in link.batches():
                for arrival in batch:
                    if isinstance(arrival, Received) and isinstance(arrival.frame, Watching):
                        watching.append(arrival.frame)
                    if not isinstance(arrival, Received) or not isinstance(arrival.frame, Events):
                        continue
                    for event in arrival.frame.events:
                        events.append((arrival.frame.session, event.seq or 0))
                        if isinstance(event, Message) and event.text == text:
                            return events, watching
    finally:
        await link.close()
    raise AssertionError(f"{text!r} never came")


async def test_a_client_reads_nothing_twice_when_the_host_has_come_back(tmp_path: Path) -> None:
    core = ClientCore(target("ws://unused", None))
    seen: list[tuple[str, int]] = []
    for run in ("first", "second", "third"):
        async with Host(log=SqliteLog(tmp_path / "log.db")) as host:
            url = await host.serve(announce=False)
            script = Script()
            for name in ("ant", "bee"):
                script = Script()
                host.add(script, name=name, id=name, text="go")
                host.command(name, DoResume())
                await until(lambda s=script: s.attempts and s.attempts[0].told)  # type: ignore[misc]
                for number in range(700):
                    script.attempts[0].port.emit(Message(at=0, text=f"{name} {number}"))
            script.attempts[0].port.emit(Message(at=0, text=f"the {run} run ends"))
            events, _ = await heard(core, url, f"the {run} run ends")
            seen += events
    log = SqliteLog(tmp_path / "log.db")
    assert len(seen) == len(set(seen)) > 4000
    for name in ("ant", "bee"):
        seqs = [seq for session, seq in seen if session == name]
        assert seqs == list(range(1, len(seqs) + 1))
        assert log.head(name) >= len(seqs)
    log.close()
