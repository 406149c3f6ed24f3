"""What the tests in a real terminal share: consoles and programs as processes of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.pty.harness import PATIENCE_S, Terminal

WATCHFLOOR = (sys.executable, "-m", "console.cli.main")
SLOW_S = PATIENCE_S
_APART_S = 0.35

PROGRAM = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
n = 0
while True:
    n += 1
    print("line", n, flush=True)
    time.sleep(0.02)
"""


@contextmanager
def program(env: Mapping[str, str], folder: Path, *options: str) -> Iterator[tuple[str, int]]:
    """`watchfloor run -- PROGRAM` in a process of its own; yields its URL and the program's process id."""
    pid_file = folder / "pid"
    words = [*WATCHFLOOR, "run", "--serve", "127.0.0.1:0", "--name", "counter", *options]
    with subprocess.Popen(
        [*words, "--", sys.executable, "-c", PROGRAM, str(pid_file)],
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            found = re.search(r"listening on (ws://\S+)", first)
            assert found, first
            yield found[1], _pid(pid_file, process)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()


def _pid(file: Path, process: subprocess.Popen[str]) -> int:
    for _ in range(3_000):
        if file.exists() and (text := file.read_text()):
            return int(text)
        try:
            process.wait(0.01)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError("the program did not start")


def process_state(pid: int) -> str:
    """The state of a process as the process table has it, such as "T" for stopped."""
    done = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:1]


def console(env: Mapping[str, str], *words: str, size: tuple[int, int] = (100, 30)) -> Terminal:
    return Terminal([*WATCHFLOOR, *words], size, env=env)


def press_until(terminal: Terminal, key: str, holds: Callable[[], object]) -> None:
    """Press a key again until it counts: what asks for it takes no key in its first moment, nor within 700 ms of one
    that was pressed too soon after a text. Where the machine is slow it is pressed less and less often."""
    wait_s = 1.2
    for _ in range(12):
        terminal.press(key)
        if terminal.wait_until(holds, wait_s, or_fail=False):
            return
        wait_s = min(1.5 * wait_s, 10.0)
    raise AssertionError(f"{key} never counted:\n{terminal.screen()}")


def hit(terminal: Terminal, key: str, text: str | re.Pattern[str]) -> None:
    """Press a key until the screen shows what it does."""
    found = text.search if isinstance(text, re.Pattern) else lambda screen: text in screen
    press_until(terminal, key, lambda: found(terminal.screen()))


def select(terminal: Terminal, name: str) -> None:
    """Put the cursor of the roster on a session, row by row: a key goes out once the one before it has moved it."""

    def cursor() -> int:
        return next((y for y, line in enumerate(terminal.screen().split("\n")) if line.startswith("▌")), -1)

    wanted = re.compile(rf"^▌.* {re.escape(name)} ", re.MULTILINE)
    for _ in range(40):
        before = cursor()
        if before >= 0 and wanted.search(terminal.screen()):
            return
        for key in "jg":
            terminal.press(key)
            if terminal.wait_until(lambda: cursor() != before, 3.0, or_fail=False):  # noqa: B023 - called at once
                break
    raise AssertionError(f"{name} was never selected:\n{terminal.screen()}")


def open_box(terminal: Terminal, key: str, title: str) -> None:
    """Open an empty text box by its key, which is a letter in it where it was pressed twice."""
    hit(terminal, key, title)
    terminal.press("ctrl+u")


def pick(terminal: Terminal, key: str, label: str, holds: Callable[[], object]) -> None:
    """Choose in a form: there a key only puts the cursor on its choice, while nothing else is typed; enter takes it."""

    def chosen() -> bool:
        return f"takes {label}" in terminal.screen()

    for _ in range(12):
        terminal.press("ctrl+u")
        if chosen() or terminal.wait_until(chosen, 0.3, or_fail=False):
            break
        terminal.press(key)
        if terminal.wait_until(chosen, 2.0, or_fail=False):
            break
    press_until(terminal, "enter", holds)


def apart(terminal: Terminal) -> None:
    """Let 300 ms pass: a hand that means each key by itself needs longer from one to the next, and keys that follow
    each other faster are taken for letters of a text."""
    terminal.wait_until(lambda: False, _APART_S, or_fail=False)


def check_given_back(terminal: Terminal) -> None:
    """Every mode of the terminal that was set has been taken back since."""
    raw = bytes(terminal.raw)
    assert raw.rfind(b"\x1b[?1049l") > raw.rfind(b"\x1b[?1049h"), "the alternate screen was not left"
    assert raw.rfind(b"\x1b[?25h") > raw.rfind(b"\x1b[?25l"), "the cursor is still hidden"
    assert raw.rfind(b"\x1b[?1000l") > raw.rfind(b"\x1b[?1000h"), "the mouse is still taken"
