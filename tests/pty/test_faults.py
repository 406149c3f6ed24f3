"""A fault of our own, wherever it happens: one line, the terminal as it was, and no traceback with what it knows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from textual.app import App

from console.app import Watchfloor
from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, check_given_back

SECRET = "secret-in-a-local-variable"

# Each defines `spoil`, which puts a fault into the program. The key `i` brings those to pass that wait for one.
IN_A_KEY = """
def spoil():
    from console.screens.fleet.screen import FleetScreen
    FleetScreen.show_next = boom
"""
IN_A_WORKER = """
def spoil():
    from console.screens.fleet.screen import FleetScreen
    async def work():
        boom()
    FleetScreen.show_next = lambda self: self.run_worker(work(), exit_on_error=True)
"""
AS_IT_IS_MADE = """
def spoil():
    from console.screens.fleet.screen import FleetScreen
    FleetScreen.compose = boom
"""
AS_IT_BEGINS = """
def spoil():
    from console.hub import Hub
    Hub.start = boom
"""
WHILE_PAINTING = """
def spoil():
    from console.screens.fleet.screen import FleetScreen
    from widgets.roster import Roster
    def show_next(self):
        Roster.render_line = boom
        self.query_one(Roster).refresh()
    FleetScreen.show_next = show_next
"""
WITH_A_PICTURE_OF_ITSELF = """
def spoil():
    from console.screens.fleet.screen import FleetScreen
    class Drawn(LookupError):
        def __rich__(self):
            return "[b]" + "secret-in-a-local-variable"
    def show_next(self):
        raise Drawn("no such thing")
    FleetScreen.show_next = show_next
"""
WHERE_KEYS_ARE_READ = """
def spoil():
    from textual.drivers.linux_driver import LinuxDriver
    LinuxDriver.process_message = boom
"""
IN_A_THREAD = """
def spoil():
    import threading
    from console.screens.fleet.screen import FleetScreen
    def show_next(self):
        thread = threading.Thread(target=boom)
        thread.start()
        thread.join()
        self.app.exit(return_code=1)
    FleetScreen.show_next = show_next
"""

SCRIPT = """
import sys
from console.cli.main import main
def boom(*_, **__):
    token = 'secret-in-a-local-variable'
    raise LookupError('no such thing')
{spoil}
spoil()
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(IN_A_KEY, "LookupError", id="key"),
        pytest.param(IN_A_WORKER, "LookupError", id="worker"),
        pytest.param(AS_IT_IS_MADE, "LookupError", id="compose"),
        pytest.param(AS_IT_BEGINS, "LookupError", id="start"),
        pytest.param(WHILE_PAINTING, "LookupError", id="paint"),
        pytest.param(WITH_A_PICTURE_OF_ITSELF, "Drawn", id="rich"),
        pytest.param(WHERE_KEYS_ARE_READ, "RuntimeError", id="input"),
        pytest.param(IN_A_THREAD, "", id="thread"),
    ],
)
def test_a_fault_of_our_own_is_one_line_and_not_a_broken_terminal(
    env: dict[str, str], tmp_path: Path, spoil: str, said: str
) -> None:
    script = tmp_path / "faulty.py"
    script.write_text(SCRIPT.replace("{spoil}", spoil))
    with Terminal([sys.executable, str(script), "connect", "ws://127.0.0.1:9"], env=env) as terminal:
        terminal.wait_until(lambda: "STATE" in terminal.screen() or terminal.process.poll() is not None, SLOW_S)
        for _ in range(40):
            if terminal.process.poll() is None:
                terminal.press("i")
                terminal.wait_until(lambda: terminal.process.poll() is not None, 1.0, or_fail=False)
        assert terminal.wait_exit(SLOW_S) == 1
        if b"\x1b[?1049h" in terminal.raw:
            check_given_back(terminal)
        after = bytes(terminal.raw).rpartition(b"\x1b[?1049l")[2]
        assert said.encode() in after
        assert after.count(b"\n") <= 1
        assert b"Traceback" not in terminal.raw
        assert SECRET.encode() not in terminal.raw


def test_the_toolkit_still_asks_where_a_fault_is_taken_in() -> None:
    for hook in ("_fatal_error", "panic"):
        assert callable(getattr(App, hook, None)), f"the toolkit has no {hook} any more: its tracebacks would show"
        assert hook in vars(Watchfloor)
