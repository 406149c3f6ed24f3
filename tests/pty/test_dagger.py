"""Agents of a Dagger session in a real terminal, from the keys of the console to the engine."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from tests.peers.dagger_conversation import Models
from tests.peers.dagger_engine import in_state
from tests.peers.dagger_server import DaggerServer
from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console, press_until, select

T = TypeVar("T")
TOKEN = "DAGGER_TOKEN"


class Elsewhere:
    """A session on an event loop of its own, beside the terminal."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: DaggerServer) -> None:
        self._loop = loop
        self.server = server

    def call(self, function: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(function)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SLOW_S)


@contextmanager
def session() -> Iterator[Elsewhere]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    elsewhere = Elsewhere(loop, DaggerServer())
    try:
        elsewhere.run(elsewhere.server.__aenter__())
        yield elsewhere
    finally:
        elsewhere.run(elsewhere.server.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _shows(terminal: Terminal, what: str) -> bool:
    return re.search(what, terminal.screen(), re.MULTILINE) is not None


def press_apart(terminal: Terminal, key: str, holds: Callable[[], object]) -> None:
    """Press a key until it counts, with pauses: after something was written the console takes none without."""
    for _ in range(20):
        terminal.press(key)
        if terminal.wait_until(holds, 2.0, or_fail=False):
            return
    raise AssertionError(f"{key} never counted:\n{terminal.screen()}")


def test_an_agent_is_paused_rewound_and_resumed_and_another_stopped(env: dict[str, str]) -> None:
    with session() as elsewhere:
        server = elsewhere.server
        helper = elsewhere.run(in_state(server.engine, "RUNNING", "helper"))
        # The helper stays in its step until it is let go on by itself.
        its_models, server.engine.models = server.engine.models, Models()
        writer = elsewhere.run(in_state(server.engine, "RUNNING", "writer"))
        env = {**env, TOKEN: server.token}
        with console(env, "connect", server.url, "--token-env", TOKEN, size=(130, 40)) as terminal:
            wait = partial(terminal.wait_for, timeout_s=SLOW_S)
            wait(re.compile(r"running +writer"))
            wait(re.compile(r"running +helper"))
            select(terminal, "writer")
            wait("P pause now")
            press_apart(terminal, "P", partial(_shows, terminal, r"paused +writer"))
            wait("effect seen: paused")
            assert (writer.state, helper.state) == ("PAUSED", "RUNNING")
            wait("r Resume")

            assert [turn.text for turn in writer.conversation.turns] == ["first", "echo: first", "second"]
            press_apart(terminal, "R", partial(_shows, terminal, "rewind to a message"))
            press_until(terminal, "r", partial(_shows, terminal, "go on before which message"))
            press_until(terminal, "1", partial(_shows, terminal, "forgotten: 1 message"))
            press_until(terminal, "y", partial(_shows, terminal, "1 of 3 messages are gone"))
            assert writer.state == "PAUSED"
            assert [turn.text for turn in writer.conversation.turns] == ["first", "echo: first"]

            press_apart(terminal, "s", partial(_shows, terminal, "queues until it is resumed"))
            terminal.press("ctrl+u")
            terminal.press("instead", "enter")
            wait("effect seen: queued until it goes on")
            press_apart(terminal, "P", partial(_shows, terminal, "a message that waits unread is discarded"))
            terminal.press("escape")
            wait("r Resume")
            press_apart(terminal, "r", lambda: writer.state == "RUNNING")
            wait(re.compile(r"running +writer"))
            elsewhere.call(server.engine.models.release)
            wait("echo: instead")
            wait(re.compile(r"idle +writer"))

            select(terminal, "helper")
            press_apart(terminal, "X", partial(_shows, terminal, "stop helper"))
            press_until(terminal, "y", partial(_shows, terminal, r"stopping +helper"))
            assert helper.state == "RUNNING", "the engine lets the step end first"
            elsewhere.call(its_models.release)
            wait(re.compile(r"stopped +helper"))
            done = [verb for verb, _ in server.engine.verbs if verb != "wait"]
            assert done == ["pause", "reseed", "send", "resume", "stop"]
