"""Opens the application on the terminal, or in a browser, with what the operator has configured and what is kept."""

from __future__ import annotations

import getpass
import signal
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from console import kept_view
from console.app import Watchfloor
from console.audit import Audit
from console.journal.journal import JOURNAL, Journal
from console.journal.records import Retention
from console.places import config_path, state_folder
from console.terminal.driver import TerminalDriver
from console.terminal.lifeline import Lifeline

if TYPE_CHECKING:
    from console.config import Config
    from console.demo.process import DemoProcess
    from console.discovery import Discovery
    from console.policies.rules import Policy
    from console.recording.player import Player
    from console.terminal.browser import BrowserDriver
    from watchfloor.connector import Target


def run(
    *,
    targets: Sequence[Target],
    config: Config,
    demo: DemoProcess | None = None,
    read_only: bool = False,
    discovery: Discovery | None = None,
    ground: str = "",
    browser: bool = False,
    player: Player | None = None,
) -> int:
    """Open the console on these sources, and on the demo if there is one; returns the exit status.

    `discovery` keeps the sources in step with the hosts of this machine. `ground` says on the screen why these are its
    sources, where that does not go without saying. With `browser` it is drawn by whoever started this process, in a
    browser, and there is no terminal to be lost. `player` shows a recording: nothing that happens now is shown then,
    and nothing is kept of it.

    Raises whatever the application could not handle, with the terminal as it was before.
    """
    lifeline = None if browser else Lifeline()
    app = Watchfloor(
        targets=targets,
        config=config,
        demo=demo,
        read_only=read_only,
        discovery=discovery,
        ground=ground,
        clock=now_ms,
        by=_operator(targets),
        audit=Audit(state_folder() / "audit", clock=now_ms, required=config.audit == "required"),
        journal=_journal(config) if player is None else None,
        player=player,
        policies=_policies() if player is None else (),
        lifeline=lifeline,
        driver=_driver(browser=browser),
        kept=state_folder() / kept_view.NAME if player is None else None,
    )
    if lifeline is None:
        app.run(mouse=config.mouse)
    else:
        with lifeline:
            app.run(mouse=config.mouse, size=lifeline.size)
    # The terminal is itself again, and an impatient key would be a signal: it must not cut off what is left to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if app.failure is not None:
        raise app.failure
    return app.status


def _policies() -> tuple[Policy, ...]:
    if not (config_path().parent / "policies.toml").exists():
        return ()  # to read them is not worth a later first frame to whoever has none
    from console.policies.file import load

    return load()


def _driver(*, browser: bool) -> type[TerminalDriver] | type[BrowserDriver]:
    if not browser:
        return TerminalDriver
    from console.terminal.browser import BrowserDriver

    return BrowserDriver


def _journal(config: Config) -> Journal | None:
    if not config.journal_days:
        return None
    retention = Retention.of(config.journal_days, config.journal_mb)
    return Journal(state_folder() / JOURNAL, clock=now_ms, retention=retention)


def now_ms() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def _operator(targets: Sequence[Target]) -> str:
    named = next((target.user for target in targets if target.user), "")
    try:
        return named or getpass.getuser()
    except (KeyError, OSError):
        return "operator"
