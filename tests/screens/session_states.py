"""The main states of the screen of one session, for snapshots and for the pictures of the documentation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from textual.pilot import Pilot

from console.app import Watchfloor
from console.screens.session.screen import SessionScreen
from tests.screens.stage import Clock, StagedHost, shown, until
from tests.unit.fleet.scripted import FULL

_PLAN: Final = """I will rebuild from **clean** sources, then migrate the database.

## How
- first the build folder goes, which may take a while because there are many generated files in it
- then the database is migrated

> Nobody deploys on Fridays.

```diff
@@ -1,2 +1,2 @@
-target = "staging"
+target = "eu"
```"""


def _host(app: Watchfloor, clock: Clock, **capabilities: Any) -> StagedHost:
    host = StagedHost(app, clock)
    host.session(
        "deploy-eu",
        {**FULL, **capabilities},
        traits={"stop_leaves_process": True},
        labels={"team": "web"},
        usage={"input_tokens": 12_300, "output_tokens": 910, "turns": 3},
        in_flight=[{"id": "c2", "name": "shell", "since": host.ago(12)}],
        cwd="/srv/app",
    )
    host.session("test-runner", parent="deploy-eu", lifecycle="running")
    host.events(
        "deploy-eu",
        {"kind": "message", "role": "user", "text": "Deploy to eu, please.", "at": host.ago(260)},
        {"kind": "message", "text": _PLAN, "at": host.ago(250)},
        {
            "kind": "plan",
            "at": host.ago(249),
            "steps": [{"text": "build", "status": "done"}, {"text": "migrate", "status": "active"}, {"text": "report"}],
        },
        {"kind": "tool_call", "call": "c1", "name": "shell", "text": "make build", "at": host.ago(240)},
        {"kind": "tool_output", "call": "c1", "text": "".join(f"cc part_{at}.c\n" for at in range(1, 21))},
        {"kind": "tool_result", "call": "c1", "status": "ok", "duration_ms": 3_200},
        {
            "kind": "notice", "level": "warning", "code": "rate_limit", "text": "the model is busy", "retrying": True,
            "next_at": host.ago(-12), "at": host.ago(180),
        },
        {
            "kind": "mail", "ref": "#1", "state": "consumed", "delivery": "steered", "by": "ann",
            "text": "use the new database", "at": host.ago(150),
        },
        {
            "kind": "intervention", "primitive": "send", "command": "x1", "by": "ann", "outcome": "applied",
            "at": host.ago(150),
        },
        {"kind": "tool_call", "call": "c2", "name": "shell", "text": "make check\nmake seed", "at": host.ago(12)},
        {"kind": "tool_output", "call": "c2", "text": "checking 41 tables\n", "at": host.ago(10)},
    )  # fmt: skip
    return host


async def _open(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> SessionScreen:
    await shown(pilot, app)
    await pilot.press("g")
    if app.fleet_screen.in_sight is not None:
        await pilot.press("enter")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.furnished, lambda: "the screen")
    screen = app.screen
    assert isinstance(screen, SessionScreen)
    await _settle(screen, pilot)
    return screen


async def _settle(screen: SessionScreen, pilot: Pilot[int]) -> None:
    for _ in range(2):
        screen.paint(everything=True)
        await pilot.pause()
        await pilot.pause()


async def _session(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    host = _host(app, clock)
    host.events("deploy-eu", {"kind": "delta", "item": "m", "offset": 0, "text": "While it runs, I read the notes of"})
    await _open(app, clock, pilot)


async def _session_request(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    host = _host(app, clock)
    host.ask("r1", "deploy-eu", text="rm -rf build && make migrate", asked_at=host.ago(134))
    host.events(
        "deploy-eu",
        {
            "kind": "request_opened",
            "request": "r1",
            "request_kind": "approval",
            "digest": "sha256:0",
            "at": host.ago(134),
        },
    )
    screen = await _open(app, clock, pilot)
    clock.now += 1_000
    await _settle(screen, pilot)
    await _settle(screen, pilot)


async def _session_source(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    _host(app, clock)
    screen = await _open(app, clock, pilot)
    await pilot.press("g", "j", "v")
    await _settle(screen, pilot)


async def _session_facts(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    _host(app, clock)
    screen = await _open(app, clock, pilot)
    await pilot.press("f")
    await _settle(screen, pilot)


async def _session_mailbox(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    host = _host(app, clock, send={"priorities": ["normal", "queue"], "replies": True})
    said: list[dict[str, Any]] = [
        {"ref": "#2", "state": "consumed", "delivery": "started", "by": "ann", "text": "Deploy to eu, please."},
        {"ref": "#3", "state": "consumed", "delivery": "queued", "by": "review-bot",
         "text": "The migration has two reviews.\n\n- one wants an index first\n- the other is fine with it"},
        {"ref": "#4", "state": "sent", "delivery": "queued", "by": "ann", "reply_to": "#3",
         "text": "Index first, then migrate."},
        {"ref": "#5", "state": "error", "by": "部署-bot", "text": "restart me", "error": "the mailbox is full"},
    ]  # fmt: skip
    host.events("deploy-eu", *({"kind": "mail", "at": host.ago(140 - at), **one} for at, one in enumerate(said)))
    host.summary("deploy-eu", mailbox={"queued": 1, "refs": 5})
    screen = await _open(app, clock, pilot)
    await pilot.press("M")
    await _settle(screen, pilot)
    await pilot.press("j", "j")
    await _settle(screen, pilot)


SESSIONS: Final[Mapping[str, Callable[[Watchfloor, Clock, Pilot[int]], Awaitable[None]]]] = {
    "session": _session,
    "session-request": _session_request,
    "session-source": _session_source,
    "session-facts": _session_facts,
    "session-mailbox": _session_mailbox,
}
