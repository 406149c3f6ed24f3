"""A fleet that says nothing but what would act on a terminal has the terminal do nothing that another fleet has not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tests.fixtures.hostile import BENIGN, HOSTILE
from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console, press_until
from tests.pty.scripted_host import ScriptedHost, serving
from tests.pty.sequences import copied, sequences, styles, unseen

SESSIONS = 80
FOOTER = "? keys"
"""Stands in the footer whatever the sessions are, and goes while something is asked."""


@dataclass
class Walk:
    """Goes over all the screens, the same way whatever stands on them."""

    terminal: Terminal
    screens: list[str] = field(default_factory=list)

    def keys(self, *keys: str) -> None:
        """Press keys of the fleet screen, each once the one before it is shown."""
        for key in keys:
            self._until(key, partial(self._counts_more_than, self.counted()))
            self.screens.append(self.terminal.screen())

    def counted(self) -> int:
        """How many keys the console has taken, as far as it shows."""
        found = re.search(r"\bkeys=(\d+)\b", self.terminal.screen())
        return int(found[1]) if found else -1

    def _counts_more_than(self, before: int) -> bool:
        return self.counted() > before

    def asked(self, key: str, *more: str) -> None:
        """Press a key that asks something, look at it, and leave it."""
        self._until(key, lambda: FOOTER not in self.terminal.screen())
        self.screens.append(self.terminal.screen())
        for one in more:
            self.terminal.press(one)
        self.back()

    def _until(self, key: str, holds: Callable[[], bool]) -> None:
        # A key that comes too soon after another thing may be meant for that one, and then is not taken.
        for _ in range(20):
            self.terminal.press(key)
            if self.terminal.wait_until(holds, 3.0, or_fail=False):
                return
        raise AssertionError(f"{key} was never taken:\n{self.terminal.screen()}")

    def back(self) -> None:
        self.terminal.press("escape")
        self.terminal.wait_for(FOOTER, SLOW_S)

    def begin(self) -> None:
        self.terminal.wait_for(re.compile(rf"^ {SESSIONS} sessions ", re.MULTILINE), SLOW_S)
        self.terminal.wait_for(re.compile(r"64 need you"), SLOW_S)
        self.terminal.wait_for(re.compile(r"\bkeys=0\b"))

    def roster(self) -> None:
        self.keys("pagedown", "pagedown", "pagedown", "pagedown", "pagedown", "home")
        self.keys(*["j"] * 9, "home")

    def log(self) -> None:
        self.keys("tab", "home", "right", "right", "left")
        for _ in range(4):
            self.asked("enter")
            self.keys("j", "j", "j", "j")
        self.keys("tab", "pagedown", "pagedown", "escape", "home")

    def read(self) -> None:
        """Open the card of the selected session, and read it from its beginning to its end."""
        self.keys("enter")
        self.terminal.wait_for(re.compile(r"^ +(armed|not before)", re.MULTILINE), SLOW_S)
        # First to the end of what is asked, then to that of what its agent has written below.
        armed = re.compile(r"^ +armed(  |$)", re.MULTILINE)
        self._until("G", lambda: armed.search(self.terminal.screen()) is not None)
        self.screens.append(self.terminal.screen())

    def cards(self) -> None:
        for _ in range(9):
            self.keys("i", "G", "home")
        self.keys("escape", "home", "j")
        self.read()
        self.asked("A", "down", "down")
        for key in ("D", "s", "R", "X", "b", "F", "delete"):
            self.asked(key)
        self.asked("m", "down", "down")
        self.keys("y")

    def question(self) -> None:
        self.keys("escape", "home", *["j"] * 6)
        self.read()
        self.asked("o", "down", "down")

    def help(self) -> None:
        self._until("?", lambda: "esc  back" in self.terminal.screen())
        for key in ("pagedown", "end"):
            self.screens.append(self.terminal.screen())
            self.terminal.press(key)
        self.back()

    def declined(self, host: ScriptedHost) -> None:
        """Deny: the host declines, and says why in its own words."""
        self.keys("escape", "home", "j")
        self.read()
        self.keys("d")
        self.terminal.wait_until(host.commands, SLOW_S, what="the command")
        self.terminal.wait_for(re.compile(r"declined|refused"), SLOW_S)
        self.screens.append(self.terminal.screen())

    def small(self) -> None:
        self.terminal.resize(80, 24)
        self.keys("escape", "home", "f", "pagedown", "pagedown", "escape", "enter", "G", "escape", "j")
        self.asked("s")

    def leave(self) -> None:
        self.terminal.press("q")
        self.terminal.wait_for(re.compile(r"y +quit"), SLOW_S)
        press_until(self.terminal, "y", lambda: self.terminal.process.poll() is not None)
        assert self.terminal.wait_exit() == 0


def walk(env: Mapping[str, str], texts: Sequence[str]) -> tuple[Walk, ScriptedHost]:
    host = ScriptedHost(texts, SESSIONS)
    debug = {**env, "WATCHFLOOR_DEBUG_KEYS": "1"}
    with serving(host) as url, console(debug, "connect", url, size=(130, 40)) as terminal:
        gone = Walk(terminal)
        gone.begin()
        gone.roster()
        gone.log()
        gone.cards()
        gone.question()
        gone.help()
        gone.declined(host)
        gone.small()
        gone.leave()
    return gone, host


def test_a_hostile_fleet_has_the_terminal_do_nothing_that_another_has_not(env: dict[str, str]) -> None:
    assert len(set(HOSTILE)) >= 150
    benign, _ = walk(env, BENIGN)
    hostile, host = walk(env, HOSTILE)
    usual, odd = bytes(benign.terminal.raw), bytes(hostile.terminal.raw)
    assert {"CSI ?1049h", "CSI H", "OSC 52"} <= sequences(usual), "the walk saw too little"
    assert sequences(odd) - sequences(usual) == set()
    assert styles(odd) - styles(usual) == set()
    assert unseen(odd) - unseen(usual) == set()
    for text in copied(odd):
        assert all(char.isprintable() or char in "\n\t" for char in text), text
    # It was there all the same: every kind of it, as the text that it is.
    seen = "\n".join(hostile.screens)
    for text in ("[@click=app.quit]", "[/nope]", "[red]a[/red]", "␛[2J␛[H", "␛]52;c;", "<U+202E>gpj.exe", "␛_Gf=32"):
        assert text in seen, text
    assert set(host.commands()) == {"approve"}, "nothing was sent but the one decision"
