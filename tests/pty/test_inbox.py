"""The inbox in a real terminal: fast where it is safe, and never about anything but what was shown."""

from __future__ import annotations

import os
import random
import re
import threading
import time

import pytest

from tests.pty.asking_host import AskingHost, asking
from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console, press_until

RACES = 50 if "WATCHFLOOR_TORTURE" in os.environ else 8
GAPS_S = (0.4, 0.4, 0.4, 0.4, 0.6, 1.0, 2.0, 4.0)
ARMED = re.compile(r"^ +armed(  |$)", re.MULTILINE)


def opened(env: dict[str, str], url: str, size: tuple[int, int] = (110, 32)) -> Terminal:
    return console(env, "connect", url, size=size)


@pytest.mark.parametrize("way", ["", "S", "?", "w"], ids=["fleet", "sources", "help", "inbox"])
def test_what_is_raised_is_decided_by_two_keys_400_ms_apart(env: dict[str, str], way: str) -> None:
    """Under load a frame may be late, and a key that is too early is refused: then another request is as good, and in
    the end a slower hand."""
    host = AskingHost()
    with asking(host) as url, opened(env, url) as terminal:
        terminal.wait_for(" live ", SLOW_S)
        for attempt, gap_s in enumerate(GAPS_S):
            if way:
                terminal.press(way)
                settle(terminal, 1.0)
            host.ask(f"agent-{attempt}", f"make part-{attempt}")
            terminal.wait_for("needs you", SLOW_S)
            raised = time.monotonic()
            terminal.press("i")
            settle(terminal, gap_s)
            terminal.press("a")
            if terminal.wait_until(lambda: host.decided, 2.0, or_fail=False):
                took = (time.monotonic() - raised) * 1000
                print(f"{way or 'fleet'}: decided {took:.0f} ms after the first key, keys {gap_s * 1000:.0f} ms apart")
                break
            host.end(f"agent-{attempt}")
            for _ in range(3):
                terminal.press("escape")
                settle(terminal, 0.8)
        assert [(one.option, one.text) for one in host.decided] == [("yes", f"make part-{attempt}")]


def test_a_command_of_100_000_characters_is_undecidable_until_its_end_was_seen(env: dict[str, str]) -> None:
    text = "echo " + "harmless " * 11_110 + "; rm -rf ~/work"
    assert len(text) >= 100_000
    host = AskingHost()
    with asking(host) as url, opened(env, url, size=(80, 24)) as terminal:
        terminal.wait_for(" live ", SLOW_S)
        host.ask("agent", text)
        terminal.wait_for("1 needs you", SLOW_S)
        terminal.press("w")
        terminal.wait_for("RISK", SLOW_S)
        terminal.press("enter")
        terminal.wait_for("approve after the end was seen", SLOW_S)
        for _ in range(3):
            terminal.press("a")
            settle(terminal, 0.8)
            terminal.press("space")
            settle(terminal, 0.8)
        assert host.decided == []
        terminal.press("end")  # first to where the command ends, then to the end of what stands below it
        terminal.wait_for("rm -rf ~/work", SLOW_S)
        press_until(terminal, "end", lambda: "after the end was seen" not in terminal.screen())
        press_until(terminal, "a", lambda: host.decided)
        assert [one.option for one in host.decided] == ["yes"]


def test_races_around_the_key_decide_nothing_but_what_was_shown(env: dict[str, str]) -> None:
    """Requests come, go, are re-sorted by their risk and ask for something else, right around each key."""
    dice = random.Random(11)
    host = AskingHost()
    number = 0

    def text() -> str:
        nonlocal number
        number += 1
        return f"{dice.choice(['make', 'sudo make', 'rm -rf'])} part-{number:04}"

    with asking(host) as url, opened(env, url) as terminal:
        terminal.wait_for(" live ", SLOW_S)
        for at in range(6):
            host.ask(f"agent-{at}", text())
        terminal.wait_for("6 need you", SLOW_S)
        terminal.press("w")
        terminal.wait_for("RISK", SLOW_S)
        checked = 0
        for race in range(RACES):
            while len(host.open) < 4:
                host.ask(f"more-{race}-{len(host.open)}", text())
            terminal.press("i")
            settle(terminal, 0.4)  # not a letter of a word, and not the card that was there before
            terminal.wait_until(lambda: ARMED.search(terminal.screen()), 1.0, or_fail=False)
            seen = terminal.screen()
            changes = [_change(host, dice, race, text) for _ in range(dice.randint(1, 3))]
            delay = dice.random() * 0.04

            def disturb(changes: list[tuple[str, str]] = changes, delay: float = delay) -> None:
                time.sleep(delay)  # the race itself: some before, some after the key
                for id, said in changes:
                    if said:
                        host.ask(id, said)
                    else:
                        host.end(id)

            thread = threading.Thread(target=disturb)
            thread.start()
            terminal.take_in(dice.random() * 0.04)
            seen += terminal.screen()
            terminal.press(dice.choice("ad"))
            thread.join()
            settle(terminal, 0.4)
            card = [part.split("─" * 20)[0] for part in re.findall(r" runs [│|] (.*)", seen)]
            for decided in host.decided[checked:]:
                assert any(decided.text in line for line in card), (decided, seen)
            checked = len(host.decided)
            terminal.press("escape")
            settle(terminal, 0.4)
        print(f"{RACES} races, {checked} decisions, each of what was shown")
        assert checked >= RACES // 8


def _change(host: AskingHost, dice: random.Random, race: int, text: object) -> tuple[str, str]:
    """What happens in a race: which request, and what it asks from now on; empty: it is withdrawn."""
    made = text() if callable(text) else ""
    match dice.randrange(3):
        case 0:
            return f"new-{race}-{dice.randrange(1_000)}", str(made)
        case 1:
            return dice.choice(host.open), ""
        case _:
            return dice.choice(host.open), str(made)


def test_500_agents_that_ask_at_once_ring_once_and_the_inbox_is_there_at_once(env: dict[str, str]) -> None:
    host = AskingHost()
    with asking(host) as url, opened(env, url) as terminal:
        terminal.wait_for(" live ", SLOW_S)
        terminal.press("w")
        terminal.wait_for("nothing waits", SLOW_S)
        before = bells(terminal)
        began = time.monotonic()
        for at in range(500):
            host.ask(f"agent-{at:03}", f"make part-{at:03}")
        asked = time.monotonic()
        # Where the console is held up, the key may come before the first request.
        press_until(terminal, "i", lambda: re.search(r" runs . make part-", terminal.screen()))
        shown = time.monotonic()
        terminal.wait_for("500 need you", SLOW_S)
        print(f"500 asked within {(asked - began) * 1000:.0f} ms, a card {(shown - asked) * 1000:.0f} ms after the key")
        settle(terminal, 1.2)
        rung = bells(terminal) - before
        assert 1 <= rung <= 1 + int(time.monotonic() - began)
        press_until(terminal, "a", lambda: host.decided)


def settle(terminal: Terminal, wait_s: float) -> None:
    """Take in what is painted for so long, as an operator who looks does."""
    until = time.monotonic() + wait_s
    while (left := until - time.monotonic()) > 0:
        terminal.take_in(left)


def bells(terminal: Terminal) -> int:
    """Bells that are not the end of a control sequence."""
    return re.sub(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)", b"", bytes(terminal.raw)).count(b"\x07")
