"""Our wall clock is set while a source is connected and a command is on its way: nobody waits longer or shorter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from console.audit import Audit
from console.hub import Hub
from console.hub.jumps import Jumps, steady_ms
from tests.screens.live import Relay
from tests.sockets.cli_kit import hosting, writes
from tests.sockets.test_hub import WAIT_S, _contact, _intent, _shown, _target
from watchfloor.host.serving.server import wall_clock
from watchfloor.words import Contact, Lifecycle, OutcomeKind, Primitive

DAY_MS: Final = 86_400_000


class Clocks:
    """Both clocks of a console: `pass_` lets time pass, `set_` only sets the one on the wall."""

    def __init__(self) -> None:
        self._passed = 0
        self._set = 0

    def wall(self) -> int:
        return wall_clock() + self._passed + self._set

    def steady(self) -> int:
        return steady_ms() + self._passed

    def pass_(self, ms: int) -> None:
        self._passed += ms

    def set_(self, by_ms: int) -> None:
        self._set += by_ms


@pytest.mark.parametrize("by_ms", [DAY_MS, -DAY_MS], ids=["forward", "back"])
async def test_a_clock_that_is_set_by_a_day_loses_no_contact_and_gives_no_command_up(
    by_ms: int, tmp_path: Path
) -> None:
    clocks = Clocks()
    audit = Audit(tmp_path / "audit", clock=clocks.wall)
    hub = Hub(clock=clocks.wall, steady=clocks.steady, audit=audit, by="ann")
    async with hosting() as host, Relay(host.url) as relay:
        host.add(writes(tmp_path), name="writer", text="hello")
        hub.start([replace(_target(host), url=relay.url)])
        try:
            await _shown(hub, lifecycle=Lifecycle.WAITING)
            relay.hold()
            trail = await hub.submit(_intent(Primitive.PAUSE, interrupt=True))
            clocks.set_(by_ms)
            assert not await hub.until(lambda: trail.outcome is not None, 1.5), "nobody has waited ten seconds"
            assert _contact(hub) is Contact.LIVE
            source = hub.fleet.sources["local"]
            assert abs(clocks.wall() - source.contact_since) < 60_000
            clocks.pass_(10_000)
            assert await hub.until(lambda: trail.outcome is OutcomeKind.UNKNOWN, WAIT_S), "and now somebody has"
            relay.release()
            assert await hub.until(lambda: trail.outcome is OutcomeKind.APPLIED, WAIT_S)
            assert _contact(hub) is Contact.LIVE
        finally:
            await hub.close()


def test_time_that_passes_is_no_jump() -> None:
    wall, steady = [1_000_000], [5]
    jumps = Jumps(lambda: wall[0], lambda: steady[0])
    wall[0] += 7_200_000
    steady[0] += 7_200_000
    assert jumps.since() == 0
    wall[0] -= DAY_MS
    assert jumps.since() == -DAY_MS
    assert jumps.since() == 0
