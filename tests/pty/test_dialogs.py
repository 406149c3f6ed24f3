"""The dialogs that steer, in a real terminal before a host that offers everything: what is agreed to goes out, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pytest

from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console, pick, press_until
from tests.pty.scripted_host import Frame, ScriptedHost, serving

FIELDS: Final[Sequence[Mapping[str, Any]]] = (
    {"name": "where", "type": "choice", "label": "Where to", "choices": [{"value": "live", "label": "before all"}]},
    {"name": "token", "type": "secret", "label": "Token"},
)
OFFERED: Final[Mapping[str, Any]] = {
    "reseed": {"modes": ["clear", "rewind", "replace", "compact", "model"]},
    "budget": {"tokens": True, "turns": True},
    "fork": {},
    "notify": {},
    "delete": {},
    "act": {"acts": [{"id": "publish", "label": "Publish it", "effect": "puts it before users", "fields": FIELDS}]},
}


class Generous(ScriptedHost):
    """One session that offers everything there is; it has not been told anything that can be gone back to."""

    def __init__(self) -> None:
        super().__init__(["calm"], 1)

    def greeting(self) -> list[Frame]:
        return [
            {**frame, "profiles": {"p": {"capabilities": OFFERED, "traits": {}}}}
            if frame["type"] == "profiles"
            else frame
            for frame in super().greeting()
        ]

    def did(self) -> list[Mapping[str, Any]]:
        """What was asked of it, in its order."""
        return [frame["do"] for frame in self.told if frame["type"] == "command"]


def asks(terminal: Terminal, text: str) -> Callable[[], bool]:
    return lambda: text in terminal.screen()


def step(terminal: Terminal, key: str, text: str) -> None:
    """Press a key, again where it came too early, until the screen shows this."""
    press_until(terminal, key, asks(terminal, text))


def agree(terminal: Terminal, host: Generous, count: int) -> None:
    """Say yes until it has gone out."""
    press_until(terminal, "y", lambda: len(host.did()) == count)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
def test_what_is_agreed_to_goes_out_once(env: dict[str, str], size: tuple[int, int]) -> None:
    host = Generous()
    with serving(host) as url, console(env, "connect", url, size=size) as terminal:
        terminal.wait_for("q quit", SLOW_S)
        terminal.wait_for("00calm", SLOW_S)

        step(terminal, "R", "what 00calm")
        terminal.wait_for("it goes on before a message", SLOW_S)
        terminal.resize(120, 40)
        terminal.wait_for("esc  leave it", SLOW_S)
        step(terminal, "m", "name of the model")
        terminal.press("ctrl+u", "large", "enter")  # its key is a letter in the box where it was pressed twice
        terminal.wait_for("change the model of 00calm", SLOW_S)
        terminal.wait_for("it goes on with large; nothing is forgotten", SLOW_S)
        assert not host.did()
        agree(terminal, host, 1)
        terminal.resize(*size)

        step(terminal, "b", "most tokens (1 of 2)")
        terminal.press("ctrl+u", "200k", "enter")
        terminal.wait_for("most turns (2 of 2)", SLOW_S)
        terminal.press("40", "enter")
        terminal.wait_until(lambda: len(host.did()) == 2, SLOW_S, what="the budget sent")

        step(terminal, "m", "what else 00calm")
        step(terminal, "1", "Where to (1 of 2)")
        pick(terminal, "1", "before all", asks(terminal, "Token (2 of 2)"))
        terminal.press("ctrl+u", "hush", "enter")
        terminal.wait_for("Token: given, not shown", SLOW_S)
        assert "hush" not in terminal.screen()
        agree(terminal, host, 3)

    assert host.did() == [
        {"primitive": "reseed", "mode": "model", "to": "large"},
        {"primitive": "budget", "tokens": 200_000, "turns": 40},
        {"primitive": "act", "act": "publish", "fields": {"where": "live", "token": "hush"}},
    ]


def test_what_is_left_goes_nowhere(env: dict[str, str]) -> None:
    host = Generous()
    with serving(host) as url, console(env, "connect", url, size=(80, 24)) as terminal:
        terminal.wait_for("q quit", SLOW_S)
        terminal.wait_for("00calm", SLOW_S)
        step(terminal, "R", "what 00calm")
        step(terminal, "c", "clear 00calm")
        terminal.press("escape")
        terminal.wait_gone("clear 00calm", SLOW_S)
        terminal.press("delete")
        terminal.wait_for("delete 00calm", SLOW_S)
        terminal.wait_for("is deleted for good", SLOW_S)
        terminal.press("escape")
        terminal.wait_gone("deleted for good", SLOW_S)
        assert not host.did()
