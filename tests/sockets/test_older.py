"""Older events of a session, from a real host over a real socket; and that a watch of one session repeats nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.audit import Audit
from console.fleet.facts import SessionKey
from console.hub import Hub
from tests.sockets.cli_kit import hosting, writes
from watchfloor.connector import Target
from watchfloor.errors import ProtocolError
from watchfloor.host.serving.server import wall_clock

KEY = SessionKey("local", "writer")
WAIT_S = 20.0


async def test_pages_lead_back_to_the_beginning(tmp_path: Path) -> None:
    async with hosting() as host:
        host.add(writes(tmp_path), name="writer", text="hello")
        hub = Hub(clock=wall_clock, audit=Audit(tmp_path / "audit", clock=wall_clock), by="ann")
        hub.start([Target(name="local", url=host.url, user="ann")])
        try:
            assert await hub.until(
                lambda: (found := hub.fleet.sessions.get(KEY)) is not None and len(found.log) >= 2, WAIT_S
            )
            log = hub.fleet.sessions[KEY].log
            known = [log.entry(at).fact.seq for at in range(len(log))]
            last = max(seq for seq in known if seq is not None)
            page = await hub.older(KEY, last, wait_s=WAIT_S)
            assert [event.seq for event in page.events] == list(range(1, last))
            assert not page.more
            assert page.epoch == hub.fleet.sessions[KEY].epoch
            hub.look(KEY, opened=True)
            again = await hub.older(KEY, 2, wait_s=WAIT_S)
            assert [event.seq for event in again.events] == [1]
            seqs = [log.entry(at).fact.seq for at in range(len(log))]
            assert len(seqs) == len(set(seqs)), "nothing stands there twice"
            hub.fleet.sessions[SessionKey("local", "nobody")] = hub.fleet.sessions[KEY]
            with pytest.raises(ProtocolError, match="no session"):
                await hub.older(SessionKey("local", "nobody"), 2, wait_s=WAIT_S)
        finally:
            await hub.close()
