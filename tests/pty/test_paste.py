"""Pasted text in a real terminal: whatever stands in it, it is text, and never a key."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from tests.pty.kit import SLOW_S, console, open_box, process_state, program

BEGIN, END = b"\x1b[200~", b"\x1b[201~"


def test_the_parts_of_the_toolkit_that_the_terminal_is_made_of_are_there() -> None:
    start = inspect.getsource(LinuxDriver.start_application_mode)
    assert "self._run_input_thread" in start
    assert "self.run_input_thread()" in inspect.getsource(LinuxDriver._run_input_thread)
    assert "self.exit_event.set()" in inspect.getsource(LinuxDriver.disable_input)
    assert "self.fileno = " in inspect.getsource(LinuxDriver.__init__)
    assert list(inspect.signature(LinuxDriver.process_message).parameters) == ["self", "message"]
    parser = XTermParser()
    assert [str(getattr(message, "key", "")) for message in parser.feed("a\x1b[A")] == ["a", "up"]
    assert not list(parser.tick())


def test_pasted_escapes_and_line_ends_neither_submit_nor_decide(env: dict[str, str], tmp_path: Path) -> None:
    with program(env, tmp_path, "--stdin") as (url, pid), console(env, "connect", url) as terminal:
        terminal.wait_for(re.compile(r"running +counter"), SLOW_S)
        terminal.write(BEGIN + b"p\x1bp\x1b[A\x1b\rXy\x1bp" + END)
        # A key that follows a paste so closely may be a part of what was meant to be pasted.
        open_box(terminal, "s", "send to counter")
        terminal.write(BEGIN + b"one\x1b\rtwo\x1bX\x1b\x1bpy" + END)
        terminal.wait_for(re.compile(r"one.\n two"))
        terminal.wait_for(re.compile(r"two.X..py"))
        terminal.wait_for("enter sends")
        terminal.press("!")
        terminal.wait_for("py!")
        assert process_state(pid) in ("S", "R")
        terminal.press("escape")
        terminal.wait_gone("enter sends")
        assert "requested" not in terminal.screen()
        assert process_state(pid) in ("S", "R")


def test_a_paste_that_never_ends_is_dropped_and_the_keys_come_back(env: dict[str, str], tmp_path: Path) -> None:
    with program(env, tmp_path) as (url, pid), console(env, "connect", url) as terminal:
        terminal.wait_for(re.compile(r"running +counter"), SLOW_S)
        terminal.write(BEGIN + b"pause it: p\x1bp\rX")
        terminal.wait_for("a paste of 15 characters was dropped: its end never came", SLOW_S)
        assert process_state(pid) in ("S", "R")
        terminal.press("?")
        terminal.wait_for("keys  for counter", SLOW_S)
