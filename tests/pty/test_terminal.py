"""The terminal that is lost, taken away or given back: the console ends, sleeps or goes on, and never hangs."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, WATCHFLOOR, check_given_back, console, press_until, process_state, program

ENDS_S = 20.0
"""A few seconds on a machine at rest."""
PROMPT = "ready>"
SHELL = ("/bin/sh", "-i")


def children(pid: int) -> list[int]:
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in done.stdout.split()]


def folders(place: Path) -> list[Path]:
    return list(place.glob("watchfloor-demo-*"))


def open_demo(env: dict[str, str], place: Path, *, controls: bool = True) -> Terminal:
    """The console on its own demo, which streams faster than it is read."""
    words = [*WATCHFLOOR, "demo", "--rate", "400"]
    return Terminal(words, (120, 40), env={**env, "TMPDIR": str(place)}, controls=controls)


def wait_gone(terminal: Terminal, demo: list[int], place: Path) -> None:
    """Wait for the end of console, demo and its folder."""
    terminal.wait_until(lambda: terminal.process.poll() is not None, ENDS_S, what="the end of the console")
    terminal.wait_until(lambda: not any(map(process_state, demo)), ENDS_S, what="the end of the demo")
    terminal.wait_until(lambda: not folders(place), ENDS_S, what="the end of the demo's folder")


@pytest.mark.parametrize("reads", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize("controls", [True, False], ids=["with-sighup", "without"])
def test_a_lost_terminal_ends_the_console_and_its_demo(
    env: dict[str, str], tmp_path: Path, controls: bool, reads: bool
) -> None:
    with open_demo(env, tmp_path, controls=controls) as terminal:
        terminal.wait_for("need you", SLOW_S)
        demo = children(terminal.process.pid)
        assert demo
        assert folders(tmp_path)
        if not reads:
            fill(terminal)
        terminal.hang_up()
        wait_gone(terminal, demo, tmp_path)
        assert terminal.process.returncode == 128 + signal.SIGHUP


@pytest.mark.parametrize("when", ["at-once", "later"])
def test_a_terminal_that_is_lost_while_the_demo_starts_leaves_nothing_behind(
    env: dict[str, str], tmp_path: Path, when: str
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    with open_demo(env, place) as terminal:
        demo: list[int] = []

        def begun() -> bool:
            demo[:] = children(terminal.process.pid)
            return bool(demo) and (when == "at-once" or bool(folders(place)))

        terminal.wait_until(begun, SLOW_S, what="the demo to be started")
        terminal.hang_up()
        wait_gone(terminal, demo, place)
        assert terminal.process.returncode == 128 + signal.SIGHUP
        assert list(place.iterdir()) == []


def fill(terminal: Terminal) -> None:
    """Read nothing until the thread that writes to the terminal stands still, though the demo streams on."""
    threads = Path(f"/proc/{terminal.process.pid}/task")
    writer = max(threads.iterdir(), key=written)
    waits = time.monotonic() + SLOW_S
    before = -1
    while (so_far := written(writer)) != before:
        assert time.monotonic() < waits, "the console never waited for its terminal"
        before = so_far
        time.sleep(1)


def written(thread: Path) -> int:
    """Bytes that a thread has written so far to files and terminals; what is sent through sockets does not count."""
    found = re.search(r"^wchar: (\d+)$", (thread / "io").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


# A program that shares the terminal, and sets it so that what finds no room at once is not written at all.
UNBLOCKS = """
import os, sys, time
if os.fork() == 0:
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
    os.set_blocking(2, False)
    os.rename(sys.argv[1], sys.argv[1] + ".done")
    os._exit(0)
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_a_terminal_that_can_no_longer_be_written_to_is_lost(env: dict[str, str], tmp_path: Path) -> None:
    now = tmp_path / "now"
    words = [sys.executable, "-c", UNBLOCKS, str(now), *WATCHFLOOR, "demo", "--rate", "400"]
    # Without buffers Python would drop what was not written, and say nothing.
    with Terminal(words, (120, 40), env={**env, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": ""}) as terminal:
        terminal.wait_for("need you", SLOW_S)
        demo = children(terminal.process.pid)
        now.touch()
        terminal.wait_until(Path(f"{now}.done").exists, what="the terminal to be set")
        # A write that found no room before would wait for ever.
        terminal.wait_until(lambda: False, 1.0, or_fail=False)
        assert terminal.process.wait(SLOW_S) == 128 + signal.SIGHUP
        wait_gone(terminal, demo, tmp_path)


BREAKS = """
import threading, time
from console.terminal.lifeline import Lifeline
with Lifeline():
    print("\\x1b[?1049h\\x1b[?25l\\x1b[?1000h", flush=True)
    threading.Thread(target=lambda: 1 / 0, name="textual-output").start()
    time.sleep(60)
"""


def test_what_still_can_be_written_gives_the_terminal_back(env: dict[str, str]) -> None:
    with Terminal([sys.executable, "-c", BREAKS], env=env) as terminal:
        assert terminal.wait_exit() == 128 + signal.SIGHUP
        terminal.wait_for("watchfloor: the terminal could no longer be written to")
        check_given_back(terminal)
        assert b"Traceback" not in terminal.raw


def test_a_terminal_that_was_left_in_a_bad_way_is_taken_all_the_same(env: dict[str, str]) -> None:
    unblocked = "import os, sys; os.set_blocking(2, False); os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", unblocked, *WATCHFLOOR, "connect", "ws://127.0.0.1:9"]
    with Terminal(words, (120, 40), env={**env, "PYTHONUNBUFFERED": ""}) as terminal:
        terminal.wait_for("127.0.0.1:9 not reached", SLOW_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_a_console_that_waits_for_its_terminal(
    env: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    with open_demo(env, tmp_path) as terminal:
        terminal.wait_for("need you", SLOW_S)
        demo = children(terminal.process.pid)
        fill(terminal)
        terminal.process.send_signal(number)
        terminal.process.wait(ENDS_S)
        assert terminal.process.returncode == 128 + number
        wait_gone(terminal, demo, tmp_path)


def test_a_console_goes_to_sleep_and_wakes_as_a_job_of_its_shell(env: dict[str, str], tmp_path: Path) -> None:
    with (
        program(env, tmp_path) as (url, pid),
        Terminal(SHELL, (100, 30), env={**env, "PS1": f"{PROMPT} ", "ENV": ""}) as terminal,
    ):
        terminal.wait_for(PROMPT)
        terminal.write(f"{shlex.join(WATCHFLOOR)} connect {url}\r".encode())
        terminal.wait_for(re.compile(r"running +counter"), SLOW_S)
        (job,) = children(terminal.process.pid)
        for _ in range(2):
            terminal.press("ctrl+z")
            terminal.wait_until(lambda: process_state(job) == "T", what="the console to stop")
            terminal.wait_for(PROMPT)
            check_given_back(terminal)
            terminal.write(b"echo al''ive\r")
            terminal.wait_for(re.compile(r"^alive", re.MULTILINE))
            terminal.write(b"fg\r")
            terminal.wait_for(re.compile(r"running +counter"), SLOW_S)
            wanted = newest(terminal) + 50
            terminal.wait_until(partial(reached, terminal, wanted), SLOW_S, what="the program's output")
        # The keys are the console's again, each once.
        press_until(terminal, "p", lambda: process_state(pid) == "T")
        press_until(terminal, "r", lambda: "effect seen: running" in terminal.screen())
        terminal.press("q")
        terminal.wait_for("quit?")
        press_until(terminal, "y", lambda: process_state(job) == "")
        check_given_back(terminal)
        leave_shell(terminal)


def reached(terminal: Terminal, number: int) -> bool:
    return newest(terminal) >= number


def newest(terminal: Terminal) -> int:
    """The highest number that the program has counted to, as far as the screen shows."""
    return max(map(int, re.findall(r"line (\d+)", terminal.screen())), default=0)


def leave_shell(terminal: Terminal) -> None:
    """End the shell, whatever was typed at its prompt."""
    terminal.write(b"\x15exit\r")
    terminal.wait_exit()


def test_a_console_that_nobody_could_wake_says_so_and_stays(env: dict[str, str]) -> None:
    with console(env, "connect", "ws://127.0.0.1:9") as terminal:
        terminal.wait_for("127.0.0.1:9 not reached", SLOW_S)
        terminal.press("ctrl+z")
        terminal.wait_for("no shell is there that could wake this console")
        assert process_state(terminal.process.pid) != "T"


def test_a_console_that_was_stopped_by_force_takes_its_terminal_again(env: dict[str, str]) -> None:
    with console(env, "connect", "ws://127.0.0.1:9") as terminal:
        terminal.wait_for("127.0.0.1:9 not reached", SLOW_S)
        terminal.process.send_signal(signal.SIGSTOP)
        terminal.wait_until(lambda: process_state(terminal.process.pid) == "T", what="the console to stop")
        terminal.raw.clear()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_until(lambda: b"\x1b[?1049h" in terminal.raw, what="the terminal to be taken")
        terminal.press("q")
        terminal.wait_for("quit?")
        press_until(terminal, "y", lambda: terminal.process.poll() is not None)
        assert terminal.wait_exit() == 0
        check_given_back(terminal)


def test_the_key_that_suspends_does_nothing_to_a_console_that_leaves(env: dict[str, str], tmp_path: Path) -> None:
    with Terminal(SHELL, (100, 30), env={**env, "PS1": f"{PROMPT} ", "ENV": "", "TMPDIR": str(tmp_path)}) as terminal:
        terminal.wait_for(PROMPT)
        terminal.write(f"{shlex.join(WATCHFLOOR)} demo\r".encode())
        terminal.wait_for("need you", SLOW_S)
        terminal.press("q")
        terminal.wait_for(re.compile(r"y +quit"))
        # To the last word: the suspend key makes a terminal drop what it has not passed on.
        press_until(terminal, "y", lambda: b"\x1b[?1049l" in terminal.raw and b"\x1b[?1004l" in terminal.raw)
        # The terminal is the shell's again, and the demo still has to end.
        for _ in range(3):
            terminal.press("ctrl+z")
            terminal.take_in(0.1)
        terminal.wait_until(lambda: not children(terminal.process.pid), SLOW_S, what="the end of the console")
        terminal.write(b"\x15jobs; echo no job\r")
        screen = terminal.wait_for(re.compile(r"^no job", re.MULTILINE))
        assert "Stopped" not in screen
        check_given_back(terminal)
        assert not folders(tmp_path)
        leave_shell(terminal)
